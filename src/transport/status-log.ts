// Logs the loss and return of a connection. Lines contain no secrets: the URLs of an address have no user part.

import { describeAddress, type ServerAddress } from "./server-address.ts";
import type { Transport } from "./transport.ts";

/** The required part of a pino logger. */
export interface StatusLog {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
}

/** Logs until `transport` is closed. @returns a function that ends the logging earlier */
export function logStatus(
  transport: Pick<Transport, "onStatus">,
  { address, log }: { readonly address: Pick<ServerAddress, "urls">; readonly log: StatusLog },
): () => void {
  return transport.onStatus((status) => {
    if (status === "reconnecting")
      log.warn({}, `lost the server at ${describeAddress(address)}; reconnecting`);
    if (status === "connected") log.info({}, `connected again to the server at ${describeAddress(address)}`);
  });
}
