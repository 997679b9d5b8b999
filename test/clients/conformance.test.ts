// The SDK and the client for Python against the same messages.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe } from "vitest";
import {
  type HandlerContext,
  type HandlerTask,
  InfrastructureError,
  InvalidInputError,
} from "../../src/agent/handler.ts";
import { connect } from "../../src/client/connect.ts";
import { hasProgram } from "../support/programs.ts";
import {
  type AgentUnderTest,
  agentConformance,
  type FailedSubmission,
  type SubmissionUnderTest,
  submissionConformance,
} from "./conformance.ts";

const folder = fileURLToPath(new URL("../../clients/python", import.meta.url));

agentConformance("the SDK", async (url) => {
  const swarm = await connect({ swarm: "test", nats: url });
  const agent = await swarm.agent({ id: "a1", kinds: ["count"], maxConcurrent: 2, handler });
  return {
    drain: () => agent.drain(),
    ended: async () => (await agent.closed)?.code ?? "",
    end: () => swarm.close(),
  };
});

submissionConformance("the SDK", {
  submit: async ({ url, swarm: name, project, inboxPrefix, timeoutMs }) => {
    const swarm = await connect({ nats: url, swarm: name, project, inboxPrefix });
    const startedMs = performance.now();
    const error = await swarm.submit({ kind: "count" }, { timeoutMs }).then(
      () => new Error("accepted"),
      (thrown: Error & { code?: string }) => thrown,
    );
    const ms = performance.now() - startedMs;
    await swarm.close();
    return { code: "code" in error ? (error.code ?? "") : "", message: error.message, ms };
  },
});

async function handler(task: HandlerTask, context: HandlerContext): Promise<unknown> {
  switch (task.payload) {
    case "wait":
      await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
      throw context.signal.reason;
    case "stream":
      return parts();
    case "tokens":
      return context.reportTokens(7);
    case "progress":
      return context.progress(0.5, "half");
    case "bytes":
      return new Uint8Array([255]);
    case "json":
      return { n: 1 };
    case "bad":
      throw new InvalidInputError("bad");
    case "boom":
      throw new Error("boom");
    case "quota":
      throw new InfrastructureError("quota", { retryAfterMs: 1_000 });
    case "slot": {
      await using slot = await context.acquire("gpu");
      return slot.report({ totalTokens: 9 });
    }
    default:
      return task.payload;
  }
}

function* parts() {
  yield "a";
  yield "b";
}

describe.runIf(hasProgram("python3", "the client for Python"))("in Python", () => {
  agentConformance("the client for Python", async (url) => {
    const child = spawn("python3", ["-c", program, url], {
      env: { PATH: process.env["PATH"], PYTHONPATH: folder },
      stdio: ["pipe", "pipe", "inherit"],
    });
    const said = createInterface(child.stdout)[Symbol.asyncIterator]();
    const next = async () => String((await said.next()).value);
    await next();
    return {
      drain: async () => {
        child.stdin.write("drain\n");
        await next();
      },
      ended: async () => {
        child.stdin.write("ended\n");
        return await next();
      },
      end: () => ended(child),
    } satisfies AgentUnderTest;
  });

  submissionConformance("the client for Python", { submit: submittedInPython });
});

async function submittedInPython(submission: SubmissionUnderTest): Promise<FailedSubmission> {
  const child = spawn("python3", ["-c", submittingProgram, JSON.stringify(submission)], {
    env: { PATH: process.env["PATH"], PYTHONPATH: folder },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [printed] = await Promise.all([text(child.stdout), once(child, "close")]);
  return JSON.parse(printed);
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

const program = `
import sys, waggledance as w
def handler(task):
    if task.payload == "wait": task.aborted.wait(30); raise RuntimeError("aborted")
    if task.payload == "stream": return (part for part in "ab")
    if task.payload == "tokens": return task.report_tokens(7)
    if task.payload == "progress": return task.progress(0.5, "half")
    if task.payload == "bytes": return b"\\xff"
    if task.payload == "json": return {"n": 1}
    if task.payload == "bad": raise w.InvalidInput("bad")
    if task.payload == "boom": raise RuntimeError("boom")
    if task.payload == "quota": raise w.Infrastructure("quota", retry_after=1)
    if task.payload == "slot":
        with task.acquire("gpu") as slot: return slot.report(9)
    return task.payload
swarm = w.connect(sys.argv[1], swarm="test")
agent = swarm.agent(["count"], handler, max_concurrent=2, id="a1")
print("joined", flush=True)
for line in sys.stdin:
    if line == "drain\\n": print(agent.drain(), flush=True)
    if line == "ended\\n": agent.ended.wait(20); print(agent.error.code if agent.error else "", flush=True)
`;

/** Submits on an idle connection: the server's errors for subscriptions have arrived before. */
const submittingProgram = `
import json, sys, time, waggledance as w
of = json.loads(sys.argv[1])
swarm = w.connect(of["url"], swarm=of["swarm"], project=of["project"], inbox_prefix=of.get("inboxPrefix"))
swarm.nats.confirmed.wait(20)
started = time.monotonic()
try:
    swarm.submit("count", timeout=of["timeoutMs"] / 1000)
    print(json.dumps({"code": "", "message": "accepted", "ms": 0}))
except w.WaggleError as error:
    print(json.dumps({"code": error.code, "message": error.message, "ms": (time.monotonic() - started) * 1000}))
`;
