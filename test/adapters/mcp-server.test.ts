// `waggle mcp` as a client starts it: a child process, driven by the published client, over a real swarm.

import { spawn } from "node:child_process";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { limits } from "../../src/limits.ts";
import { launcher, RunningWaggle, Workplace } from "../support/waggle-process.ts";

let workplace: Workplace;
let swarm: Swarm;
/** Ends the tasks of kind slow. */
let isComplete = false;
const clients: Client[] = [];

beforeAll(async () => {
  workplace = await Workplace.make();
  await workplace.start("up").says("leading");
  swarm = await connect({ dataFolder: workplace.dataFolder });
  await swarm.agent({
    id: "slow",
    kinds: ["slow"],
    handler: async function* (_task, { progress }) {
      while (!isComplete) {
        progress(0.5, "half of it"); // again: the leader passes reports on once a client awaits the task
        yield "a part"; // again: before the client's inbox is open, chunks are lost
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      return "done";
    },
  });
  await swarm.agent({ id: "worker", kinds: ["echo", "long", "bytes", "fail"], handler: work });
  await swarm.agent({ id: "limited", type: "gpt-4o", kinds: ["limited"], handler: work });
  await swarm.hold({ type: "gpt-4o" }, { forMs: 3_600_000 });
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});
afterAll(async () => {
  await swarm.close();
  await workplace.clear();
});

const LONG = `${"0123456789".repeat(limits.mcpAnswerCharactersMax / 10)}and the end`;

function work({ kind, ...task }: { readonly kind: string; text(): string }): unknown {
  if (kind === "long") return LONG;
  if (kind === "bytes") return Uint8Array.of(0xff, 0x00);
  if (kind === "fail") throw new Error("the work is too hard");
  return Reflect.get(task, "payload");
}

type Era = "2025" | "2026";

async function aClient(
  flags: readonly string[] = [],
  { era = "2025", dataFolder = workplace.dataFolder }: { era?: Era; dataFolder?: string } = {},
): Promise<Client> {
  const args = [launcher, "mcp", "--data-folder", dataFolder, ...flags];
  const transport = new StdioClientTransport({ command: process.execPath, args, stderr: "pipe" });
  const negotiation = { versionNegotiation: { mode: "auto" } } as const;
  const client = new Client({ name: "test", version: "1" }, era === "2026" ? negotiation : {});
  await client.connect(transport);
  clients.push(client);
  return client;
}

interface Called {
  readonly isError: boolean;
  readonly texts: readonly string[];
}

async function call(client: Client, name: string, args: object = {}, signal?: AbortSignal): Promise<Called> {
  const params = { name, arguments: { ...args } };
  const { content, isError = false } = await client.callTool(params, signal === undefined ? {} : { signal });
  return { isError, texts: content.map((block) => (block.type === "text" ? block.text : block.type)) };
}

const all = ["submit", "result", "status", "tasks", "explain", "health", "events", "cancel"];

describe("waggle mcp", () => {
  it("lists tools with schemas; --read-only leaves out tools with changes to the swarm", async () => {
    const { tools } = await (await aClient()).listTools();
    expect(tools.map(({ name }) => name)).toEqual(all);
    for (const { description, inputSchema, annotations } of tools) {
      expect(description?.length).toBeGreaterThan(80);
      expect(inputSchema).toMatchObject({ type: "object", additionalProperties: false });
      for (const property of Object.values(inputSchema.properties ?? {}))
        expect(property).toHaveProperty("description");
      expect(annotations).toHaveProperty("readOnlyHint");
    }
    expect(tools.find(({ name }) => name === "submit")?.inputSchema.required).toEqual(["kind"]);

    const reader = await aClient(["--read-only"]);
    const { tools: harmless } = await reader.listTools();
    expect(harmless.map(({ name }) => name)).toEqual(all.slice(1, -1));
    expect(harmless.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true);
    await expect(call(reader, "submit", { kind: "echo" })).rejects.toThrow("left out by --read-only");
  });

  it.each<Era>(["2025", "2026"])(
    "carries a task from submit to its result, in the era of %s",
    async (era) => {
      const client = await aClient(["--user", "ann"], { era });
      const id = `life-${era}`;
      const submitted = await call(client, "submit", {
        kind: "echo",
        payload: { words: 3 },
        id,
        waitSeconds: 20,
      });
      expect(submitted.texts.map((text) => JSON.parse(text))).toMatchObject([
        { task: id, project: "default", state: "accepted" },
        { task: id, state: "completed", agent: "worker", attempts: 1 },
        { words: 3 },
      ]);
      expect((await call(client, "result", { task: id })).texts).toEqual(submitted.texts.slice(1));
      const explained = await call(client, "explain", { task: id });
      expect(JSON.parse(explained.texts[0]?.split("\n")[0] ?? "")).toMatchObject({
        user: "ann",
        state: "completed",
      });
      const [events = ""] = (await call(client, "events", { task: id })).texts;
      expect(events).toMatch(/TaskSubmitted.*\n.*TaskAssigned.* → worker.*\n(?:.*\n)*.*TaskCompleted/);
      const [status = ""] = (await call(client, "status")).texts;
      const lines = status.split("\n").map((line) => JSON.parse(line));
      expect(lines).toContainEqual(expect.objectContaining({ agent: "worker", status: "ready" }));
      // Before the agents: a long answer is cut at its end.
      const { until } = lines[1];
      expect(lines[1]).toMatchObject({ onHold: "gpt-4o", is: "type", by: "operator", phase: "held" });
      expect(until).toMatch(/^\d{4}-\d\d-\d\dT/);
      expect(lines.find(({ agent }) => agent === "limited")).toMatchObject({
        status: "ready",
        onHold: { on: "type", phase: "held", until },
      });
      expect(JSON.parse((await call(client, "health")).texts[0]?.split("\n")[0] ?? "")).toHaveProperty(
        "verdict",
      );
    },
  );

  it("cuts a long result, says so, and reads on", async () => {
    const client = await aClient();
    const { texts } = await call(client, "submit", { kind: "long", id: "long-1", waitSeconds: 20 });
    const cut = texts[2] ?? "";
    expect(cut.length).toBeLessThan(limits.mcpAnswerCharactersMax + 200);
    const next = Number(/call result again with "from": (\d+)/.exec(cut)?.[1]);
    expect(next).toBe(limits.mcpAnswerCharactersMax);
    const rest = await call(client, "result", { task: "long-1", from: next });
    expect(rest.texts[1]).toMatch(/^and the end\n\[cut: characters 20000 to 20011 of 20011\]$/);
  });

  it("keeps the newest events within the bound", async () => {
    const client = await aClient();
    const payload = "x".repeat(100);
    for await (const one of swarm.submitMany(
      Array.from({ length: 300 }, () => ({ kind: "nobody", payload })),
    ))
      if (!one.ok) throw one.error;
    const [text = ""] = (await call(client, "events", { tail: limits.mcpEventsMax })).texts;
    expect(text).toMatch(/^\[cut: the last \d+ of \d+ lines; narrow the filters/);
    expect(text.length).toBeLessThan(limits.mcpAnswerCharactersMax + 200);
    const [newest] = (await call(client, "events", { tail: 1 })).texts;
    expect(text.endsWith(newest ?? "?")).toBe(true);
    await swarm.cancel({ kind: "nobody" });
  });

  it("finds tasks and events by attributes", async () => {
    const client = await aClient();
    for (const ticket of ["OPS-1", "OPS-2"])
      await call(client, "submit", { kind: "echo", id: ticket, attributes: { ticket }, waitSeconds: 20 });
    const attributes = { ticket: "OPS-2" };
    const [found = ""] = (await call(client, "tasks", { attributes, states: ["completed"] })).texts;
    expect(found.split("\n").map((line) => JSON.parse(line))).toMatchObject([
      { tasks: 1 },
      { task: "OPS-2", state: "completed" },
    ]);
    const [events = ""] = (await call(client, "events", { attributes })).texts;
    expect(events).toContain("OPS-2");
    expect(events).not.toContain("OPS-1");
  });

  it("answers bytes as base64", async () => {
    const { texts } = await call(await aClient(), "submit", { kind: "bytes", waitSeconds: 20 });
    expect(JSON.parse(texts[1] ?? "")).toMatchObject({ encoding: "base64" });
    expect(texts[2]).toBe("/wA=");
  });

  it("says why a task has not ended, cancels it, and then tells the end as an error", async () => {
    const client = await aClient();
    await call(client, "submit", { kind: "nobody", id: "waits" });
    const waiting = await call(client, "result", { task: "waits", waitSeconds: 0 });
    expect(waiting.isError).toBe(false);
    expect(JSON.parse(waiting.texts[0] ?? "")).toMatchObject({
      state: "queued",
      why: expect.stringContaining("No agent serves nobody"),
    });
    const cancelled = await call(client, "cancel", { task: "waits" });
    expect(JSON.parse(cancelled.texts[0] ?? "")).toMatchObject({ cancelled: true, state: "cancelled" });
    expect(await call(client, "result", { task: "waits" })).toEqual({
      isError: true,
      texts: ["WAGGLE_TASK_CANCELLED: Task waits was cancelled"],
    });
  });

  it.each([
    ["submit", "no kind", {}, /^WAGGLE_INVALID_MESSAGE: submit: kind: is missing$/],
    [
      "submit",
      "a wrong name",
      { kind: "echo", payloads: 1 },
      /^WAGGLE_INVALID_MESSAGE: .*did you mean payload/,
    ],
    ["submit", "a wrong kind", { kind: "two words" }, /^WAGGLE_INVALID_MESSAGE: .*kind: /],
    ["submit", "no time", { kind: "echo", deadline: "tomorrow" }, /^WAGGLE_INVALID_VALUE: deadline: /],
    [
      "submit",
      "too much",
      { kind: "echo", payload: "x".repeat(300_000) },
      /^WAGGLE_INVALID_MESSAGE: .*256 KiB/,
    ],
    ["result", "an unknown task", { task: "never" }, /^WAGGLE_UNKNOWN_TASK: /],
    ["result", "a wrong wait", { task: "never", waitSeconds: -1 }, /^WAGGLE_INVALID_MESSAGE: .*waitSeconds/],
    ["events", "a wrong type", { types: ["Nothing"] }, /^WAGGLE_INVALID_MESSAGE: .*unknown event type/],
    ["cancel", "an unknown task", { task: "never" }, /^WAGGLE_UNKNOWN_TASK: /],
  ])("refuses a call of %s with %s, with a code", async (name, _what, args, expected) => {
    const { isError, texts } = await call(await aClient(), name, args);
    expect(isError).toBe(true);
    expect(texts.join("\n")).toMatch(expected);
  });

  it("tells a failed task with its reason, and an unknown tool with the tools there are", async () => {
    const client = await aClient();
    const failed = await call(client, "submit", { kind: "fail", maxAttempts: 1, waitSeconds: 20 });
    expect(failed).toMatchObject({
      isError: true,
      texts: [expect.stringMatching(/^WAGGLE_TASK_FAILED: .*too hard/)],
    });
    await expect(call(client, "sumbit")).rejects.toThrow("did you mean submit?");
  });

  it("reports the steps of a task while a call waits, if the client asks for progress", async () => {
    const client = await aClient();
    const said: string[] = [];
    const expected = ["attempt 1 goes to slow", "50 % · half of it", "a part"];
    const params = { name: "submit", arguments: { kind: "slow", waitSeconds: 20 } };
    const { content } = await client.callTool(params, {
      onprogress: ({ message }) => {
        said.push(message ?? "");
        isComplete = expected.every((text) => said.includes(text));
      },
    });
    expect(said).toEqual(expect.arrayContaining(expected));
    expect(content.at(-1)).toEqual({ type: "text", text: "done" });
  });

  it("gives up a wait that the client cancels, and goes on; so does the task", async () => {
    const client = await aClient();
    await call(client, "submit", { kind: "nobody", id: "patient" });
    const given = new AbortController();
    const waiting = call(client, "result", { task: "patient", waitSeconds: 60 }, given.signal);
    await call(client, "health");
    given.abort(new Error("the user lost patience"));
    await expect(waiting).rejects.toThrow("patience");
    expect((await call(client, "explain", { task: "patient" })).texts[0]).toContain('"state":"queued"');
    await swarm.cancel("patient");
  });

  it("starts without a swarm, and serves as soon as there is one", async () => {
    const later = await Workplace.make();
    try {
      const client = await aClient([], { dataFolder: later.dataFolder });
      expect(await call(client, "status")).toMatchObject({
        isError: true,
        texts: [expect.stringMatching(/^WAGGLE_UNREACHABLE: .*waggle up/)],
      });
      const health = await call(client, "health");
      expect(JSON.parse(health.texts[0]?.split("\n")[0] ?? "")).toMatchObject({ level: "critical" });
      await later.start("up").says("leading");
      expect(await call(client, "status")).toMatchObject({ isError: false });
    } finally {
      await later.clear();
    }
  });
});

describe("the wire of waggle mcp", () => {
  const start = (...flags: string[]) => {
    const args = [launcher, "mcp", "--data-folder", workplace.dataFolder, ...flags];
    return new RunningWaggle(spawn(process.execPath, args));
  };
  const request = (id: number, method: string, params: object = {}) =>
    `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;
  const hello = request(1, "initialize", {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "raw", version: "1" },
  });

  it("survives malformed messages, and writes nothing but messages to standard output", async () => {
    const server = start("--log-level", "debug");
    const { stdin } = server.child;
    stdin?.write('this is no JSON\n{"half":\n[]\n{}\n{"jsonrpc":"1.0"}\n\u0000\n');
    stdin?.write(hello);
    stdin?.write(request(2, "no/such/method"));
    stdin?.write(request(3, "tools/call", { name: 7 }));
    stdin?.write(request(4, "tools/call", { name: "health", arguments: [] }));
    stdin?.write(request(5, "tools/call", { name: "status", arguments: { project: "p" } }));
    await server.says('"id":5');
    stdin?.end();
    const { code, stdout } = await server.finished;
    expect(code).toBe(0);
    const answers = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const byId = new Map(answers.map((answer) => [answer.id, answer]));
    expect(byId.get(1)).toHaveProperty("result.serverInfo.name", "waggle");
    expect(byId.get(2)).toHaveProperty("error.code", -32601);
    expect(byId.get(3)).toHaveProperty("error.code", -32602);
    expect(byId.get(4)).toHaveProperty("error");
    expect(byId.get(5)).toHaveProperty("result.content");
  });

  it("stops the work of a call that the client cancels, and does not answer it", async () => {
    const server = start("--log-level", "info");
    await swarm.submit({ kind: "nobody", id: "dropped" });
    server.child.stdin?.write(hello);
    const params = { name: "result", arguments: { task: "dropped", waitSeconds: 600 } };
    server.child.stdin?.write(request(2, "tools/call", params));
    server.child.stdin?.write(request(3, "tools/call", { name: "health" }));
    await server.says('"id":3');
    const cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } };
    server.child.stdin?.write(`${JSON.stringify(cancelled)}\n`);
    await server.says('"tool":"result"');
    server.child.stdin?.end();
    expect((await server.finished).stdout).not.toContain('"id":2');
    await swarm.cancel("dropped");
  });

  it("ends when standard input closes, also with a call that waits", async () => {
    const server = start();
    server.child.stdin?.write(hello);
    await server.says('"id":1');
    await swarm.submit({ kind: "nobody", id: "endless" });
    const params = { name: "result", arguments: { task: "endless", waitSeconds: 600 } };
    server.child.stdin?.write(request(2, "tools/call", params));
    server.child.stdin?.write(request(3, "tools/call", { name: "health" }));
    await server.says('"id":3');
    server.child.stdin?.end();
    expect(await server.finished).toMatchObject({ code: 0, stderr: "" });
    await swarm.cancel("endless");
  });

  it("ends when its reader is gone, and at Ctrl-C", async () => {
    const unread = start();
    unread.child.stdout?.destroy();
    unread.child.stdin?.on("error", () => undefined);
    unread.child.stdin?.write(hello);
    expect(await unread.finished).toMatchObject({ code: 0 });
    const interrupted = start();
    interrupted.child.stdin?.write(hello);
    await interrupted.says('"id":1');
    expect((await interrupted.kill("SIGINT")).code).not.toBeNull();
  });
});
