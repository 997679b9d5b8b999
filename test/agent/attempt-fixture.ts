// Arguments of a handler, for tests that call handlers directly.

import { type Logger, pino } from "pino";
import { type HandlerContext, HandlerTask } from "../../src/agent/handler.ts";
import { silentLogger } from "../support/swarm.ts";

export function aTask(overrides: Partial<ConstructorParameters<typeof HandlerTask>[0]> = {}): HandlerTask {
  return new HandlerTask({
    task: "t1",
    attempt: 1,
    maxAttempts: 3,
    kind: "count",
    project: "p",
    user: "u",
    payload: "",
    ...overrides,
  });
}

export function aContext(overrides: Partial<HandlerContext> = {}): HandlerContext {
  return {
    task: aTask(),
    signal: new AbortController().signal,
    log: Object.assign(() => undefined, { write: () => undefined }),
    logger: silentLogger,
    progress: () => undefined,
    emit: () => undefined,
    reportTokens: () => undefined,
    acquire: () => Promise.reject(new Error("nothing can be acquired here")),
    ...overrides,
  };
}

/** A logger that keeps the text of warnings. */
export function aLogger(): { readonly logger: Logger; readonly warnings: readonly string[] } {
  const warnings: string[] = [];
  const sink = { write: (line: string) => void warnings.push(JSON.parse(line).msg) };
  return { logger: pino({ level: "warn" }, sink), warnings };
}
