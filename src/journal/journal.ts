// The port of the journal: an append-only line of batches with one writer, fenced by position.
// Not here: what a batch means (core/), who may lead (coordinator/coordinator.ts), when a batch counts as
// committed (coordinator/append/committer.ts: acknowledged, and every earlier batch of its term committed).
// The one thing to know: `append` answers `unknown` whenever it cannot prove what happened, and the
// caller resolves it by appending the byte-identical record again.

/** One stored record: a position, from 1, and the bytes of a batch. */
export interface JournalRecord {
  readonly seq: number;
  readonly bytes: Uint8Array;
}

/** What became of an append. */
export type AppendOutcome =
  /** Stored at exactly `expectedSeq + 1`. */
  | { readonly kind: "stored"; readonly seq: number }
  /** The position is taken: the journal's last sequence was not `expectedSeq`. Nothing was stored. */
  | { readonly kind: "refused" }
  /** No room, by configured bound or by disk. Nothing was stored. */
  | { readonly kind: "full"; readonly message: string }
  /** Time-out, connection lost, an answer that proves nothing. It may be stored, now or later. */
  | { readonly kind: "unknown"; readonly cause: unknown };

/** Durability in words for people, and in a class for programs. */
export interface Durability {
  /** `memory` gone with the process · `file` fsynced on this disk · `page-cache` survives the process,
   *  not the power · `fsync` the server syncs each append · `replicated` on a majority of servers. */
  readonly class: "memory" | "file" | "page-cache" | "fsync" | "replicated";
  readonly sentence: string;
}

/** Where a journal begins and ends. */
export interface JournalPosition {
  /** 0 when nothing was ever stored; `lastSeq + 1` when all was purged. */
  readonly firstSeq: number;
  /** 0 when nothing was ever stored. */
  readonly lastSeq: number;
  /** Records that are gone between the first and the last: holes, as a power failure leaves them. 0 when whole. A
   *  journal that would have to read all of itself to know says 0 and shows the damage to who reads it. */
  readonly missing: number;
}

export interface JournalUsage {
  readonly bytes: number;
  /** Undefined when unbounded. */
  readonly bytesMax: number | undefined;
  /** What gives it more room, for people: a clause that names what is to be changed, and how. */
  readonly remedy?: string;
}

/** How a reading goes about it. A journal that has it in reach takes no notice. */
export interface ReplayOptions {
  /** Bytes that are asked for ahead, about. Default: as many as a fast reading needs. */
  readonly aheadBytes?: number;
  /** Time without progress after which it throws why, ms. Default `limits.journalSilenceMsMax`. */
  readonly patienceMs?: number;
}

/** What is needed to read a journal up to some record. */
export type JournalReader = Pick<Journal, "position" | "read" | "replay" | "close">;

export interface Journal {
  readonly durability: Durability;
  /** Whether a second coordinator may stand by on this journal. */
  readonly sharable: boolean;

  /** @throws UnreachableError */
  position(): Promise<JournalPosition>;

  /** Appends at `expectedSeq + 1` or not at all. Never throws: every outcome is a value.
   *  Appends may overlap; they are sent in the order of the calls. */
  append(bytes: Uint8Array, expectedSeq: number): Promise<AppendOutcome>;

  /** The record at a position, or undefined when the journal says it has none (which proves nothing
   *  about an append under way).
   *  @throws UnreachableError, JournalDamagedError */
  read(seq: number): Promise<JournalRecord | undefined>;

  /** Every record from `fromSeq` to the last one when the reading begins, in order.
   *  @throws UnreachableError; JournalDamagedError, also when `fromSeq` was purged, or at a hole */
  replay(fromSeq: number, options?: ReplayOptions): AsyncIterable<JournalRecord>;

  /** Every record from `fromSeq` on, and then each new one as it is stored, in order, without gaps, until
   *  `signal` aborts or the journal is closed (then it returns). Reconnects by itself, and waits for a journal
   *  that is shorter than what was read to be refilled.
   *  @param before the record right before `fromSeq`, where it was read
   *  @throws JournalDamagedError, also when `fromSeq` was purged, at a hole, or when what was read has been replaced */
  follow(fromSeq: number, signal: AbortSignal, before?: JournalRecord): AsyncIterable<JournalRecord>;

  /** Removes every record below `seq`, but never the last one. A journal that frees its storage in larger pieces may
   *  keep some of them: `position` says where it begins now. Idempotent; whoever was not answered asks again.
   *  @throws UnreachableError */
  purgeBelow(seq: number): Promise<void>;

  /** Removes every record up to and with `seq`, the last one, so that the next stands at `seq + 1`: for a journal that
   *  does not keep what it acknowledges. What is behind `seq`, or comes to stand there meanwhile, stays. Absent where
   *  that cannot happen.
   *  @returns whether it did; false, and nothing is removed, where the journal does not end at `seq`, as its server
   *  judges appends, or more than one server keeps it, so that another can lead it
   *  @throws UnreachableError */
  purgeThrough?(seq: number): Promise<boolean>;

  /** @throws UnreachableError */
  usage(): Promise<JournalUsage>;

  /** Releases sockets, files and locks. Appends under way end `unknown`. Idempotent. */
  close(): Promise<void>;
}
