// Common to the verbs that connect a swarm to other programs over NATS: flags, the connection, and the wait for Ctrl-C.

import { type Command, Option } from "commander";
import { openRequestWire, type RequestWire } from "../adapters/nats-service/nats.ts";
import { findBroker } from "../broker/find-broker.ts";
import { UnauthorizedError, UnreachableError } from "../errors.ts";
import { limits } from "../limits.ts";
import { connectionOf } from "./connection.ts";
import { durationBetween } from "./setting-flags.ts";
import type { VerbContext } from "./verb.ts";

export interface ServeFlags {
  readonly timeout: number;
}

/** @param then clause about the end of the time-out */
export function withServeOptions(command: Command, then: string): Command {
  return command
    .addOption(
      new Option("--timeout <duration>", `maximum time from the request to the reply; ${then}`)
        .argParser(durationBetween(1, limits.attemptTimeoutMsMax))
        .default(limits.servedTimeoutMs, "5m"),
    )
    .option("--project <name>", "project of the tasks (WAGGLE_PROJECT; default: default)")
    .option("--user <name>", "user of the tasks (WAGGLE_USER; default: the account's name)");
}

/** A connection besides the swarm's own. @param name in the server's list */
export async function openWire(
  { settings, logger, shell, signal }: Pick<VerbContext, "settings" | "logger" | "shell" | "signal">,
  name: string,
): Promise<RequestWire> {
  const found = await findBroker({ mode: "find-only", ...settings, env: shell.env });
  return await openRequestWire(connectionOf(found, { signal, logger }, name));
}

/** Resolves at Ctrl-C. @param closed the `closed` of each connection
 *  @throws UnauthorizedError when the server refuses formerly accepted credentials; UnreachableError when a
 *  connection ends for another reason */
export async function untilInterrupted(
  signal: AbortSignal,
  ...closed: readonly Promise<Error | undefined>[]
): Promise<void> {
  const interrupted = new Promise<"interrupted">((resolve) => {
    if (signal.aborted) resolve("interrupted");
    else signal.addEventListener("abort", () => resolve("interrupted"), { once: true });
  });
  const end = await Promise.race([interrupted, ...closed]);
  if (end === "interrupted") return;
  if (end instanceof UnauthorizedError) throw end;
  throw new UnreachableError("the connection to the server ended", { cause: end });
}
