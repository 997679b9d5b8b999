// Messages between a leader's process and the thread of a maker: plain values, because messages are copied. Copying
// loses an error's class; the receiver restores the class by the error's code.

import { JournalDamagedError, messageOf, WaggleError, type WaggleErrorCode } from "../../errors.ts";
import type { AppendOutcome } from "../../journal/journal.ts";
import type { NatsOptions } from "../../transport/nats.ts";
import type { MadeSegment, MakeOrder } from "./make-next-segment.ts";

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

export interface ThreadOrder {
  readonly place: JournalPlace;
  readonly order: Omit<MakeOrder, "committedIdx">;
}

export type Question =
  | { readonly kind: "committed" }
  | { readonly kind: "create"; readonly segment: number }
  | {
      readonly kind: "append";
      readonly segment: number;
      readonly bytes: Uint8Array;
      readonly expected: number;
    };

/** The answer to the question with the same `id`. */
export type Answer = { readonly id: number } & (
  | { readonly value: number | undefined | AppendOutcome }
  | { readonly error: CopiedError }
);

export type ThreadWord =
  | { readonly type: "ask"; readonly id: number; readonly question: Question }
  | { readonly type: "made"; readonly made: MadeSegment }
  | { readonly type: "failed"; readonly error: CopiedError };

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
