// The port of the journal: a chain of segments. A segment is an append-only log of records with one writer for its
// whole life. A segment that is sealed takes no record any more, and no segment is ever repaired (docs/fault-model.md).
// Not here: what a record means (records.ts), and which segments make up the log (log.ts).
// The one thing to know: `append` answers `unknown` whenever it cannot prove what happened. The caller resolves it by
// appending the same bytes at the same position again.

/** One stored record: its position in the segment, from 1, and its bytes. */
export interface SegmentRecord {
  readonly position: number;
  readonly bytes: Uint8Array;
}

/** The outcome of an append. */
export type AppendOutcome =
  /** Stored at exactly `expected + 1`. */
  | { readonly kind: "stored" }
  /** The segment does not end at `expected`. Nothing was stored. */
  | { readonly kind: "refused" }
  /** The segment is sealed. Nothing was stored, and nothing ever will be. */
  | { readonly kind: "sealed" }
  /** There is no such segment. Nothing was stored. */
  | { readonly kind: "missing" }
  /** No room, by a configured bound or on the disk. Nothing was stored. */
  | { readonly kind: "full"; readonly message: string }
  /** A time-out, a broken connection, an answer that proves nothing. The record may be stored, now or later. */
  | { readonly kind: "unknown"; readonly cause: unknown };

export interface AppendOptions {
  /** The record is the segment's `Opened`: `Segment.opened` finds it without reading the segment. */
  readonly isOpened?: boolean;
}

/** Where a segment ends, as its storage tells it. */
export interface SegmentEnd {
  /** Of the last record; 0 when the segment is empty. */
  readonly position: number;
  readonly bytes: number;
  readonly isSealed: boolean;
  /** Records missing from position 1 to the last one, as far as the storage knows without reading: 0 when whole. */
  readonly missing: number;
}

/** Durability in a sentence for people, and as a class for programs. */
export interface Durability {
  /** `memory` gone with the process · `file` fsynced on this disk · `page-cache` survives the process, not the power ·
   *  `replicated` on a majority of servers. */
  readonly class: "memory" | "file" | "page-cache" | "replicated";
  readonly sentence: string;
}

/** Whether an answer may lack the newest records and segments for a while: of a server that takes over from another.
 *  One server alone knows them before it takes connections. */
export function mayLag({ durability }: Pick<Journal, "durability">): boolean {
  return durability.class === "replicated";
}

/** Storage used by all segments together. */
export interface JournalUsage {
  readonly bytes: number;
  /** Undefined when unbounded. */
  readonly bytesMax: number | undefined;
  /** For people: a clause that says how to give the journal more room. */
  readonly remedy?: string;
}

export interface ReplayOptions {
  /** Position of the last record to read; a segment that ends before it is damaged. Default: the last one when the
   *  reading begins. */
  readonly until?: number;
  /** Bytes to request ahead, about. Default: as many as a fast reading needs. */
  readonly aheadBytes?: number;
  /** Time without progress after which the reading fails, ms. Default `limits.journalSilenceMsMax`. */
  readonly patienceMs?: number;
}

/** One segment of the journal. A handle: making one asks nothing of the storage. */
export interface Segment {
  /** From 1. */
  readonly number: number;

  /** Undefined when there is no such segment. @throws UnreachableError */
  end(): Promise<SegmentEnd | undefined>;

  /** Appends at `expected + 1` or not at all. Never throws: every outcome is a value. Appends may overlap; they are
   *  sent in the order of the calls. */
  append(bytes: Uint8Array, expected: number, options?: AppendOptions): Promise<AppendOutcome>;

  /** The record at a position; undefined when the storage has none there, or has no such segment. Undefined proves
   *  nothing about an append that is under way.
   *  @throws UnreachableError; JournalDamagedError when the record cannot be read */
  read(position: number): Promise<SegmentRecord | undefined>;

  /** The last record that was appended with `isOpened`. Its writer is not checked. @throws as `read` */
  opened(): Promise<SegmentRecord | undefined>;

  /** Every record from a position on, in order.
   *  @throws UnreachableError; JournalDamagedError at a record that is missing or cannot be read, and when there is no
   *  such segment */
  replay(from: number, options?: ReplayOptions): AsyncIterable<SegmentRecord>;

  /** Every record from a position on, and each new one as it is stored, in order and without gaps. Returns when the
   *  segment is sealed and read to its end, when `signal` aborts, and when the journal is closed. Reconnects by itself.
   *  @throws JournalDamagedError at a record that is missing, when the segment ends before `from - 1`, and when there
   *  is no such segment, each only after it was so for `limits.journalGapMs` */
  follow(from: number, signal: AbortSignal): AsyncIterable<SegmentRecord>;

  /** From the first `true` on every append is answered `sealed`, and the end does not move. False: there is no such
   *  segment. Idempotent; an unanswered call may have sealed. @throws UnreachableError */
  seal(): Promise<boolean>;
}

/** A segment that is only read. */
export type SegmentReader = Pick<Segment, "number" | "end" | "read" | "opened" | "replay">;

/** What reading a journal needs: every journal is one. */
export interface JournalReader {
  list(): Promise<readonly number[]>;
  segment(number: number): SegmentReader;
  close(): Promise<void>;
}

export interface Journal extends JournalReader {
  readonly durability: Durability;
  /** Whether a second coordinator may stand by on this journal. */
  readonly sharable: boolean;

  /** Numbers of the segments that exist, ascending. @throws UnreachableError */
  list(): Promise<readonly number[]>;

  segment(number: number): Segment;

  /** Creates an empty segment unless it exists. Idempotent: an unanswered call may have created it.
   *  @throws UnreachableError; WaggleError WAGGLE_JOURNAL_FULL, WAGGLE_JOURNAL_SETTINGS when a segment of that number
   *  exists with settings that a journal cannot have */
  create(number: number): Promise<void>;

  /** Removes a segment with all its records. Idempotent. @throws UnreachableError */
  remove(number: number): Promise<void>;

  /** @throws UnreachableError */
  usage(): Promise<JournalUsage>;

  /** Calls `listener` when the storage can be reached again after it could not. Returns a function that stops it. */
  onReconnected(listener: () => void): () => void;

  /** Releases sockets, files and locks. Appends under way end `unknown`. Idempotent. */
  close(): Promise<void>;
}
