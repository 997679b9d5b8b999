// The command line as every role, the demo's work, the dashboard with the requests of its pages, and `waggle serve`, on
// servers with generated permissions: the server refuses nothing. On each nats-server of WAGGLE_NATS_SERVERS and the
// PATH, in turn in both modes.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { authModes } from "../../src/auth/roster.ts";
import { startMember } from "../../src/cli/demo/members.ts";
import { demoAgents, demoTasks } from "../../src/cli/demo/scenario.ts";
import { submitEvenly } from "../../src/cli/demo/submitting.ts";
import { ForeignAgent } from "../adapters/synadia-agent.ts";
import { natsServersFor } from "../support/nats-server.ts";
import { type Running, SecuredSwarm } from "./secured-swarm.ts";

const servers = natsServersFor("runs without violations").map((server, at) => ({
  ...server,
  mode: authModes[at % authModes.length] ?? "config",
}));

describe.each(servers)("on nats-server $version, in mode $mode", ({ path, mode }) => {
  let secured: SecuredSwarm;
  let coordinator: Running;

  beforeAll(async () => {
    secured = await SecuredSwarm.start(path, mode, [
      { name: "gpu", role: "agent", group: "gpu" },
      { name: "_", role: "agent", group: "_" },
      { name: "submitter", role: "submitter", project: "web" },
      { name: "owner", role: "owner", project: "web" },
      { name: "auditor", role: "auditor" },
      { name: "metrics", role: "metrics" },
      {
        ...{ name: "server", role: "submitter", project: "web" },
        serves: ["svc.count", "agents.prompt.waggle.ann.count"],
      },
      { name: "caller", role: "submitter", project: "web", calls: ["svc.count", "agents.prompt.waggle.>"] },
      { name: "bridge", role: "agent", group: "bridge", calls: ["agents.prompt.>"] },
      { name: "harness", role: "submitter", project: "web", serves: ["agents.prompt.pi.ann.main"] },
    ]);
    coordinator = secured.begin("coordinator", "up", "--no-dashboard");
    await coordinator.says("leading");
    const agent = secured.begin(
      ...["gpu", "agent", "--id", "a1", "--group", "gpu", "--kind", "count,slow", "--max-concurrent", "8"],
      ...["--exec", work],
    );
    await agent.says("joined");
  });
  afterAll(() => secured.stop());
  afterEach(async () => {
    expect(await secured.violations()).toEqual([]);
  });

  /** Counts words, and logs; `slow` tasks take their time. */
  const work = 'echo working >&2; [ "$WAGGLE_KIND" = slow ] && sleep 30; wc -w';

  /** Runs verbs in order; each must succeed. */
  async function runAll(name: string, lines: readonly (readonly string[])[]): Promise<void> {
    for (const line of lines) {
      const { code, stderr } = await secured.run(name, ...line);
      expect({ line, code, stderr: code === 0 ? "" : stderr }).toEqual({ line, code: 0, stderr: "" });
    }
  }

  it("a submitter submits, waits, looks and changes its tasks", async () => {
    await runAll("submitter", [
      ["submit", "--kind", "count", "--text", "a b c", "--id", "t1", "--wait"],
      ["submit", "--kind", "slow", "--text", "x", "--id", "t2"],
      ["submit", "--kind", "count", "--text", "x", "--id", "t3", "--not-before", "+10m"],
      ["submit", "--kind", "nobody", "--text", "x", "--id", "t4"],
      ["reschedule", "t3", "--not-before", "+20m"],
    ]);
    const many = '{"kind":"count","payload":"x"}\n{"kind":"count","payload":"y"}\n';
    expect(await secured.runWith(many, "submitter", "submit", "-", "--wait")).toMatchObject({ code: 0 });
    expect(await secured.run("submitter", "wait", "t4", "--timeout", "1s")).toMatchObject({ code: 6 });
    await expect.poll(async () => (await secured.run("submitter", "task", "t2")).stdout).toContain("running");
    await runAll("submitter", [
      ["status"],
      ["status", "--all", "--json"],
      ["tasks"],
      ["tasks", "--state", "completed"],
      ["task", "t1"],
      ["explain", "t1"],
      ["explain", "t4"],
      ["events"],
      ["events", "--task", "t1", "--json"],
      ["project", "show", "web"],
      ["project", "list"],
      ["policy", "show"],
      ["cancel", "t2", "--yes"],
      ["cancel", "t3", "--yes"],
      ["retry", "t2", "--yes"],
      ["cancel", "--state", "queued,running", "--yes"],
    ]);
    const following = secured.begin("submitter", "events", "--follow");
    await delay(500);
    await runAll("submitter", [["submit", "--kind", "count", "--text", "a", "--wait", "--id", "t9"]]);
    await following.says("t9");
    expect(await following.stop()).toMatchObject({ code: 130 });
  });

  it.each([
    ["health"],
    ["kind", "list"],
    ["grant", "list"],
    ["drain", "a1"],
    ["pause"],
    ["verify"],
    ["explain", "t1", "--full"],
  ])("what a submitter may not do is refused before it is sent: %s %s", async (...line) => {
    const { code, stderr } = await secured.run("submitter", ...line.filter((part) => part !== undefined));
    expect({ code, stderr }).toMatchObject({ code: 5, stderr: expect.stringContaining("WAGGLE_FORBIDDEN") });
  });

  it("an owner also sets, pauses and resumes its project, and revokes attempts", async () => {
    await runAll("owner", [
      ["project", "set", "web", "--results", "whole", "--priority-range", "1..200"],
      ["project", "show", "web"],
      ["pause", "web"],
      ["resume", "web"],
      ["submit", "--kind", "slow", "--text", "x", "--id", "o1"],
    ]);
    await expect.poll(async () => (await secured.run("owner", "task", "o1")).stdout).toContain("running");
    await runAll("owner", [["revoke", "o1", "--yes"], ["cancel", "o1", "--yes"], ["status"]]);
  });

  it.each(["auditor", "operator"])("an %s reads everything", async (name) => {
    await runAll(name, [
      ["status"],
      ["status", "--project", "web"],
      ["tasks"],
      ["tasks", "--project", "web"],
      ["task", "t1"],
      ["explain", "t1"],
      ["explain", "t1", "--full"],
      ["events"],
      ["events", "--project", "web"],
      ["policy", "show"],
      ["grant", "list"],
      ["kind", "list"],
      ["resource", "list"],
      ["rate", "list"],
      ["project", "list"],
      ["project", "show", "web"],
    ]);
    expect((await secured.run(name, "health")).stdout).toMatch(/^health/);
    await readsJournal(name);
  });

  /** Through the answers of the coordinators: all that reads the storage elsewhere. */
  async function readsJournal(name: string): Promise<void> {
    const verified = await secured.run(name, "verify", "--json");
    expect(verified).toMatchObject({ code: 0, stderr: "" });
    const report = JSON.parse(verified.stdout);
    expect(report).toMatchObject({
      ok: true,
      where: expect.stringContaining("as the coordinators on tls://"),
    });
    const file = join(secured.folderOf(name), "audit.ndjson");
    expect(await secured.run(name, "export", "-o", file)).toMatchObject({ code: 0, stderr: "" });
    // The coordinator reads the streams themselves.
    const [exported, read] = [
      await secured.run(name, "verify", file, "--json"),
      await secured.run("coordinator", "export"),
    ];
    expect(JSON.parse(exported.stdout)).toMatchObject({ ok: true, firstIdx: report.firstIdx });
    const recordsOf = (text: string) => text.split("\n").filter((line) => line.startsWith('{"segment"'));
    const [asked, stored] = [recordsOf(readFileSync(file, "utf8")), recordsOf(read.stdout)];
    expect(asked.length).toBeGreaterThan(10);
    expect(stored.slice(0, asked.length)).toEqual(asked);
    const progress = expect.stringMatching(/^(decided up to batch \d+\n)*$/); // of a slow replay
    expect(await secured.run(name, "replay")).toMatchObject({ code: 0, stderr: progress });
    expect(await secured.run(name, "replay", "--rules", "fifo")).toMatchObject({ code: 0 });
    expect(await secured.run(name, "explain", "t1", "--journal")).toMatchObject({ code: 0, stderr: "" });
  }

  it("an operator changes settings, and repairs tasks of any project", async () => {
    await runAll("submitter", [["submit", "--kind", "slow", "--text", "x", "--id", "p1"]]);
    await runAll("operator", [
      ["grant", "set", "cpu", "--kind", "count", "--kind", "slow"],
      ["grant", "show", "cpu"],
      ["policy", "set", "--lambda", "0.3"],
      ["kind", "set", "count", "--importance", "2"],
      ["resource", "set", "model", "--slots", "2"],
      ["resource", "show", "model"],
      ["explain", "--resource", "model"],
      ["rate", "set", "claude", "--window", "per_minute", "--tokens", "1000000"],
      ["rate", "remove", "claude"],
      ["hold", "agent", "a1", "--for", "1s"],
      ["unhold", "agent", "a1"],
      ["drain", "a1"],
      ["undrain", "a1"],
      ["pause"],
      ["resume"],
      ["pause", "web"],
      ["resume", "web"],
      ["project", "set", "web", "--credit-weight", "2"],
      ["cancel", "p1", "--project", "web", "--yes"],
      ["retry", "p1", "--project", "web", "--yes"],
      ["cancel", "p1", "--yes"],
      ["grant", "remove", "cpu"],
    ]);
  });

  it("a metrics user reads the status", () => runAll("metrics", [["status"], ["status", "--json"]]));

  it("an agent's program holds slots, streams and logs", async () => {
    await runAll("operator", [["resource", "set", "model", "--slots", "1"]]);
    const agents = await secured.connect("gpu", "gpu");
    const agent = await agents.agent({
      id: "a2",
      kinds: ["ask"],
      handler: async (_, { acquire, log, progress, emit }) => {
        log("asking");
        progress(0.5, "half");
        emit("part");
        const slot = await acquire("model", { idleTimeoutMs: 60_000 });
        slot.touch();
        await slot.release();
        return "answer";
      },
    });
    await agents.wrap(async () => "own work", { resource: "model" });
    await runAll("submitter", [
      ["submit", "--kind", "ask", "--text", "x", "--id", "s1", "--wait"],
      ["submit", "--kind", "ask", "--text", "x", "--id", "s2", "--watch"],
    ]);
    const { stdout } = await secured.run("submitter", "task", "s1");
    expect(stdout).toContain("asking");
    await agent.drain();
    await agents.close();
  });

  it("the demo's agents and tasks", async () => {
    const folder = join(secured.folderOf("submitter"), "files");
    mkdirSync(folder);
    for (const name of ["a.md", "b.ts", "c.txt"]) writeFileSync(join(folder, name), `# ${name}\n`);
    const { signal } = new AbortController();
    const started = demoAgents.map((agent) =>
      startMember(
        agent.id,
        {
          ...{
            settings: secured.settingsOf("_"),
            logLevel: "silent",
            role: "agent",
            agent,
            attemptMs: 50,
            folder,
          },
        },
        signal,
      ),
    );
    await Promise.all(started.map(({ ready }) => ready));
    const swarm = await secured.connect("submitter");
    const timeUp = AbortSignal.timeout(60_000);
    const ended = await submitEvenly(swarm, demoTasks(["a.md", "b.ts", "c.txt"], "run"), {
      ...{ everyMs: 50, submitMs: 30_000, openMax: 19, delayed: () => 0, signal, timeUp },
      onSubmitted: () => undefined,
    });
    expect(ended.map(({ outcome }) => outcome.state)).toEqual(Array(9).fill("completed"));
    await swarm.close();
    for (const { member } of started) await member.stop();
  });

  // --- the dashboard ---------------------------------------------------------------------------------

  async function openDashboard(name: string, ...flags: string[]) {
    const dashboard = secured.begin(name, "dashboard", "--port", "0", ...flags);
    await dashboard.says(/http:\/\/\S+\/enter\/\w+/);
    const [url = ""] = /http:\/\/\S+\/enter\/\w+/.exec(dashboard.said) ?? [];
    const entered = await fetch(url, { redirect: "manual" });
    const cookie = (entered.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const { origin } = new URL(url);
    const get = async (path: string) => {
      const response = await fetch(`${origin}${path}`, { headers: { cookie } });
      return { status: response.status, text: await response.text() };
    };
    const { changeToken = "" } = JSON.parse((await get("/api/session")).text);
    const act = async (verb: string, body: object) => {
      const headers = { cookie, origin, "x-waggle-token": changeToken, "content-type": "application/json" };
      const all = { method: "POST", headers, body: JSON.stringify(body) };
      const response = await fetch(`${origin}/api/actions/${verb}`, all);
      return { verb, status: response.status, text: await response.text() };
    };
    /** Reads the beginning of a live view. */
    const live = async (query: string) => {
      const stop = new AbortController();
      const response = await fetch(`${origin}/api/live?${query}`, {
        headers: { cookie },
        signal: stop.signal,
      });
      const { value } = (await response.body?.getReader().read()) ?? {};
      stop.abort();
      return { status: response.status, text: Buffer.from(value ?? []).toString() };
    };
    return { dashboard, get, act, live };
  }

  type Opened = Awaited<ReturnType<typeof openDashboard>>;

  /** Reads every page and every live view. */
  async function seePages(get: Opened["get"], live: Opened["live"]): Promise<void> {
    for (const page of pages) {
      const { status, text } = await get(`/api/${page}`);
      expect({ page, status, text: status === 200 ? "" : text }).toEqual({ page, status: 200, text: "" });
    }
    for (const view of liveViews)
      expect({ view, ...(await live(`view=${view}`)) }).toMatchObject({ view, status: 200 });
  }

  const changes = [
    ["drain", { agent: "a1" }],
    ["undrain", { agent: "a1" }],
    ["pause", { project: "web" }],
    ["resume", { project: "web" }],
    ["pause", {}],
    ["resume", {}],
  ] as const;

  const pages = [
    ...["overview", "agents", "fairness", "resources", "budgets", "system", "history", "events", "tasks"],
    ...["tasks?text=t1", "agents/a1", "tasks/t1?project=web", "tasks/t1/contents?project=web"],
  ];
  const liveViews = [
    ...["overview", "agents", "tasks", "fairness", "resources", "budgets", "events", "system"],
    ...["agent&id=a1", "task&id=t1&project=web"],
  ];

  const operatorFile = () => join(secured.folderOf("operator"), "waggle.config.json");

  it("the dashboard reads as an auditor, and without an operator refuses changes", async () => {
    const { dashboard, get, act, live } = await openDashboard("auditor");
    expect(dashboard.said).toMatch(/^changes +refused, because the login only reads; --operator-config/m);
    await seePages(get, live);
    const { refusals, verbs } = JSON.parse((await get("/api/session")).text);
    expect(Object.keys(refusals)).toEqual(verbs);
    expect(refusals.pause).toContain("start `waggle dashboard` with --operator-config FILE");
    for (const [verb, body] of changes) {
      expect(await act(verb, { ...body, dryRun: true })).toMatchObject({ verb, status: 200 });
      expect(await act(verb, body)).toMatchObject({
        verb,
        status: 403,
        text: expect.stringContaining("--operator-config"),
      });
    }
    const past = await get("/api/fairness/past?task=t1&project=web");
    expect(past).toMatchObject({ status: 200, text: expect.stringContaining("web") });
    expect(await dashboard.stop()).toMatchObject({ code: 0 });
  });

  it("with an operator, changes are the operator's, and the auditor's connection sends none", async () => {
    const { dashboard, get, act, live } = await openDashboard("auditor", "--operator-config", operatorFile());
    await seePages(get, live);
    for (const [verb, body] of changes) expect(await act(verb, body)).toMatchObject({ verb, status: 200 });
    const submitted = await act("submit", { task: { kind: "count", project: "web" } });
    expect(submitted).toMatchObject({
      status: 403,
      text: expect.stringContaining("a submitter's credential"),
    });
    expect(await dashboard.stop()).toMatchObject({ code: 0 });
  });

  it("a coordinator's own dashboard fits the same: it reads, and changes are an operator's", async () => {
    const reading = await openDashboard("coordinator");
    await seePages(reading.get, reading.live);
    expect(await reading.get("/api/fairness/past?task=t1&project=web")).toMatchObject({ status: 200 });
    expect(await reading.act("pause", { project: "web" })).toMatchObject({ status: 403 });
    await reading.dashboard.stop();
    const changing = await openDashboard("coordinator", "--operator-config", operatorFile());
    for (const [verb, body] of changes) expect(await changing.act(verb, body)).toMatchObject({ status: 200 });
    await changing.dashboard.stop();
  });

  it("a file that is no operator's is refused at the start, or by the server", async () => {
    const start = (file: string) =>
      secured.run("auditor", "dashboard", "--port", "0", "--operator-config", file);
    const configOf = (name: string) => join(secured.folderOf(name), "waggle.config.json");
    expect(await start(configOf("owner"))).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("is a credential of the project web alone"),
    });
    expect(await start("absent.json")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("there is no such file"),
    });
    expect(await secured.run("submitter", "dashboard", "--port", "0")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("the dashboard shows the whole swarm"),
    });
    const wrong = await openDashboard("auditor", "--operator-config", configOf("auditor"));
    expect(await wrong.act("pause", { project: "web" })).toMatchObject({
      status: 403,
      text: expect.stringContaining("the server does not permit this user to publish"),
    });
    await wrong.dashboard.stop();
    expect(await secured.violations()).not.toEqual([]);
  });

  // --- other protocols -------------------------------------------------------------------------------

  it("serves A2A as a submitter", async () => {
    const serving = secured.begin("submitter", "serve", "a2a", "--kind", "count", "--listen", "127.0.0.1:0");
    await serving.says(/at http:\S+/);
    const [url = ""] = /http:\/\/127\.0\.0\.1:\d+\//.exec(serving.said) ?? [];
    const message = { messageId: "m1", role: "ROLE_USER", parts: [{ text: "a b c" }] };
    const request = { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } };
    const headers = { "content-type": "application/json", "a2a-version": "1.0" };
    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(request) });
    expect(await answer.text()).toContain("3");
    expect(await serving.stop()).toMatchObject({ code: 0 });
  });

  it.each([
    ["submitter", { tool: "submit", given: { kind: "count", payload: "a b", waitSeconds: 20, id: "m1" } }],
    ["auditor", { tool: "health", given: {} }],
  ])("serves MCP as %s", async (name, { tool, given }) => {
    const input = new PassThrough();
    const serving = secured.beginWith(input, name, "mcp");
    const send = (id: number | undefined, method: string, params: object = {}) =>
      input.write(
        `${JSON.stringify({ jsonrpc: "2.0", ...(id === undefined ? {} : { id }), method, params })}\n`,
      );
    const client = {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "t", version: "1" },
    };
    send(1, "initialize", client);
    await serving.says(/"id":1\b/);
    send(undefined, "notifications/initialized");
    for (const [at, each] of [tool, "status", "events", "explain"].entries()) {
      const args = each === tool ? given : each === "explain" ? { task: "t1" } : {};
      send(at + 2, "tools/call", { name: each, arguments: args });
      await serving.says(new RegExp(`"id":${at + 2}\\b`));
    }
    expect(serving.said).not.toContain('"isError":true');
    input.end();
    expect(await serving.ended).toMatchObject({ code: 0 });
  });

  it("serves NATS requests, on subjects that were named with the credential", async () => {
    const serving = secured.begin("server", "serve", "nats", "--kind", "count", "--subject", "svc.count");
    await serving.says("serving count on svc.count");
    const caller = await secured.open("caller");
    expect((await caller.request("svc.count", "a b c", { timeout: 20_000 })).string().trim()).toBe("3");
    await caller.close();
    expect(await serving.stop()).toMatchObject({ code: 0 });
  });

  it("serves the Synadia Agent Protocol, and calls its agents", async () => {
    const serving = secured.begin("server", "serve", "synadia", "--kind", "count", "--owner", "ann");
    await serving.says("serving count on agents.prompt.waggle.ann.count");
    const caller = await secured.open("caller");
    const heard: string[] = [];
    const inbox = `${secured.settingsOf("caller").inboxPrefix}.k`;
    caller.subscribe(`${inbox}.*`, { callback: (_, message) => void heard.push(message.string()) });
    caller.subscribe("agents.hb.*.*.*", { callback: () => undefined });
    caller.publish("$SRV.INFO.agents", "", { reply: `${inbox}.info` });
    await expect.poll(() => heard.join(), { timeout: 20_000 }).toContain("waggle_kind");
    caller.publish("agents.prompt.waggle.ann.count", "a b c", { reply: `${inbox}.prompt` });
    await expect.poll(() => heard.join(), { timeout: 20_000 }).toMatch(/"3\\?n?/);
    await caller.close();
    expect(await serving.stop()).toMatchObject({ code: 0 });
  });

  it("bridges agents of the Synadia Agent Protocol", async () => {
    const nats = await secured.open("harness");
    const harness = await ForeignAgent.start(nats, { agent: "pi", owner: "ann" });
    const bridge = secured.begin("bridge", "bridge", "synadia", "--group", "bridge");
    await bridge.says("prompts go to agents.prompt.pi.ann.main");
    await runAll("submitter", [["submit", "--kind", "prompt.pi", "--text", "hello", "--wait"]]);
    expect(harness.prompts).toHaveLength(1);
    expect(await secured.run("bridge", "bridge", "synadia", "--list")).toMatchObject({ code: 0 });
    await harness.stop();
    expect(await bridge.stop()).toMatchObject({ code: 0 });
    await nats.close();
  });

  it("a submitter that serves requests over NATS needs their subjects as well, and is told so", async () => {
    for (const [protocol, subject, ...flags] of [
      ["nats", "svc.count", "--subject", "svc.count"],
      ["synadia", "agents.prompt.waggle.ann.count", "--owner", "ann"],
    ] as const) {
      const served = await secured.run("submitter", "serve", protocol, "--kind", "count", ...flags);
      expect(served).toMatchObject({
        code: 5,
        stderr: expect.stringMatching(new RegExp(`to subscribe to ${subject}\\..*--serve ${subject}`, "s")),
      });
    }
    expect(await secured.violations()).not.toEqual([]);
  });

  it("a bridge without the permission to call agents ends, and is told the flag", async () => {
    for (const flags of [[], ["--list"]])
      expect(await secured.run("submitter", "bridge", "synadia", ...flags)).toMatchObject({
        code: 5,
        stderr: expect.stringMatching(/^error WAGGLE_FORBIDDEN: .*--call 'agents\.prompt\.>'/m),
      });
    expect(await secured.violations()).not.toEqual([]);
  });
});
