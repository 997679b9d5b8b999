// What a server cannot refuse, because its subject is permitted: the leader does. Each holder of a generated credential
// sends raw messages beyond its grant, its project or its role, past all checks of the SDK. mutants.ts removes each
// check of the leader in turn, and expects a case here, or in replies.test.ts, to fail.

import { Buffer } from "node:buffer";
import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Swarm } from "../../src/client/swarm.ts";
import { swarmId } from "../../src/ids.ts";
import { type AgentVerb, type QueryName, subjectsOf } from "../../src/protocol/subjects.ts";
import { natsServersFor } from "../support/nats-server.ts";
import { type Running, SecuredSwarm } from "./secured-swarm.ts";

const subjects = subjectsOf(swarmId("acme"));
const [server] = natsServersFor("the checks of a leader");

const names = ["gpu", "cpu", "x-submitter", "x-owner", "y-submitter", "auditor"] as const;
type Name = (typeof names)[number];

/** Of all that an agent of the group may be. */
const grant = {
  kinds: ["k"],
  roles: ["r"],
  types: ["t"],
  labels: ["zone=eu"],
  projects: ["x"],
  resources: ["model"],
  maxConcurrent: 2,
  tokens: 10,
};
const fitting = { kinds: ["k"], role: "r", type: "t", labels: { zone: "eu" }, maxConcurrent: 1 };

describe.runIf(server !== undefined)("the leader", () => {
  let secured: SecuredSwarm;
  let coordinator: Running;
  let operator: Swarm;
  const connections = {} as Record<Name, NatsConnection>;

  beforeAll(async () => {
    secured = await SecuredSwarm.start(server?.path ?? "", "config", [
      { name: "gpu", role: "agent", group: "gpu" },
      { name: "cpu", role: "agent", group: "cpu" },
      { name: "x-submitter", role: "submitter", project: "x" },
      { name: "x-owner", role: "owner", project: "x" },
      { name: "y-submitter", role: "submitter", project: "y" },
      { name: "auditor", role: "auditor" },
    ]);
    coordinator = secured.begin("coordinator", "up", "--no-dashboard");
    await coordinator.says("leading");
    operator = await secured.connect("operator");
    // The coordinator declares the credentials' groups and users when it begins to lead.
    await vi.waitFor(
      async () => expect((await operator.settings()).policy.security).toBe("strict"),
      patience,
    );
    for (const name of names) connections[name] = await secured.open(name);
    await operator.setGrant("gpu", grant);
  });
  afterAll(async () => {
    for (const each of Object.values(connections)) await each.close();
    await operator?.close();
    await secured?.stop();
  });

  const patience = { timeout: 20_000, interval: 50 };

  async function ask(as: Name, subject: string, body: object) {
    const message = JSON.stringify({ v: 1, ...body });
    return JSON.parse((await connections[as].request(subject, message, { timeout: 10_000 })).string());
  }
  const query = (as: Name, what: QueryName, body: object = {}, project = "x") =>
    ask(as, subjects.query(project, what), body);
  const submit = async (as: Name, task: object, project = "x") =>
    (await ask(as, subjects.project(project, "submit"), { tasks: [task] })).answers[0];

  /** An agent that does as it is told here alone. */
  class RawAgent {
    readonly assigned: { readonly task: string; readonly token: string; readonly attempt: number }[] = [];
    readonly pushes: Record<string, unknown>[] = [];
    readonly #group: "gpu" | "cpu";
    readonly #id: string;
    seen = 0;

    constructor(group: "gpu" | "cpu", id: string) {
      this.#group = group;
      this.#id = id;
      connections[group].subscribe(subjects.assign(group, id), {
        callback: (_, message) => {
          const push = JSON.parse(message.string());
          this.pushes.push(push);
          for (const each of push.assignments ?? []) {
            this.seen = Math.max(this.seen, each.number);
            if (!this.assigned.some(({ task }) => task === each.task)) this.assigned.push(each);
          }
        },
      });
    }

    ask(verb: AgentVerb, body: object = {}) {
      return ask(this.#group, subjects.agent(this.#group, this.#id, verb), { incarnation: "i1", ...body });
    }

    async heartbeat(more: object = {}): Promise<void> {
      const held = this.assigned.map(({ task, attempt }) => ({ project: "x", task, attempt }));
      const state = { status: "ready", inFlight: held.length, held, seen: this.seen };
      await this.ask("heartbeat", { ...state, ...more });
    }

    /** Beats until the task arrives. */
    async assignment(task: string) {
      const isHere = () => this.assigned.some((each) => each.task === task);
      await expect
        .poll(async () => {
          await this.heartbeat();
          return isHere();
        }, patience)
        .toBe(true);
      const found = this.assigned.find((each) => each.task === task);
      if (found === undefined) throw new Error(`${task} was not assigned`);
      return found;
    }

    async report(
      named: { readonly task: string; readonly attempt: number; readonly token: string },
      more = {},
    ) {
      const { task, attempt, token } = named;
      const result = { project: "x", task, attempt, token, outcome: "completed", result: "r", ...more };
      return (await this.ask("result", { results: [result] })).answers[0];
    }
  }

  const rowOf = async (id: string) => (await operator.status()).agents.find((each) => each.id === id);
  const forbidden = (field: string) => ({ ok: false, code: "WAGGLE_FORBIDDEN", field });

  it.each([
    ["kinds", { kinds: ["k", "other"] }],
    ["roles", { role: "boss" }],
    ["types", { type: "huge" }],
    ["types", { type: undefined }],
    ["labels", { labels: { zone: "us" } }],
    ["labels", { labels: { zone: "eu", gpu: "a100" } }],
    ["maxConcurrent", { maxConcurrent: 3 }],
    ["maxConcurrent", { maxConcurrent: 2, prefetch: 1 }],
  ])("refuses a join beyond the grant: %s %j", async (field, beyond) => {
    expect(await new RawAgent("gpu", "bad").ask("join", { ...fitting, ...beyond })).toMatchObject(
      forbidden(field),
    );
  });

  it("refuses a group without a grant where agents are declared", async () => {
    await operator.removeGrant("cpu");
    expect(await new RawAgent("cpu", "c0").ask("join", fitting)).toMatchObject(forbidden("group"));
    await operator.setGrant("cpu", {});
  });

  it("bounds slots, charges and capacity of a joined agent, and gives it the granted projects' tasks alone", async () => {
    const agent = new RawAgent("gpu", "a1");
    expect(await agent.ask("join", fitting)).toMatchObject({ ok: true });
    const acquire = async (wish: object) =>
      (await agent.ask("acquire", { handle: "h", resources: ["model"], ...wish })).answer;
    expect(await acquire({ resources: ["other"] })).toMatchObject(forbidden("resources"));
    expect(await acquire({ project: "y", tokens: 1 })).toMatchObject(forbidden("projects"));
    expect(await acquire({ project: "x", tokens: 11 })).toMatchObject(forbidden("tokens"));

    await agent.heartbeat({ maxConcurrent: 2 });
    await expect.poll(async () => (await rowOf("a1"))?.maxConcurrent, patience).toBe(2);
    await agent.heartbeat({ maxConcurrent: 100 });
    expect((await rowOf("a1"))?.maxConcurrent).toBe(2);

    expect(await submit("y-submitter", { id: "of-y", kind: "k", user: "yvonne" }, "y")).toMatchObject({
      ok: true,
    });
    expect(await submit("x-submitter", { id: "of-x", kind: "k", payload: "secret-payload" })).toMatchObject({
      ok: true,
    });
    const assigned = await agent.assignment("of-x");
    expect(agent.assigned).toHaveLength(1);
    expect(await query("y-submitter", "task", { task: "of-y" }, "y")).toMatchObject({ state: "queued" });

    expect(await agent.report(assigned, { tokens: 1_000 })).toMatchObject({ ok: true });
    const events = JSON.stringify(await query("auditor", "journal", {}, "_"));
    expect(events).toContain('"tokens":10');
    expect(events).not.toContain('"tokens":1000');
  });

  it("takes a result from the attempt's agent alone, under a token that no reader learns", async () => {
    const agent = new RawAgent("gpu", "a2");
    expect(await agent.ask("join", fitting)).toMatchObject({ ok: true });
    expect(await submit("x-submitter", { id: "sealed", kind: "k" })).toMatchObject({ ok: true });
    await operator.drain("a1");
    const assigned = await agent.assignment("sealed");
    const [term, number, mac = ""] = assigned.token.split(".");
    expect(mac.length).toBeGreaterThan(30);

    const other = new RawAgent("cpu", "c1");
    expect(await other.ask("join", { kinds: ["k"], maxConcurrent: 1 })).toMatchObject({ ok: true });
    expect(await other.report(assigned)).toMatchObject({ ok: false, code: "WAGGLE_STALE_TOKEN" });
    for (const token of [`${term}.${number}`, `${term}.${number}.${"A".repeat(mac.length)}`])
      expect(await agent.report({ ...assigned, token })).toMatchObject({
        ok: false,
        code: "WAGGLE_STALE_TOKEN",
      });

    const { end } = await query("auditor", "records", { segment: 1 }, "_");
    const { records } = await query("auditor", "records", { segment: 1, from: 1 }, "_");
    expect(records.at(-1).position).toBe(end.position);
    const stored = records.map(({ base64 }: { base64: string }) => Buffer.from(base64, "base64").toString());
    const journal = JSON.stringify(await query("auditor", "journal", {}, "_"));
    const read = [
      ...stored,
      journal,
      JSON.stringify(await query("auditor", "explain", { task: "sealed" }, "x")),
    ];
    expect(read.join()).toContain('"sealed"');
    expect(read.join()).not.toContain(mac);

    expect(await agent.report(assigned)).toMatchObject({ ok: true });
    expect(await new RawAgent("cpu", "a2").ask("join", { kinds: ["k"], maxConcurrent: 1 })).toMatchObject({
      ok: false,
      code: "WAGGLE_CONFLICT",
    });
    await other.ask("leave");
  });

  it("answers about a project nothing of another", async () => {
    const named = { task: "of-y" };
    // As about a task that does not exist: not even whether it exists is told.
    for (const what of ["task", "explain", "log"] as const) {
      const answers = [
        await query("x-submitter", what, named),
        await query("x-submitter", what, { task: "none" }),
      ];
      const [asked, none] = answers.map((answer) => JSON.stringify(answer).replaceAll(/of-y|none/g, "T"));
      expect(asked).toBe(none);
      expect(asked).toContain('"ok":false');
    }
    for (const [as, verb, item, more] of [
      ["x-submitter", "cancel", { round: 1 }, {}],
      ["x-submitter", "retry", { round: 2 }, {}],
      ["x-submitter", "reschedule", { round: 1 }, { notBefore: 1 }],
      ["x-owner", "revoke", { attempt: 1 }, {}],
    ] as const) {
      const request = { tasks: [{ ...named, ...item }], ...more };
      const { answers } = await ask(as, subjects.project("x", verb), request);
      expect(answers[0]).toMatchObject({ ok: false, code: "WAGGLE_UNKNOWN_TASK" });
    }
    const awaited = { tasks: ["of-y"], notify: "_INBOX.x-submitter.n" };
    const { answers } = await ask("x-submitter", subjects.project("x", "await"), awaited);
    expect(answers[0]).toMatchObject({ ok: false, code: "WAGGLE_UNKNOWN_TASK" });

    expect(await submit("x-submitter", { id: "waits", kind: "k", needs: { zone: "mars" } })).toMatchObject({
      ok: true,
    });
    const seen = [
      await query("x-submitter", "status"),
      await query("x-submitter", "tasks"),
      await query("x-submitter", "settings"),
      await query("x-submitter", "explain", { task: "waits" }),
      await query("x-submitter", "events"),
      await query("x-submitter", "events", { withContent: true }),
    ].map((answer) => JSON.stringify(answer));
    for (const text of seen) expect(text).not.toMatch(/of-y|yvonne/);
    expect(seen.filter((text) => text.includes("waits"))).toHaveLength(4);
  });

  it("leaves payloads out of events, unless they are asked for", async () => {
    expect(JSON.stringify(await query("x-submitter", "events"))).not.toContain("secret-payload");
    expect(JSON.stringify(await query("x-submitter", "events", { withContent: true }))).toContain(
      "secret-payload",
    );
  });

  it("keeps what an owner may set from what decides between projects", async () => {
    for (const [field, value] of [
      ["creditWeight", 9],
      ["maxConcurrent", 99],
      ["budget", { tokens: 1, windowMs: 60_000 }],
    ] as const)
      expect(await ask("x-owner", subjects.project("x", "set"), { [field]: value })).toMatchObject(
        forbidden(field),
      );
  });

  it("bounds priority, weight and user of a project's tasks", async () => {
    const bounds = { priorityRange: { min: 100, max: 200 }, weightRange: { min: 1, max: 5 }, user: "ci" };
    expect(await ask("x-owner", subjects.project("x", "set"), bounds)).toMatchObject({ ok: true });
    for (const [field, task] of [
      ["priority", { priority: 1 }],
      ["weight", { weight: 6 }],
      ["user", { user: "root" }],
    ] as const)
      expect(await submit("x-submitter", { kind: "k", ...task })).toMatchObject(forbidden(field));
  });

  it("refuses a flood of questions about one project, and answers about the others", async () => {
    const codes: string[] = [];
    const inbox = "_INBOX.x-submitter.flood";
    connections["x-submitter"].subscribe(`${inbox}.*`, {
      callback: (_, message) => void codes.push(JSON.parse(message.string()).code ?? "answered"),
    });
    for (let at = 0; at < 2_000; at += 1)
      connections["x-submitter"].publish(subjects.query("x", "status"), "{}", { reply: `${inbox}.${at}` });
    await connections["x-submitter"].flush();
    await expect.poll(() => codes.includes("WAGGLE_BACKPRESSURE"), patience).toBe(true);
    await expect
      .poll(async () => (await query("y-submitter", "status", {}, "y")).ok !== false, patience)
      .toBe(true);
  });

  it("ends the sessions of a group whose grant is taken back, and gives their work to others", async () => {
    const agent = new RawAgent("gpu", "a3");
    expect(await agent.ask("join", fitting)).toMatchObject({ ok: true });
    await operator.setGrant("gpu", { maxConcurrent: 0 });
    await expect
      .poll(() => agent.pushes.find(({ type }) => type === "rejoin"), patience)
      .toMatchObject({ refusal: forbidden("maxConcurrent") });
    expect(await new RawAgent("gpu", "a4").ask("join", fitting)).toMatchObject(forbidden("maxConcurrent"));
  });

  it("is asked nothing that the server refuses", async () => {
    expect(await secured.violations()).toEqual([]);
  });
});
