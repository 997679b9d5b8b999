// A turn waits a little for more commands while attempts run, and never without a reason.

import { afterEach, beforeEach, expect, it } from "vitest";
import type { Assignment } from "../../src/protocol/schemas.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { startTestSwarm, stopped, type TestSwarm, type WireAgent } from "../support/swarm.ts";

const turnSpacingMs = 4;
let clock: ManualClock;
let swarm: TestSwarm;
let agent: WireAgent;

beforeEach(async () => {
  clock = new ManualClock();
  swarm = await startTestSwarm({ clock, turnSpacingMs });
  agent = await swarm.agent("a1");
});
afterEach(() => stopped(swarm, clock));

/** Submits three tasks. The last turn has assigned the three attempts. */
async function threeRunning(): Promise<readonly Assignment[]> {
  await clock.advance(turnSpacingMs);
  await swarm.submit("t1", "t2", "t3");
  return [await agent.assignment(), await agent.assignment(), await agent.assignment()];
}

/** Reports results. @returns the number of answers so far */
function report(assignments: readonly Assignment[]): () => number {
  let answers = 0;
  for (const assignment of assignments)
    void agent.complete(assignment).then(() => {
      answers += 1;
    });
  return () => answers;
}

it("waits for the spacing when fewer commands wait than attempts run", async () => {
  const answers = report((await threeRunning()).slice(0, 2));
  await clock.advance(turnSpacingMs - 1);
  expect(answers()).toBe(0);
  await clock.advance(1);
  expect(answers()).toBe(2);
});

it("runs at once when a command waits for each attempt that runs", async () => {
  const [first, ...others] = await threeRunning();
  const answers = report([first as Assignment]);
  await clock.settle();
  expect(answers()).toBe(0);
  const more = report(others);
  await clock.settle();
  expect([answers(), more()]).toEqual([1, 2]);
});

it("runs at once when the last turn is longer ago than the spacing", async () => {
  const [first] = await threeRunning();
  await clock.advance(turnSpacingMs); // a turn confirms the assignments
  await clock.advance(turnSpacingMs);
  const answers = report([first as Assignment]);
  await clock.settle();
  expect(answers()).toBe(1);
});
