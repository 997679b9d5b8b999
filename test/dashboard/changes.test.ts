// Reading and changing are apart: the connection that reads sends no change, and changes go over the operator's alone.

import { expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import { BoundedTransport } from "../../src/dashboard/bounded-transport.ts";
import { noChanges } from "../../src/dashboard/changes.ts";
import { swarmId } from "../../src/ids.ts";
import { permissionsOf } from "../../src/protocol/permissions.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import { Fixture } from "./dashboard-fixture.ts";

const REFUSAL = "This dashboard only reads. Start it with --operator-config FILE";

it("without an operator shows what a change would do, and refuses the change with the option to start with", async () => {
  const page = await Fixture.start({}, { changes: noChanges(REFUSAL) });
  try {
    const { refusals, verbs, isReadOnly } = (await page.get("/api/session")).json;
    expect(isReadOnly).toBe(false);
    expect(verbs.length).toBeGreaterThan(8);
    for (const verb of verbs) expect(refusals[verb]).toBe(REFUSAL);

    await page.swarm.submit({ id: "t1", kind: "none" });
    const filter = { kind: ["none"] };
    expect(await page.act("cancel", { filter, dryRun: true })).toMatchObject({
      status: 200,
      json: { count: 1, command: "waggle cancel --kind none --yes" },
    });
    for (const [verb, body] of [
      ["cancel", { filter, expected: 1 }],
      ["cancel", { tasks: [{ task: "t1", project: "default" }] }],
      ["retry", { tasks: [{ task: "t1", project: "default" }] }],
      ["submit", { task: { kind: "none" } }],
      ["revoke", { task: "t1", project: "default" }],
      ["reschedule", { task: "t1", project: "default", notBeforeAt: Date.now() + 60_000 }],
      ["drain", { agent: "a1" }],
      ["undrain", { agent: "a1" }],
      ["pause", {}],
      ["resume", {}],
    ] as const) {
      const { status, json } = await page.act(verb, body);
      expect({ verb, status, ...json.error }).toMatchObject({
        ...{ verb, status: 403, code: "WAGGLE_FORBIDDEN", message: REFUSAL },
      });
    }
    expect(await page.swarm.taskStatus("t1")).toMatchObject({ state: "queued" });
    expect((await page.swarm.taskPage()).total).toBe(1);
  } finally {
    await page.stop();
  }
});

it("refuses single verbs that the operator's credential lacks", async () => {
  const page = await Fixture.start();
  await page.stop();
  const swarm = page.swarm;
  const submitless = await Fixture.start(
    {},
    { changes: { swarm, refusals: { submit: "Submit elsewhere" } } },
  );
  try {
    expect(await submitless.act("submit", { task: { kind: "count" } })).toMatchObject({
      status: 403,
      json: { error: { message: "Submit elsewhere" } },
    });
    expect((await submitless.get("/api/session")).json.refusals).toEqual({ submit: "Submit elsewhere" });
  } finally {
    await submitless.stop();
  }
});

it("the connection that reads sends nothing but an auditor's questions", async () => {
  const hub = new MemoryHub();
  const id = swarmId("test");
  const subjects = subjectsOf(id);
  const heard: string[] = [];
  const witness = hub.connect();
  witness.subscribe("waggle.v1.test.>", ({ subject }) => heard.push(subject));
  const inner = hub.connect();
  const { publish } = permissionsOf(id, { role: "auditor", inboxPrefix: inner.inboxPrefix });
  const reading = new BoundedTransport(inner, publish);

  const bytes = new Uint8Array();
  const ask = (subject: string) => reading.request(subject, bytes, { timeoutMs: 50 });
  const forbidden = [
    ...(["drain", "pause", "policy", "transfer"] as const).map((verb) => subjects.operator(verb)),
    ...(["submit", "cancel", "retry", "await"] as const).map((verb) => subjects.project("web", verb)),
    ...[subjects.assign("g", "a"), subjects.event("web", "task", "assigned"), subjects.coordinator],
  ];
  for (const subject of forbidden) {
    expect(await ask(subject)).toEqual({ kind: "forbidden", operation: "publish", subject });
    expect(() => reading.publish(subject, bytes)).toThrow("nothing was sent");
  }
  await ask(subjects.query("web", "status"));
  await witness.flush();
  expect(heard).toEqual([subjects.query("web", "status")]);

  const swarm = await connect({ swarm: "test", transport: reading });
  await expect(swarm.pause()).rejects.toMatchObject({ code: "WAGGLE_FORBIDDEN" });
  await swarm.close();
});
