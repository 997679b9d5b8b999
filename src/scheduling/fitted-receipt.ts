// Makes a receipt fit `limits.receiptBytesMax` bytes of JSON. An oversized receipt loses, in order: the end of the
// queue's name, the last candidates, the counts by reason; the winner always stays. Most receipts fit by far, and an
// upper bound from lengths alone shows it; the rest are measured exactly.

import { assert } from "../assert.ts";
import { limits } from "../limits.ts";
import type { Receipt } from "../state/receipt.ts";

/** @param queueBytes `jsonBytes(receipt.queue)`, computed once by a caller that makes many receipts of one queue */
export function fittedReceipt(receipt: Receipt, queueBytes: number): Receipt {
  return bytesAtMost(receipt, queueBytes) <= limits.receiptBytesMax ? receipt : shortened(receipt);
}

/** Bytes of a text inside a JSON string, in UTF-8, without the quotes. */
export function jsonBytes(text: string): number {
  let bytes = 0;
  for (const character of text) bytes += bytesOfCharacter(character);
  return bytes;
}

/** All keys and punctuation of a receipt without candidates; the zeros are the minimal digits of each number. */
const receiptSkeleton: Receipt = {
  feasible: 0,
  candidates: [],
  ineligible: {},
  decidedBy: "longest-idle",
  queue: "",
  waiting: 0,
  waitedMs: 0,
};
const skeletonBytes = JSON.stringify(receiptSkeleton).length;
/** The same for one candidate, with a comma before it. */
const candidateBytes = `,${JSON.stringify({ agent: "", score: 0, successRate: 0, load: 0 })}`.length;
/** Size of the optional fields with their longest values. */
const turnBytes = `,"turn":${JSON.stringify({ project: "guarantee", user: "guarantee" })}`.length;
const budgetBytes = `,"budget":${JSON.stringify({ project: "downgrade", global: "downgrade" })}`.length;
/** Quotes, colon and comma around a reason and its count. */
const reasonBytes = `"":,`.length;
/** The bytes that `.1234` adds to a digit. */
const decimalBytes = ".1234".length;
/** Score, success rate, load. */
const decimalsPerCandidate = 3;
const backlogBytes = `,"backlog":0`.length + decimalBytes;
const speedBytes = `,"speed":0`.length + decimalBytes;
const countDigits = digits(limits.agentsMax);

/** An upper bound of the receipt's bytes. Ids of agents are ASCII, counts whole numbers. */
function bytesAtMost(receipt: Receipt, queueBytes: number): number {
  let bytes = skeletonBytes + queueBytes;
  bytes += digits(receipt.feasible) + digits(receipt.waiting) + digits(receipt.waitedMs);
  if (receipt.turn !== undefined) bytes += turnBytes;
  if (receipt.budget !== undefined) bytes += budgetBytes;
  for (const { agent, load, backlog, speed } of receipt.candidates) {
    bytes += candidateBytes + agent.length + decimalsPerCandidate * decimalBytes + digits(load);
    if (backlog !== undefined) bytes += backlogBytes;
    if (speed !== undefined) bytes += speedBytes;
  }
  for (const reason in receipt.ineligible) bytes += reason.length + reasonBytes + countDigits;
  return bytes;
}

function shortened(receipt: Receipt): Receipt {
  const queueBytesWanted = Math.min(jsonBytes(receipt.queue), limits.receiptQueueBytesMin);
  for (let shown = receipt.candidates.length; shown > 0; shown -= 1) {
    const unnamed = { ...receipt, candidates: receipt.candidates.slice(0, shown), queue: "" };
    const room = roomIn(unnamed);
    if (room >= queueBytesWanted) return { ...unnamed, queue: textWithin(receipt.queue, room) };
  }
  const barest = { ...receipt, candidates: receipt.candidates.slice(0, 1), ineligible: {}, queue: "" };
  const room = roomIn(barest);
  assert(room >= queueBytesWanted, "a receipt without counts has room for the name of its queue");
  return { ...barest, queue: textWithin(receipt.queue, room) };
}

/** @param unnamed without the name of its queue */
function roomIn(unnamed: Receipt): number {
  return limits.receiptBytesMax - JSON.stringify(unnamed).length;
}

/** The text, or its beginning with an ellipsis. */
function textWithin(text: string, bytesMax: number): string {
  if (jsonBytes(text) <= bytesMax) return text;
  let kept = "";
  let bytes = jsonBytes("…");
  for (const character of text) {
    bytes += bytesOfCharacter(character);
    if (bytes > bytesMax) break;
    kept += character;
  }
  return `${kept}…`;
}

/** Names hold no controls and no lone surrogates (`NAME_PATTERN`), so only quote and backslash are escaped. */
function bytesOfCharacter(character: string): number {
  const codePoint = character.codePointAt(0) ?? 0;
  if (codePoint > 0xffff) return 4;
  if (codePoint > 0x7ff) return 3;
  if (codePoint > 0x7f || character === '"' || character === "\\") return 2;
  return 1;
}

/** Number of digits before the point of a number ≥ 0. */
function digits(value: number): number {
  let count = 1;
  for (let left = value; left >= 10; left /= 10) count += 1;
  return count;
}
