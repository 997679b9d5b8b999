// A leader reaches its journal and not its agents. Withheld messages carry the present state when the connection is
// back. Where a standby could lead, the leader steps down after a while.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Leader } from "../../src/coordinator/leader/leader.ts";
import { timingOf } from "../../src/coordinator/timing.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import type { Assignment } from "../../src/protocol/schemas.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { startTestSwarm, type TestSwarm, type WireAgent } from "../support/swarm.ts";

const { isolationMs, silenceMsMax } = timingOf(limits.leaderTimeoutMs);
let clock: ManualClock;
let journal: MemoryJournal;
let swarm: TestSwarm;
let agent: WireAgent;

beforeEach(async () => {
  clock = new ManualClock();
  const store = new MemoryJournalStore();
  journal = new MemoryJournal(store);
  swarm = await startTestSwarm({ clock, store, journal });
  agent = await swarm.agent("a1");
});
afterEach(() => swarm.stop());

/** Assigned while the leader is cut off for so long. */
async function assignedMeanwhile(forMs: number, more: object = {}): Promise<readonly string[]> {
  await swarm.client.submit([{ id: "t1", kind: "count", notBefore: clock.now() + 500, ...more }]);
  const leader = swarm.transportById.get("c1") ?? expect.fail("c1 has a connection");
  swarm.hub.cut(leader);
  await clock.advance(forMs);
  swarm.hub.heal(leader);
  await clock.advance(limits.pulseMs);
  return agent.pushes.all.map((push) =>
    push.type === "assign" ? `assign ${push.assignments.map(nameOf)}` : push.type,
  );
}

const nameOf = ({ task, revoked }: Assignment) => (revoked === true ? `${task} revoked` : task);

const termOf = () => swarm.watched.settled().state.term;

function cutLeader(): () => void {
  const leader = swarm.transportById.get("c1") ?? expect.fail("c1 has a connection");
  swarm.hub.cut(leader);
  return () => swarm.hub.heal(leader);
}

it("sends assignments of the meantime as soon as it is back", async () => {
  expect(await assignedMeanwhile(1_000)).toEqual(["assign t1"]);
});

it("sends them with the agent's next heartbeat where the inbox had no room", async () => {
  await swarm.client.submit([{ id: "t1", kind: "count", notBefore: clock.now() + 500 }]);
  const heal = cutLeader();
  await clock.advance(1_000);
  const enqueue = vi.spyOn(Leader.prototype, "enqueue").mockReturnValueOnce(false);
  heal();
  await clock.settle();
  expect(enqueue).toHaveBeenCalled();
  enqueue.mockRestore();
  await clock.advance(limits.pulseMs);
  expect(agent.pushes.all).toEqual([]);
  await agent.heartbeat([], 0);
  expect(await agent.assignment()).toMatchObject({ task: "t1" });
});

it("leads on where its connection was back for a moment, between two looks", async () => {
  await swarm.startAnother("c2");
  const before = termOf();
  for (let time = 0; time < 4; time += 1) {
    const heal = cutLeader();
    await clock.advance(isolationMs / 2);
    heal();
    await clock.settle();
  }
  expect(termOf()).toBe(before);
});

it("sends no assignment taken back meanwhile", async () => {
  const received = await assignedMeanwhile(3_000, { timeoutMs: 1_000, maxAttempts: 1 });
  expect(swarm.watched.settled().state.taskById.size).toBe(0);
  expect(received).toContain("assign t1 revoked");
  expect(received).not.toContain("assign t1");
});

describe("beside standbys that may lead", () => {
  it("ends its term after T, or 3 s, and stands by when it is back", async () => {
    const standby = await swarm.startAnother("c2");
    await swarm.client.submit([{ id: "t1", kind: "none" }]);
    const heal = cutLeader();
    await clock.advance(isolationMs);
    expect(termOf()).toBe(1);
    await clock.advance(2 * limits.pulseMs);
    expect(await standby.whenLeading()).toBe(2);
    expect(await swarm.client.status()).toMatchObject({ leader: "c2", tasks: { queued: 1 } });
    await clock.advance(3 * isolationMs);
    heal();
    await clock.advance(3 * isolationMs);
    expect(await swarm.client.status()).toMatchObject({ term: 2, leader: "c2", standbys: ["c1"] });
  });

  it("gives up no silent agent while the last batches wait for the journal", async () => {
    const expiresAt = (pulses: number) => clock.now() + isolationMs - pulses * limits.pulseMs;
    const tasks = [2, 1].map((pulses) => ({ id: `t${pulses}`, kind: "none", deadline: expiresAt(pulses) }));
    await swarm.client.submit(tasks);
    const heal = cutLeader();
    await clock.advance(isolationMs - 3 * limits.pulseMs);
    journal.setOffline(true); // both expire, and a batch of each is on the way
    await clock.advance(4 * limits.pulseMs);
    heal();
    await clock.advance(limits.agentLostMs + 1_000);
    journal.setOffline(false);
    await clock.advance(isolationMs);
    const { state, closing } = swarm.watched.settled();
    expect([state.taskById.size, closing?.reason]).toEqual([0, "handing-over"]);
    expect([...state.agentById.values()].map(({ online }) => online)).toEqual([true]);
  });

  it("leads on when it is back before", async () => {
    await swarm.startAnother("c2");
    for (let time = 0; time < 3; time += 1) {
      const heal = cutLeader();
      await clock.advance(isolationMs - limits.pulseMs);
      heal();
      await clock.advance(limits.pulseMs);
    }
    expect(await swarm.client.status()).toMatchObject({ term: 1, leader: "c1" });
  });

  it("counts no time of a stalled loop", async () => {
    await swarm.startAnother("c2");
    cutLeader();
    await clock.advance(isolationMs - limits.pulseMs);
    clock.stall(limits.pulseLateMs + limits.pulseMs + 50);
    await clock.advance(2 * limits.pulseMs);
    expect(termOf()).toBe(1);
  });

  it("is not followed by a coordinator that is isolated as well", async () => {
    await swarm.startAnother("c2");
    const other = swarm.transportById.get("c2") ?? expect.fail("c2 has a connection");
    swarm.hub.cut(other);
    const heal = cutLeader();
    await clock.advance(5 * isolationMs);
    expect(swarm.watched.settled()).toMatchObject({
      closing: { reason: "handing-over" },
      state: { term: 1 },
    });
    heal();
    await clock.advance(silenceMsMax + 2 * limits.pulseMs);
    expect(await swarm.client.status()).toMatchObject({ term: 2, leader: "c1" });
  });
});

it("with its server away leads on, though the journal is back before the connection is", async () => {
  const heal = cutLeader();
  journal.setOffline(true);
  await clock.advance(5 * isolationMs);
  journal.setOffline(false);
  await clock.advance(limits.reconnectMsMax);
  heal();
  await clock.advance(isolationMs);
  expect(await swarm.client.status()).toMatchObject({ term: 1, leader: "c1" });
});

it("leads on without a standby", async () => {
  Object.assign(journal, { sharable: false });
  cutLeader();
  await clock.advance(5 * isolationMs);
  expect(termOf()).toBe(1);
  expect(swarm.watched.replay.closing).toBeUndefined();
});
