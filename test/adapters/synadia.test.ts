// `waggle bridge synadia` as a user starts it: real processes, and foreign agents that the published client of the NATS
// service API registers, on the development broker and on nats-server.

import { createInbox, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { findBroker } from "../../src/broker/find-broker.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import type { TaskRequest } from "../../src/client/task-request.ts";
import { openNatsConnection } from "../../src/transport/nats.ts";
import { aShell, runIn } from "../cli/shell.ts";
import { natsServersFor } from "../support/nats-server.ts";
import { type RunningWaggle, Workplace } from "../support/waggle-process.ts";
import { type AgentDescription, ForeignAgent } from "./synadia-agent.ts";

const [server] = natsServersFor("the Synadia Agent Protocol");

describe.each([
  ["the development broker", undefined],
  ["nats-server", server?.path],
])("waggle bridge synadia on %s", (name, path) => {
  const isMissing = name === "nats-server" && path === undefined;
  let workplace: Workplace;
  let swarm: Swarm;
  let nats: NatsConnection;
  let agents: ForeignAgent[] = [];

  beforeAll(async () => {
    if (isMissing) return;
    workplace = await Workplace.make(path);
    await workplace.start("up").says("leading");
    swarm = await connect({ dataFolder: workplace.dataFolder });
    const { address } = await findBroker({ mode: "find-only", dataFolder: workplace.dataFolder, env: {} });
    nats = await openNatsConnection({ ...address, name: "foreign agents" });
  });
  afterEach(async () => {
    for (const agent of agents) await agent.stop();
    agents = [];
  });
  afterAll(async () => {
    if (isMissing) return;
    await nats.close();
    await swarm.close();
    await workplace.clear();
  });

  async function anAgent(of: Partial<AgentDescription> = {}): Promise<ForeignAgent> {
    const agent = await ForeignAgent.start(nats, { agent: "claude-code", owner: "ann", ...of });
    agents.push(agent);
    return agent;
  }

  async function aBridge(...flags: string[]): Promise<RunningWaggle> {
    const bridge = workplace.start("bridge", "synadia", ...flags);
    await bridge.says("looking for agents");
    return bridge;
  }

  const stateOf = async (id: string) =>
    (await swarm.status()).agents.find((agent) => agent.id === id)?.status ?? "unknown";
  const isReady = async (id: string) => await expect.poll(() => stateOf(id)).toBe("ready");

  async function run(payload: unknown, rest: Partial<TaskRequest> = {}) {
    const handle = await swarm.submit({ kind: "prompt", payload, maxAttempts: 1, ...rest });
    return await handle.outcome({ timeoutMs: 30_000 });
  }

  it.skipIf(isMissing)("adopts present and new agents, and releases departed agents", async () => {
    await anAgent();
    const bridge = await aBridge();
    await isReady("synadia-claude-code-ann-main");
    const late = await anAgent({ agent: "pi", owner: "mario" });
    await isReady("synadia-pi-mario-main");
    expect(await run("hello", { kind: "prompt.pi" })).toMatchObject({ result: "hello" });
    expect(await run("hello", { kind: "prompt.claude-code" })).toMatchObject({ result: "hello" });
    expect(late.prompts).toEqual(["hello"]);

    late.hush();
    await bridge.says("agent synadia-pi-mario-main missed 3 heartbeats");
    await expect.poll(() => stateOf("synadia-pi-mario-main")).not.toBe("ready");
    late.heartbeat();
    await isReady("synadia-pi-mario-main");

    const { code, stderr } = await bridge.kill("SIGINT");
    expect([code, stderr]).toEqual([0, expect.stringContaining("agent synadia-pi-mario-main has left")]);
    await expect.poll(() => stateOf("synadia-pi-mario-main")).not.toBe("ready");
  });

  it.skipIf(isMissing)("carries prompts, answers, streams and failures", async () => {
    const agent = await anAgent();
    const bridge = await aBridge("--idle-timeout", "700ms", "--decide", 'read -r q; echo "yes to $q"');
    await isReady("synadia-claude-code-ann-main");

    expect(await run("parts please")).toMatchObject({ state: "completed", result: "one two three" });
    expect(JSON.parse((await run("files")).result ?? "")).toEqual({
      text: "see",
      attachments: [{ filename: "a.txt", content: "ZmlsZQ==" }],
    });
    expect(await run("twice")).toMatchObject({ state: "completed", result: "once" });
    expect(await run("ask Delete 200 files?")).toMatchObject({ result: "was told yes to Delete 200 files?" });
    expect(await run({ prompt: "an envelope", later: 1 })).toMatchObject({ result: "an envelope" });
    expect(agent.prompts.at(-1)).toBe('{"prompt":"an envelope","later":1}');

    const streamed = await swarm.submit({ kind: "prompt", payload: "parts", stream: true });
    const chunks: string[] = [];
    for await (const chunk of streamed.chunks()) chunks.push(chunk.text());
    expect(chunks.join("")).toBe("one two three");

    expect(await run("")).toMatchObject({ state: "failed", error: expect.stringContaining("is empty") });
    expect(await run(Uint8Array.of(0xff))).toMatchObject({
      state: "failed",
      error: expect.stringContaining("UTF-8"),
    });
    expect(await run("x".repeat(65 * 1024))).toMatchObject({
      state: "failed",
      error: expect.stringContaining("the agent takes 65536"),
    });
    for (const code of ["400", "401", "403", "404"])
      expect(await run(code)).toMatchObject({
        state: "failed",
        error: expect.stringContaining(`answered ${code}`),
      });
    expect(await run("500")).toMatchObject({ state: "dead-lettered", reason: "attempts-exhausted" });
    for (const [prompt, expected] of [
      ["late", "answered 500"],
      ["silent", "said nothing for 700 ms"],
      ["silent", "said nothing for 700 ms"],
      ["junk", "broke the protocol"],
      ["unacknowledged", "without an ack"],
      ["huge", "more than 256 KiB"],
      ["trap", "broke the protocol"],
    ] as const) {
      const task = await swarm.submit({ kind: "prompt", payload: prompt, maxAttempts: 1 });
      expect(await task.outcome({ timeoutMs: 30_000 }), prompt).toMatchObject({ state: "dead-lettered" });
      const { attempts } = await swarm.story(task.id);
      expect(JSON.stringify(attempts), prompt).toContain(expected);
      expect(JSON.stringify(attempts), prompt).toContain('"failed"');
    }
    expect(await run("still here")).toMatchObject({ result: "still here" });
    expect((await bridge.kill("SIGINT")).code).toBe(0);
  });

  it.skipIf(isMissing)("answers no to questions, and reports them as progress", async () => {
    await anAgent();
    const bridge = await aBridge();
    await isReady("synadia-claude-code-ann-main");
    const task = await swarm.submit({ kind: "prompt", payload: "ask Delete 200 files?" });
    expect((await task.result({ timeoutMs: 30_000 })).text()).toBe("was told no");
    const [log] = (await swarm.story(task.id)).attempts;
    expect(log).toMatchObject({ agent: "synadia-claude-code-ann-main" });
    await bridge.kill("SIGINT");
  });

  it.skipIf(isMissing)("puts an agent that answers 429 on hold, and tries a busy agent again", async () => {
    const agent = await anAgent();
    const bridge = await aBridge();
    await isReady("synadia-claude-code-ann-main");
    const limited = await swarm.submit({ kind: "prompt", payload: "429 600", maxAttempts: 1 });
    await expect.poll(async () => (await swarm.status()).holds?.length).toBe(1);
    expect(agent.prompts).toEqual(["429 600"]);
    await limited.cancel();
    await swarm.unhold({ agent: "synadia-claude-code-ann-main" });
    const busy = await swarm.submit({ kind: "prompt", payload: "409", maxAttempts: 1 });
    await expect.poll(() => agent.prompts.filter((prompt) => prompt === "409").length).toBeGreaterThan(1);
    await busy.cancel();
    await bridge.kill("SIGINT");
  });

  it.skipIf(isMissing)(
    "counts an attempt whose agent answers 429 after the ack, and holds the next",
    async () => {
      const agent = await anAgent();
      const bridge = await aBridge();
      await isReady("synadia-claude-code-ann-main");
      expect(await run("late 409")).toMatchObject({ state: "dead-lettered", reason: "attempts-exhausted" });
      expect(await run("late 429 600")).toMatchObject({
        state: "dead-lettered",
        reason: "attempts-exhausted",
      });
      const next = await swarm.submit({ kind: "prompt", payload: "next", maxAttempts: 1 });
      const holds = async () => (await swarm.status()).holds;
      await expect.poll(holds).toMatchObject([{ name: "synadia-claude-code-ann-main", phase: "held" }]);
      expect(agent.prompts).toEqual(["late 409", "late 429 600"]);
      await swarm.unhold({ agent: "synadia-claude-code-ann-main" });
      expect((await next.result({ timeoutMs: 30_000 })).text()).toBe("next");
      await bridge.kill("SIGINT");
    },
  );

  it.skipIf(isMissing)("sends one prompt at a time, also to several instances of one subject", async () => {
    const [one, two] = [await anAgent(), await anAgent()];
    const bridge = await aBridge();
    await isReady("synadia-claude-code-ann-main");
    const tasks = await Promise.all(Array.from({ length: 12 }, (_, nth) => run(`n${nth}`)));
    expect(tasks.map(({ result }) => result)).toEqual(Array.from({ length: 12 }, (_, nth) => `n${nth}`));
    expect([one.prompts.length + two.prompts.length, one.peak, two.peak]).toEqual([12, 1, 1]);
    await two.stop();
    expect(await run("the other is left")).toMatchObject({ state: "completed" });
    expect((await swarm.status()).agents.filter(({ status }) => status === "ready")).toHaveLength(1);
    await bridge.kill("SIGINT");
  });

  it.skipIf(isMissing)(
    "ends an answer without an end at the attempt's time-out, and takes the next task",
    async () => {
      await anAgent();
      const bridge = await aBridge("--idle-timeout", "1s");
      await isReady("synadia-claude-code-ann-main");
      const endless = await run("endless", { timeoutMs: 500 });
      expect(endless).toMatchObject({ state: "dead-lettered" });
      expect(await run("next")).toMatchObject({ result: "next" });
      expect(await stateOf("synadia-claude-code-ann-main")).toBe("ready");
      await bridge.kill("SIGINT");
    },
  );

  it.skipIf(isMissing)("loses no task when it is killed in mid-prompt", async () => {
    const agent = await anAgent();
    const doomed = await aBridge();
    await isReady("synadia-claude-code-ann-main");
    const task = await swarm.submit({ kind: "prompt", payload: "wait here" });
    await expect.poll(() => agent.gates.has("here")).toBe(true);
    await doomed.kill("SIGKILL");
    agent.gates.get("here")?.();
    agent.gates.delete("here");
    const next = await aBridge();
    await expect.poll(() => agent.gates.has("here")).toBe(true);
    agent.gates.get("here")?.();
    expect((await task.result({ timeoutMs: 30_000 })).text()).toBe("waited for here");
    await isReady("synadia-claude-code-ann-main");
    const { agents: [row] = [] } = await swarm.status();
    expect(row).toMatchObject({ inFlight: 0 });
    await next.kill("SIGINT");
  });

  it.skipIf(isMissing)("ends with the reason when another bridge takes over", async () => {
    await anAgent();
    const first = await aBridge();
    // The leader may still know the agent of the bridge before as ready.
    await first.says("agent synadia-claude-code-ann-main joined");
    const second = await aBridge();
    const { code, stderr } = await first.finished;
    expect(code).not.toBe(0);
    expect(stderr).toContain("WAGGLE_FENCED");
    expect(await run("hello")).toMatchObject({ result: "hello" });
    await second.kill("SIGINT");
  });

  it.skipIf(isMissing)(
    "leaves out what it must not adopt, and goes on after malformed messages",
    async () => {
      await anAgent({ owner: "ann" });
      await anAgent({ owner: "bob" });
      await anAgent({ owner: "old", version: "0.2" });
      await anAgent({ owner: "strict", prompt: { min_sender_trust: "signed" } });
      await anAgent({ owner: "evil", subject: "waggle.v1.other.project.default.submit" });
      await anAgent({ owner: "own", metadata: { waggle_swarm: "default" } });
      const bridge = await aBridge("--owner", "ann,old,strict,evil,own");
      await isReady("synadia-claude-code-ann-main");
      nats.publish("agents.hb.a.b.c", "beep");
      nats.publish("agents.hb.a.b.c", JSON.stringify({ instance_id: "a.>", interval_s: 1 }));
      nats.publish("agents.hb.a.b.c", JSON.stringify({ instance_id: "nobody", interval_s: 1 }));
      await bridge.says("protocol_version: is");
      await bridge.says("does not sign");
      await bridge.says("cannot be prompted");
      const ids = (await swarm.status()).agents
        .filter(({ status }) => status === "ready")
        .map(({ id }) => id);
      expect(ids).toEqual(["synadia-claude-code-ann-main"]);
      expect(await run("still here")).toMatchObject({ result: "still here" });
      await bridge.kill("SIGINT");
    },
  );

  it.skipIf(isMissing)("lists the agents, for people and programs", async () => {
    const agent = await anAgent();
    const listed = await workplace.runVerb("bridge", "synadia", "--list");
    expect(listed.stdout).toMatch(/^ID .*\nsynadia-claude-code-ann-main +claude-code +ann +main /);
    const { stdout } = await workplace.runVerb(
      "bridge",
      "synadia",
      "--list",
      "--json",
      "--agent",
      "claude-code",
    );
    expect(JSON.parse(stdout)).toEqual({
      ...{ id: "synadia-claude-code-ann-main", agent: "claude-code", owner: "ann", session: "main" },
      ...{ subject: "agents.prompt.claude-code.ann.main", instance: agent.id },
    });
    const none = await workplace.runVerb("bridge", "synadia", "--list", "--owner", "nobody");
    expect([none.code, none.stdout]).toEqual([0, ""]);
  });

  describe.skipIf(isMissing)("waggle serve synadia", () => {
    interface Heard {
      readonly text: string;
      readonly code: string;
      readonly error: string;
      readonly chunks: readonly { readonly type: string; readonly data: unknown }[];
    }

    /** Asks as a caller of the protocol does. */
    async function ask(subject: string, data: string | Uint8Array): Promise<Heard> {
      const chunks: { type: string; data: unknown }[] = [];
      let [code, error] = ["", ""];
      const inbox = nats.subscribe(createInbox());
      nats.publish(subject, data, { reply: inbox.getSubject() });
      for await (const message of inbox) {
        if (message.data.length === 0 && message.headers === undefined) break;
        code = message.headers?.get("Nats-Service-Error-Code") ?? code;
        error = message.headers?.get("Nats-Service-Error") ?? error;
        if (message.headers === undefined) chunks.push(JSON.parse(message.string()));
      }
      inbox.unsubscribe();
      const text = chunks.filter(({ type }) => type === "response").map(({ data: part }) => part);
      return { text: text.join(""), code, error, chunks };
    }

    it("is found, acknowledges, streams and ends as the protocol says", async () => {
      let isHeld = false;
      let letGo: () => void = () => undefined;
      await swarm.agent({
        id: "worker",
        kinds: ["Write.Text"],
        maxConcurrent: 10,
        handler: async function* (task) {
          const said = task.text();
          if (said === "fail") throw new Error("the work is too hard");
          if (said === "bytes") return Uint8Array.of(0xff);
          if (said === "held") {
            isHeld = true;
            await new Promise<void>((resolve) => {
              letGo = resolve;
            });
          }
          if (said === "long") return "é".repeat(100_000);
          for (const word of said.split(" ")) {
            yield `${word} `;
            await new Promise((resolve) => setTimeout(resolve, 200));
          }
          return said
            .split(" ")
            .map((word) => `${word} `)
            .join("");
        },
      });
      const serving = workplace.start("serve", "synadia", "--kind", "Write.Text", "--owner", "ann");
      await serving.says("serving Write.Text on agents.prompt.waggle.ann.write-text");
      const subject = "agents.prompt.waggle.ann.write-text";
      const listed = await workplace.runVerb("bridge", "synadia", "--list", "--json", "--swarm", "other");
      expect(JSON.parse(listed.stdout)).toMatchObject({ agent: "waggle", owner: "ann", subject });
      expect((await workplace.runVerb("bridge", "synadia", "--list", "--json")).stdout).toBe("");

      const answer = await ask(subject, "one two three");
      expect(answer).toMatchObject({ text: "one two three ", code: "" });
      expect(answer.chunks[0]).toEqual({ type: "status", data: "ack" });
      expect(answer.chunks.length).toBeGreaterThan(2);
      expect(await ask(subject, '{"prompt":"in an envelope"}')).toMatchObject({ text: "in an envelope " });
      expect((await ask(subject, "long")).text).toBe("é".repeat(100_000));
      expect((await ask(subject, "bytes")).chunks.at(-1)).toEqual({
        type: "response",
        data: { text: "", attachments: [{ filename: "result", content: "/w==" }] },
      });
      for (const malformed of ["", "{", '{"text":"x"}'])
        expect(await ask(subject, malformed)).toMatchObject({
          ...{ text: "", code: "400", error: expect.stringMatching(/^WAGGLE_INVALID_MESSAGE: /), chunks: [] },
        });
      const attached = { prompt: "x", attachments: [{ filename: "a", content: "YQ==" }] };
      expect(await ask(subject, JSON.stringify(attached))).toMatchObject({ code: "400" });
      expect(await ask(subject, "fail")).toMatchObject({
        ...{ code: "500", error: expect.stringMatching(/^WAGGLE_TASK_FAILED: .*too hard/) },
      });
      await swarm.setProject("default", { budget: { tokens: 1, windowMs: 60_000, mode: "reject" } });
      expect(await ask(subject, "beyond the budget")).toMatchObject({
        ...{ code: "429", error: expect.stringMatching(/^WAGGLE_(?:OVER_BUDGET|BUDGET_EXCEEDED): /) },
      });
      await swarm.removeProject("default");
      const status = await nats.request("agents.status.waggle.ann.write-text", "", { timeout: 5_000 });
      expect(status.json()).toMatchObject({ agent: "waggle", owner: "ann", interval_s: 30 });

      const open = ask(subject, "held");
      await expect.poll(() => isHeld).toBe(true);
      const ended = serving.kill("SIGINT");
      await serving.says("answering the open prompts");
      letGo();
      const { code, stderr } = await ended;
      expect(await open).toMatchObject({ text: "held ", code: "" });
      expect([code, stderr]).toEqual([0, expect.stringContaining("11 prompts, 6 of them with an error")]);
    });

    it("answers 404 without an agent of the kind, and is not adopted by a bridge of its own swarm", async () => {
      const serving = workplace.start(
        "serve",
        "synadia",
        "--kind",
        "nobody",
        "--owner",
        "ann",
        "--name",
        "x",
      );
      await serving.says("serving nobody on");
      expect(await ask("agents.prompt.waggle.ann.x", "hello")).toMatchObject({
        ...{ code: "404", error: expect.stringMatching(/^WAGGLE_NO_CAPABLE_AGENT: /) },
      });
      const bridge = await aBridge();
      await anAgent();
      await isReady("synadia-claude-code-ann-main");
      const ready = (await swarm.status()).agents.filter(({ status }) => status === "ready");
      expect(ready.map(({ id }) => id)).not.toContainEqual(expect.stringContaining("waggle"));
      await bridge.kill("SIGINT");
      await serving.kill("SIGKILL");
    });
  });
});

describe("waggle bridge and waggle serve synadia without a swarm", () => {
  it.each([
    ["--kind KIND is required", ["serve", "synadia"]],
    ["--idle-timeout: must be a duration", ["bridge", "synadia", "--idle-timeout", "soon"]],
  ])("say %s", async (expected, args) => {
    const { code, stderr } = await runIn(aShell(), ...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(expected)]);
  });
});
