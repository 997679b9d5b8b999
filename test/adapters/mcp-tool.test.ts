// Tools of MCP servers as agents: real servers as child processes, a real swarm.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type McpToolAgent, openMcpTool } from "../../src/adapters/mcp/tool-agent.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import type { TaskRequest } from "../../src/client/task-request.ts";
import { processes } from "../support/processes.ts";
import { Workplace } from "../support/waggle-process.ts";

const fileOf = (name: string) => fileURLToPath(new URL(`./${name}`, import.meta.url));

let workplace: Workplace;
let swarm: Swarm;
let notes: string;
const tools: McpToolAgent[] = [];

beforeAll(async () => {
  workplace = await Workplace.make();
  await workplace.start("up").says("leading");
  swarm = await connect({ dataFolder: workplace.dataFolder });
  notes = join(workplace.folder, "notes");
});
afterEach(async () => {
  for (const tool of tools.splice(0)) await tool.close();
});
afterAll(async () => {
  await swarm.close();
  await workplace.clear();
});

const good = () => `${process.execPath} ${fileOf("tool-server.mjs")} ${notes}`;
const raw = () => `${process.execPath} ${fileOf("raw-server.mjs")}`;
const noted = () => readFileSync(notes, "utf8").trim().split("\n");
const countOf = (what: string) => noted().filter((line) => line === what).length;

async function open(tool: string, command = good()): Promise<McpToolAgent> {
  const logger = pino({ level: "silent" });
  const opened = await openMcpTool({
    command,
    tool,
    version: "0",
    logger,
    signal: AbortSignal.timeout(30_000),
  });
  tools.push(opened);
  return opened;
}

let kinds = 0;

/** An agent for the tool, of a kind of its own. */
async function agentFor(tool: string, command?: string) {
  kinds += 1;
  const kind = `tool${kinds}`;
  const { handler } = await open(tool, command);
  const agent = await swarm.agent({ kinds: [kind], handler, maxConcurrent: 2 });
  return {
    submit: (task: Partial<TaskRequest> = {}) => swarm.submit({ kind, ...task }),
    [Symbol.asyncDispose]: () => agent.stop(),
  };
}

describe("a tool of an MCP server as an agent", () => {
  it.each([
    ["text as text", "shout", { words: "a b c" }, "A B C"],
    ["structured content as JSON", "count", { words: "a b c" }, '{"count":3}'],
    ["several blocks as JSON", "two", {}, '[{"type":"text","text":"one"},{"type":"text","text":"two"}]'],
  ])("answers %s", async (_what, tool, payload, expected) => {
    await using agent = await agentFor(tool);
    const task = await agent.submit({ payload });
    expect((await task.result()).text()).toBe(expected);
  });

  it("answers an image as bytes, without arguments too", async () => {
    await using agent = await agentFor("picture");
    const task = await agent.submit();
    expect([...(await task.result()).bytes()]).toEqual([0xff, 0x00]);
  });

  it("keeps the server's stderr with the attempt", async () => {
    await using agent = await agentFor("shout");
    const task = await agent.submit({ payload: { words: "loud" } });
    await task.result();
    await expect.poll(async () => (await swarm.log(task.id))[0]?.text).toContain("shouting loud");
  });

  it.each([
    ["no JSON", "words"],
    ["no object", [1]],
    ["arguments that the tool refuses", { words: 7 }],
  ])("ends a task with %s as invalid input", async (_what, payload) => {
    await using agent = await agentFor("shout");
    const task = await agent.submit({ payload });
    expect(await task.outcome()).toMatchObject({ state: "failed", attempts: 1 });
    expect((await swarm.story(task.id)).attempts).toMatchObject([{ ended: "invalid" }]);
  });

  it("counts an error of the tool as a failed attempt", async () => {
    await using agent = await agentFor("fail");
    const task = await agent.submit({ maxAttempts: 1 });
    expect(await task.outcome()).toMatchObject({ state: "dead-lettered", error: "the disk is full" });
  });

  it("starts a server again that died, without counting the attempt", async () => {
    await using agent = await agentFor("die");
    const [starts, deaths] = [countOf("started"), countOf("dying")];
    const task = await agent.submit({ maxAttempts: 2 });
    await expect.poll(() => countOf("dying") - deaths).toBeGreaterThanOrEqual(2);
    expect(countOf("started") - starts).toBeGreaterThanOrEqual(1);
    await task.cancel();
    const { attempts } = await swarm.story(task.id);
    expect(attempts[0]).toMatchObject({
      ended: "infrastructure",
      error: expect.stringContaining("exit 3: out of memory"),
    });
  });

  it("counts the only attempt of a task at a server that died: the tool may have done the work", async () => {
    await using agent = await agentFor("die");
    const deaths = countOf("dying");
    const task = await agent.submit({ maxAttempts: 1 });
    expect(await task.outcome()).toMatchObject({
      state: "dead-lettered",
      error: expect.stringContaining("may have done the work"),
    });
    expect(countOf("dying") - deaths).toBe(1);
  });

  it("passes a time-out and a cancellation on to the tool, and goes on", async () => {
    await using agent = await agentFor("hang");
    const before = countOf("cancelled");
    const slow = await agent.submit({ timeoutMs: 300, maxAttempts: 1 });
    expect(await slow.outcome()).toMatchObject({ state: "dead-lettered" });
    await expect.poll(() => countOf("cancelled") - before).toBe(1);
    const hanging = countOf("hanging");
    const unwanted = await agent.submit();
    await expect.poll(() => countOf("hanging") - hanging).toBe(1);
    await unwanted.cancel();
    await expect.poll(() => countOf("cancelled") - before).toBe(2);
  });

  it("ends a server that continues after its input closed, with all processes", async () => {
    const tool = await open("shout", `sleep 300 & ${good()} stubborn; sleep 301`);
    const left = () =>
      processes().filter(({ command, state }) => /^sleep 30[01]$|stubborn$/.test(command) && state !== "Z");
    expect(left().length).toBeGreaterThanOrEqual(2);
    await tool.close();
    await expect.poll(left).toEqual([]);
  });
});

describe("a server that breaks the protocol", () => {
  it("is understood where it can be: other lines, answers twice, answers to nothing", async () => {
    await using agent = await agentFor("echo", raw());
    const tasks = await Promise.all([1, 2, 3].map((n) => agent.submit({ payload: { n } })));
    const results = await Promise.all(tasks.map(async (task) => (await task.result()).text()));
    expect(results).toEqual(['{"n":1}', '{"n":2}', '{"n":3}']);
  });

  it("fails the attempt with an answer that is no result", async () => {
    await using agent = await agentFor("nonsense", raw());
    const task = await agent.submit({ maxAttempts: 1 });
    expect(await task.outcome()).toMatchObject({ state: "dead-lettered", attempts: 1 });
  });

  it("is ended for a message without an end, and started again", async () => {
    await using agent = await agentFor("flood", raw());
    const task = await agent.submit({ maxAttempts: 1 });
    expect(await task.outcome()).toMatchObject({
      state: "dead-lettered",
      error: expect.stringContaining("the MCP server ended during the call"),
    });
  });

  it("loses a call that it never answers at the attempt's time-out", async () => {
    await using agent = await agentFor("silence", raw());
    const task = await agent.submit({ timeoutMs: 300, maxAttempts: 1 });
    expect(await task.outcome()).toMatchObject({ state: "dead-lettered", attempts: 1 });
  });
});

describe("waggle agent --mcp", () => {
  it("runs a task, and ends with its server at Ctrl-C", async () => {
    const agent = workplace.start("agent", "--kind", "shouted", "--mcp", good(), "--tool", "shout");
    await agent.says("joined");
    const task = await swarm.submit({ kind: "shouted", payload: { words: "hello" } });
    expect((await task.result()).text()).toBe("HELLO");
    const ended = await agent.kill("SIGINT");
    expect(ended).toMatchObject({ code: 0 });
    expect(ended.stderr).not.toMatch(/"level":[45]0/); // an end as asked for is no fault
  });

  it("puts on hold what --hold-scope names when its server ends three times in a row", async () => {
    await swarm.setResource("search-account", { slots: 4 });
    const server = ["--mcp", good(), "--tool", "die", "--hold-scope", "resource:search-account"];
    const agent = workplace.start("agent", "--kind", "dies", ...server);
    await agent.says("joined");
    const task = await swarm.submit({ kind: "dies", maxAttempts: 2 });
    await expect
      .poll(async () => (await swarm.status()).holds)
      .toMatchObject([{ on: "resource", name: "search-account" }]);
    await task.cancel();
    await agent.kill("SIGINT");
    await swarm.unhold({ resource: "search-account" });
  });

  it("leaves no server behind when it is killed", async () => {
    const agent = workplace.start("agent", "--kind", "gone", "--mcp", `${good()} stubborn`, "--tool", "hang");
    await agent.says("joined");
    const task = await swarm.submit({ kind: "gone" });
    await expect.poll(async () => (await swarm.story(task.id)).status.state).toBe("running");
    const left = () =>
      processes().filter(({ command, state }) => command.endsWith("stubborn") && state !== "Z");
    expect(left().length).toBeGreaterThanOrEqual(1);
    await agent.kill("SIGKILL");
    await expect.poll(left).toEqual([]);
    await task.cancel();
  });

  it.each([
    [
      "the tools there are for an unknown tool",
      good,
      "shoot",
      /WAGGLE_INVALID_CONFIG.*did you mean shout\? There are shout, count/,
    ],
    [
      "why the server did not start",
      () => "echo no licence >&2; exit 4",
      "x",
      /WAGGLE_INVALID_CONFIG.*exit 4: no licence/,
    ],
    [
      "that the command is not found",
      () => "no-such-server",
      "x",
      /WAGGLE_INVALID_CONFIG.*exit 127: .*not found/,
    ],
  ])("says %s", async (_what, command, tool, expected) => {
    const { code, stderr } = await workplace.run("agent", "--kind", "k", "--mcp", command(), "--tool", tool);
    expect(stderr).toMatch(expected);
    expect(code).toBe(2);
  });

  it.each([
    [["--mcp", "x"], "--mcp COMMAND and --tool NAME need each other"],
    [["--exec", "x", "--tool", "y"], "need each other"],
    [["--mcp", "x", "--tool", "y", "--exec", "z"], "exclude each other"],
  ])("refuses %j", async (flags, expected) => {
    const { code, stderr } = await workplace.run("agent", "--kind", "k", ...flags);
    expect([code, stderr]).toEqual([2, expect.stringContaining(expected)]);
  });
});
