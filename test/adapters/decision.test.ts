// The answers to questions of foreign agents: by a command, and no whenever the command does not say otherwise.

import { pino } from "pino";
import { expect, it } from "vitest";
import { decideBy, denyAll } from "../../src/adapters/synadia/decision.ts";
import { type HandlerContext, HandlerTask } from "../../src/agent/handler.ts";
import { limits } from "../../src/limits.ts";

const task = new HandlerTask({
  ...{
    task: "t1",
    attempt: 1,
    maxAttempts: 3,
    kind: "prompt",
    project: "red",
    user: "ann",
    payload: "hello",
  },
});
const query = { id: "q", replySubject: "_INBOX.q", prompt: "Delete 200 files?" };

function aContext(): { readonly context: HandlerContext; readonly log: string[] } {
  const log: string[] = [];
  const write = (text: string | Uint8Array) => void log.push(Buffer.from(text).toString());
  const say = Object.assign((...values: unknown[]) => void log.push(values.join(" ")), { write });
  const context = {
    ...{ task, signal: new AbortController().signal, log: say, logger: pino({ level: "silent" }) },
    ...{ progress: () => undefined, emit: () => undefined, reportTokens: () => undefined },
    acquire: () => Promise.reject(new Error("not here")),
  };
  return { context, log };
}

it("is no without a command", async () => {
  expect(await denyAll(query, task, aContext().context)).toBe("no");
});

it.each([
  ["the question on standard input", "cat", "Delete 200 files?"],
  ["the task in the environment", 'echo "$WAGGLE_PROJECT/$WAGGLE_TASK_ID"', "red/t1"],
  ["an answer of several lines", "echo yes; echo and no", "yes\nand no"],
])("is that of the command: %s", async (_what, command, expected) => {
  expect(await decideBy(command)(query, task, aContext().context)).toBe(expected);
});

it.each([
  ["fails", "echo yes; exit 1"],
  ["does not exist", "no-such-command"],
  ["says nothing", "true"],
  ["says too much", `head -c ${limits.decisionCharactersMax + 1} /dev/zero | tr '\\0' x`],
])("is no when the command %s", async (_what, command) => {
  expect(await decideBy(command)(query, task, aContext().context)).toBe("no");
});

it("tells the reason in the log of the attempt", async () => {
  const { context, log } = aContext();
  await decideBy("echo cannot decide >&2; exit 7")(query, task, context);
  expect(log.join("\n")).toMatch(/cannot decide[\s\S]*the decision failed, so the answer is no: exit 7/);
});
