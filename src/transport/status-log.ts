// Says in the log of whoever owns a connection that it was lost, and that it was found again. Nothing secret is
// said: the URLs of an address have no user part.

import { describeAddress, type ServerAddress } from "./server-address.ts";
import type { Transport } from "./transport.ts";

/** The part of a pino logger that this needs. */
export interface StatusLog {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
}

/** Until `transport` is closed. @returns a function that ends it before */
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
