// An assignment that is lost on the wire and then revoked must not leave a gap in the agent's numbers.

import { afterEach, expect, it } from "vitest";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

let swarm: TestSwarm;
afterEach(() => swarm.stop());

it("a lost and revoked assignment is sent again as revoked, and the capacity becomes free", async () => {
  swarm = await startTestSwarm();
  const agent = await swarm.agent("a1", { maxConcurrent: 1 });
  await swarm.client.submit([{ id: "t1", kind: "count" }]);
  const lost = await agent.assignment(); // the agent ignores the message
  await swarm.client.ask(subjects.project("default", "cancel"), { tasks: [{ task: "t1", round: 1 }] });
  await swarm.client.submit([{ id: "t2", kind: "count" }]);
  await agent.heartbeat([], 0);
  await agent.heartbeat([], 0);
  expect(await agent.assignment()).toMatchObject({ number: 1, task: "t1", token: lost.token, revoked: true });
  expect(await agent.report(lost, "revoked")).toMatchObject({ answers: [{ ok: true, status: "stale" }] });
  expect(await agent.assignment()).toMatchObject({ number: 2, task: "t2" });
});
