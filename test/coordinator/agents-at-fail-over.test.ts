// Agents of the SDK while leaders change. The leader dies in the middle of a join, a result or a drain, with the batch
// stored or not. Messages of the old leader come late, or both leaders speak at once.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Agent, startAgent } from "../../src/agent/agent.ts";
import type { Coordinator } from "../../src/coordinator/coordinator.ts";
import { swarmId } from "../../src/ids.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import type { EventType } from "../../src/state/event.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { HeldJournal } from "../support/held-journal.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { liveOf, recordCount, storedEvents } from "../support/stored.ts";
import { noJitter, startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";
import { WireTap } from "../support/wire-tap.ts";

let clock: ManualClock;
let store: MemoryJournalStore;
let first: HeldJournal;
let second: MemoryJournal;
let swarm: TestSwarm;
let standby: Coordinator;
/** Started and not yet ended, by task; a handler ends when the test says so. */
let running: Map<string, () => void>;
let starts: string[];
let aborts: string[];
let agents: Agent[];

beforeEach(async () => {
  clock = new ManualClock();
  store = new MemoryJournalStore();
  first = new HeldJournal(store);
  second = new MemoryJournal(store);
  [running, starts, aborts, agents] = [new Map(), [], [], []];
  swarm = await startTestSwarm({ clock, store, random: noJitter, journal: first.journal });
  standby = await swarm.startAnother("c2", second);
});
afterEach(async () => {
  first.release();
  first.journal.setOffline(false);
  const stopped = Promise.all([...agents.map((agent) => agent.stop()), swarm.stop()]);
  await clock.advance(4 * limits.handOverMs);
  await stopped;
});

function joining(id = "a1"): Promise<Agent> {
  const handler = (
    { id: task, attempt }: { id: string; attempt: number },
    { signal }: { signal: AbortSignal },
  ) => {
    starts.push(`${task}#${attempt}`);
    signal.addEventListener("abort", () => aborts.push(`${task}#${attempt}`));
    return new Promise<string>((resolve) => running.set(task, () => resolve(`${task}#${attempt}`)));
  };
  const transport = swarm.hub.connect();
  const started = startAgent(
    { id, kinds: ["count"], handler, maxConcurrent: 4 },
    { swarm: swarmId("test"), connection: { kind: "transport", transport }, clock, random: noJitter },
  );
  return started.then((agent) => {
    agents.push(agent);
    return agent;
  });
}

async function joined(): Promise<Agent> {
  const agent = joining();
  await clock.settle();
  return await agent;
}

const end = async (id: string) => {
  running.get(id)?.();
  await clock.settle();
};

const events = <Type extends EventType>(type: Type) => storedEvents(store, type);

/** The first leader goes on with its append stored and unanswered, or not even stored. */
function failNextAppend(how: "stored" | "lost"): void {
  if (how === "stored") first.hold();
  else first.journal.setOffline(true);
}

/** The first leader is gone; the second leads. */
async function killFirst(): Promise<void> {
  swarm.hub.cut(swarm.transportById.get("c1") as Transport);
  first.journal.setOffline(true);
  await clock.advance(3 * limits.leaderTimeoutMs);
  expect(await standby.whenLeading()).toBe(2);
}

describe.each(["stored", "lost"] as const)("a leader killed when its assignment was %s", (how) => {
  it("during a join leaves one session, which the next leader knows and gives work", async () => {
    failNextAppend(how);
    const agent = joining();
    await clock.settle();
    await killFirst();
    await clock.advance(limits.requestTimeoutMs);
    await agent;
    await swarm.submit("t1");
    await clock.settle();
    expect(starts).toEqual(["t1#1"]);
    await end("t1");
    expect(await swarm.client.task("t1")).toMatchObject({ state: "completed", attempts: 1 });
    expect(new Set(events("AgentJoined").map(({ incarnation }) => incarnation)).size).toBe(1);
    expect(events("AgentLeft")).toEqual([]);
  });

  it("during a result leaves one outcome: the handler ran once, and its result is taken", async () => {
    await joined();
    await swarm.submit("t1", "t2");
    await clock.advance(limits.heartbeatMs);
    failNextAppend(how);
    await end("t1");
    await killFirst();
    await clock.advance(limits.requestTimeoutMs);
    expect(events("TaskCompleted").map(({ task, result }) => [task, result])).toEqual([["t1", "t1#1"]]);
    expect([starts, aborts]).toEqual([["t1#1", "t2#1"], []]);
    await end("t2");
    expect(await swarm.client.task("t2")).toMatchObject({ state: "completed", attempts: 1 });
  });

  it("during a drain leaves nothing behind: running attempts finish, then the agent leaves", async () => {
    const agent = await joined();
    await swarm.submit("t1");
    await clock.advance(limits.heartbeatMs);
    failNextAppend(how);
    const drained = agent.drain();
    await clock.settle();
    await killFirst();
    await clock.advance(limits.requestTimeoutMs);
    await swarm.submit("t2");
    await clock.advance(limits.heartbeatMs);
    expect(starts).toEqual(["t1#1"]);
    await end("t1");
    await clock.advance(limits.heartbeatMs);
    await drained;
    expect(await agent.closed).toBeUndefined();
    expect(events("AgentLeft")).toMatchObject([{ agent: "a1", reason: "left" }]);
    expect(await swarm.client.task("t1")).toMatchObject({ state: "completed", attempts: 1 });
    expect(await swarm.client.task("t2")).toMatchObject({ state: "queued" });
  });

  it("during an assignment leaves a single attempt, run once", async () => {
    await joined();
    failNextAppend(how);
    const submitted = swarm.submit("t1").catch(() => undefined); // the answer is lost with the leader
    await clock.settle();
    await killFirst();
    await clock.advance(limits.requestTimeoutMs);
    await submitted;
    await swarm.submit("t1");
    await clock.advance(2 * limits.heartbeatMs);
    expect(starts).toEqual(["t1#1"]);
    expect(await swarm.client.task("t1")).toMatchObject({ state: "running", attempts: 1 });
  });

  it("while it fences an agent leaves the later start, with the earlier stopped", async () => {
    const earlier = await joined();
    failNextAppend(how);
    const later = joining();
    await clock.settle();
    await killFirst();
    await clock.advance(limits.requestTimeoutMs);
    expect(await earlier.closed).toMatchObject({ code: "WAGGLE_FENCED" });
    await clock.advance(limits.agentLostMs);
    expect((await later).status()).toBe("ready");
    expect(events("AgentLeft")).toMatchObject([{ reason: "fenced" }]);
  });
});

describe("a journal that lost the end, together with all memory", () => {
  it("is detected by an agent that has seen more: old attempts stop, and the next assignment starts", async () => {
    await joined();
    await swarm.submit("t1");
    await clock.advance(limits.heartbeatMs);
    await clock.advance(limits.heartbeatMs);
    const known = recordCount(store);
    await swarm.submit("t2", "t3");
    await clock.advance(limits.heartbeatMs);
    expect(starts).toEqual(["t1#1", "t2#1", "t3#1"]);
    for (const id of ["c1", "c2"]) swarm.hub.cut(swarm.transportById.get(id) as Transport);
    first.journal.setOffline(true);
    second.setOffline(true);
    store.loseTail(liveOf(store).number, recordCount(store) - known);
    await swarm.startAnother("c3");
    await clock.advance(3 * limits.leaderTimeoutMs);
    await swarm.submit("t4");
    await clock.advance(3 * limits.heartbeatMs);
    expect(aborts.sort()).toEqual(["t2#1", "t3#1"]);
    await end("t2");
    await end("t3");
    await swarm.submit("t5");
    await clock.advance(3 * limits.heartbeatMs);
    expect(starts.slice(3)).toEqual(["t4#1", "t5#1"]);
    expect(events("AgentFoundAhead")).toMatchObject([{ agent: "a1", upTo: 3 }]);
    expect(events("AgentLeft")).toEqual([]);
  });
});

describe("two leaders", () => {
  /** Everything the first leader said to the agent, to be said again. */
  function wordsTo(agent: string, tap: WireTap): Buffer[] {
    return tap.all
      .filter(({ subject }) => subject === subjects.assign("_", agent))
      .map(({ text }) => Buffer.from(text));
  }

  it("that both hear a result record it once; the leader without the journal answers nothing", async () => {
    await joined();
    await swarm.submit("t1");
    await clock.advance(limits.heartbeatMs);
    first.journal.setOffline(true);
    await clock.advance(2.5 * limits.leaderTimeoutMs);
    await end("t1");
    await clock.advance(limits.requestTimeoutMs);
    expect(events("TaskCompleted")).toMatchObject([{ task: "t1", result: "t1#1" }]);
    first.journal.setOffline(false);
    await clock.advance(2 * limits.leaderTimeoutMs);
    expect(events("TaskCompleted")).toHaveLength(1);
    expect(await swarm.client.task("t1")).toMatchObject({ state: "completed", attempts: 1 });
    expect(events("TermStarted").map(({ term }) => term)).toEqual([1, 2]);
  });

  it("that both speak are heard by term: late messages of the old leader start, stop and end nothing", async () => {
    const tap = new WireTap(swarm.hub);
    const agent = await joined();
    await swarm.submit("t1", "t2");
    await clock.advance(limits.heartbeatMs);
    const incarnation = events("AgentJoined")[0]?.incarnation;
    const late = wordsTo("a1", tap);
    const said = (push: object) => Buffer.from(JSON.stringify({ term: 1, incarnation, ...push }));
    await killFirst();
    await clock.advance(limits.heartbeatMs);
    await end("t1");
    const words = [
      ...late,
      said({ type: "revoke", attempts: [{ task: "t2", attempt: 1 }], reason: "late" }),
      said({ type: "drain" }),
      said({ type: "rejoin" }),
      said({ type: "fenced" }),
    ];
    for (const word of words) {
      swarm.client.transport.publish(subjects.assign("_", "a1"), word);
      await swarm.submit(`n${starts.length}`); // the new leader speaks in between
      await clock.settle();
      for (const id of [...running.keys()].filter((name) => name.startsWith("n"))) await end(id);
    }
    await clock.advance(limits.heartbeatMs);
    expect(aborts).toEqual([]);
    expect(starts.slice(0, 2)).toEqual(["t1#1", "t2#1"]);
    expect(new Set(starts).size).toBe(starts.length);
    expect([agent.status(), agent.isDraining()]).toEqual(["busy", false]);
    await end("t2");
    expect(await swarm.client.task("t2")).toMatchObject({ state: "completed", attempts: 1 });
    expect(events("AgentLeft")).toEqual([]);
  });
});
