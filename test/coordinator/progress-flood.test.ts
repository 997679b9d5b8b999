// An agent of another make that reports its progress ten thousand times a second: the leader listens to as much as its
// places warrant, says so once, and everybody else is served as before.

import { pino } from "pino";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemRandom } from "../../src/clock.ts";
import { limits } from "../../src/limits.ts";
import type { Assignment, ProgressPush } from "../../src/protocol/schemas.ts";
import { ManualClock } from "../support/manual-clock.ts";
import {
  type Listening,
  startTestSwarm,
  subjects,
  type TestSwarm,
  type WireAgent,
} from "../support/swarm.ts";

const FLOOD_PER_SECOND = 10_000;
let clock: ManualClock;
let swarm: TestSwarm;
let lines: { readonly msg: string; readonly agent?: string }[];

beforeEach(async () => {
  clock = new ManualClock();
  lines = [];
  const logger = pino({ level: "warn" }, { write: (line) => lines.push(JSON.parse(line)) });
  swarm = await startTestSwarm({ clock, logger, random: { ...systemRandom, next: () => 0 } });
});
afterEach(() => swarm.stop());

interface Reporter {
  readonly agent: WireAgent;
  readonly assignment: Assignment;
  readonly heard: Listening<ProgressPush>;
}

async function reporter(id: string, task: object, places = 1): Promise<Reporter> {
  const agent = await swarm.agent(id, { kinds: [id], maxConcurrent: places });
  const heard = swarm.client.listen<ProgressPush>(subjects.progress(id));
  await swarm.client.submit([{ id: `t-${id}`, kind: id, ...task }], { notify: id });
  const assignment = await agent.assignment();
  await agent.beat([{ task: assignment.task, attempt: 1 }], 1);
  return { agent, assignment, heard };
}

function report({ agent, assignment: { task, attempt } }: Reporter, fraction: number): void {
  const { incarnation } = agent.joinMessage;
  const message = JSON.stringify({ incarnation, task, attempt, fraction });
  agent.transport.publish(subjects.agent(agent.id, "progress"), Buffer.from(message));
}

/** Ten seconds, in each of which `each` happens first. */
async function tenSeconds(each: (second: number) => Promise<void> | void): Promise<void> {
  for (let second = 0; second < 10; second += 1) {
    await each(second);
    await clock.advance(1_000);
  }
}

it("is heard as often as its places warrant, warned of once, and counted", async () => {
  const flooding = await reporter("a1", {}, 2);
  await tenSeconds(() => {
    for (let n = 0; n < FLOOD_PER_SECOND; n += 1) report(flooding, n / FLOOD_PER_SECOND);
  });
  const most = 2 * limits.progressPerPlaceMax;
  expect(flooding.heard.all.length).toBeGreaterThanOrEqual(10 * most - 1);
  expect(flooding.heard.all.length).toBeLessThanOrEqual(11 * most);
  expect(lines.filter(({ msg }) => msg.includes("progress too often"))).toMatchObject([{ agent: "a1" }]);
  const { counters } = await swarm.client.status();
  expect(counters["too-much-progress"]).toBe(10 * FLOOD_PER_SECOND - flooding.heard.all.length);
});

it("takes nothing from another, whose reports all arrive and keep its task from stalling", async () => {
  const flooding = await reporter("a1", {});
  const other = await reporter("a2", { stallMs: 1_500 });
  await tenSeconds(async (second) => {
    for (let n = 0; n < FLOOD_PER_SECOND; n += 1) report(flooding, n / FLOOD_PER_SECOND);
    report(other, second / 10);
    await Promise.all(
      [flooding, other].map(({ agent, assignment: { task } }) => agent.beat([{ task, attempt: 1 }], 1)),
    );
  });
  expect(other.heard.all.map(({ fraction }) => fraction)).toEqual([
    0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9,
  ]);
  expect(await swarm.client.task("t-a2")).toMatchObject({ state: "running", attempts: 1 });
});

it("after a burst is heard again as time passes; what the SDK sends is never too much", async () => {
  const bursting = await reporter("a1", {});
  for (let n = 0; n < 100; n += 1) report(bursting, n / 100);
  await clock.advance(1_000);
  expect(bursting.heard.all).toHaveLength(limits.progressPerPlaceMax);
  await tenSeconds(async () => {
    for (let sent = 0; sent < 1_000; sent += limits.progressMs) {
      report(bursting, 0.5);
      await clock.advance(limits.progressMs);
    }
  });
  expect(bursting.heard.all).toHaveLength(limits.progressPerPlaceMax + 10 * (1_000 / limits.progressMs));
});

it("of an agent that is not there is not looked at", async () => {
  const gone = await reporter("a1", {});
  await gone.agent.ask(subjects.agent("a1", "leave"), { incarnation: "a1-1" });
  report(gone, 0.5);
  await clock.settle();
  expect(gone.heard.all).toEqual([]);
  expect((await swarm.client.status()).counters).toMatchObject({ "too-much-progress": 1 });
});
