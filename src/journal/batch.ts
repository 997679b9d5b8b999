// One batch as bytes: `{v, journal, term, idx, prev, at, events[]}`. `prev` is the hash of the bytes of the batch
// before, so that the journal is a chain and a record that does not continue it shows.
// Not here: whether a batch is applied or dead (replay.ts).

import { hash } from "node:crypto";
import type { BatchIndex, Instant, Term } from "../ids.ts";
import type { Event } from "../state/event.ts";

const FORMAT_VERSION = 2;

export interface BatchHeader {
  /** Random identity of the journal, made with its first batch. */
  readonly journal: string;
  readonly term: Term;
  readonly idx: BatchIndex;
  /** `hashOf` the previous batch's bytes; empty before the first. */
  readonly prev: string;
  readonly at: Instant;
}

export interface Batch extends BatchHeader {
  readonly events: readonly Event[];
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** @param eventsJson each event's own JSON, in order */
export function encodeBatch(header: BatchHeader, eventsJson: readonly string[]): Uint8Array {
  const { journal, term, idx, prev, at } = header;
  const head = JSON.stringify({ v: FORMAT_VERSION, journal, term, idx, prev, at });
  return encoder.encode(`${head.slice(0, -1)},"events":[${eventsJson.join(",")}]}`);
}

/** The batch, or undefined when the bytes are not one of ours (an alien record). Events are trusted: the hash
 *  chain says who wrote them, and `apply` refuses what does not fit. */
export function decodeBatch(bytes: Uint8Array): Batch | undefined {
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(bytes));
  } catch {
    return undefined; // not JSON: alien, and the caller counts it
  }
  return isBatch(value) ? value : undefined;
}

/** SHA-256, base64url: the link of the chain. */
export function hashOf(bytes: Uint8Array): string {
  return hash("sha256", bytes, "base64url");
}

function isBatch(value: unknown): value is Batch {
  if (typeof value !== "object" || value === null) return false;
  const batch = value as Record<string, unknown>;
  return (
    batch["v"] === FORMAT_VERSION &&
    typeof batch["journal"] === "string" &&
    isCount(batch["term"]) &&
    isCount(batch["idx"]) &&
    typeof batch["prev"] === "string" &&
    typeof batch["at"] === "number" &&
    Array.isArray(batch["events"])
  );
}

/** Whether it is a whole number from 1. */
export function isCount(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
}
