// The port of the journal: a chain of segments. A segment is an append-only sequence of records with exactly one
// writer. A sealed segment takes no more records, and no segment is ever repaired (docs/fault-model.md).
// Not here: what a record means (records.ts), and which segments make up the log (log.ts).
// The one thing to know: `append` answers `unknown` whenever it cannot prove what happened. The caller resolves it by
// appending the same bytes at the same position again.

/** One stored record: position in the segment, from 1, and bytes. */
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
  /** The segment does not exist. Nothing was stored. */
  | { readonly kind: "missing" }
  /** No space left: a configured bound or the disk is full. Nothing was stored. */
  | { readonly kind: "full"; readonly message: string }
  /** A time-out, a broken connection, or an inconclusive answer. The record may be stored, now or later. */
  | { readonly kind: "unknown"; readonly cause: unknown };

export interface AppendOptions {
  /** The record is the segment's `Opened`: `Segment.opened` finds it without reading the segment. */
  readonly isOpened?: boolean;
}

/** The end of a segment, as the storage reports it. */
export interface SegmentEnd {
  /** Position of the last record; 0 when the segment is empty. */
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

/** True if answers may lack the newest records and segments for a while, as during a failover in a cluster.
 *  A single server knows all records before it accepts connections. */
export function mayLag({ durability }: Pick<Journal, "durability">): boolean {
  return durability.class === "replicated";
}

/** Storage used by all segments together. */
export interface JournalUsage {
  readonly bytes: number;
  /** Undefined when unbounded. */
  readonly bytesMax: number | undefined;
  /** For people: a clause on how to give the journal more space. */
  readonly remedy?: string;
}

export interface ReplayOptions {
  /** Position of the last record to read; a shorter segment is damaged. Default: the last record at the begin of the
   *  reading. */
  readonly until?: number;
  /** Bytes to request ahead, about. Default: as many as a fast reading needs. */
  readonly aheadBytes?: number;
  /** The reading fails after no progress for so many ms. Default `limits.journalSilenceMsMax`. */
  readonly patienceMs?: number;
}

/** One segment of the journal. A handle: making one asks nothing of the storage. */
export interface Segment {
  /** From 1. */
  readonly number: number;

  /** Undefined if the segment does not exist. @throws UnreachableError */
  end(): Promise<SegmentEnd | undefined>;

  /** Appends at `expected + 1` or not at all. Never throws: every outcome is a value. Appends may overlap and are sent
   *  in the order of the calls. An append counts only once all earlier appends are stored: a later one may be stored
   *  behind a seal. */
  append(bytes: Uint8Array, expected: number, options?: AppendOptions): Promise<AppendOutcome>;

  /** The record at a position. Undefined if the storage has no record there, or the segment does not exist. Undefined
   *  proves nothing about an append in flight.
   *  @throws UnreachableError; JournalDamagedError if the record is unreadable */
  read(position: number): Promise<SegmentRecord | undefined>;

  /** The last record appended with `isOpened`, without a check of the writer. @throws as `read` */
  opened(): Promise<SegmentRecord | undefined>;

  /** Every record from a position on, in order.
   *  @throws UnreachableError; JournalDamagedError at a missing or unreadable record, and if the segment does not
   *  exist */
  replay(from: number, options?: ReplayOptions): AsyncIterable<SegmentRecord>;

  /** Every record from a position on, then each new record, in order and without gaps. Reconnects by itself. Returns
   *  after the last record of a sealed segment, when `signal` aborts, and when the journal is closed.
   *  @throws JournalDamagedError for a missing record, a segment that ends before `from - 1`, and a missing segment,
   *  each only after it lasted `limits.journalGapMs` */
  follow(from: number, signal: AbortSignal): AsyncIterable<SegmentRecord>;

  /** After the first `true` the end does not move, and the append behind it is answered `sealed`. If the storage lost
   *  the last record, one append in its position may be answered `stored` and never counts. False: the segment does not
   *  exist. Idempotent; a call without an answer may have sealed. @throws UnreachableError */
  seal(): Promise<boolean>;
}

/** Read access to a segment. */
export type SegmentReader = Pick<Segment, "number" | "end" | "read" | "opened" | "replay">;

/** Read access to a journal. */
export interface JournalReader {
  list(): Promise<readonly number[]>;
  segment(number: number): SegmentReader;
  close(): Promise<void>;
}

export interface Journal extends JournalReader {
  readonly durability: Durability;
  /** Whether a second coordinator may stand by on this journal. */
  readonly sharable: boolean;

  /** Numbers of all existing segments, ascending. @throws UnreachableError */
  list(): Promise<readonly number[]>;

  segment(number: number): Segment;

  /** Creates an empty segment unless it exists. Idempotent; a call without an answer may have created the segment.
   *  @throws UnreachableError; WaggleError WAGGLE_JOURNAL_FULL, WAGGLE_JOURNAL_SETTINGS if the segment exists with
   *  unsuitable settings */
  create(number: number): Promise<void>;

  /** Removes a segment and all records in it. Idempotent. @throws UnreachableError */
  remove(number: number): Promise<void>;

  /** @throws UnreachableError */
  usage(): Promise<JournalUsage>;

  /** Calls `listener` each time the storage becomes reachable again. Returns a function to unsubscribe. */
  onReconnected(listener: () => void): () => void;

  /** Releases sockets, files and locks. Appends in flight end `unknown`. Idempotent. */
  close(): Promise<void>;
}
