// `waggle serve a2a`, driven by the published client and by raw requests; `waggle agent --a2a` against that server, and
// against agents that break the protocol. Real processes over a real swarm.

import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type Message, Role, type StreamResponse, type Task, TaskState } from "@a2a-js/sdk";
import { type Client, ClientFactory } from "@a2a-js/sdk/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { InvalidInputError } from "../../src/agent/handler.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import type { TaskRequest } from "../../src/client/task-request.ts";
import { aShell, runIn } from "../cli/shell.ts";
import { type RunningWaggle, Workplace } from "../support/waggle-process.ts";

let workplace: Workplace;
let swarm: Swarm;
/** Opens the gate of the task `wait NAME`. */
const gates = new Map<string, () => void>();

beforeAll(async () => {
  workplace = await Workplace.make();
  await workplace.start("up").says("leading");
  swarm = await connect({ dataFolder: workplace.dataFolder });
  await swarm.agent({ id: "worker", kinds: ["echo", "other"], maxConcurrent: 20, handler: work });
});
afterAll(async () => {
  await swarm.close();
  await workplace.clear();
});

async function* work(
  task: { text(): string; bytes(): Uint8Array },
  { signal, progress }: { signal: AbortSignal; progress: (fraction?: number, message?: string) => void },
) {
  const said = task.text();
  if (said === "fail") throw new Error("the work is too hard");
  if (said === "bad") throw new InvalidInputError("no such word");
  if (said === "bytes") return Uint8Array.of(0xff, 0x00);
  if (said === "stream") {
    for (const word of ["one ", "two ", "three"]) {
      yield word;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    return "one two three";
  }
  if (said.startsWith("wait ")) {
    progress(0.5, "half of it");
    await new Promise<void>((resolve) => {
      gates.set(said, resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }
  return said;
}

async function serve(...flags: string[]): Promise<{ process: RunningWaggle; url: string }> {
  const process = workplace.start("serve", "a2a", "--listen", "127.0.0.1:0", ...flags);
  await process.says(/at http:\/\/127\.0\.0\.1:\d+\//);
  const [url = ""] = /http:\/\/127\.0\.0\.1:\d+\//.exec(process.said) ?? [];
  return { process, url };
}

let nth = 0;
function message(text: string, rest: Partial<Message> = {}) {
  nth += 1;
  const part = {
    content: { $case: "text", value: text },
    mediaType: "text/plain",
    filename: "",
    metadata: {},
  } as const;
  return {
    tenant: "",
    message: {
      ...{ messageId: `m${nth}`, contextId: "", taskId: "", role: Role.ROLE_USER, parts: [part] },
      ...{ metadata: {}, extensions: [], referenceTaskIds: [], ...rest },
    },
    configuration: undefined,
    metadata: {},
  };
}

const textsIn = (task: Task) =>
  task.artifacts.flatMap(({ parts }) =>
    parts.map(({ content }) => (content?.$case === "text" ? content.value : content?.$case)),
  );
const saidBy = ({ status }: Pick<Task, "status">) =>
  status?.message?.parts.map(({ content }) => (content?.$case === "text" ? content.value : "")).join("") ??
  "";

describe("waggle serve a2a", () => {
  let served: { process: RunningWaggle; url: string };
  let client: Client;

  beforeAll(async () => {
    served = await serve("--kind", "echo,other", "--user", "ann");
    client = await new ClientFactory().createFromUrl(served.url);
  });

  const send = async (text: string, rest: Partial<Message> = {}) =>
    (await client.sendMessage(message(text, { metadata: { skill: "echo" }, ...rest }))) as Task;

  it("describes its kinds as skills", async () => {
    const card = await client.getAgentCard();
    expect(card).toMatchObject({ name: "waggle-default", capabilities: { streaming: true } });
    expect(card.skills.map(({ id }) => id)).toEqual(["echo", "other"]);
    expect(card.supportedInterfaces).toEqual([
      { url: served.url, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
    ]);
  });

  it("runs a message as a task, whose result is an artifact", async () => {
    const task = await send("how many words", { contextId: "c1" });
    expect(task).toMatchObject({ contextId: "c1", status: { state: TaskState.TASK_STATE_COMPLETED } });
    expect(textsIn(task)).toEqual(["how many words"]);
    expect((await swarm.story(task.id)).status).toMatchObject({
      kind: "echo",
      user: "ann",
      state: "completed",
    });
    expect(await client.getTask({ tenant: "", id: task.id })).toMatchObject({ id: task.id, contextId: "c1" });
    const bytes = await send("bytes");
    expect(bytes.artifacts[0]?.parts[0]?.content).toEqual({ $case: "raw", value: Buffer.from([0xff, 0x00]) });
  });

  it("takes the same message once", async () => {
    const [one, two] = [await send("once", { messageId: "same" }), await send("once", { messageId: "same" })];
    expect(two.id).toBe(one.id);
    expect((await swarm.story(one.id)).attempts).toHaveLength(1);
    await expect(send("something else", { messageId: "same" })).rejects.toThrow("WAGGLE_CONFLICT");
  });

  it("dates the end of a task, whenever the client asks for it", async () => {
    const task = await send("dated", { messageId: "dated" });
    const { endedAt = 0 } = await swarm.taskStatus(task.id);
    const end = new Date(endedAt).toISOString();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const found = await client.getTask({ tenant: "", id: task.id });
    expect(found.status?.timestamp).toBe(end);
    const again = await send("dated", { messageId: "dated" });
    expect(again.status?.timestamp).toBe(end);
    const page = await client.listTasks({
      ...{ tenant: "", contextId: "", status: TaskState.TASK_STATE_COMPLETED, pageSize: 100, pageToken: "" },
      statusTimestampAfter: undefined,
    });
    expect(page.tasks.find(({ id }) => id === task.id)?.status?.timestamp).toBe(end);
  });

  it("streams states, chunks as an artifact that grows, and the end", async () => {
    const events: StreamResponse[] = [];
    for await (const event of client.sendMessageStream(message("stream", { metadata: { skill: "echo" } })))
      events.push(event);
    expect(events[0]?.payload?.$case).toBe("task");
    const parts: string[] = [];
    for (const { payload } of events) {
      if (payload?.$case !== "artifactUpdate") continue;
      if (!payload.value.append) parts.length = 0;
      for (const { content } of payload.value.artifact?.parts ?? [])
        if (content?.$case === "text") parts.push(content.value);
    }
    expect(parts.length).toBeGreaterThan(1);
    expect(parts.join("")).toBe("one two three");
    expect(events.at(-1)?.payload).toMatchObject({
      $case: "statusUpdate",
      value: { status: { state: TaskState.TASK_STATE_COMPLETED } },
    });
  });

  it("answers at once if asked to, and lets the client subscribe and cancel", async () => {
    const request = message("wait a", { metadata: { skill: "echo" } });
    const configuration = {
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      returnImmediately: true,
    };
    const begun = (await client.sendMessage({ ...request, configuration })) as Task;
    expect([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING]).toContain(begun.status?.state);
    await expect.poll(() => gates.has("wait a")).toBe(true);
    const states: (TaskState | undefined)[] = [];
    const reading = (async () => {
      for await (const { payload } of client.resubscribeTask({ tenant: "", id: begun.id }))
        if (payload?.$case === "statusUpdate") states.push(payload.value.status?.state);
    })();
    const cancelled = await client.cancelTask({ tenant: "", id: begun.id, metadata: {} });
    expect(cancelled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    await reading;
    expect(states.at(-1)).toBe(TaskState.TASK_STATE_CANCELED);
    expect((await swarm.taskStatus(begun.id)).state).toBe("cancelled");
    const ended = await send("soon over");
    await expect(client.cancelTask({ tenant: "", id: ended.id, metadata: {} })).rejects.toThrow("has ended");
  });

  it("tells failures as failed tasks, and refused submissions as rejected ones", async () => {
    const bad = await send("bad");
    expect([bad.status?.state, saidBy(bad)]).toEqual([
      TaskState.TASK_STATE_FAILED,
      expect.stringMatching(/^WAGGLE_TASK_FAILED: .*no such word/),
    ]);
    const lonely = await serve("--kind", "nobody");
    const other = await new ClientFactory().createFromUrl(lonely.url);
    const rejected = (await other.sendMessage(message("x"))) as Task;
    expect([rejected.status?.state, saidBy(rejected)]).toEqual([
      TaskState.TASK_STATE_REJECTED,
      expect.stringMatching(/^WAGGLE_NO_CAPABLE_AGENT: /),
    ]);
    await expect(other.getTask({ tenant: "", id: bad.id })).rejects.toThrow("not found");
    expect((await lonely.process.kill("SIGINT")).code).toBe(0);
  });

  it.each([
    ["no skill", () => message("x"), /skill is missing; there are echo, other/],
    ["a wrong skill", () => message("x", { metadata: { skill: "ehco" } }), /did you mean echo/],
    ["no part", () => message("x", { metadata: { skill: "echo" }, parts: [] }), /no part/],
    ["no id", () => message("x", { messageId: "" }), /messageId is required/],
    ["an unknown task", () => message("x", { taskId: "a2a-never" }), /WAGGLE_UNKNOWN_TASK/],
    ["a task of others", () => message("x", { taskId: "t1" }), /not found/],
  ])("refuses a message with %s", async (_what, request, expected) => {
    await expect(client.sendMessage(request())).rejects.toThrow(expected);
  });

  it("lists tasks by state", async () => {
    const task = await send("to be listed");
    const page = await client.listTasks({
      ...{ tenant: "", contextId: "", status: TaskState.TASK_STATE_COMPLETED, pageSize: 100, pageToken: "" },
      statusTimestampAfter: undefined,
    });
    expect(page.tasks.map(({ id }) => id)).toContain(task.id);
    expect(page.tasks.every(({ status }) => status?.state === TaskState.TASK_STATE_COMPLETED)).toBe(true);
  });

  it("lists tasks that came over A2A alone, page by page, of a context if asked to", async () => {
    const ids: string[] = [];
    for (const word of ["one", "two", "three"]) {
      ids.push((await send(word, { contextId: "ctx" })).id);
      await (await swarm.submit({ kind: "echo", payload: "not over A2A" })).result();
    }
    const status = TaskState.TASK_STATE_UNSPECIFIED;
    const asked = { tenant: "", contextId: "ctx", status, pageSize: 2, statusTimestampAfter: undefined };
    const first = await client.listTasks({ ...asked, pageToken: "" });
    const second = await client.listTasks({ ...asked, pageToken: first.nextPageToken });
    expect([first.totalSize, first.tasks.length, second.tasks.length, second.nextPageToken]).toEqual([
      3,
      2,
      1,
      "",
    ]);
    const listed = [...first.tasks, ...second.tasks];
    expect(listed.map(({ id }) => id).sort()).toEqual(ids.sort());
    expect(listed.every(({ contextId }) => contextId === "ctx")).toBe(true);
    const all = await client.listTasks({ ...asked, contextId: "", pageSize: 100, pageToken: "" });
    expect([all.totalSize, all.tasks.every(({ id }) => id.startsWith("a2a-"))]).toEqual([
      all.tasks.length,
      true,
    ]);
  });

  const post = async (body: string, headers: Record<string, string> = {}) =>
    await fetch(served.url, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", "a2a-version": "1.0", ...headers },
    });

  it.each([
    ["no JSON", "{", -32700],
    ["a list", "[]", -32602],
    ["another version of JSON-RPC", '{"jsonrpc":"1.0","id":1,"method":"GetTask"}', -32602],
    ["no parameters", '{"jsonrpc":"2.0","id":1,"method":"SendMessage"}', -32602],
    ["an unknown method", '{"jsonrpc":"2.0","id":1,"method":"Nothing","params":{}}', -32601],
  ])("answers %s with an error", async (_what, body, code) => {
    const answer = (await (await post(body)).json()) as { error?: { code: number } };
    expect(answer.error?.code).toBe(code);
  });

  it("refuses other versions, pages of browsers, and requests that are too large", async () => {
    const old = (await (await post("{}", { "a2a-version": "0.3" })).json()) as {
      error?: { message: string };
    };
    expect(old.error?.message).toContain("0.3");
    expect((await post("{}", { "content-type": "text/plain" })).status).toBe(415);
    expect((await post("{}", { host: "evil.example" })).status).toBe(200); // fetch sets its own Host
    expect((await fetch(new URL("/nothing", served.url))).status).toBe(404);
    expect((await fetch(served.url)).status).toBe(405);
    expect((await post("x".repeat(3 * 1024 ** 2))).status).toBe(413);
  });

  it("loses no task when killed: a restarted server answers for the task", async () => {
    const doomed = await serve("--kind", "echo");
    const before = await new ClientFactory().createFromUrl(doomed.url);
    const request = message("wait b", { contextId: "kept" });
    const asked = before.sendMessage(request).catch((error: unknown) => error);
    await expect.poll(() => gates.has("wait b")).toBe(true);
    await doomed.process.kill("SIGKILL");
    expect(await asked).toBeInstanceOf(Error);
    const next = await serve("--kind", "echo");
    const after = await new ClientFactory().createFromUrl(next.url);
    const id = `a2a-${request.message.messageId}`;
    const found = await after.getTask({ tenant: "", id });
    expect([found.status?.state, found.contextId]).toEqual([TaskState.TASK_STATE_WORKING, "kept"]);
    const again = after.sendMessage(request);
    gates.get("wait b")?.();
    expect(textsIn((await again) as Task)).toEqual(["wait b"]);
    expect((await swarm.story(id)).attempts).toHaveLength(1);
    await next.process.kill("SIGINT");
  });

  it("asks for the token", async () => {
    const file = join(workplace.folder, "token");
    writeFileSync(file, "a-token-of-sixteen-characters\n");
    const guarded = await serve("--kind", "echo", "--token-file", file);
    const other = await new ClientFactory().createFromUrl(guarded.url);
    expect((await other.getAgentCard()).securityRequirements).toHaveLength(1);
    await expect(other.sendMessage(message("x"))).rejects.toThrow("401");
    const agent = workplace.start(
      ...["agent", "--kind", "guarded", "--a2a", guarded.url, "--token-file", file],
    );
    await agent.says("joined");
    expect((await run("guarded", "with a token")).result).toBe("with a token");
    await agent.kill("SIGINT");
    await guarded.process.kill("SIGINT");
  });

  it("shows nothing of other projects", async () => {
    const task = await send("of the default project");
    const other = await serve("--kind", "echo", "--project", "other");
    const red = await new ClientFactory().createFromUrl(other.url);
    await expect(red.getTask({ tenant: "", id: task.id })).rejects.toThrow("WAGGLE_UNKNOWN_TASK");
    await expect(red.cancelTask({ tenant: "", id: task.id, metadata: {} })).rejects.toThrow("UNKNOWN_TASK");
    const page = await red.listTasks({
      ...{ tenant: "", contextId: "", status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: "" },
      statusTimestampAfter: undefined,
    });
    expect(page.tasks).toEqual([]);
    await other.process.kill("SIGINT");
  });

  it("says when its port is taken", async () => {
    const port = new URL(served.url).port;
    const { code, stderr } = await workplace.run(
      ...["serve", "a2a", "--kind", "echo", "--listen", `127.0.0.1:${port}`],
    );
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining("another process uses it; give a different port"),
    ]);
  });

  it("answers open requests at Ctrl-C", async () => {
    const open = send("wait c");
    await expect.poll(() => gates.has("wait c")).toBe(true);
    const ended = served.process.kill("SIGINT");
    await served.process.says("answering the open requests");
    gates.get("wait c")?.();
    expect(textsIn(await open)).toEqual(["wait c"]);
    expect((await ended).code).toBe(0);
  });
});

async function run(kind: string, payload: unknown, rest: Partial<TaskRequest> = {}) {
  const handle = await swarm.submit({ kind, payload, maxAttempts: 1, ...rest });
  const outcome = await handle.outcome({ timeoutMs: 40_000 });
  const { attempts } = await swarm.story(handle.id);
  return { ...outcome, attempts: JSON.stringify(attempts) };
}

describe("waggle agent --a2a", () => {
  it("runs tasks at an agent of A2A, streams, and cancels there", async () => {
    const remote = await serve("--kind", "echo,other");
    const agent = workplace.start(
      "agent",
      "--kind",
      "far",
      "--a2a",
      remote.url,
      "--skill",
      "echo",
      "--max-concurrent",
      "4",
    );
    await agent.says("joined");
    expect(await run("far", "hello")).toMatchObject({ state: "completed", result: "hello" });
    expect(await run("far", "bytes")).toMatchObject({ result: "/wA=", encoding: "base64" });
    expect(await run("far", '{"query":"bees"}')).toMatchObject({ result: '{"query":"bees"}' });
    expect(await run("far", "bad")).toMatchObject({
      state: "dead-lettered",
      attempts: expect.stringContaining("no such word"),
    });
    const streamed = await swarm.submit({ kind: "far", payload: "stream", stream: true });
    const chunks: string[] = [];
    for await (const chunk of streamed.chunks()) chunks.push(chunk.text());
    expect([chunks.join(""), chunks.length > 1]).toEqual(["one two three", true]);

    const waiting = await swarm.submit({ kind: "far", payload: "wait d" });
    await expect.poll(() => gates.has("wait d")).toBe(true);
    await waiting.cancel();
    const there = `a2a-waggle-default-${waiting.id}-1`;
    await expect.poll(async () => (await swarm.taskStatus(there)).state).toBe("cancelled");
    expect((await agent.kill("SIGINT")).code).toBe(0);
    await remote.process.kill("SIGINT");
  });

  describe("against agents that break the protocol", () => {
    let broken: BrokenAgent;
    let agent: RunningWaggle;

    beforeAll(async () => {
      broken = await BrokenAgent.start();
      agent = workplace.start("agent", "--kind", "odd", "--a2a", broken.url, "--max-concurrent", "4");
      await agent.says("joined");
    });
    afterAll(async () => {
      await agent.kill("SIGINT");
      broken.close();
    });

    it.each([
      ["an answer that breaks off is asked for", "break", { state: "completed", result: "found again" }],
      ["an answer that ends twice counts once", "twice", { state: "completed", result: "once" }],
      [
        "a question ends the task",
        "question",
        { state: "failed", error: expect.stringContaining("which one?") },
      ],
      [
        "refused parameters end the task",
        "invalid",
        { state: "failed", error: expect.stringContaining("not these") },
      ],
      ["an answer without a task fails", "empty", { state: "dead-lettered" }],
      ["an answer that is no JSON fails", "garbage", { state: "dead-lettered" }],
      [
        "an answer that is too large fails",
        "huge",
        { state: "dead-lettered", attempts: expect.stringContaining("256 KiB") },
      ],
      [
        "a rejection fails",
        "rejected",
        { state: "dead-lettered", attempts: expect.stringContaining("rejected") },
      ],
    ])("%s", async (_what, prompt, expected) => {
      expect(await run("odd", prompt)).toMatchObject(expected);
    });

    it("an answer without an end is cut by the attempt's time-out, and cancelled there", async () => {
      expect(await run("odd", "endless", { timeoutMs: 1_000 })).toMatchObject({ state: "dead-lettered" });
      await expect.poll(() => broken.cancelled).toContain("endless");
      expect(await run("odd", "twice")).toMatchObject({ state: "completed" });
      expect(
        (await swarm.status()).agents.find(({ kinds }) => kinds.some(({ kind }) => kind === "odd")),
      ).toMatchObject({
        inFlight: 0,
      });
    });

    it("a task that is named only after the attempt's time-out is cancelled there too", async () => {
      expect(await run("odd", "late", { timeoutMs: 300 })).toMatchObject({ state: "dead-lettered" });
      await expect.poll(() => broken.cancelled).toContain("late");
    });

    it("429 with Retry-After puts the agent on hold", async () => {
      const limited = await swarm.submit({ kind: "odd", payload: "limited", maxAttempts: 1 });
      await expect.poll(async () => (await swarm.status()).holds?.length).toBe(1);
      await limited.cancel();
    });
  });

  it.each([
    ["fetch failed (bad port)", ["--a2a", "http://127.0.0.1:9/"]],
    ["must be like http://host:port", ["--a2a", "somewhere"]],
    ["--skill SKILL and --token-file FILE need --a2a URL", ["--exec", "cat", "--skill", "x"]],
    ["exclude each other", ["--exec", "cat", "--a2a", "http://127.0.0.1:9/"]],
  ])("says %s", async (expected, flags) => {
    const { code, stderr } = await runIn(aShell(), "agent", "--kind", "k", ...flags);
    expect([code, stderr]).toEqual([2, expect.stringContaining(expected)]);
  });
});

describe("waggle serve a2a without a swarm", () => {
  it.each([
    ["--kind KIND is required", []],
    ["lets other machines submit tasks", ["--kind", "k", "--listen", "0.0.0.0:0"]],
    ["cannot read nowhere", ["--kind", "k", "--token-file", "nowhere"]],
  ])("says %s", async (expected, flags) => {
    const { code, stderr } = await runIn(aShell(), "serve", "a2a", ...flags);
    expect([code, stderr]).toEqual([2, expect.stringContaining(expected)]);
  });
});

/** An agent of A2A whose answers the test writes byte by byte. The text of the message says which. */
class BrokenAgent {
  readonly cancelled: string[] = [];
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<BrokenAgent> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const agent = new BrokenAgent(server);
    server.on("request", (request, response) => void agent.#answer(request, response));
    return agent;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === "GET") return void response.end(JSON.stringify(this.#card()));
    let body = "";
    for await (const part of request) body += part;
    const { id, method, params } = JSON.parse(body);
    const result = (value: unknown) => JSON.stringify({ jsonrpc: "2.0", id, result: value });
    const task = (state: string, text?: string) => ({
      ...{ id: "endless", contextId: "c", status: { state: `TASK_STATE_${state}` } },
      ...(text === undefined ? {} : { artifacts: [{ artifactId: "a", parts: [{ text }] }] }),
    });
    if (method === "GetTask") return void response.end(result(task("COMPLETED", "found again")));
    if (method === "CancelTask") {
      this.cancelled.push(params.id);
      return void response.end(result(task("CANCELED")));
    }
    const prompt: string = params.message.parts[0].text;
    if (prompt === "limited") {
      response.writeHead(429, { "Retry-After": "600" });
      return void response.end();
    }
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const send = (value: unknown) => response.write(`data: ${result(value)}\n\n`);
    const status = (state: string, text = "") => ({
      statusUpdate: {
        ...{ taskId: "endless", contextId: "c" },
        status: {
          state: `TASK_STATE_${state}`,
          message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text }] },
        },
      },
    });
    const artifact = (text: string) => ({
      artifactUpdate: { taskId: "endless", contextId: "c", artifact: { artifactId: "a", parts: [{ text }] } },
    });
    switch (prompt) {
      case "break":
        send({ task: task("WORKING") });
        setTimeout(() => response.destroy(), 100);
        return;
      case "twice":
        send({ task: task("WORKING") });
        send(artifact("once"));
        send(status("COMPLETED"));
        send(artifact("again"));
        send(status("FAILED"));
        break;
      case "question":
        send({ task: task("WORKING") });
        send(status("INPUT_REQUIRED", "which one?"));
        break;
      case "rejected":
        send({ task: task("REJECTED") });
        break;
      case "invalid":
        response.write(
          `data: ${JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32602, message: "not these" } })}\n\n`,
        );
        break;
      case "garbage":
        response.write("data: {this is no JSON\n\n");
        break;
      case "huge":
        send({ task: task("WORKING") });
        send(artifact("x".repeat(300_000)));
        break;
      case "late":
        setTimeout(() => send({ task: { ...task("WORKING"), id: "late" } }), 1_000);
        return;
      case "endless": {
        send({ task: task("WORKING") });
        const sending = setInterval(() => send(status("WORKING", "still at it")), 50);
        response.once("close", () => clearInterval(sending));
        return;
      }
      default:
        break; // nothing at all
    }
    response.end();
  }

  #card() {
    const modes = { defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"] };
    return {
      ...{ name: "broken", description: "breaks the protocol", version: "1.0.0", skills: [], ...modes },
      capabilities: { streaming: true },
      supportedInterfaces: [{ url: this.url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    };
  }
}
