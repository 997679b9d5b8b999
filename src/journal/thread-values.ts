// What a coordinator's process and its threads tell each other: plain values, because messages are copied. Copying
// loses an error's class; the receiver restores the class by the error's code.

import { JournalDamagedError, messageOf, WaggleError, type WaggleErrorCode } from "../errors.ts";
import type { NatsOptions } from "../transport/nats.ts";

/** Where the journal is. */
export type JournalPlace =
  | {
      readonly kind: "stream";
      readonly connection: Omit<NatsOptions, "signal" | "onError">;
      readonly swarm: string;
      /** As in the leader's settings. */
      readonly replicas?: number | undefined;
      readonly bytesMax?: number;
    }
  /** The thread reads the files. Only the holder of the folder's lock writes. */
  | { readonly kind: "file"; readonly folder: string };

export interface CopiedError {
  readonly code: WaggleErrorCode | undefined;
  readonly message: string;
}

export function copyOf(error: unknown): CopiedError {
  return { code: error instanceof WaggleError ? error.code : undefined, message: messageOf(error) };
}

export function errorOf({ code, message }: CopiedError): Error {
  if (code === undefined) return new Error(message);
  return code === "WAGGLE_JOURNAL_DAMAGED"
    ? new JournalDamagedError(message)
    : new WaggleError(code, message);
}
