// The format of a segment's records, known to no file but records.ts. A segment holds, in order:
//
//   claim                          who writes this segment
//   chunk… manifest  batch…        optionally a base: the state after some batch, and copies of the batches after it
//   opened                         from here on the segment is live
//   batch…                         each one turn of the leader
//   closing                        the leader ended the segment by itself
//
// Every record names the writer's session (`session`); a copied batch names the session of the first writer. Bytes in
// any different format are a foreign record: no coordinator wrote them, and every reader skips them.

import { hash } from "node:crypto";
import type { BatchIndex, Instant, Term } from "../ids.ts";
import type { Event } from "../state/event.ts";

const FORMAT_VERSION = 2;

/** The first record: names the session that owns the segment. Later claims in the segment do not count. */
export interface Claim {
  readonly kind: "claim";
  readonly segment: number;
  readonly session: string;
  /** Random. A session may claim a number a second time and must then tell the two claims apart. */
  readonly attempt: string;
}

/** A part of a base: lines of the state's snapshot (core/snapshot). */
export interface Chunk {
  readonly kind: "chunk";
  readonly session: string;
  readonly bytes: Uint8Array;
}

/** A chunk's position, size in bytes, and `hashOf`. */
export type ChunkRef = readonly [position: number, bytes: number, hash: string];

/** Ends a base, and describes the state in the chunks. */
export interface Manifest {
  readonly kind: "manifest";
  readonly session: string;
  /** Version of the snapshot's format. */
  readonly version: number;
  readonly at: Instant;
  /** The last batch in the state. */
  readonly tail: ChainTail;
  readonly chunks: readonly ChunkRef[];
}

/** The last batch of a log; the next batch must continue it. */
export interface ChainTail {
  /** Identity of the journal, chosen at creation; empty before the first batch. */
  readonly journal: string;
  readonly term: Term;
  /** 0 before the first batch. */
  readonly idx: BatchIndex;
  /** `hashOf` the batch's bytes; empty before the first batch. */
  readonly hash: string;
}

/** The end of the log in an earlier segment. */
export interface LogEnd {
  readonly segment: number;
  /** 0 if the segment holds no batch and no base. */
  readonly idx: BatchIndex;
  readonly hash: string;
}

/** Makes the segment live. */
export interface Opened {
  readonly kind: "opened";
  readonly segment: number;
  readonly session: string;
  readonly journal: string;
  readonly term: Term;
  /** Name of the leader, for people. */
  readonly leader: string;
  /** The predecessor of the first batch after the `Opened`. */
  readonly tail: ChainTail;
  /** The end of the log before. Undefined in a journal's first segment, and if no earlier segment was readable. */
  readonly previous: LogEnd | undefined;
  /** Position and `hashOf` of the base's manifest, and the last batch in the base. Undefined if the segment continues
   *  `previous` by reference. */
  readonly base: { readonly position: number; readonly hash: string; readonly idx: BatchIndex } | undefined;
  /** Hashes of the last batches up to and with `tail`, newest last, at most `limits.openedHashesMax`. A standby
   *  compares its local log with the list. */
  readonly recent: readonly string[];
}

/** The leader ended the segment by itself; a seal follows. */
export interface Closing {
  readonly kind: "closing";
  readonly segment: number;
  readonly session: string;
  /** `next-segment`: the same leader continues in the next segment · `handing-over`: any standby may lead, or `to`
   *  alone. */
  readonly reason: "next-segment" | "handing-over";
  readonly to?: string;
}

export interface BatchHeader {
  readonly journal: string;
  /** Id of the writer's session. */
  readonly session: string;
  readonly term: Term;
  readonly idx: BatchIndex;
  /** `hashOf` the previous batch's bytes; empty before the first. */
  readonly prev: string;
  readonly at: Instant;
}

export interface Batch extends BatchHeader {
  readonly kind: "batch";
  readonly events: readonly Event[];
}

export type LogRecord = Claim | Chunk | Manifest | Opened | Closing | Batch;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });
const EVENTS = ',"events":[';
const BATCH_END = encoder.encode("]}");

/** @param events the JSON of each event, or of all events joined by commas */
export function encodeBatch(header: BatchHeader, events: readonly string[] | Uint8Array): Uint8Array {
  const { journal, session, term, idx, prev, at } = header;
  const fields = JSON.stringify({ v: FORMAT_VERSION, kind: "batch", journal, session, term, idx, prev, at });
  const head = Buffer.from(`${fields.slice(0, -1)}${EVENTS}`); // for short texts faster than TextEncoder
  const body = events instanceof Uint8Array ? events : encoder.encode(events.join(","));
  return joined(head, body, BATCH_END);
}

/** Not a Buffer: its slice() would share memory with the record. */
function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The events' JSON in a batch of `encodeBatch`, joined by commas. @param length the size of the events' JSON */
export function eventsIn(batch: Uint8Array, length: number): Uint8Array {
  const end = batch.length - BATCH_END.length;
  return batch.subarray(end - length, end);
}

/** JSON; for a chunk, a line of JSON followed by the chunk's bytes. */
export function encodeRecord(record: Exclude<LogRecord, Batch>): Uint8Array {
  if (record.kind !== "chunk") return encoder.encode(JSON.stringify({ v: FORMAT_VERSION, ...record }));
  const { kind, session, bytes } = record;
  const head = encoder.encode(`${JSON.stringify({ v: FORMAT_VERSION, kind, session })}\n`);
  return joined(head, bytes);
}

/** The record; undefined if the bytes are foreign. Events are not checked: the hash chain proves the writer, and
 *  `apply` refuses an event that does not fit the state. */
export function decodeRecord(bytes: Uint8Array): LogRecord | undefined {
  const chunk = chunkOf(bytes);
  if (chunk !== undefined) return chunk;
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(bytes));
  } catch {
    return undefined; // not JSON: foreign
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { v, kind, ...record } = value as Record<string, unknown>;
  if (v !== FORMAT_VERSION || typeof kind !== "string") return undefined;
  return isWhole[kind]?.(record) === true ? ({ kind, ...record } as LogRecord) : undefined;
}

const BATCH_HEAD = encoder.encode(`{"v":${FORMAT_VERSION},"kind":"batch",`);

/** The header of a batch, without decoding the events; undefined if the record is not a batch. */
export function decodeBatchHeader(bytes: Uint8Array): BatchHeader | undefined {
  if (Buffer.compare(bytes.subarray(0, BATCH_HEAD.length), BATCH_HEAD) !== 0) return undefined;
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, HEAD_BYTES_MAX));
  const end = head.indexOf(EVENTS);
  if (end < 0) return undefined;
  const record = decodeRecord(encoder.encode(`${head.toString("utf8", 0, end)},"events":[]}`));
  return record?.kind === "batch" ? record : undefined;
}

/** SHA-256, base64url: the link of the chain, and a chunk's checksum. */
export function hashOf(bytes: Uint8Array): string {
  return hash("sha256", bytes, "base64url");
}

const CHUNK_HEAD = encoder.encode(`{"v":${FORMAT_VERSION},"kind":"chunk",`);
const HEAD_BYTES_MAX = 512;

function chunkOf(bytes: Uint8Array): Chunk | undefined {
  if (Buffer.compare(bytes.subarray(0, CHUNK_HEAD.length), CHUNK_HEAD) !== 0) return undefined;
  const end = bytes.subarray(0, HEAD_BYTES_MAX).indexOf(0x0a);
  if (end < 0) return undefined;
  try {
    const { session } = JSON.parse(decoder.decode(bytes.subarray(0, end)));
    return typeof session === "string"
      ? { kind: "chunk", session, bytes: bytes.subarray(end + 1) }
      : undefined;
  } catch {
    return undefined; // not JSON: foreign
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** By kind: true if a record has all fields, in the right types. Readers compare the values. */
const isWhole: Readonly<Record<string, (fields: Fields) => boolean>> = {
  batch: ({ journal, session, term, idx, prev, at, events }) =>
    isText(journal) &&
    isText(session) &&
    isCount(term) &&
    isCount(idx) &&
    isText(prev) &&
    typeof at === "number" &&
    Array.isArray(events),
  claim: ({ segment, session, attempt }) => isCount(segment) && isText(session) && isText(attempt),
  manifest: ({ session, version, at, tail, chunks }) =>
    isText(session) &&
    isCount(version) &&
    typeof at === "number" &&
    isTail(tail) &&
    Array.isArray(chunks) &&
    chunks.every(isChunkRef),
  opened: ({ segment, session, journal, term, leader, tail, previous, base, recent }) =>
    isCount(segment) &&
    isText(session) &&
    isText(journal) &&
    isCount(term) &&
    isText(leader) &&
    isTail(tail) &&
    (previous === undefined || isLogEnd(previous)) &&
    (base === undefined || isBaseRef(base)) &&
    Array.isArray(recent) &&
    recent.every(isText),
  closing: ({ segment, session, reason, to }) =>
    isCount(segment) &&
    isText(session) &&
    (reason === "next-segment" || reason === "handing-over") &&
    (to === undefined || isText(to)),
};

function isTail(value: unknown): boolean {
  const { journal, term, idx, hash } = fieldsOf(value);
  return isText(journal) && isWholeNumber(term) && isWholeNumber(idx) && isText(hash);
}

function isLogEnd(value: unknown): boolean {
  const { segment, idx, hash } = fieldsOf(value);
  return isCount(segment) && isWholeNumber(idx) && isText(hash);
}

function isBaseRef(value: unknown): boolean {
  const { position, hash, idx } = fieldsOf(value);
  return isCount(position) && isText(hash) && isCount(idx);
}

function isChunkRef(value: unknown): boolean {
  return (
    Array.isArray(value) && value.length === 3 && isCount(value[0]) && isCount(value[1]) && isText(value[2])
  );
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

function isText(value: unknown): boolean {
  return typeof value === "string";
}

function isCount(value: unknown): boolean {
  return isWholeNumber(value) && value !== 0;
}

function isWholeNumber(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
