// The records of a file journal across its segments: where one stands, and reading on from it. Each reader has files of
// its own, so that a segment may be purged under it. Whoever asks says which records count; nothing beyond is read.

import { assert } from "../../assert.ts";
import { JournalDamagedError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { JournalRecord } from "../journal.ts";
import { purgedError } from "../journal-errors.ts";
import { FileCursor } from "./cursor.ts";
import type { JournalFile, OpenJournalFile } from "./handle.ts";
import { FileIndex } from "./record-index.ts";
import { removeSegment, type SegmentPlan } from "./segment.ts";

/** A segment that is read. */
interface Segment {
  readonly plan: SegmentPlan;
  index: FileIndex;
  /** Where its whole records end; that of the last segment moves. */
  end: number;
  /** The one that goes on from it, also when this one was purged meanwhile. */
  next: Segment | undefined;
}

export class FileSegments {
  readonly #openFile: OpenJournalFile;
  /** Oldest first. */
  readonly #segments: Segment[] = [];

  /** @param plans at least one, oldest first */
  constructor(openFile: OpenJournalFile, plans: readonly SegmentPlan[]) {
    assert(plans.length > 0, "a journal has a segment");
    this.#openFile = openFile;
    for (const plan of plans) this.add(plan);
  }

  /** Of the oldest segment, whether it holds a record or not. */
  get firstSeq(): number {
    return this.#first.plan.firstSeq;
  }

  /** The one that is written to. */
  get last(): Segment {
    return this.#segments.at(-1) as Segment;
  }

  get bytes(): number {
    return this.#segments.reduce((sum, { end }) => sum + end, 0);
  }

  /** A new last one. */
  add(plan: SegmentPlan): void {
    const segment = { plan, index: new FileIndex(), end: plan.size, next: undefined };
    if (this.#segments.length > 0) this.last.next = segment;
    this.#segments.push(segment);
  }

  /** Removes segments of which every record lies below `seq`, oldest first, so that a crash leaves no gap. The last one
   *  stays. Not to be called again before it has ended. */
  async removeBelow(seq: number): Promise<void> {
    for (;;) {
      const [oldest, next] = this.#segments;
      if (oldest === undefined || next === undefined || next.plan.firstSeq > seq) return;
      this.#segments.shift();
      try {
        await removeSegment(oldest.plan.path);
      } catch (error) {
        this.#segments.unshift(oldest);
        throw error;
      }
    }
  }

  /** A record that is not beyond those that count, or undefined where it was purged. @throws JournalDamagedError */
  async read(seq: number): Promise<JournalRecord | undefined> {
    if (seq < this.firstSeq) return undefined;
    let cursor: SegmentsCursor | undefined;
    try {
      cursor = await this.cursorAt(seq, limits.journalIndexSpacingBytes);
      return await cursor.next();
    } catch (error) {
      if (seq < this.firstSeq) return undefined; // purged meanwhile
      throw error;
    } finally {
      await cursor?.close();
    }
  }

  /** @throws JournalDamagedError, also when `fromSeq` was purged */
  async *replay(fromSeq: number, lastSeq: number): AsyncGenerator<JournalRecord> {
    const cursor = await this.cursorAt(fromSeq, limits.journalReadWindowBytes);
    try {
      while (cursor.seq <= lastSeq) yield await cursor.next();
    } finally {
      await cursor.close();
    }
  }

  /** Before a record that is there. Its user closes it. @throws JournalDamagedError, also when it was purged */
  async cursorAt(seq: number, windowBytes: number): Promise<SegmentsCursor> {
    const holder = this.#segments.findLast(({ plan }) => plan.firstSeq <= seq);
    if (holder === undefined) throw purgedError(seq, this.firstSeq);
    const enter = (segment: Segment) => this.#enter(segment, { seq, windowBytes });
    const cursor = new SegmentsCursor(await enter(holder), enter);
    try {
      await cursor.skipTo(seq);
      return cursor;
    } catch (error) {
      await cursor.close();
      throw error;
    }
  }

  async #enter(
    segment: Segment,
    { seq, windowBytes }: { seq: number; windowBytes: number },
  ): Promise<Entered> {
    const { plan, index } = segment;
    const place = index.floor(seq) ?? { seq: plan.firstSeq, offset: plan.start };
    const file = await this.#open(plan);
    return { segment, file, cursor: new FileCursor({ file, name: plan.name, index, windowBytes, place }) };
  }

  async #open({ name, path, firstSeq }: SegmentPlan): Promise<JournalFile> {
    try {
      return await this.#openFile(path, "read");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      if (firstSeq < this.firstSeq) throw purgedError(firstSeq, this.firstSeq);
      throw new JournalDamagedError(
        `${name} is gone: it was purged by the process that writes the journal, or removed by somebody`,
        { cause: error },
      );
    }
  }

  get #first(): Segment {
    return this.#segments[0] as Segment;
  }
}

interface Entered {
  readonly segment: Segment;
  readonly file: JournalFile;
  readonly cursor: FileCursor;
}

/** A place between two records, which moves from segment to segment. */
export class SegmentsCursor {
  readonly #enter: (segment: Segment) => Promise<Entered>;
  #entered: Entered;

  constructor(entered: Entered, enter: (segment: Segment) => Promise<Entered>) {
    this.#entered = entered;
    this.#enter = enter;
  }

  /** Of the record that `next` reads. */
  get seq(): number {
    return this.#entered.cursor.seq;
  }

  /** Within the segment. */
  async skipTo(seq: number): Promise<void> {
    await this.#entered.cursor.skipTo(seq, this.#entered.segment.end);
  }

  /** Reads a record that is there, and moves behind it. @throws JournalDamagedError */
  async next(): Promise<JournalRecord> {
    const { next } = this.#entered.segment;
    if (next !== undefined && this.seq >= next.plan.firstSeq) await this.#turnTo(next);
    return await this.#entered.cursor.next(this.#entered.segment.end);
  }

  async close(): Promise<void> {
    await this.#entered.file.close();
  }

  async #turnTo(segment: Segment): Promise<void> {
    const { file } = this.#entered;
    this.#entered = await this.#enter(segment);
    await file.close();
  }
}
