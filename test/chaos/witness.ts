// Follows the journal from outside, all of its segments, and keeps every batch with the moment it was seen: what
// recovery is timed by, what readers must agree on, and what is left of batches that a damaged store lost. Goes on
// where reading breaks off. Also keeps what was sent to the journal, for there are servers that acknowledge it and
// never show it.

import { JournalDamagedError, UnreachableError } from "../../src/errors.ts";
import { swarmId, type Term } from "../../src/ids.ts";
import type { Journal, Segment, SegmentRecord } from "../../src/journal/journal.ts";
import { openNatsJournal } from "../../src/journal/nats.ts";
import { type Batch, decodeRecord, hashOf, type Opened } from "../../src/journal/records.ts";
import { emptyTail } from "../../src/journal/replay.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import type { LineRecord } from "../../src/sim/history/committed-log.ts";
import type { Reading } from "../../src/sim/history/observation.ts";
import type { Event } from "../../src/state/event.ts";
import type { Subscription, Transport } from "../../src/transport/transport.ts";
import type { PublishedBatch } from "./committed-line.ts";
import { monotonicMs } from "./monotonic.ts";

const PAUSE_MS = 500;

/** Segments are looked for so often; one that is written to is heard of at once. */
const LOOK_MS = 1_000;

interface Seen extends LineRecord {
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
  /** What was sent to the journal since the witness began; nothing where not all is kept. */
  readonly sent: Uint8Array[] = [];
  /** What opened segments. */
  readonly opened: Opened[] = [];
  /** By idx, as leaders published them; nothing where not all is kept. */
  readonly publishedByIdx = new Map<number, PublishedBatch>();
  /** Why reading broke off, each time. */
  readonly interruptions: string[] = [];
  readonly #options: WitnessOptions;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;
  readonly #listening: readonly Subscription[];
  /** Hashes of what was seen: copies are in the next segment, and after a break some of it is read again. */
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

  /** Events seen from a moment on, in order. */
  *eventsSince(sinceMs: number): Generator<SeenEvent> {
    for (let at = this.#firstSince(sinceMs); at < this.seen.length; at += 1) {
      const { batch, seenMs } = this.seen[at] as Seen;
      for (const event of batch.events) yield { seenMs, term: batch.term, event };
    }
  }

  /** What it held for each batch as it read, as far as batches continue each other. */
  readings(): Reading[] {
    if (!this.#keepsAll) return []; // what is kept has no beginning to judge from
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

  /** Follows a segment from its beginning, each once. */
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
        if (end === undefined && error instanceof JournalDamagedError) return; // it was removed
        from = end === undefined || end.position < from - 1 ? 1 : from + 1; // behind what cannot be read
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

/** All records that are in the segments now; what cannot be read is left out, and what a server ends at that reads it,
 *  as 2.10.27 does where a bit flipped in the length of a record.
 *  @param revive starts servers again that ended */
export async function readLog(
  urls: readonly string[],
  swarm: string,
  revive: () => Promise<void>,
): Promise<LineRecord[]> {
  const opened = () => openJournal(urls, swarm, new AbortController().signal);
  let journal = await opened();
  const reopen = async () => {
    await journal.close();
    await revive();
    journal = await opened();
  };
  try {
    const records: LineRecord[] = [];
    for (const number of await journal.list())
      records.push(...(await readSegment(() => journal.segment(number), reopen)));
    return records;
  } finally {
    await journal.close();
  }
}

async function readSegment(segment: () => Segment, reopen: () => Promise<void>): Promise<LineRecord[]> {
  const last = (await segment().end())?.position ?? 0;
  return await collect(segment().replay(1)).catch(async (error: unknown) => {
    if (error instanceof UnreachableError) await reopen();
    else if (!(error instanceof JournalDamagedError)) throw error;
    return await readEach((position) => segment().read(position), { last, reopen });
  });
}

/** One by one. @param reopen when a reading ended the server: what is there is left out */
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
