// Follows the journal from outside and keeps every record with the moment it was seen: what recovery is timed by, what
// readers must agree on, and what is left of batches that a damaged store lost. Goes on behind what cannot be read
// where reading breaks off. Also keeps what was sent to the journal, for there are servers that acknowledge it and
// never show it.

import { JournalDamagedError, UnreachableError } from "../../src/errors.ts";
import { batchIndex, swarmId, type Term } from "../../src/ids.ts";
import { type Batch, decodeBatch, hashOf } from "../../src/journal/batch.ts";
import type { Journal, JournalRecord } from "../../src/journal/journal.ts";
import { openNatsJournal } from "../../src/journal/nats.ts";
import { type ChainTail, deathOf } from "../../src/journal/replay.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import type { Reading } from "../../src/sim/history/observation.ts";
import type { Event } from "../../src/state/event.ts";
import type { Subscription, Transport } from "../../src/transport/transport.ts";
import { monotonicMs } from "./monotonic.ts";

const PAUSE_MS = 500;

interface Seen extends JournalRecord {
  readonly seenMs: number;
  readonly hash: string;
  /** Undefined: alien. */
  readonly batch: Batch | undefined;
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
  /** Why reading broke off, each time. */
  readonly interruptions: string[] = [];
  readonly #options: WitnessOptions;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;
  readonly #listening: Subscription;
  /** Hashes of what was seen: after a break some of it is read again. */
  #known = new Set<string>();

  constructor(options: WitnessOptions) {
    this.#options = options;
    const { transport, swarm } = options;
    this.#listening = transport.subscribe(subjectsOf(swarmId(swarm)).journal, ({ data }) => {
      if (this.#keepsAll) this.sent.push(data.slice());
    });
    this.#done = this.#watch();
  }

  /** Events seen from a moment on, in order. */
  *eventsSince(sinceMs: number): Generator<SeenEvent> {
    for (let at = this.#firstSince(sinceMs); at < this.seen.length; at += 1) {
      const { batch, seenMs } = this.seen[at] as Seen;
      for (const event of batch?.events ?? []) yield { seenMs, term: batch?.term ?? (0 as Term), event };
    }
  }

  /** What it held for each place as it read; dead records are nobody's. */
  readings(): Reading[] {
    if (!this.#keepsAll) return []; // what is kept has no beginning to judge from
    let tail: ChainTail = { idx: batchIndex(0), term: 0 as Term, hash: "", journal: "" };
    const readings: Reading[] = [];
    for (const { hash, batch } of this.seen) {
      if (batch === undefined || deathOf(batch, tail) !== undefined) continue;
      tail = { ...batch, hash };
      readings.push({ reader: "witness", idx: batch.idx, hash: tail.hash });
    }
    return readings;
  }

  get #keepsAll(): boolean {
    return !Number.isFinite(this.#options.keptMs);
  }

  async stop(): Promise<void> {
    this.#listening.unsubscribe();
    this.#stop.abort();
    await this.#done;
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.#follow(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.interruptions.push(String(error));
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { urls, swarm } = this.#options;
    const journal = await openJournal(urls, swarm, signal);
    try {
      const fromSeq = this.interruptions.length === 0 ? 1 : await firstReadable(journal, this.#lastSeq);
      for await (const record of journal.follow(fromSeq, signal)) this.#see(record);
    } finally {
      await journal.close();
    }
  }

  get #lastSeq(): number {
    return this.seen.at(-1)?.seq ?? 0;
  }

  #see(record: JournalRecord): void {
    const seenMs = monotonicMs();
    const hash = hashOf(record.bytes);
    if (this.#known.has(hash)) return;
    this.#known.add(hash);
    this.seen.push({ ...record, seenMs, hash, batch: decodeBatch(record.bytes) });
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

/** From where on the journal can be read behind a record that was seen last; from its beginning, where it ends before
 *  that one: what stands there now may be something else. */
async function firstReadable(journal: Journal, lastSeenSeq: number): Promise<number> {
  const { firstSeq, lastSeq } = await journal.position();
  if (lastSeq < lastSeenSeq) return Math.max(1, firstSeq);
  for (let seq = Math.max(1, firstSeq, lastSeenSeq + 1); ; seq += 1)
    if (seq > lastSeq || (await journal.read(seq)) !== undefined) return seq;
}

/** All records that stand in the log now; holes are left out, and what a server ends at that reads it, as 2.10.27 does
 *  where a bit flipped in the length of a record.
 *  @param revive starts servers again that ended */
export async function readLog(
  urls: readonly string[],
  swarm: string,
  revive: () => Promise<void>,
): Promise<JournalRecord[]> {
  const opened = () => openJournal(urls, swarm, new AbortController().signal);
  let journal = await opened();
  try {
    const { firstSeq, lastSeq } = await journal.position();
    const reopen = async () => {
      await journal.close();
      await revive();
      journal = await opened();
    };
    return await collect(journal.replay(Math.max(1, firstSeq))).catch(async (error: unknown) => {
      if (error instanceof UnreachableError) await reopen();
      else if (!(error instanceof JournalDamagedError)) throw error;
      return await readEach((seq) => journal.read(seq), { firstSeq, lastSeq, reopen });
    });
  } finally {
    await journal.close();
  }
}

/** One by one. @param reopen when a reading ended the server: what stands there is left out */
export async function readEach(
  read: Journal["read"],
  { firstSeq, lastSeq, reopen }: { firstSeq: number; lastSeq: number; reopen: () => Promise<void> },
): Promise<JournalRecord[]> {
  const records: JournalRecord[] = [];
  for (let seq = Math.max(1, firstSeq); seq <= lastSeq; seq += 1) {
    try {
      const record = await read(seq);
      if (record !== undefined) records.push(record);
    } catch (error) {
      if (!(error instanceof UnreachableError)) throw error;
      await reopen();
    }
  }
  return records;
}

async function collect(records: AsyncIterable<JournalRecord>): Promise<JournalRecord[]> {
  const all: JournalRecord[] = [];
  for await (const record of records) all.push(record);
  return all;
}

async function openJournal(urls: readonly string[], swarm: string, signal: AbortSignal): Promise<Journal> {
  const connection = { urls, name: "chaos witness", signal };
  return await openNatsJournal({ connection, swarm: swarmId(swarm), create: false, signal });
}
