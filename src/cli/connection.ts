// The options of a connection to the server that a command found.

import type { FoundBroker } from "../broker/find-broker.ts";
import type { NatsOptions } from "../transport/nats.ts";
import { logServerError } from "../transport/server-error.ts";
import type { VerbContext } from "./verb.ts";

/** @param name name of the connection in the server's list */
export function connectionOf(
  { address, inboxPrefix }: FoundBroker,
  { signal, logger }: Pick<VerbContext, "signal" | "logger">,
  name: string,
): NatsOptions {
  return {
    ...address,
    ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
    ...{ name, signal, onError: (error: Error) => logServerError(logger, error) },
  };
}
