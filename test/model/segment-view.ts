// Reads a segment: the writer, whether the segment is live, and the batches. `inspect` compares a stored log
// with the log of a coordinator. Pure; the product's codec does the same on bytes.

import type { Batch, Log, SegmentEnd, StoredRecord } from "./records.ts";

const emptyLog: Log = { chain: [], terms: [] };

/** The content of one segment. */
export interface SegmentView {
  readonly segment: number;
  /** The process named by the first record, the only writer that counts. */
  readonly writer: string | undefined;
  readonly base: Log | undefined;
  readonly previous: SegmentEnd | undefined;
  readonly opened: string | undefined;
  /** `Opened` is stored, and the named base is whole. */
  readonly isLive: boolean;
  readonly batches: readonly Batch[];
  readonly isClosing: boolean;
  readonly isSealed: boolean;
  /** A record is missing before the end. */
  readonly isDamaged: boolean;
  readonly length: number;
  /** Number of the writer's own records at any position. Only growth of the number shows a living writer. */
  readonly written: number;
}

export const BASE_PARTS = 2;

export function viewOf(segment: number, records: readonly StoredRecord[]): SegmentView {
  const [first] = records;
  const writer = first?.kind === "claim" && first.segment === segment ? first.session : undefined;
  const sealAt = records.findIndex(({ kind }) => kind === "seal");
  const counted = sealAt === -1 ? records : records.slice(0, sealAt);
  const lostAt = counted.findIndex(({ kind }) => kind === "lost");
  const own = (lostAt === -1 ? counted : counted.slice(0, lostAt)).filter(
    (record) => record.kind !== "lost" && record.session === writer,
  );
  const openedAt = own.findIndex(({ kind }) => kind === "opened");
  const opened = own[openedAt];
  const head = openedAt === -1 ? own : own.slice(0, openedAt);
  const base = baseIn(head);
  const isLive =
    opened?.kind === "opened" && (opened.manifest === undefined || opened.manifest === base?.manifest);
  return {
    segment,
    writer,
    base: base?.log,
    previous: opened?.kind === "opened" ? opened.previous : undefined,
    opened: opened?.kind === "opened" ? opened.hash : undefined,
    isLive,
    batches: isLive
      ? own.slice(openedAt).flatMap((record) => (record.kind === "batch" ? [record.batch] : []))
      : [],
    isClosing: own.some(({ kind }) => kind === "closing"),
    isSealed: sealAt !== -1,
    isDamaged: lostAt !== -1,
    length: records.length,
    written: records.filter((record) => record.kind !== "lost" && record.session === writer).length,
  };
}

/** The base's parts in order, and the copies behind the base. */
function baseIn(head: readonly StoredRecord[]): { readonly log: Log; readonly manifest: string } | undefined {
  const parts = head.flatMap((record) => (record.kind === "base" ? [record] : []));
  const [first] = parts;
  const isWhole = parts.length === BASE_PARTS && parts.every(({ part }, at) => part === at);
  if (first === undefined || !isWhole) return undefined;
  const copies = head.flatMap((record) => (record.kind === "copy" ? [record.batch] : []));
  const chain = extended(first.log.chain, copies);
  return chain.length === first.log.chain.length + copies.length
    ? { log: { chain, terms: first.log.terms }, manifest: first.manifest }
    : undefined;
}

type Contents = ReadonlyMap<number, readonly StoredRecord[]>;

/** The log as a restart reads it, up to the end of the newest live segment. */
export function restartLog(contents: Contents): Log | "unreadable" {
  const newest = [...contents.keys()]
    .sort((a, b) => b - a)
    .find((segment) => viewOf(segment, contents.get(segment) ?? []).isLive);
  return newest === undefined ? "unreadable" : logOf(newest, contents);
}

/** The log up to the end of a live segment, or "unreadable".
 *  @param held replaces unreadable earlier segments, if the segment continues the held log */
export function logOf(segment: number, contents: Contents, held: Log = emptyLog): Log | "unreadable" {
  const stored = contents.get(segment);
  if (stored === undefined) return "unreadable";
  const view = viewOf(segment, stored);
  if (!view.isLive) return "unreadable";
  const before = baseOf(view, contents, held);
  return before === "unreadable" ? before : withSegment(before, view);
}

function baseOf(view: SegmentView, contents: Contents, held: Log): Log | "unreadable" {
  if (view.base !== undefined) return view.base;
  if (view.previous === undefined) return emptyLog;
  const { segment, idx, hash } = view.previous;
  const stored = logOf(segment, contents, held);
  for (const log of stored === "unreadable" ? [held] : [stored, held])
    if ((log.chain[idx - 1]?.hash ?? "") === hash) return cutTo(log, idx);
  return "unreadable";
}

/** `log` continued by the batches behind `Opened` of the segment's writer. */
export function withSegment(log: Log, { segment, opened = "", batches }: SegmentView): Log {
  const chain = extended(
    log.chain,
    batches.filter(({ term }) => term === segment),
  );
  return { chain, terms: [...log.terms, { term: segment, opened, firstIdx: log.chain.length + 1 }] };
}

/** The log without the batches behind `idx`, and without terms that begin behind `idx`. */
function cutTo({ chain, terms }: Log, idx: number): Log {
  return { chain: chain.slice(0, idx), terms: terms.filter(({ firstIdx }) => firstIdx <= idx + 1) };
}

/** Keeps only batches that continue the log: all others are foreign or superseded. */
function extended(chain: readonly Batch[], batches: readonly Batch[]): readonly Batch[] {
  const all = [...chain];
  for (const batch of batches)
    if (batch.prev === lastHash(all) && batch.idx === all.length + 1) all.push(batch);
  return all;
}

export function lastHash(chain: readonly Batch[]): string {
  return chain.at(-1)?.hash ?? "";
}

/** Compares a stored log with a held log. */
export function inspect(
  held: readonly Batch[],
  stored: readonly Batch[],
): "same" | "longer" | "shorter" | "different" {
  const common = Math.min(held.length, stored.length);
  for (let at = 0; at < common; at += 1) if (held[at]?.hash !== stored[at]?.hash) return "different";
  if (held.length === stored.length) return "same";
  return stored.length > held.length ? "longer" : "shorter";
}
