// Groups of agents with a shared credential: messages travel on `agent.<group>.<id>.<verb>`, and one group's messages
// change nothing of another group's agents.

import { beforeEach, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";
import { WireTap } from "../support/wire-tap.ts";

let swarm: TestSwarm;

beforeEach(async () => {
  swarm = await startTestSwarm();
  return () => swarm.stop();
});

const heartbeat = { incarnation: "a1-1", status: "ready", inFlight: 0, held: [], seen: 0 };

it("an agent gets pushes on the subject of its group, also from the next leader", async () => {
  const agent = await swarm.agent("a1", { group: "west" });
  await swarm.submit("t1");
  expect(await agent.assignment()).toMatchObject({ task: "t1" });
  const tap = new WireTap(swarm.hub);
  const other = await swarm.startAnother("c2");
  await swarm.coordinator.stop();
  await other.whenLeading();
  await swarm.client.status();
  expect(tap.said().filter((subject) => subject.endsWith(".assign"))).toEqual([
    subjects.assign("west", "a1"),
  ]);
  const [row] = (await swarm.client.status()).agents;
  expect(row).toMatchObject({ id: "a1", group: "west" });
  expect(await agent.complete((await agent.push("assign")).assignments[0] as never)).toMatchObject({
    answers: [{ ok: true, status: "ok" }],
  });
});

it("a message of another group ends, moves and renews nothing of an agent that is online", async () => {
  const agent = await swarm.agent("a1", { group: "west" });
  await swarm.submit("t1");
  const assignment = await agent.assignment();
  const messages = {
    join: { incarnation: "a1-2", kinds: ["count"], maxConcurrent: 1 },
    leave: { incarnation: "a1-1" },
    heartbeat,
    result: { incarnation: "a1-1", results: [{ ...assignment, outcome: "failed", error: "no" }] },
    acquire: { incarnation: "a1-1", handle: "h1", resources: ["gpu"] },
    release: { incarnation: "a1-1", handle: "h1" },
  } as const;
  for (const group of ["east", "_"])
    for (const [verb, message] of Object.entries(messages))
      expect(
        await swarm.client.ask(subjects.agent(group, "a1", verb as "join"), message),
        verb,
      ).toMatchObject({
        ok: false,
        code: "WAGGLE_CONFLICT",
        field: "agent",
        message:
          "an agent a1 is online in another group: give this one another id, or let the other leave first",
      });
  expect(await swarm.client.task("t1")).toMatchObject({ state: "assigned", agent: "a1", attempts: 1 });
  expect(await agent.complete(assignment)).toMatchObject({ answers: [{ status: "ok" }] });
});

it("a flood from another group leaves the agent its own messages", async () => {
  const agent = await swarm.agent("a1", { group: "west" });
  for (let sent = 0; sent < 2_000; sent += 1)
    swarm.client.transport.publish(subjects.agent("east", "a1", "result"), Buffer.from("{}"), "_INBOX.x");
  await swarm.client.status();
  await swarm.submit("t1");
  expect(await agent.complete(await agent.assignment())).toMatchObject({ answers: [{ status: "ok" }] });
});

it("an id is free for another group once its agent has left", async () => {
  const west = await swarm.agent("a1", { group: "west" });
  await west.ask(subjects.agent("west", "a1", "leave"), { incarnation: "a1-1" });
  const east = await swarm.agent("a1", { group: "east", incarnation: "a1-2" });
  await swarm.submit("t1");
  expect(await east.assignment()).toMatchObject({ task: "t1" });
});

it("a group that is no token is refused", async () => {
  const join = { incarnation: "a1-1", kinds: ["count"], maxConcurrent: 1 };
  expect(await swarm.client.ask(subjects.agent("a b", "a1", "join").replace(" ", "%"), join)).toMatchObject({
    code: "WAGGLE_INVALID_MESSAGE",
    field: "group",
  });
});

it("agents of a connection with a group are in the group, unless they name their own", async () => {
  const own = await connect({ swarm: "test", transport: swarm.hub.connect(), group: "west" });
  await own.agent({ id: "a1", kinds: ["count"], handler: (task) => task.text() });
  await own.agent({ id: "a2", kinds: ["other"], group: "east", handler: (task) => task.text() });
  const { agents } = await own.status();
  expect(agents.map(({ id, group }) => [id, group]).toSorted()).toEqual([
    ["a1", "west"],
    ["a2", "east"],
  ]);
  expect((await (await own.submit({ kind: "count", payload: "hi" })).result()).text()).toBe("hi");
  await own.close();
});
