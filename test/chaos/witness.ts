// Follows all segments of the journal from outside, and keeps every batch with its time of observation.
// Recovery is timed by the observations, readers must agree with them, and they preserve batches of a damaged
// store. Reading continues after an interruption. Also keeps messages sent to the journal, because some servers
// acknowledge records and never return them.

import { JournalDamagedError, UnreachableError } from "../../src/errors.ts";
import { swarmId, type Term } from "../../src/ids.ts";
import type { Journal, Segment, SegmentRecord } from "../../src/journal/journal.ts";
import { openNatsJournal } from "../../src/journal/nats.ts";
import { type Batch, decodeRecord, hashOf, type Opened } from "../../src/journal/records.ts";
import { emptyTail } from "../../src/journal/replay.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import type { LogRecord } from "../../src/sim/history/committed-log.ts";
import type { Reading } from "../../src/sim/history/observation.ts";
import type { Event } from "../../src/state/event.ts";
import type { Subscription, Transport } from "../../src/transport/transport.ts";
import type { PublishedBatch } from "./committed-log.ts";
import { monotonicMs } from "./monotonic.ts";

const PAUSE_MS = 500;

/** Interval of searches for new segments; records of known segments arrive at once. */
const LOOK_MS = 1_000;

interface Seen extends LogRecord {
  readonly segment: number;
  readonly seenMs: number;
  readonly hash: string;
  readonly batch: Batch;
}

export interface SeenEvent {
  readonly seenMs: number;
  readonly term: Term;
  readonly event: Event;
}

export interface WitnessOptions {
  readonly transport: Transport;
  readonly urls: readonly string[];
  readonly swarm: string;
  /** How long a record is kept, ms. */
  readonly keptMs: number;
}

export class Witness {
  seen: Seen[] = [];
  /** Messages sent to the journal since the witness began; empty unless everything is kept. */
  readonly sent: Uint8Array[] = [];
  /** Observed `Opened` records. */
  readonly opened: Opened[] = [];
  /** By idx, as published by leaders; empty unless everything is kept. */
  readonly publishedByIdx = new Map<number, PublishedBatch>();
  /** Reasons of interruptions. */
  readonly interruptions: string[] = [];
  readonly #options: WitnessOptions;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;
  readonly #listening: readonly Subscription[];
  /** Hashes of observed records: the next segment has copies, and after an interruption some records are read
   *  again. */
  #known = new Set<string>();
  readonly #followed = new Map<number, Promise<void>>();
  #journal: Journal | undefined;

  constructor(options: WitnessOptions) {
    this.#options = options;
    const { transport, swarm } = options;
    const subjects = subjectsOf(swarmId(swarm));
    const records = transport.subscribe(subjects.segment("*"), ({ subject, data }) => {
      if (this.#keepsAll) this.sent.push(data.slice());
      this.#heardOf(Number(subject.slice(subject.lastIndexOf(".") + 1)));
    });
    const events = transport.subscribe(subjects.event("*", "*", "*"), ({ data }) => this.#hear(data));
    this.#listening = [records, events];
    this.#done = this.#watch();
  }

  /** Observed events from a moment on, in order. */
  *eventsSince(sinceMs: number): Generator<SeenEvent> {
    for (let at = this.#firstSince(sinceMs); at < this.seen.length; at += 1) {
      const { batch, seenMs } = this.seen[at] as Seen;
      for (const event of batch.events) yield { seenMs, term: batch.term, event };
    }
  }

  /** The reader's view of each batch, as far as batches continue each other. */
  readings(): Reading[] {
    if (!this.#keepsAll) return []; // the kept part has no beginning to judge from
    let tail: { readonly idx: number; readonly hash: string } = emptyTail;
    const readings: Reading[] = [];
    for (const { hash, batch } of this.seen) {
      if (batch.prev !== tail.hash || batch.idx !== tail.idx + 1) continue;
      tail = { idx: batch.idx, hash };
      readings.push({ reader: "witness", idx: batch.idx, hash });
    }
    return readings;
  }

  get #keepsAll(): boolean {
    return !Number.isFinite(this.#options.keptMs);
  }

  async stop(): Promise<void> {
    for (const listening of this.#listening) listening.unsubscribe();
    this.#stop.abort();
    await this.#done;
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stop;
    const { urls, swarm } = this.#options;
    while (!signal.aborted) {
      try {
        this.#journal ??= await openJournal(urls, swarm, signal);
        for (const number of await this.#journal.list()) this.#heardOf(number);
      } catch (error) {
        if (!signal.aborted) this.interruptions.push(String(error));
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    await Promise.all(this.#followed.values());
    await this.#journal?.close();
  }

  /** Follows each segment once, from its beginning. */
  #heardOf(number: number): void {
    if (this.#journal === undefined || !(number > 0) || this.#followed.has(number)) return;
    this.#followed.set(number, this.#follow(this.#journal.segment(number)));
  }

  async #follow(segment: Segment): Promise<void> {
    const { signal } = this.#stop;
    for (let from = 1; !signal.aborted; ) {
      try {
        for await (const record of segment.follow(from, signal)) {
          this.#see(segment.number, record);
          from = record.position + 1;
        }
        return;
      } catch (error) {
        if (signal.aborted) return;
        this.interruptions.push(String(error));
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        const end = await segment.end().catch(() => undefined);
        if (end === undefined && error instanceof JournalDamagedError) return; // removed
        from = end === undefined || end.position < from - 1 ? 1 : from + 1; // behind the unreadable record
      }
    }
  }

  #hear(data: Uint8Array): void {
    if (!this.#keepsAll) return;
    const { idx, ...published } = JSON.parse(Buffer.from(data).toString()) as PublishedBatch & {
      idx: number;
    };
    const before = this.publishedByIdx.get(idx)?.events ?? [];
    this.publishedByIdx.set(idx, { ...published, events: [...before, ...published.events] });
  }

  #see(segment: number, { bytes }: SegmentRecord): void {
    const batch = decodeRecord(bytes);
    if (batch?.kind === "opened") this.opened.push(batch);
    if (batch?.kind !== "batch") return;
    const seenMs = monotonicMs();
    const hash = hashOf(bytes);
    if (this.#known.has(hash)) return;
    this.#known.add(hash);
    this.seen.push({ segment, bytes, seenMs, hash, batch });
    const { keptMs } = this.#options;
    const isOld = seenMs - (this.seen[0]?.seenMs ?? seenMs) > 2 * keptMs;
    if (!isOld) return;
    this.seen = this.seen.slice(this.#firstSince(seenMs - keptMs));
    this.#known = new Set(this.seen.map((seen) => seen.hash));
  }

  #firstSince(sinceMs: number): number {
    let at = this.seen.length;
    while (at > 0 && (this.seen[at - 1] as Seen).seenMs >= sinceMs) at -= 1;
    return at;
  }
}

export interface LogReading {
  readonly urls: readonly string[];
  readonly swarm: string;
  /** Restarts ended servers. */
  readonly revive: () => Promise<void>;
  /** Numbers of segments that were seen to be opened. */
  readonly opened: ReadonlySet<number>;
}

/** All present records of the segments, without unreadable records. Also without records whose reading ends the
 *  server, as 2.10.27 does after a bit flip in the length of a record. Segments in the making come first. */
export async function readLog({ urls, swarm, revive, opened: seenOpened }: LogReading): Promise<LogRecord[]> {
  const opened = () => openJournal(urls, swarm, new AbortController().signal);
  let journal = await opened();
  const reopen = async () => {
    await journal.close();
    await revive();
    journal = await opened();
  };
  try {
    const records: SegmentRecords[] = [];
    for (const number of await journal.list())
      records.push({ number, records: await readSegment(() => journal.segment(number), reopen) });
    return inOrder(records, seenOpened);
  } finally {
    await journal.close();
  }
}

export interface SegmentRecords {
  readonly number: number;
  readonly records: readonly LogRecord[];
}

/** A leader that ends leaves the segment in the making behind: its copies are not the end of the log. So segments that
 *  nobody opened come first. @param seenOpened as `LogReading.opened`; the record may be damaged since */
export function inOrder(segments: readonly SegmentRecords[], seenOpened: ReadonlySet<number>): LogRecord[] {
  const made: LogRecord[] = [];
  const opened: LogRecord[] = [];
  for (const { number, records } of segments) {
    const isOpened =
      seenOpened.has(number) || records.some(({ bytes }) => decodeRecord(bytes)?.kind === "opened");
    (isOpened ? opened : made).push(...records);
  }
  return [...made, ...opened];
}

async function readSegment(segment: () => Segment, reopen: () => Promise<void>): Promise<LogRecord[]> {
  const last = (await segment().end())?.position ?? 0;
  return await collect(segment().replay(1)).catch(async (error: unknown) => {
    if (error instanceof UnreachableError) await reopen();
    else if (!(error instanceof JournalDamagedError)) throw error;
    return await readEach((position) => segment().read(position), { last, reopen });
  });
}

/** Reads record by record. @param reopen after a reading ended the server; skips the record */
export async function readEach(
  read: Segment["read"],
  { last, reopen }: { last: number; reopen: () => Promise<void> },
): Promise<SegmentRecord[]> {
  const records: SegmentRecord[] = [];
  for (let position = 1; position <= last; position += 1) {
    try {
      const record = await read(position);
      if (record !== undefined) records.push(record);
    } catch (error) {
      if (error instanceof JournalDamagedError) continue;
      if (!(error instanceof UnreachableError)) throw error;
      await reopen();
    }
  }
  return records;
}

async function collect(records: AsyncIterable<SegmentRecord>): Promise<SegmentRecord[]> {
  const all: SegmentRecord[] = [];
  for await (const record of records) all.push(record);
  return all;
}

async function openJournal(urls: readonly string[], swarm: string, signal: AbortSignal): Promise<Journal> {
  const connection = { urls, name: "chaos witness", signal };
  return await openNatsJournal({ connection, swarm: swarmId(swarm), signal });
}
