// The main thread's end of a session in its own thread (thread.ts). Node 20 loads no TypeScript in a thread, so
// the compiled entry runs, found by the package's own name.

import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { messageOf } from "../errors.ts";
import type { NatsOptions } from "../transport/nats.ts";
import type { AgentProfile, SessionLink, SessionLog, SessionNotice, SessionOrder } from "./link.ts";

/** From least to most severe. */
export const logLevels = ["debug", "info", "warn", "error"] as const;

/** The data that starts a thread. Plain values, because they are copied. */
export interface ThreadStart {
  readonly server: Omit<NatsOptions, "signal" | "onError">;
  readonly swarm: string;
  readonly profile: AgentProfile;
  readonly logLevel: (typeof logLevels)[number] | "silent";
}

export type ThreadMessage =
  | SessionNotice
  | {
      readonly type: "log";
      readonly level: (typeof logLevels)[number];
      readonly fields: object;
      readonly text: string;
    };

/** Starts the thread. However the thread ends, the last notice is `closed`. */
export function linkThread(
  start: ThreadStart,
  deps: { readonly log: SessionLog; readonly notify: (notice: SessionNotice) => void },
): SessionLink {
  const thread = new Worker(createRequire(import.meta.url).resolve("waggledance/agent-thread"), {
    workerData: start,
    name: "waggle-agent",
    execArgv: [],
  });
  let isClosed = false;
  const close = (notice: SessionNotice & { type: "closed" }) => {
    if (isClosed) return;
    isClosed = true;
    deps.notify(notice);
  };
  thread.on("message", (text: string) => {
    const message: ThreadMessage = JSON.parse(text);
    if (message.type === "log") deps.log[message.level](message.fields, message.text);
    else if (message.type === "closed") close(message);
    else deps.notify(message);
  });
  const died = (why: string) =>
    close({
      type: "closed",
      error: { code: "WAGGLE_INVARIANT", message: `the agent's thread ended: ${why}` },
    });
  thread.once("error", (error) => died(messageOf(error)));
  thread.once("exit", (code) => died(`exit ${code}`));
  return {
    tell: (order: SessionOrder) => {
      if (!isClosed) thread.postMessage(JSON.stringify(order));
    },
  };
}
