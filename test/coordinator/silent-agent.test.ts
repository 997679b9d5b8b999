// A silent agent may be dead. Long before the leader knows, the agent gets no new assignment.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { agentId, assignmentNumber } from "../../src/ids.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import type { Heartbeat } from "../../src/protocol/schemas.ts";
import { Presences } from "../../src/requests/presence.ts";
import { HeldJournal } from "../support/held-journal.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { startTestSwarm, subjects, type TestSwarm, type WireAgent } from "../support/swarm.ts";

let clock: ManualClock;
let held: HeldJournal;
let swarm: TestSwarm;
let silent: WireAgent;
let lively: WireAgent;

beforeEach(async () => {
  clock = new ManualClock();
  const store = new MemoryJournalStore();
  held = new HeldJournal(store);
  swarm = await startTestSwarm({ clock, store, journal: held.journal });
  silent = await swarm.agent("a-silent");
  lively = await swarm.agent("b-lively");
});
afterEach(() => {
  held.release();
  return swarm.stop();
});

/** Time passes, and only the lively agent is heard. */
async function heartbeats(count: number): Promise<void> {
  for (let heartbeat = 0; heartbeat < count; heartbeat += 1) {
    await clock.advance(limits.heartbeatMs);
    await lively.heartbeat([], 0);
  }
}

it("gets no new task after some seconds of silence, while another is free", async () => {
  await heartbeats(4);
  await swarm.client.submit([{ id: "t1", kind: "count", maxAttempts: 1 }]);
  expect((await lively.assignment()).task).toBe("t1");
  expect((await swarm.client.status()).agents).toMatchObject([
    { id: "a-silent", status: "ready", unresponsive: true },
    { id: "b-lively", unresponsive: false },
  ]);
});

it("gets tasks again as soon as it is heard", async () => {
  await heartbeats(4);
  await silent.heartbeat([], 0);
  await swarm.client.submit([{ id: "t1", kind: "count" }]);
  expect((await silent.assignment()).task).toBe("t1");
});

describe("with a batch stored long after it fell silent", () => {
  beforeEach(() => silent.heartbeat([], 0));

  /** The journal holds its answers back meanwhile: decided batches are known as stored only later. */
  async function storedAfter(silentMs: number, ask: () => Promise<unknown>): Promise<void> {
    held.hold();
    const asked = ask();
    await clock.advance(silentMs);
    const isHeard = lively.heartbeat([], 0); // the answer waits for the leader lease
    await clock.settle();
    held.release();
    await Promise.all([asked, isHeard]);
    await clock.settle();
  }

  /** One of the two tasks runs on the lively agent. */
  const submitTwo = () =>
    swarm.client.submit([
      { id: "t1", kind: "count" },
      { id: "t2", kind: "count" },
    ]);

  const assigned = ({ pushes }: WireAgent) =>
    pushes.all.flatMap((push) => (push.type === "assign" ? push.assignments.map(({ task }) => task) : []));

  it("gets no assignment, because it may be declared lost before it could renew the lease", async () => {
    await storedAfter(limits.unresponsiveSilenceMs + 1, submitTwo);
    expect(assigned(lively)).toHaveLength(1);
    expect(assigned(silent)).toEqual([]);
  });

  it("gets the assignment at its first heartbeat", async () => {
    await storedAfter(limits.unresponsiveSilenceMs + 1, submitTwo);
    await silent.heartbeat([], 0);
    await clock.settle();
    expect(assigned(silent)).toHaveLength(1);
    expect((await swarm.client.status()).agents).toMatchObject([
      { id: "a-silent", unresponsive: false },
      { id: "b-lively", unresponsive: false },
    ]);
  });

  it("gets the assignment at each heartbeat until the arrival: a full journal may block a resend", async () => {
    await storedAfter(limits.unresponsiveSilenceMs + 1, submitTwo);
    const { state } = swarm.watched.settled();
    const row = state.agentById.get(agentId("a-silent")) ?? expect.fail("it joined");
    const [number = 0] = row.open.keys();
    const presences = new Presences(clock);
    presences.heard(row.id, row.incarnation);
    presences.withheld(row.id, row.incarnation, number);
    const lacks = (seen: number) => {
      const { incarnation } = row;
      const heartbeat: Heartbeat = {
        incarnation,
        status: "ready",
        inFlight: 0,
        held: [],
        seen: assignmentNumber(seen),
      };
      return presences.heartbeat(state, row, heartbeat, row.id).missing.map((attempt) => attempt.number);
    };
    expect([lacks(0), lacks(0), lacks(number)]).toEqual([[number], [number], []]);
  });

  it("gets the assignment at once after a shorter silence", async () => {
    await storedAfter(limits.unresponsiveSilenceMs - 1, submitTwo);
    expect(assigned(silent)).toHaveLength(1);
  });

  it("gets no slots until it is heard", async () => {
    await swarm.client.ask(subjects.operator("resource"), { resource: "gpu", slots: 1 });
    await slot(lively, "acquire", { handle: "first", resources: ["gpu"] });
    await slot(silent, "acquire", { handle: "second", resources: ["gpu"] });
    await storedAfter(limits.unresponsiveSilenceMs + 1, () => slot(lively, "release", { handle: "first" }));
    expect(silent.pushes.all).toEqual([]);
    await silent.heartbeat([], 0, { slots: { held: [], waiting: ["second"] } });
    await clock.settle();
    expect(silent.pushes.all).toMatchObject([{ type: "slots-granted", handles: ["second"] }]);
  });

  const slot = (agent: WireAgent, verb: "acquire" | "release", asked: object) =>
    agent.ask(subjects.agent("_", agent.id, verb), { incarnation: agent.joinMessage.incarnation, ...asked });
});
