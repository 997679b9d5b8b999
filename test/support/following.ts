// The smallest batch that goes on behind another: what a journal ends with is judged by such.

import { batchIndex, instant, term } from "../../src/ids.ts";
import { encodeBatch } from "../../src/journal/batch.ts";
import type { ChainTail } from "../../src/journal/replay.ts";

/** Continues `tail` in journal `j`, by a leader of term `of`, with whose beginning it starts where that is a later
 *  one. */
export function following(tail: Pick<ChainTail, "idx" | "hash" | "term">, of = 1, at = 1): Uint8Array {
  const header = {
    journal: "j",
    term: term(of),
    idx: batchIndex(tail.idx + 1),
    prev: tail.hash,
    at: instant(at),
  };
  const started = { type: "TermStarted", term: of, leader: "c2", campaign: "k1", timeoutMs: 3_000 };
  return encodeBatch(header, [JSON.stringify(of > tail.term ? started : { type: "TermRenewed" })]);
}
