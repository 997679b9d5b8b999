// The entry of an agent's thread: a session with its own connection, where no handler can block it. The threads
// share nothing and exchange messages (link.ts) as JSON text: copying one string costs less than copying many
// small objects.

import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { assert } from "../assert.ts";
import { systemClock, systemRandom } from "../clock.ts";
import { WaggleError } from "../errors.ts";
import { swarmId } from "../ids.ts";
import { connectNats, type NatsTransport } from "../transport/nats.ts";
import { logStatus } from "../transport/status-log.ts";
import type { SessionLog, SessionNotice, SessionOrder } from "./link.ts";
import { AgentSession } from "./session.ts";
import { logLevels, type ThreadMessage, type ThreadStart } from "./thread-link.ts";

async function main(port: MessagePort, start: ThreadStart): Promise<void> {
  const post = (message: ThreadMessage) => port.postMessage(JSON.stringify(message));
  const close = (notice: SessionNotice & { type: "closed" }) => {
    post(notice);
    port.close();
  };
  const log = logTo(post, start.logLevel);
  const givenUp = new AbortController();
  let session: AgentSession | undefined;
  port.on("message", (message: string) => {
    const order: SessionOrder = JSON.parse(message);
    // Before the session exists, the only possible order is to end.
    if (session === undefined) givenUp.abort();
    else session.tell(order);
  });

  let transport: NatsTransport;
  try {
    transport = await connectNats({
      ...start.server,
      signal: givenUp.signal,
      onError: (error) => log.warn({ why: error.message }, "the server reported an error"),
    });
  } catch (error) {
    return close({ type: "closed", ...(givenUp.signal.aborted ? {} : { error: plain(error) }) });
  }
  logStatus(transport, { address: start.server, log });
  session = new AgentSession({
    swarm: swarmId(start.swarm),
    profile: start.profile,
    transport,
    clock: systemClock,
    random: systemRandom,
    log,
    notify: (notice) => {
      if (notice.type === "closed") void transport.close().then(() => close(notice));
      else post(notice);
    },
  });
  session.start();
  if (givenUp.signal.aborted) session.tell({ type: "stop" });
}

function logTo(post: (message: ThreadMessage) => void, least: ThreadStart["logLevel"]): SessionLog {
  const loggerFor = (level: (typeof logLevels)[number]) =>
    least === "silent" || logLevels.indexOf(level) < logLevels.indexOf(least)
      ? () => undefined
      : (fields: object, text: string) => post({ type: "log", level, fields, text });
  return {
    debug: loggerFor("debug"),
    info: loggerFor("info"),
    warn: loggerFor("warn"),
    error: loggerFor("error"),
  };
}

function plain(error: unknown) {
  return error instanceof WaggleError
    ? { code: error.code, message: error.message }
    : ({ code: "WAGGLE_UNREACHABLE", message: String(error) } as const);
}

assert(parentPort !== null, "this file is the entry of a thread");
await main(parentPort, workerData);
