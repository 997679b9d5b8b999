// Messages between a leader's process and the thread of a maker: plain values, because messages are copied.

import type { AppendOutcome } from "../../journal/journal.ts";
import type { CopiedError, JournalPlace } from "../../journal/thread-values.ts";
import type { MadeSegment, MakeOrder } from "./make-next-segment.ts";

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
