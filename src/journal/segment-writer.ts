// Appends the records that open and end a segment, and copied batches. Repeats each append until the record is known
// to be stored. Not here: the leader's batches; the leader may have two batches in flight.

import type { Clock } from "../clock.ts";
import { JournalDamagedError, WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import { pause } from "../pause.ts";
import type { AppendOptions, AppendOutcome, Segment } from "./journal.ts";
import { claimantOf } from "./live.ts";
import { decodeRecord } from "./records.ts";

/** The writer has lost the segment: the segment is sealed, removed, or holds a record of a different session. */
export class SegmentLostError extends Error {
  /** `rival`: another coordinator took or sealed the segment. `foreign`: a foreign client wrote its first record.
   *  `loss`: the segment no longer exists, because a coordinator removed it or the storage lost it. */
  readonly by: "rival" | "foreign" | "loss";

  constructor(number: number, why: string, by: SegmentLostError["by"]) {
    super(`segment ${number} is not this coordinator's any more: ${why}`);
    this.by = by;
  }
}

export interface SegmentWriterOptions {
  readonly segment: Segment;
  /** Id of the writer's session. */
  readonly session: string;
  /** Position of the last record. Default 0. */
  readonly position?: number;
  readonly clock: Clock;
  /** Ends every append in flight: the call rejects with the signal's reason. */
  readonly signal: AbortSignal;
}

export class SegmentWriter {
  readonly segment: Segment;
  readonly #options: SegmentWriterOptions;
  #position: number;
  /** Time of the last attempt to send the last stored record. */
  sentMonotonicMs = 0;

  constructor(options: SegmentWriterOptions) {
    this.segment = options.segment;
    this.#options = options;
    this.#position = options.position ?? 0;
  }

  /** Position of the last record. */
  get position(): number {
    return this.#position;
  }

  /** @returns the record's position. @throws SegmentLostError; JournalDamagedError when the segment lost records;
   *  WaggleError WAGGLE_JOURNAL_FULL; the signal's reason */
  async put(bytes: Uint8Array, options: AppendOptions = {}): Promise<number> {
    const { clock, signal } = this.#options;
    for (;;) {
      signal.throwIfAborted();
      const sentMonotonicMs = clock.monotonicMs();
      const outcome = await this.segment.append(bytes, this.#position, options);
      signal.throwIfAborted();
      if (outcome.kind === "stored" || (await this.#isThere(bytes, outcome))) {
        this.sentMonotonicMs = sentMonotonicMs;
        this.#position += 1;
        return this.#position;
      }
      if (outcome.kind === "unknown") await pause(clock, limits.appendRetryMs, signal);
    }
  }

  /** Appends several records at once, without waiting for each answer. @throws as `put` */
  async putAll(records: readonly Uint8Array[]): Promise<void> {
    const { clock, signal } = this.#options;
    signal.throwIfAborted();
    const sentMonotonicMs = clock.monotonicMs();
    const from = this.#position;
    const outcomes = await Promise.all(records.map((bytes, at) => this.segment.append(bytes, from + at)));
    signal.throwIfAborted();
    const refused = outcomes.findIndex(({ kind }) => kind !== "stored");
    const stored = refused < 0 ? records.length : refused;
    if (stored > 0) this.sentMonotonicMs = sentMonotonicMs;
    this.#position += stored;
    for (const bytes of records.slice(stored)) await this.put(bytes); // finds records stored without an answer
  }

  /** True if the record is stored in the right position, though the append was not acknowledged. Steps over foreign
   *  records. */
  async #isThere(bytes: Uint8Array, outcome: AppendOutcome): Promise<boolean> {
    const { number } = this.segment;
    switch (outcome.kind) {
      case "sealed":
        throw new SegmentLostError(number, "it is sealed", "rival");
      case "missing":
        throw new SegmentLostError(number, "it is gone", "loss");
      case "full":
        throw new WaggleError("WAGGLE_JOURNAL_FULL", `the journal is full: ${outcome.message}`);
      case "refused":
        return await this.#meetsItself(bytes);
      default:
        return false;
    }
  }

  async #meetsItself(bytes: Uint8Array): Promise<boolean> {
    const { number } = this.segment;
    const found = (await this.#found(() => this.segment.read(this.#position + 1)))?.bytes;
    if (found === undefined)
      throw new JournalDamagedError(`segment ${number} lost records: it ends before ${this.#position}`);
    if (Buffer.compare(found, bytes) === 0) return true;
    const record = decodeRecord(found);
    const isForeign = record === undefined || record.session !== this.#options.session;
    if (!isForeign || this.#position === 0)
      throw new SegmentLostError(
        number,
        `position ${this.#position + 1} holds a different record`,
        record === undefined ? "foreign" : "rival",
      );
    await this.requireClaim();
    this.#position += 1;
    return false;
  }

  /** A power loss may take a new segment, and another coordinator may claim its number again.
   *  @throws SegmentLostError if another session claimed the segment; JournalDamagedError without a readable claim */
  async requireClaim(): Promise<void> {
    const { number } = this.segment;
    const claimant = await this.#found(() => claimantOf(this.segment));
    this.#options.signal.throwIfAborted();
    if (claimant === undefined) throw new JournalDamagedError(`segment ${number} lost its claim`);
    if (claimant !== this.#options.session)
      throw new SegmentLostError(number, "another coordinator claimed it", "rival");
  }

  /** Undefined only after `limits.lossLooksMin` reads that found nothing. */
  async #found<Finding>(read: () => Promise<Finding | undefined>): Promise<Finding | undefined> {
    const { clock, signal } = this.#options;
    for (let looks = 0; looks < limits.lossLooksMin; looks += 1) {
      const finding = await read();
      if (finding !== undefined) return finding;
      await pause(clock, limits.appendRetryMs, signal);
    }
    return undefined;
  }
}
