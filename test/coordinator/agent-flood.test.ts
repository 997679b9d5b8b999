// A misbehaving agent sends ten thousand messages a second, progress or requests. The leader takes as many as the
// protocol could cause, logs the flood once, and serves all other agents and clients as before.

import { afterEach, beforeEach, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import type { Assignment, ProgressPush } from "../../src/protocol/schemas.ts";
import { progressSubject } from "../../src/protocol/subjects.ts";
import { keptLog } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";
import {
  type Listening,
  noJitter,
  startTestSwarm,
  subjects,
  type TestSwarm,
  type WireAgent,
} from "../support/swarm.ts";

const FLOOD_PER_SECOND = 10_000;
let clock: ManualClock;
let swarm: TestSwarm;
let log: ReturnType<typeof keptLog>;

beforeEach(async () => {
  clock = new ManualClock();
  log = keptLog();
  swarm = await startTestSwarm({ clock, logger: log.logger, random: noJitter });
});
afterEach(() => swarm.stop());

interface Reporter {
  readonly agent: WireAgent;
  readonly assignment: Assignment;
  readonly heard: Listening<ProgressPush>;
}

async function reporter(id: string, task: object, capacity = 1): Promise<Reporter> {
  const agent = await swarm.agent(id, { kinds: [id], maxConcurrent: capacity });
  const heard = swarm.client.listen<ProgressPush>(progressSubject(`_INBOX.${id}`));
  await swarm.client.submit([{ id: `t-${id}`, kind: id, ...task }], { notify: `_INBOX.${id}` });
  const assignment = await agent.assignment();
  await agent.heartbeat([{ task: assignment.task, attempt: 1 }], 1);
  return { agent, assignment, heard };
}

function report({ agent, assignment: { project, task, attempt } }: Reporter, fraction: number): void {
  const { incarnation } = agent.joinMessage;
  const message = JSON.stringify({ incarnation, project, task, attempt, fraction });
  agent.transport.publish(subjects.agent("_", agent.id, "progress"), Buffer.from(message));
}

/** Ten seconds; `each` runs at the beginning of each second. */
async function tenSeconds(each: (second: number) => Promise<void> | void): Promise<void> {
  for (let second = 0; second < 10; second += 1) {
    await each(second);
    await clock.advance(1_000);
  }
}

it("is heard as often as its capacity permits, warned of once, and counted", async () => {
  const flooding = await reporter("a1", {}, 2);
  await tenSeconds(() => {
    for (let n = 0; n < FLOOD_PER_SECOND; n += 1) report(flooding, n / FLOOD_PER_SECOND);
  });
  const most = 2 * limits.progressPerAttemptMax;
  expect(flooding.heard.all.length).toBeGreaterThanOrEqual(10 * most - 1);
  expect(flooding.heard.all.length).toBeLessThanOrEqual(11 * most);
  expect(log.lines.filter(({ msg }) => msg.includes("too many messages"))).toMatchObject([{ agent: "a1" }]);
  const { counters } = await swarm.client.status();
  expect(counters["too-much-progress"]).toBe(10 * FLOOD_PER_SECOND - flooding.heard.all.length);
});

it("takes nothing from a different agent: all reports arrive and prevent a stall", async () => {
  const flooding = await reporter("a1", {});
  const other = await reporter("a2", { stallMs: 1_500 });
  await tenSeconds(async (second) => {
    for (let n = 0; n < FLOOD_PER_SECOND; n += 1) report(flooding, n / FLOOD_PER_SECOND);
    report(other, second / 10);
    await Promise.all(
      [flooding, other].map(({ agent, assignment: { task } }) => agent.heartbeat([{ task, attempt: 1 }], 1)),
    );
  });
  expect(other.heard.all.map(({ fraction }) => fraction)).toEqual([
    0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9,
  ]);
  expect(await swarm.client.task("t-a2")).toMatchObject({ state: "running", attempts: 1 });
});

it("after a burst is heard again as time passes; the SDK never sends too much", async () => {
  const bursting = await reporter("a1", {});
  for (let n = 0; n < 100; n += 1) report(bursting, n / 100);
  await clock.advance(1_000);
  expect(bursting.heard.all).toHaveLength(limits.progressPerAttemptMax);
  await tenSeconds(async () => {
    for (let sent = 0; sent < 1_000; sent += limits.progressMs) {
      report(bursting, 0.5);
      await clock.advance(limits.progressMs);
    }
  });
  expect(bursting.heard.all).toHaveLength(limits.progressPerAttemptMax + 10 * (1_000 / limits.progressMs));
});

it("of an agent that is not there is not looked at", async () => {
  const gone = await reporter("a1", {});
  await gone.agent.ask(subjects.agent("_", "a1", "leave"), { incarnation: "a1-1" });
  report(gone, 0.5);
  await clock.settle();
  expect(gone.heard.all).toEqual([]);
  expect((await swarm.client.status()).counters).toMatchObject({ "too-much-progress": 1 });
});

interface Flood {
  readonly sort: "heartbeats" | "joins" | "results" | "slot-requests";
  readonly verb: "heartbeat" | "join" | "leave" | "result" | "acquire" | "touch" | "release";
  readonly message: object;
  /** Whether surplus messages are refused; else they are dropped. */
  readonly isRefused: boolean;
}

const stale = { task: "t", attempt: 1, token: "x", outcome: "completed", result: "" };
const floods: readonly Flood[] = [
  {
    sort: "heartbeats",
    verb: "heartbeat",
    message: { status: "ready", inFlight: 0, seen: 0 },
    isRefused: false,
  },
  { sort: "joins", verb: "join", message: { kinds: ["a1"], maxConcurrent: 1 }, isRefused: true },
  { sort: "joins", verb: "leave", message: {}, isRefused: true },
  { sort: "results", verb: "result", message: { results: [stale] }, isRefused: true },
  { sort: "slot-requests", verb: "release", message: { handle: "h" }, isRefused: true },
  { sort: "slot-requests", verb: "touch", message: { handle: "h" }, isRefused: true },
];

it.each(floods)("of $verb messages is answered as far as one agent may send", async (flood) => {
  const { sort, verb, message, isRefused } = flood;
  const agent = await swarm.agent("a1", { kinds: ["a1"] });
  await clock.advance(1_000);
  const inbox = `_INBOX.${verb}`;
  const answers = agent.listen<{ code?: string }>(inbox);
  const most = limits.agentMessagesMax[sort];
  const sent = most + 3_000;
  const bytes = Buffer.from(JSON.stringify({ incarnation: agent.joinMessage.incarnation, ...message }));
  for (let n = 0; n < sent; n += 1) agent.transport.publish(subjects.agent("_", "a1", verb), bytes, inbox);
  await clock.settle();
  const refused = answers.all.filter(({ code }) => code === "WAGGLE_BACKPRESSURE");
  expect(answers.all.length - refused.length).toBe(most);
  expect(refused).toHaveLength(isRefused ? sent - most : 0);
  expect((await swarm.client.status()).counters[`too-many-${sort}`]).toBe(sent - most);
  expect(log.lines.filter(({ msg }) => msg.includes("too many messages"))).toMatchObject([{ agent: "a1" }]);
  await clock.advance(1_000);
  agent.transport.publish(subjects.agent("_", "a1", verb), bytes, inbox);
  await clock.settle();
  expect(answers.all.at(-1)?.code).not.toBe("WAGGLE_BACKPRESSURE");
});

it("of joins keeps no other agent from joining", async () => {
  const agent = await swarm.agent("a1");
  for (let n = 0; n < 100; n += 1)
    agent.transport.publish(
      subjects.agent("_", "a1", "join"),
      Buffer.from(JSON.stringify(agent.joinMessage)),
    );
  await swarm.agent("a2");
  const { agents } = await swarm.client.status();
  expect(agents.map(({ id }: { id: string }) => id)).toContain("a2");
});
