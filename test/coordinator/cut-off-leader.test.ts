// A leader that reaches its journal and not its agents: what it cannot tell them is told as it is when they hear it.

import { afterEach, beforeEach, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import type { Assignment } from "../../src/protocol/schemas.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { startTestSwarm, type TestSwarm, type WireAgent } from "../support/swarm.ts";

let clock: ManualClock;
let swarm: TestSwarm;
let agent: WireAgent;

beforeEach(async () => {
  clock = new ManualClock();
  swarm = await startTestSwarm({ clock });
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

it("tells what it assigned meanwhile as soon as it is back", async () => {
  expect(await assignedMeanwhile(1_000)).toEqual(["assign t1"]);
});

it("does not tell anybody to begin what it has taken back since", async () => {
  const told = await assignedMeanwhile(3_000, { timeoutMs: 1_000, maxAttempts: 1 });
  expect(swarm.watched.settled().state.taskById.size).toBe(0);
  expect(told).toContain("assign t1 revoked");
  expect(told).not.toContain("assign t1");
});
