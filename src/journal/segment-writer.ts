// Makes and ends a segment, for every process that leads, prepares or recovers one:
//
//   claim ─ base and copied batches, where needed ─ open ─ (the leader's batches) ─ close
//
// Repeats each append until the record is known to be stored. Not here: the leader's batches (coordinator/leader/
// writer.ts), because two of them may be in flight.

import type { Clock, Random } from "../clock.ts";
import { JournalDamagedError, WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import { pause } from "../pause.ts";
import { type BaseRef, verifyBase, writeBase } from "./base.ts";
import { claimantOf, findAt } from "./inspect.ts";
import type { AppendOptions, AppendOutcome, Journal, Segment } from "./journal.ts";
import { type Closing, encodeRecord, hashOf, type Opened } from "./records.ts";
import type { LiveSegment, Replay } from "./replay.ts";

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

/** Length of the random part of a claim. A session may claim a number again, and readers tell the claims apart. */
const ATTEMPT_CHARACTERS = 12;
const JOURNAL_CHARACTERS = 16;

/** @returns the identity of a new journal */
export function newJournalId(random: Pick<Random, "id">): string {
  return random.id(JOURNAL_CHARACTERS);
}

/** @returns the random part of a new claim */
export function newAttempt(random: Pick<Random, "id">): string {
  return random.id(ATTEMPT_CHARACTERS);
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

  // --- the steps of a segment -----------------------------------------------------------------------

  /** Creates the segment and claims it for the writer's session. @param attempt as `newAttempt` @throws as `put` */
  async claim(journal: Pick<Journal, "create">, attempt: string): Promise<void> {
    const { number } = this.segment;
    await journal.create(number);
    await this.put(encodeRecord({ kind: "claim", segment: number, session: this.#options.session, attempt }));
  }

  /** Writes a base of the log and reads it back. The log must not change meanwhile.
   *  @param requireRoom called with the bytes written so far; a thrown error ends the base @throws as `put` */
  async writeBase(log: Replay, requireRoom?: (bytes: number) => void): Promise<BaseRef> {
    const { session, clock } = this.#options;
    let written = 0;
    const put = (bytes: Uint8Array) => {
      written += bytes.length;
      requireRoom?.(written);
      return this.put(bytes);
    };
    const base = await writeBase(log, { session, clock, put });
    await verifyBase(this.segment, base);
    return base;
  }

  /** Makes the segment live: from here on its writer leads. @throws as `put` */
  async open(opening: Omit<Opened, "kind" | "segment" | "session">): Promise<LiveSegment> {
    const { number } = this.segment;
    const opened: Opened = { kind: "opened", segment: number, session: this.#options.session, ...opening };
    const bytes = encodeRecord(opened);
    const position = await this.put(bytes, { isOpened: true });
    return { number, opened, openedHash: hashOf(bytes), position };
  }

  /** Ends the segment: no record can follow. @throws as `put`; JournalDamagedError if the segment is gone */
  async close(closing: Pick<Closing, "reason" | "to">): Promise<void> {
    const { number } = this.segment;
    await this.put(
      encodeRecord({ kind: "closing", segment: number, session: this.#options.session, ...closing }),
    );
    if (!(await this.segment.seal())) throw new JournalDamagedError(`segment ${number} is gone`);
  }

  // --- records --------------------------------------------------------------------------------------

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
    const { session } = this.#options;
    const position = this.#position + 1;
    const found = await this.#unless("nothing", () => findAt(this.segment, { position, bytes, session }));
    switch (found) {
      case "itself":
        return true;
      case "passed-over":
        this.#position = position;
        return false;
      case "nothing":
        throw new JournalDamagedError(`segment ${number} lost records: it ends before ${this.#position}`);
      case "different":
      case "rival":
        throw new SegmentLostError(number, `position ${position} holds a different record`, "rival");
      case "unclaimed":
        if (position === 1) throw new SegmentLostError(number, "its first record is foreign", "foreign");
        await this.requireClaim();
        this.#position = position;
        return false;
    }
  }

  /** A power loss may take a new segment, and another coordinator may claim its number again.
   *  @throws SegmentLostError if another session claimed the segment; JournalDamagedError without a readable claim */
  async requireClaim(): Promise<void> {
    const { number } = this.segment;
    const claimant = await this.#unless(undefined, () => claimantOf(this.segment));
    this.#options.signal.throwIfAborted();
    if (claimant === undefined) throw new JournalDamagedError(`segment ${number} lost its claim`);
    if (claimant !== this.#options.session)
      throw new SegmentLostError(number, "another coordinator claimed it", "rival");
  }

  /** The server may lag behind: `absent` counts only after `limits.lossLooksMin` looks. */
  async #unless<Finding>(absent: Finding, look: () => Promise<Finding>): Promise<Finding> {
    const { clock, signal } = this.#options;
    for (let looks = 0; looks < limits.lossLooksMin; looks += 1) {
      const finding = await look();
      if (finding !== absent) return finding;
      await pause(clock, limits.appendRetryMs, signal);
    }
    return absent;
  }
}
