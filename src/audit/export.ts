// A journal as lines of JSON: a head, one line per record, and a line that ends the export. The exact bytes of every
// record can be made from its line, so the hash chain can be checked without a server.
//
//   {"type":"export","version":1,"journal":"…","swarm":"default","segments":[1,2]}
//   {"segment":1,"position":1,"record":{…}}       a record of which JSON.stringify makes the stored bytes
//   {"segment":1,"position":2,"base64":"…"}       any other record
//   {"segment":1,"position":3,"lastPosition":3,"damage":"…"}   cannot be read: a reader finds the same damage
//   {"type":"end","records":2,"lost":[{"from":8,"to":26,"isAdmitted":true}]}   with the batches that are lost

import { type FileHandle, open } from "node:fs/promises";
import { JournalDamagedError, WaggleError } from "../errors.ts";
import { recordsAroundDamage } from "../journal/around-damage.ts";
import type { JournalReader, SegmentReader, SegmentRecord } from "../journal/journal.ts";
import { noSegmentError, shortError } from "../journal/journal-errors.ts";
import { findLive } from "../journal/live.ts";
import { type LostBatches, LostBatchSearch } from "./lost-batches.ts";

const VERSION = 1;
const LINE_BREAK = 0x0a;
const BLOCK_BYTES = 1 << 20;

/** A file that is no whole export. */
export class DamagedExportError extends WaggleError {
  constructor(sentence: string, options?: ErrorOptions) {
    super("WAGGLE_JOURNAL_DAMAGED", `${sentence}; export the journal again`, options);
  }
}

/** Lines without line breaks.
 *  @param onEnd called before the last line with the batches that the journal lost
 *  @throws UnreachableError; JournalDamagedError if a segment was removed meanwhile */
export async function* exportLines(
  journal: JournalReader,
  swarm: string,
  onEnd?: (lost: readonly LostBatches[]) => void,
): AsyncGenerator<string> {
  const { numbers, live } = await findLive(journal);
  const head = { type: "export", version: VERSION, journal: live?.opened.journal, swarm, segments: numbers };
  yield JSON.stringify(head);
  const search = new LostBatchSearch(live?.opened.journal);
  let records = 0;
  for (const segment of numbers) {
    for await (const read of recordsAroundDamage(journal.segment(segment))) {
      if ("damage" in read) {
        search.damaged();
        yield JSON.stringify({ segment, ...read });
        continue;
      }
      search.take(read.bytes);
      yield `{"segment":${segment},"position":${read.position},${fieldOf(read.bytes)}}`;
      records += 1;
    }
  }
  const { lost } = search;
  onEnd?.(lost);
  yield JSON.stringify({ type: "end", records, ...(lost.length === 0 ? {} : { lost }) });
}

function fieldOf(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
  const isExact = isPrintedFrom(text) && Buffer.compare(Buffer.from(text), bytes) === 0;
  return isExact ? `"record":${text}` : `"base64":"${Buffer.from(bytes).toString("base64")}"`;
}

function isPrintedFrom(text: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === text;
  } catch {
    return false;
  }
}

/** Whether a file begins as an export. */
export function isExport(beginning: string): boolean {
  return beginning.startsWith('{"type":"export",');
}

/** Reads the whole file once, to know where each record is.
 *  @throws DamagedExportError if the file is no export, or was cut off; the error of the file system */
export async function openExport(path: string): Promise<JournalReader> {
  const file = await open(path, "r");
  try {
    return new ExportReader(file, await indexOf(file, path));
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** The lines of a segment in the file. */
interface Lines {
  /** Where the line of each record begins, by position - 1. */
  readonly starts: number[];
  /** Position of the last `Opened`. */
  openedAt: number | undefined;
}
type LinesBySegment = ReadonlyMap<number, Lines>;

async function indexOf(file: FileHandle, path: string): Promise<LinesBySegment> {
  const linesBySegment = new Map<number, Lines>();
  let records = 0;
  let ended: number | undefined;
  let isFirst = true;
  for await (const { start, text } of linesFrom(file, 0)) {
    const line = parsed(text, path, start);
    if (isFirst) requireHead(line, path, linesBySegment);
    else if (line["type"] === "end") ended = Number(line["records"]);
    else {
      const { segment, position, record, damage, lastPosition = position } = line;
      const lines = linesBySegment.get(Number(segment));
      if (lines === undefined || position !== lines.starts.length + 1)
        throw new DamagedExportError(
          `${path} lacks a record before record ${String(position)} of segment ${String(segment)}`,
        );
      for (let at = lines.starts.length; at < Number(lastPosition); at += 1) lines.starts.push(start);
      if (damage !== undefined) continue;
      if ((record as Fields | undefined)?.["kind"] === "opened") lines.openedAt = position;
      records += 1;
    }
    isFirst = false;
  }
  if (isFirst) throw new DamagedExportError(`${path} is empty: it is no export of a journal`);
  if (ended !== records)
    throw new DamagedExportError(`${path} was cut off: its last line does not count ${records} records`);
  return linesBySegment;
}

function requireHead(line: Fields, path: string, linesBySegment: Map<number, Lines>): void {
  const { type, version, segments } = line;
  if (type !== "export" || !Array.isArray(segments))
    throw new DamagedExportError(`${path} is no export of a journal: \`waggle export\` writes one`);
  if (version !== VERSION)
    throw new DamagedExportError(
      `${path} is an export of version ${String(version)}; this waggle reads version ${VERSION}`,
    );
  for (const number of segments) linesBySegment.set(Number(number), { starts: [], openedAt: undefined });
}

type Fields = Readonly<Record<string, unknown>>;

function parsed(text: string, path: string, start: number): Fields {
  try {
    return JSON.parse(text) as Fields;
  } catch (cause) {
    throw new DamagedExportError(`${path} holds no JSON at byte ${start}`, { cause });
  }
}

async function* linesFrom(
  file: FileHandle,
  from: number,
): AsyncGenerator<{ readonly start: number; readonly text: string }> {
  let rest = Buffer.alloc(0);
  let start = from;
  for (let at = from; ; ) {
    const block = Buffer.allocUnsafe(BLOCK_BYTES);
    const { bytesRead } = await file.read(block, 0, BLOCK_BYTES, at);
    if (bytesRead === 0) break;
    at += bytesRead;
    const bytes = Buffer.concat([rest, block.subarray(0, bytesRead)]);
    let begin = 0;
    for (let end = bytes.indexOf(LINE_BREAK); end >= 0; end = bytes.indexOf(LINE_BREAK, begin)) {
      yield { start: start + begin, text: bytes.toString("utf8", begin, end) };
      begin = end + 1;
    }
    start += begin;
    rest = bytes.subarray(begin);
  }
  if (rest.length > 0) yield { start, text: rest.toString("utf8") };
}

class ExportReader implements JournalReader {
  readonly #file: FileHandle;
  readonly #lines: LinesBySegment;

  constructor(file: FileHandle, lines: LinesBySegment) {
    this.#file = file;
    this.#lines = lines;
  }

  async list(): Promise<readonly number[]> {
    return [...this.#lines.keys()].sort((one, other) => one - other);
  }

  segment(number: number): SegmentReader {
    return new ExportedSegment(number, this.#file, this.#lines.get(number));
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

class ExportedSegment implements SegmentReader {
  readonly number: number;
  readonly #file: FileHandle;
  readonly #lines: Lines | undefined;

  constructor(number: number, file: FileHandle, lines: Lines | undefined) {
    this.number = number;
    this.#file = file;
    this.#lines = lines;
  }

  async end() {
    const starts = this.#lines?.starts;
    return starts === undefined
      ? undefined
      : { position: starts.length, bytes: 0, isSealed: true, missing: 0 };
  }

  async read(position: number): Promise<SegmentRecord | undefined> {
    const start = this.#lines?.starts[position - 1];
    if (start === undefined) return undefined;
    for await (const { text } of linesFrom(this.#file, start)) return recordIn(text);
    return undefined;
  }

  async opened(): Promise<SegmentRecord | undefined> {
    const position = this.#lines?.openedAt;
    return position === undefined ? undefined : await this.read(position);
  }

  async *replay(from: number, { until }: { readonly until?: number } = {}): AsyncGenerator<SegmentRecord> {
    const starts = this.#lines?.starts;
    if (starts === undefined) throw noSegmentError(this.number);
    const last = until ?? starts.length;
    if (last > starts.length) throw shortError(this.number, starts.length + 1, starts.length);
    const start = starts[from - 1];
    if (from > last || start === undefined) return;
    for await (const { text } of linesFrom(this.#file, start)) {
      const record = recordIn(text);
      yield record;
      if (record.position === last) return;
    }
  }
}

/** @throws JournalDamagedError */
function recordIn(text: string): SegmentRecord {
  const { position, record, base64, damage } = JSON.parse(text);
  if (damage !== undefined) throw new JournalDamagedError(damage);
  const bytes = base64 === undefined ? Buffer.from(JSON.stringify(record)) : Buffer.from(base64, "base64");
  return { position, bytes: Uint8Array.from(bytes) };
}
