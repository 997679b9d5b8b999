// Grants and a project's bounds on the wire: who is refused, with which field, and who gets no answer where security is
// strict.

import { beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import { limits } from "../../src/limits.ts";
import { startTestSwarm, subjects, type TestSwarm, WireNode } from "../support/swarm.ts";

let swarm: TestSwarm;

beforeEach(async () => {
  swarm = await startTestSwarm();
  return () => swarm.stop();
});

const operator = (verb: string, message: object) =>
  swarm.client.ask(`${subjects.prefix}.operator.${verb}`, { v: 1, ...message });
const owner = (verb: string, message: object, project = "acme") =>
  swarm.client.ask(`${subjects.prefix}.project.${project}.${verb}`, { v: 1, ...message });
const joinMessage = { incarnation: "a1-1", kinds: ["count"], maxConcurrent: 4 };
const join = (message: object, group = "gpu") =>
  swarm.client.ask(subjects.agent(group, "a1", "join"), { ...joinMessage, ...message });

describe("operator.grant", () => {
  it("answers the whole grant in canonical form, and settings list the grant", async () => {
    const set = await operator("grant", {
      group: "gpu",
      grant: { kinds: ["b", "a", "b"], maxConcurrent: 2 },
    });
    expect(set).toMatchObject({ ok: true, changed: true, settings: { kinds: ["a", "b"], maxConcurrent: 2 } });
    const { grants } = await swarm.client.ask(subjects.query("_", "settings"), {});
    expect(grants).toEqual([{ group: "gpu", settings: { kinds: ["a", "b"], maxConcurrent: 2 } }]);
    expect(await operator("grant", { group: "gpu", grant: null })).toMatchObject({
      settings: null,
      changed: true,
    });
    expect(await operator("grant", { group: "gpu", grant: null })).toMatchObject({ changed: false });
  });

  it.each([
    [{ group: "gpu" }, "grant"],
    [{ group: "a.b", grant: {} }, "group"],
    [{ group: "gpu", grant: { labels: ["a=b=\u0000"] } }, "grant.labels[0]"],
    [{ group: "gpu", grant: { maxConcurrent: -1 } }, "grant.maxConcurrent"],
    [{ group: "gpu", grant: { projects: ["_"] } }, "grant.projects[0]"],
  ])("refuses %j with the field", async (message, field) => {
    expect(await operator("grant", message)).toMatchObject({ ok: false, field });
  });

  it("a join beyond the grant is forbidden, with the field and what to do", async () => {
    await operator("grant", { group: "gpu", grant: { kinds: ["count"], maxConcurrent: 4 } });
    const refused = await join({ kinds: ["count", "review"] });
    expect(refused).toMatchObject({ ok: false, code: "WAGGLE_FORBIDDEN", field: "kinds" });
    expect(refused.message).toContain("waggle grant set gpu --kind");
    expect(await join({ maxConcurrent: 5 })).toMatchObject({
      code: "WAGGLE_FORBIDDEN",
      field: "maxConcurrent",
    });
    expect(await join({})).toMatchObject({ ok: true });
    await operator("policy", { agents: "declared" });
    const other = subjects.agent("other", "a2", "join");
    expect(await swarm.client.ask(other, joinMessage)).toMatchObject({
      code: "WAGGLE_FORBIDDEN",
      field: "group",
    });
  });

  it("a changed grant asks the agent to join again, and gives its task to another", async () => {
    const agent = await swarm.agent("a1", { group: "gpu" });
    await swarm.submit("t1");
    await agent.assignment();
    await operator("grant", { group: "gpu", grant: { maxConcurrent: 0 } });
    expect(await agent.push("rejoin")).toMatchObject({
      refusal: { code: "WAGGLE_FORBIDDEN", field: "maxConcurrent" },
    });
    const other = await swarm.agent("a2");
    expect(await other.assignment()).toMatchObject({ task: "t1", attempt: 2 });
    expect(await agent.join()).toMatchObject({ code: "WAGGLE_FORBIDDEN", field: "maxConcurrent" });
  });

  it("an agent whose work alone is beyond the grant is asked to join again, without a refusal", async () => {
    const agent = await swarm.agent("a1", { group: "gpu" });
    await swarm.submit("t1");
    await agent.assignment();
    await operator("grant", { group: "gpu", grant: { projects: ["other"] } });
    expect(await agent.push("rejoin")).not.toHaveProperty("refusal");
  });

  it("a policy that agents must be declared refuses a joined agent, also if the push was lost", async () => {
    const agent = await swarm.agent("a1", { group: "gpu" });
    await operator("policy", { agents: "declared" });
    const refusal = {
      code: "WAGGLE_FORBIDDEN",
      field: "group",
      message: expect.stringContaining("grant set gpu"),
    };
    expect(await agent.push("rejoin")).toMatchObject({ refusal });
    agent.heartbeat([], 0).catch(() => undefined); // the session ends, and nobody answers
    expect(await agent.push("rejoin")).toMatchObject({ refusal });
  });
});

describe("a project's bounds on its submitters", () => {
  it("refuse another user, priority or weight with the field, and bound the defaults", async () => {
    const range = { priorityRange: { min: 150, max: 200 }, weightRange: { min: 2, max: 5 } };
    expect(await owner("set", { ...range, user: "ci" })).toMatchObject({
      ok: true,
      settings: { ...range, user: "ci" },
    });
    const submit = async (task: object) =>
      (await swarm.client.submit([{ kind: "count", ...task }], {}, "acme")).answers[0];
    for (const [task, field] of [
      [{ user: "ann" }, "user"],
      [{ priority: 100 }, "priority"],
      [{ weight: 6 }, "weight"],
    ] as const)
      expect(await submit(task)).toMatchObject({ ok: false, code: "WAGGLE_FORBIDDEN", field });
    expect(await submit({ id: "t1" })).toMatchObject({ ok: true });
    const [row] = swarm.coordinator.probe.settledState?.taskById.values() ?? [];
    expect(row?.spec).toMatchObject({ user: "ci", priority: 150, weight: 2 });
  });

  it("the owner may not change the share and the limits, nor declare the project", async () => {
    expect(await owner("set", { creditWeight: 9 })).toMatchObject({
      code: "WAGGLE_FORBIDDEN",
      field: "creditWeight",
    });
    expect(await owner("set", { budget: null })).toMatchObject({ code: "WAGGLE_FORBIDDEN", field: "budget" });
    expect(await owner("set", { priorityRange: { min: 5, max: 1 } })).toMatchObject({
      code: "WAGGLE_INVALID_VALUE",
      field: "priorityRange.max",
    });
    await operator("policy", { projects: "declared" });
    expect(await owner("set", { results: "hash" })).toMatchObject({ code: "WAGGLE_UNKNOWN_PROJECT" });
    expect(await owner("pause", {})).toMatchObject({ code: "WAGGLE_UNKNOWN_PROJECT" });
  });

  it("the owner pauses and resumes the project alone", async () => {
    expect(await owner("pause", {})).toMatchObject({ ok: true, settings: { project: "acme", paused: true } });
    const { paused, projects } = await swarm.client.ask(subjects.query("_", "settings"), {});
    expect([paused, projects]).toMatchObject([false, [{ project: "acme", paused: true }]]);
    expect(await owner("resume", {})).toMatchObject({ settings: { paused: false }, changed: true });
  });
});

describe("where security is strict", () => {
  /** The answer at an inbox, or undefined without one. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the answer holds
  async function answerAt(inbox: string, subject: string, message: object): Promise<any> {
    const { transport } = new WireNode(swarm.hub.connect());
    const answered = new Promise((resolve) => {
      transport.subscribe(inbox, ({ data }) => resolve(JSON.parse(Buffer.from(data).toString())));
    });
    transport.publish(subject, Buffer.from(JSON.stringify(message)), inbox);
    // When the leader has answered later requests of another client, the leader has dropped the message.
    const later = async () => {
      for (let n = 0; n < 3; n += 1) await swarm.client.status();
    };
    return await Promise.race([answered, later()]);
  }
  const task = { tasks: [{ kind: "count" }] };
  const submit = (inbox: string, project: string, more: object = {}) =>
    answerAt(inbox, subjects.project(project, "submit"), { ...task, ...more });

  it("answers go to inboxes of the asker alone; others are counted and dropped", async () => {
    expect(await submit("_INBOX.mallory.1", "acme")).toMatchObject({ answers: [{ ok: true }] });
    await owner("set", { inboxUsers: ["ann"] });
    await operator("policy", { security: "strict" });
    for (const inbox of ["_INBOX.ann.1", "_INBOX_ann.1"])
      expect(await submit(inbox, "acme")).toMatchObject({ answers: [{ ok: true }] });
    for (const inbox of ["_INBOX.mallory.1", "_INBOX.annie.1", "_INBOX.1.ann"])
      expect(await submit(inbox, "acme")).toBeUndefined();
    expect(await submit("_INBOX.ann.1", "blue")).toBeUndefined();
    expect(await answerAt("_INBOX.eve.1", subjects.query("acme", "status"), {})).toBeUndefined();
    const joining = subjects.agent("gpu", "a1", "join");
    expect(await answerAt("_INBOX.other.1", joining, joinMessage)).toBeUndefined();
    expect(await answerAt("_INBOX.gpu.1", joining, joinMessage)).toMatchObject({ ok: true });
    const { counters } = await swarm.client.status();
    expect(counters["reply-not-the-askers"]).toBe(6);
  });

  it("outcomes go to no stranger's inbox", async () => {
    await owner("set", { inboxUsers: ["ann"] });
    await operator("policy", { security: "strict" });
    const asked = (notify: string) => submit("_INBOX.ann.1", "acme", { notify });
    expect(await asked("_INBOX.victim.1")).toMatchObject({ code: "WAGGLE_FORBIDDEN", field: "notify" });
    expect(await asked("_INBOX.ann.2")).toMatchObject({ answers: [{ ok: true }] });
    const wait = { tasks: ["t1"], notify: "_INBOX.victim.1" };
    const refused = await answerAt("_INBOX.ann.1", subjects.project("acme", "await"), wait);
    expect(refused).toMatchObject({ code: "WAGGLE_FORBIDDEN", field: "notify" });
  });
});

it("a flood of questions about one project is refused, and other projects are answered", async () => {
  const ask = (project: string) => swarm.client.ask(subjects.query(project, "status"), {});
  const floods =
    Math.ceil((limits.pageBytesPerSecond * limits.pageBurstMs) / 1_000 / limits.answerCostMin) + 200;
  const answers = await Promise.all(Array.from({ length: floods }, () => ask("acme")));
  const refused = answers.filter(({ code }) => code === "WAGGLE_BACKPRESSURE");
  expect(refused.length).toBeGreaterThan(0);
  expect(refused[0].retryAfterMs).toBeGreaterThan(0);
  expect(await ask("blue")).toMatchObject({ term: 1 });
});

it("the SDK sets and removes grants", async () => {
  const sdk = await connect({ transport: swarm.hub.connect(), swarm: "test" });
  try {
    const set = await sdk.setGrant("gpu", { kinds: ["count"], tokens: 5 });
    expect(set).toMatchObject({ changed: true, settings: { kinds: ["count"], tokens: 5 } });
    expect((await sdk.settings()).grants).toEqual([
      { group: "gpu", settings: { kinds: ["count"], tokens: 5 } },
    ]);
    expect(await sdk.removeGrant("gpu")).toMatchObject({ changed: true, settings: null });
  } finally {
    await sdk.close();
  }
});
