// Invalid messages: each is answered with a coded error that names the field, or dropped and counted where no answer
// is due. None changes anything. The property test is in random-input.test.ts.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { recordCount } from "../support/stored.ts";
import { startTestSwarm, subjects, type TestSwarm, type WireAgent } from "../support/swarm.ts";
import { WireTap } from "../support/wire-tap.ts";

const mebi = 1024 * 1024;
let clock: ManualClock;
let swarm: TestSwarm;
let agent: WireAgent;

beforeEach(async () => {
  clock = new ManualClock();
  // A server with a higher limit than Waggle's: no test here may rely on the server's limit.
  swarm = await startTestSwarm({ clock, hub: new MemoryHub({ clock, maxPayloadBytes: 8 * mebi }) });
  agent = await swarm.agent("a1");
  await swarm.agent("a2", { kinds: [] });
  await swarm.client.submit([
    { id: "t1", kind: "count" },
    { id: "waiting", kind: "other" },
  ]);
  await agent.assignment();
});
afterEach(() => swarm.stop());

/** All inputs of decisions, from the leader and from the journal. */
async function snapshot(): Promise<unknown> {
  const { agents, counters: _, journal: __, observed, ...rest } = await swarm.client.status();
  const { timings: _____, ...seen } = observed; // every query takes a turn
  const agentSessions = agents.map(
    ({ silentMs: ___, reported: ____, ...each }: { silentMs: number; reported: object }) => each,
  );
  return {
    rest,
    seen,
    agentSessions,
    journal: recordCount(swarm.store),
    state: fingerprint(swarm.watched.settled().state),
  };
}

const counters = async () => (await swarm.client.status()).counters;
const nested = (depth: number) => Buffer.from(`${"[".repeat(depth)}${"]".repeat(depth)}`);
const ended = (task: string, round = 1) => ({ tasks: [{ task, round }] });
const submitted = (task: object) => ({ tasks: [{ kind: "count", ...task }] });
const result = (report: object) => ({
  incarnation: "a1-1",
  results: [{ project: "default", task: "t1", attempt: 1, token: "1.1", outcome: "completed", ...report }],
});
const joined = (more: object) => ({ incarnation: "a1-1", kinds: ["count"], maxConcurrent: 4, ...more });
const heartbeat = (more: object) => ({
  incarnation: "a1-1",
  status: "busy",
  inFlight: 1,
  seen: 1,
  held: [],
  ...more,
});

const on = {
  submit: subjects.project("default", "submit"),
  cancel: subjects.project("default", "cancel"),
  await: subjects.project("default", "await"),
  join: subjects.agent("_", "a1", "join"),
  leave: subjects.agent("_", "a1", "leave"),
  heartbeat: subjects.agent("_", "a1", "heartbeat"),
  progress: subjects.agent("_", "a1", "progress"),
  result: subjects.agent("_", "a1", "result"),
  drain: subjects.operator("drain"),
  undrain: subjects.operator("undrain"),
  project: subjects.operator("project"),
  kind: subjects.operator("kind"),
  resource: subjects.operator("resource"),
  rate: subjects.operator("rate"),
  policy: subjects.operator("policy"),
  pause: subjects.operator("pause"),
  resume: subjects.operator("resume"),
  settings: subjects.query("_", "settings"),
  status: subjects.query("_", "status"),
  task: subjects.query("_", "task"),
  journal: subjects.query("_", "journal"),
} as const;

/** Messages refused as a whole: subject, message, the named field. */
const refused: readonly (readonly [
  what: string,
  subject: string,
  message: unknown,
  field: string | undefined,
])[] = [
  ["malformed JSON", on.submit, Buffer.from('{"tasks":['), undefined],
  ["no JSON at all", on.join, Buffer.from("PING"), undefined],
  ["nothing", on.cancel, Buffer.alloc(0), undefined],
  ["a broken character", on.submit, Buffer.from([0x22, 0xff, 0x22]), undefined],
  ["another type", on.submit, null, undefined],
  ["an array for an object", on.join, [], undefined],
  ["a later version", on.submit, { v: 2, ...submitted({}) }, "v"],
  ["a version that is no number", on.heartbeat, { v: "1", ...heartbeat({}) }, "v"],
  ["ten thousand arrays in each other", on.submit, nested(10_000), undefined],
  [
    "the same in a field nobody reads",
    on.join,
    Buffer.from(JSON.stringify(joined({ x: 0 })).replace('"x":0', `"x":${nested(10_000)}`)),
    undefined,
  ],
  ["a million brackets", on.result, Buffer.from("[".repeat(mebi)), undefined],
  ["no tasks", on.submit, {}, "tasks"],
  ["tasks that are no list", on.submit, { tasks: { 0: "t1" } }, "tasks"],
  ["an empty list", on.cancel, { tasks: [] }, "tasks"],
  [
    "too many items",
    on.submit,
    { tasks: Array.from({ length: limits.itemsPerMessageMax + 1 }, () => ({ kind: "k" })) },
    "tasks",
  ],
  ...[
    "a.b",
    "_INBOX",
    "_INBOX.",
    "_INBOX.a..b",
    "_INBOX.>",
    "_INBOX.*.x",
    "$JS.API.STREAM.DELETE.WAGGLE_test",
  ].map((notify) => [`${notify} for an inbox`, on.submit, { ...submitted({}), notify }, "notify"] as const),
  ["an inbox that is too long", on.await, { tasks: ["t1"], notify: `_INBOX.${"x".repeat(200)}` }, "notify"],
  ["no inbox", on.await, { tasks: ["t1"] }, "notify"],
  ["a project that stands for none", subjects.project("_", "submit"), submitted({}), "project"],
  ["a project with a wildcard", subjects.project("a*b", "submit"), submitted({}), "project"],
  ["a project in another script", subjects.project("蜂", "cancel"), ended("t1"), "project"],
  ["a project of 65 characters", subjects.project("p".repeat(65), "submit"), submitted({}), "project"],
  ["an agent with a wildcard", subjects.agent("_", ">x", "join"), joined({}), "agent"],
  ["an agent of 65 characters", subjects.agent("_", "a".repeat(65), "result"), result({}), "agent"],
  ["an incarnation with a dot", on.join, joined({ incarnation: "a.1" }), "incarnation"],
  ["no incarnation", on.leave, {}, "incarnation"],
  ["a kind with a space", on.join, joined({ kinds: ["fine", "not fine"] }), "kinds[1]"],
  ["a kind with a control character", on.join, joined({ kinds: ["a\u0007"] }), "kinds[0]"],
  ["a kind nobody can see", on.join, joined({ kinds: ["\u200b"] }), "kinds[0]"],
  [
    "too many kinds",
    on.join,
    joined({ kinds: Array.from({ length: limits.kindsPerAgentMax + 1 }, (_, n) => `k${n}`) }),
    "kinds",
  ],
  ["no capacity", on.join, joined({ maxConcurrent: 0 }), "maxConcurrent"],
  ["a fractional capacity", on.join, joined({ maxConcurrent: 1.5 }), "maxConcurrent"],
  ["too many places", on.join, joined({ maxConcurrent: limits.maxConcurrentMax + 1 }), "maxConcurrent"],
  ["a negative prefetch", on.join, joined({ prefetch: -1 }), "prefetch"],
  ["a label that is no text", on.join, joined({ labels: { a: 1 } }), "labels.a"],
  ["a label's name with a space", on.join, joined({ labels: { "a b": "c" } }), "labels.a b"],
  [
    "too many labels",
    on.join,
    joined({
      labels: Object.fromEntries(Array.from({ length: limits.labelsMax + 1 }, (_, n) => [`l${n}`, ""])),
    }),
    "labels",
  ],
  [
    "an attempt held that has no number",
    on.join,
    joined({ held: [{ project: "default", task: "t1" }] }),
    "held[0].attempt",
  ],
  [
    "an attempt held of no project",
    on.join,
    joined({ held: [{ task: "t1", attempt: 1 }] }),
    "held[0].project",
  ],
  ["a status that is none", on.heartbeat, heartbeat({ status: "fine" }), "status"],
  ["a heartbeat that has seen −1", on.heartbeat, heartbeat({ seen: -1 }), "seen"],
  ["a heartbeat without held attempts", on.heartbeat, heartbeat({ held: undefined }), "held"],
  ["a rate above 1", on.heartbeat, heartbeat({ successRate: 1.01 }), "successRate"],
  [
    "progress beyond the end",
    on.progress,
    { incarnation: "a1-1", project: "default", task: "t1", attempt: 1, fraction: 2 },
    "fraction",
  ],
  [
    "progress at length",
    on.progress,
    { incarnation: "a1-1", project: "default", task: "t1", attempt: 1, message: "x".repeat(2_000) },
    "message",
  ],
  ["results that are no list", on.result, { incarnation: "a1-1", results: "all well" }, "results"],
  ["an agent to drain with a dot", on.drain, { agent: "a.b" }, "agent"],
  ["no agent to drain", on.undrain, {}, "agent"],
  ["a verb nobody knows", subjects.operator("explode" as "drain"), {}, undefined],
  ["a credit weight of 0", on.project, { project: "p", creditWeight: 0 }, "creditWeight"],
  ["a credit weight of nothing", on.project, { project: "p", creditWeight: null }, "creditWeight"],
  [
    "a credit weight beyond numbers",
    on.project,
    Buffer.from('{"project":"p","creditWeight":1e999}'),
    "creditWeight",
  ],
  ["max concurrent 0", on.project, { project: "p", maxConcurrent: 0 }, "maxConcurrent"],
  ["a budget of 0", on.project, { project: "p", budget: { tokens: 0, windowMs: 60_000 } }, "budget.tokens"],
  ["a budget in a mode unknown", on.project, { project: "p", budget: { mode: "beg" } }, "budget.mode"],
  ["settings of no project", on.project, { creditWeight: 2 }, "project"],
  ["settings of the project that is none", on.project, { project: "_", creditWeight: 2 }, "project"],
  ["settings of a project with a dot", on.project, { project: "a.b" }, "project"],
  ["an importance of 0", on.kind, { kind: "k", importance: 0 }, "importance"],
  ["no slots", on.resource, { resource: "gpt", slots: 0 }, "slots"],
  ["a rate window of an unknown type", on.rate, { type: "t", window: "per_year", tokensMax: 5 }, "window"],
  ["a rate of no type", on.rate, { window: "per_day", tokensMax: 5 }, "type"],
  ["a cheaper type with a space", on.kind, { kind: "k", cheaperType: "a b" }, "cheaperType"],
  ["α above 1", on.policy, { alpha: 1.5 }, "alpha"],
  ["a first attempt of more than one may take", on.policy, { tokensDefault: 1e9 }, "tokensDefault"],
  ["a preset unknown", on.policy, { optimizeFor: "speed" }, "optimizeFor"],
  ["deficits of users", on.policy, { userTurn: "deficit" }, "userTurn"],
  ["rules unknown", on.policy, { rules: "luck" }, "rules"],
  ["a pause of a project with a wildcard", on.pause, { project: "*" }, "project"],
  ["a pause of the project that is none", on.resume, { project: "_" }, "project"],
  ["settings of a name with a space", on.settings, { name: "a b" }, "name"],
  ["a question nobody knows", subjects.query("_", "everything" as "status"), {}, undefined],
  ["a question about no task", on.task, {}, "task"],
  ["a page before the first", on.journal, { from: 0 }, "from"],
  ["a page since no time", on.journal, { since: "yesterday" }, "since"],
  ["a question of a later version", on.status, { v: 3 }, "v"],
];

/** Settings that contradict other settings: subject, message, the named field. */
const impossible: readonly (readonly [what: string, subject: string, message: object, field: string])[] = [
  ["a budget without a window", on.project, { project: "p", budget: { tokens: 5 } }, "budget.windowMs"],
  ["a kind cheaper than itself", on.kind, { kind: "k", cheaper: "k" }, "cheaper"],
  ["a resource without slots", on.resource, { resource: "gpt" }, "slots"],
  ["a rate without tokens", on.rate, { type: "t", window: "per_day" }, "tokensMax"],
  ["α with a preset", on.policy, { alpha: 0.25, optimizeFor: "balanced" }, "alpha"],
  ["auto-tune above its range", on.policy, { alpha: 0.75, autoTune: true }, "alpha"],
  ["clocks of users without turns of projects", on.policy, { projectTurn: "none" }, "projectTurn"],
];

/** Refused items. Other items of the message are not checked here. */
const items: readonly (readonly [
  what: string,
  subject: string,
  message: object,
  code: string,
  field: string,
])[] = [
  ["a task without a kind", on.submit, { tasks: [{ id: "x" }] }, "INVALID_MESSAGE", "tasks[0].kind"],
  ["a task that is none", on.submit, { tasks: [7] }, "INVALID_MESSAGE", "tasks[0]"],
  ["an id with a space", on.submit, submitted({ id: "a b" }), "INVALID_MESSAGE", "tasks[0].id"],
  [
    "an id with a control character",
    on.submit,
    submitted({ id: "a\u0000" }),
    "INVALID_MESSAGE",
    "tasks[0].id",
  ],
  ["an id of nothing", on.submit, submitted({ id: "" }), "INVALID_MESSAGE", "tasks[0].id"],
  [
    "an id of 129 characters",
    on.submit,
    submitted({ id: "x".repeat(129) }),
    "INVALID_MESSAGE",
    "tasks[0].id",
  ],
  ["half of a character", on.submit, submitted({ id: "\ud800" }), "INVALID_MESSAGE", "tasks[0].id"],
  [
    "a user with a line break",
    on.submit,
    submitted({ user: "ann\nbob" }),
    "INVALID_MESSAGE",
    "tasks[0].user",
  ],
  ["a role that is no text", on.submit, submitted({ role: ["r"] }), "INVALID_MESSAGE", "tasks[0].role"],
  ["a weight of nothing", on.submit, submitted({ weight: 0 }), "INVALID_MESSAGE", "tasks[0].weight"],
  [
    "a weight beyond numbers",
    on.submit,
    Buffer.from('{"tasks":[{"kind":"k","weight":1e999}]}'),
    "INVALID_MESSAGE",
    "tasks[0].weight",
  ],
  ["half a priority", on.submit, submitted({ priority: 1.5 }), "INVALID_MESSAGE", "tasks[0].priority"],
  ["a deadline before time", on.submit, submitted({ deadline: -1 }), "INVALID_MESSAGE", "tasks[0].deadline"],
  [
    "a time that is text",
    on.submit,
    submitted({ notBefore: "2027-01-01" }),
    "INVALID_MESSAGE",
    "tasks[0].notBefore",
  ],
  ["no attempts", on.submit, submitted({ maxAttempts: 0 }), "INVALID_MESSAGE", "tasks[0].maxAttempts"],
  [
    "too many attempts",
    on.submit,
    submitted({ maxAttempts: 101 }),
    "INVALID_MESSAGE",
    "tasks[0].maxAttempts",
  ],
  ["no time at all", on.submit, submitted({ timeoutMs: 0 }), "INVALID_MESSAGE", "tasks[0].timeoutMs"],
  ["hardly a stall", on.submit, submitted({ stallMs: 1 }), "INVALID_MESSAGE", "tasks[0].stallMs"],
  ["negative tokens", on.submit, submitted({ tokens: -5 }), "INVALID_MESSAGE", "tasks[0].tokens"],
  [
    "an encoding nobody knows",
    on.submit,
    submitted({ encoding: "hex" }),
    "INVALID_MESSAGE",
    "tasks[0].encoding",
  ],
  [
    "bytes that are not base64",
    on.submit,
    submitted({ encoding: "base64", payload: "*" }),
    "INVALID_MESSAGE",
    "tasks[0].payload",
  ],
  [
    "a payload that is no text",
    on.submit,
    submitted({ payload: { a: 1 } }),
    "INVALID_MESSAGE",
    "tasks[0].payload",
  ],
  [
    "a payload one byte too large",
    on.submit,
    submitted({ payload: "a".repeat(limits.payloadBytesMax + 1) }),
    "INVALID_MESSAGE",
    "tasks[0].payload",
  ],
  [
    "a payload too large in bytes",
    on.submit,
    submitted({ payload: "é".repeat(limits.payloadBytesMax / 2 + 1) }),
    "INVALID_MESSAGE",
    "tasks[0].payload",
  ],
  [
    "a payload too large once escaped",
    on.submit,
    submitted({ payload: "\u0000".repeat(limits.payloadBytesMax) }),
    "INVALID_MESSAGE",
    "tasks[0].payload",
  ],
  ["the same id, other content", on.submit, submitted({ id: "t1", payload: "other" }), "CONFLICT", "id"],
  ["a task to cancel that is no id", on.cancel, ended("t 1"), "INVALID_MESSAGE", "tasks[0].task"],
  ["a round to cancel that is none", on.cancel, ended("t1", 0), "INVALID_MESSAGE", "tasks[0].round"],
  ["a task to cancel without its round", on.cancel, { tasks: ["t1"] }, "INVALID_MESSAGE", "tasks[0]"],
  ["a round to cancel that has not begun", on.cancel, ended("waiting", 2), "CONFLICT", "round"],
  ["a task nobody knows", on.cancel, ended("nothing"), "UNKNOWN_TASK", "task"],
  ["another project's task", subjects.project("other", "cancel"), ended("waiting"), "UNKNOWN_TASK", "task"],
  [
    "a task nobody knows, awaited",
    on.await,
    { tasks: ["nothing"], notify: "_INBOX.me" },
    "UNKNOWN_TASK",
    "task",
  ],
  [
    "another project's task, awaited",
    subjects.project("other", "await"),
    { tasks: ["waiting"], notify: "_INBOX.me" },
    "UNKNOWN_TASK",
    "task",
  ],
  [
    "a report without an outcome",
    on.result,
    result({ outcome: undefined }),
    "INVALID_MESSAGE",
    "results[0].outcome",
  ],
  [
    "an outcome that is none",
    on.result,
    result({ outcome: "great" }),
    "INVALID_MESSAGE",
    "results[0].outcome",
  ],
  ["an attempt before the first", on.result, result({ attempt: 0 }), "INVALID_MESSAGE", "results[0].attempt"],
  ["no token", on.result, result({ token: "" }), "INVALID_MESSAGE", "results[0].token"],
  ["a stale token", on.result, result({ token: "1.9" }), "STALE_TOKEN", "token"],
  [
    "somebody else's attempt",
    subjects.agent("_", "a2", "result"),
    { ...result({}), incarnation: "a2-1" },
    "STALE_TOKEN",
    "token",
  ],
  [
    "a result too large",
    on.result,
    result({ result: "a".repeat(limits.payloadBytesMax + 1) }),
    "INVALID_MESSAGE",
    "results[0].result",
  ],
  [
    "a result too large once escaped",
    on.result,
    result({ result: "\u0001".repeat(200_000) }),
    "INVALID_MESSAGE",
    "results[0].result",
  ],
  [
    "a result that is not base64",
    on.result,
    result({ result: "a", encoding: "base64" }),
    "INVALID_MESSAGE",
    "results[0].result",
  ],
];

describe("refused, and nothing changed", () => {
  it.each(refused)("%s", async (_, subject, message, field) => {
    const before = await snapshot();
    const answer = await swarm.client.ask(subject, message);
    expect(answer).toMatchObject({ ok: false, code: "WAGGLE_INVALID_MESSAGE", message: expect.any(String) });
    expect(answer.field).toBe(field);
    expect(await snapshot()).toEqual(before);
  });

  it.each(impossible)("%s", async (_, subject, message, field) => {
    const before = await snapshot();
    const answer = await swarm.client.ask(subject, message);
    expect(answer).toMatchObject({ ok: false, code: "WAGGLE_INVALID_VALUE", field });
    expect(await snapshot()).toEqual(before);
  });

  it.each(items)("%s", async (_, subject, message, code, field) => {
    const before = await snapshot();
    const { answers } = await swarm.client.ask(subject, message);
    expect(answers).toEqual([expect.objectContaining({ ok: false, code: `WAGGLE_${code}`, field })]);
    expect(await snapshot()).toEqual(before);
  });

  it("an unknown agent, to be drained", async () => {
    const before = await snapshot();
    expect(await swarm.client.ask(on.drain, { agent: "nobody" })).toMatchObject({
      code: "WAGGLE_UNKNOWN_AGENT",
      field: "agent",
    });
    expect(await snapshot()).toEqual(before);
  });

  it("a field's name as long as a message may be, without being repeated at length", async () => {
    const labels = { ["x".repeat(mebi - 1_000)]: "v" };
    const answer = await swarm.client.ask(on.join, joined({ labels }));
    expect(answer).toMatchObject({
      ok: false,
      code: "WAGGLE_INVALID_MESSAGE",
      field: expect.stringMatching(/^labels\.x/),
    });
    expect(JSON.stringify(answer).length).toBeLessThan(1_000);
  });

  it("is counted", async () => {
    const before = (await counters()).invalid ?? 0;
    await swarm.client.ask(on.submit, {});
    await swarm.client.ask(on.submit, { tasks: [{}, {}] });
    await swarm.client.ask(on.result, { incarnation: "a1-1", results: [{}] });
    expect((await counters()).invalid).toBe(before + 4);
  });
});

describe("accepted, and harmless", () => {
  it("keys called __proto__ and constructor", async () => {
    const text =
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"tasks":[{"kind":"other","id":"p1","__proto__":{"payload":"sneaked in"}}]}';
    expect((await swarm.client.ask(on.submit, Buffer.from(text))).answers).toMatchObject([
      { ok: true, task: "p1" },
    ]);
    await swarm.client.ask(
      on.join,
      Buffer.from(
        '{"incarnation":"a1-1","kinds":["count"],"maxConcurrent":4,"held":[{"project":"default","task":"t1","attempt":1}],"seen":1,"labels":{"__proto__":"x","constructor":"y"}}',
      ),
    );
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    const { state } = swarm.watched.settled();
    expect([...state.taskById.values()].find(({ spec }) => spec.id === "p1")?.spec.payload).toBe("");
    expect(Object.getPrototypeOf([...state.agentById.values()][0]?.labels)).toBe(Object.prototype);
  });

  it("names that mean something to JavaScript", async () => {
    const names = ["__proto__", "constructor", "hasOwnProperty", "toString"];
    await Promise.all(names.map((name) => swarm.agent(name, { kinds: [name] })));
    const answers = await Promise.all(
      names.map((name) => swarm.client.submit([{ id: name, kind: name, user: name }], {}, name)),
    );
    expect(answers.map(({ answers: [answer] }) => answer.ok)).toEqual([true, true, true, true]);
    for (const name of names)
      expect(await swarm.client.task(name)).toMatchObject({ state: "assigned", agent: name, project: name });
  });

  it("a payload of nothing but control characters, as large as fits", async () => {
    const payload = "\u0000".repeat(80 * 1024);
    expect((await swarm.client.submit([{ id: "c1", kind: "count", payload }])).answers).toMatchObject([
      { ok: true },
    ]);
    const assignment = await agent.assignment();
    expect(assignment).toMatchObject({ task: "c1", payload });
    expect((await agent.complete(assignment, payload)).answers).toEqual([{ ok: true, status: "ok" }]);
    const { answers } = await swarm.client.ask(on.await, { tasks: ["c1"], notify: "_INBOX.me" });
    expect(answers[0].outcome.result).toBe(payload);
  });

  it("unknown fields", async () => {
    expect(
      (await swarm.client.ask(on.cancel, { ...ended("waiting"), urgently: true })).answers,
    ).toMatchObject([{ ok: true }]);
  });
});

describe("dropped and counted", () => {
  const send = async (subject: string, message: unknown, reply?: string) => {
    swarm.client.transport.publish(subject, Buffer.from(JSON.stringify(message)), reply);
    await clock.settle();
  };

  it("a message without need of an answer that does not parse", async () => {
    const before = await snapshot();
    await send(on.heartbeat, heartbeat({ seen: "all" }));
    await send(on.progress, { incarnation: "a1-1", project: "default", task: "t1", attempt: "first" });
    await send(on.progress, { incarnation: "a1-1", project: "default", task: "nothing", attempt: 1 });
    await send(subjects.agent("_", "a*", "heartbeat"), heartbeat({}));
    expect(await counters()).toMatchObject({ "invalid-publish": 4 });
    expect(await snapshot()).toEqual(before);
  });

  it("a request for a decision without a reply subject", async () => {
    const before = await snapshot();
    for (const subject of [on.submit, on.cancel, on.await, on.join, on.leave, on.result, on.drain])
      await send(subject, { incarnation: "a1-1", agent: "a1", tasks: ["t1"] });
    await send(on.status, {});
    expect(await counters()).toMatchObject({ "no-reply": 8 });
    expect(await snapshot()).toEqual(before);
  });

  const traps = [
    subjects.journal,
    "$JS.API.STREAM.DELETE.WAGGLE_test",
    "$JS.API.STREAM.PURGE.WAGGLE_test",
    "$SYS.REQ.SERVER.PING",
    subjects.assign("_", "a2"),
    subjects.project("default", "submit"),
    "_INBOX",
    "_INBOX$JS.API.STREAM.DELETE.WAGGLE_test",
    "_INBOX_ann",
    "_INBOX.*",
    "_INBOX.>",
    "inbox.x",
  ];
  it.each(traps)("a request with the reply subject %s: nothing is ever published there", async (reply) => {
    const before = await snapshot();
    const tap = new WireTap(swarm.hub);
    const messages: [string, unknown][] = [
      [on.submit, submitted({ id: "trap" })],
      [on.cancel, ended("t1")],
      [on.await, { tasks: ["t1"], notify: "_INBOX.me" }],
      [on.join, joined({ incarnation: "a1-2" })],
      [on.leave, { incarnation: "a1-1" }],
      [on.heartbeat, heartbeat({ seen: 0, held: [] })],
      [on.result, result({})],
      [on.drain, { agent: "a1" }],
      [on.status, {}],
      [on.task, { task: "t1" }],
      [on.journal, {}],
      [on.submit, "not a request"],
    ];
    for (const [subject, message] of messages) await send(subject, message, reply);
    await clock.advance(limits.standbyAnswerMs);
    expect(tap.all.filter(({ subject }) => subject === reply)).toHaveLength(reply === on.submit ? 2 : 0);
    expect(await counters()).toMatchObject({ "reply-not-an-inbox": messages.length });
    expect(await snapshot()).toEqual(before);
  });
});
