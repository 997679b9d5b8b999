// An agent that says nothing may be dead: long before that is certain, nothing new should go to it.

import { afterEach, beforeEach, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { startTestSwarm, type TestSwarm, type WireAgent } from "../support/swarm.ts";

let clock: ManualClock;
let swarm: TestSwarm;
let silent: WireAgent;
let lively: WireAgent;

beforeEach(async () => {
  clock = new ManualClock();
  swarm = await startTestSwarm({ clock });
  silent = await swarm.agent("a-silent");
  lively = await swarm.agent("b-lively");
});
afterEach(() => swarm.stop());

/** Time passes, and only one of the two is heard. */
async function beats(count: number): Promise<void> {
  for (let beat = 0; beat < count; beat += 1) {
    await clock.advance(limits.heartbeatMs);
    await lively.beat([], 0);
  }
}

it("gets no new task after some seconds of silence, while another is free", async () => {
  await beats(4);
  await swarm.client.submit([{ id: "t1", kind: "count", maxAttempts: 1 }]);
  expect((await lively.assignment()).task).toBe("t1");
  expect((await swarm.client.status()).agents).toMatchObject([
    { id: "a-silent", status: "ready", unresponsive: true },
    { id: "b-lively", unresponsive: false },
  ]);
});

it("gets tasks again as soon as it is heard", async () => {
  await beats(4);
  await silent.beat([], 0);
  await swarm.client.submit([{ id: "t1", kind: "count" }]);
  expect((await silent.assignment()).task).toBe("t1");
});
