// Checks a journal from its first kept batch to its end, from the bytes alone. Checked are the hash chain, the indices,
// the terms, and the beginning of each segment. Each base is compared with the state that the batches make.
//
// A batch carries the hash of the batch before. A changed batch therefore no longer fits its successor, and a missing
// batch leaves a gap. Only the newest batch has no successor: a signed head (audit/signed-head.ts) protects the end.
//
// Where records of a segment cannot be read, the check continues at the next base. The batches between are a gap. If
// the journal says that they were lost (`AuditTrimmed`), the gap is no fault.
//
// Changes nothing. Stops at any other fault.

import type { Clock } from "../../clock.ts";
import { encodeState } from "../../core/snapshot/encode.ts";
import { JournalDamagedError } from "../../errors.ts";
import { baseLines, readBase } from "../../journal/base.ts";
import { claimantOf } from "../../journal/inspect.ts";
import type { JournalReader, SegmentRecord } from "../../journal/journal.ts";
import { withoutRemedy } from "../../journal/journal-errors.ts";
import { findLive, openSegment } from "../../journal/live.ts";
import { isSameTail, recordsOfLog } from "../../journal/log.ts";
import {
  type Batch,
  type BatchHeader,
  type ChainTail,
  decodeBatchHeader,
  decodeRecord,
  hashOf,
} from "../../journal/records.ts";
import { type LiveSegment, Replay, UnfitBatchError, type Verdict } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";
import { Slices } from "../../slices.ts";
import type { Event, GivenUpBatches } from "../../state/event.ts";
import type { SwarmState } from "../../state/state.ts";
import { type Difference, differencesOf } from "./difference.ts";
import { LineDigest } from "./line-digest.ts";

/** Why the journal cannot be trusted from a batch on. */
export interface Fault {
  /** - `changed`: a batch is not as it was written.
   *  - `missing`: a batch is gone.
   *  - `unfit`: a batch contradicts the batches before.
   *  - `base`: the stored state is not the state that the batches make.
   *  - `beginning`: the first records of a segment do not fit the segment before.
   *  - `unreadable`: the storage cannot return a record. */
  readonly kind: "changed" | "missing" | "unfit" | "base" | "beginning" | "unreadable";
  readonly segment: number;
  /** Undefined if the fault concerns no single record. */
  readonly position?: number;
  /** The first bad batch. Undefined if the fault concerns no batch. */
  readonly idx?: number;
  /** A sentence for people. */
  readonly text: string;
  /** The events of the first bad batch as they stand in the journal, if readable. */
  readonly events?: readonly Event[];
  /** What was changed. Undefined unless a copy of the batch was found in the next segment. */
  readonly differences?: readonly Difference[];
}

/** Batches that cannot be read in order. A base holds the state after them. */
export interface Gap {
  readonly from: number;
  readonly to: number;
  /** The journal itself says that the batches are lost (`AuditTrimmed`). */
  readonly isAdmitted: boolean;
  /** The unreadable record, in a sentence for people. Undefined if the segments end before the batches. */
  readonly text?: string;
}

export interface Recovered extends GivenUpBatches {
  /** The batch that records the recovery, and its term: the lost batches were of earlier terms. */
  readonly idx: number;
  readonly term: number;
}

export interface Verification {
  /** Identity of the journal. */
  readonly journal: string;
  readonly segments: readonly number[];
  /** The first batch that was checked. */
  readonly firstIdx: number;
  /** The newest batch read. With a fault the journal is good up to the batch before `fault.idx`. */
  readonly tail: ChainTail;
  /** Journal time of `tail`, ms since 1970. */
  readonly at: number;
  readonly batches: number;
  readonly events: number;
  /** Bases whose state was compared with the batches before. */
  readonly basesCompared: number;
  /** Bases without the batches before, which retention removed or a storage lost. Their bytes were checked. Their state
   *  could not be compared. */
  readonly basesTaken: number;
  /** Records that no coordinator of the journal wrote. Readers skip them. */
  readonly foreign: number;
  readonly gaps: readonly Gap[];
  /** Recoveries by an operator, who gave up later batches. No fault: the log continues before them. */
  readonly recoveries: readonly Recovered[];
  /** Undefined if the journal is as it was written, beside the gaps. */
  readonly fault: Fault | undefined;
}

export interface VerifyDeps {
  readonly journal: JournalReader;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
  /** Called after each slice of work. */
  readonly onProgress?: (progress: {
    readonly segment: number;
    readonly last: number;
    readonly idx: number;
  }) => void;
  /** Called for each batch that continues the log, in order. */
  readonly onBatch?: (batch: Batch, hash: string) => void;
  /** Called when the log continues from a base, because no batches before it are kept. The state changes afterwards. */
  readonly onBase?: (state: Readonly<SwarmState>) => void;
}

/** Undefined if the journal has no live segment. @throws UnreachableError; the signal's reason */
export async function verifyJournal(deps: VerifyDeps): Promise<Verification | undefined> {
  const { numbers, live } = await findLive(deps.journal);
  return live === undefined ? undefined : await new Verifier(deps, new Set(numbers)).run(live);
}

/** Whether the state before the first batch of a segment is known from the segment alone. */
function hasBeginning({ opened }: LiveSegment): boolean {
  return opened.base !== undefined || opened.tail.idx === 0;
}

/** The storage lost records. Any other fault is a change. */
function isLoss({ kind }: Fault): boolean {
  return kind === "missing" || kind === "unreadable";
}

/** Records that cannot be read, and the first batch after the last batch read. */
interface Loss {
  readonly from: number;
  readonly fault: Fault;
}

class FaultFound extends Error {
  readonly fault: Fault;

  constructor(fault: Fault, options?: ErrorOptions) {
    super(fault.text, options);
    this.fault = fault;
  }
}

class Verifier {
  readonly #deps: VerifyDeps;
  /** Ascending. */
  readonly #kept: ReadonlySet<number>;
  readonly #slices: Slices;
  #path: readonly LiveSegment[] = [];
  #log = new Replay();
  #firstIdx = 1;
  #batches = 0;
  #events = 0;
  #basesCompared = 0;
  #basesTaken = 0;
  /** Met before the log was read anew from a base. */
  #foreignBefore = 0;
  readonly #gaps: { from: number; to: number; fault?: Fault }[] = [];
  readonly #recoveries: Recovered[] = [];
  /** By the next segment of the path: the segment before cannot be entered. */
  readonly #unenteredBefore = new Map<number, Fault>();
  /** Until the log continues in a later segment. */
  #loss: Loss | undefined;
  /** The newest batch applied from a segment. */
  #last: { readonly batch: Batch; readonly segment: number; readonly position: number } | undefined;
  /** The fault if the batches before a stored batch never appear. */
  #ahead: Fault | undefined;
  /** Digest of the folded state at the batch of the next segment's base. */
  #foldedAtBase: LineDigest | undefined;

  constructor(deps: VerifyDeps, kept: ReadonlySet<number>) {
    this.#deps = deps;
    this.#kept = kept;
    this.#slices = new Slices(deps.clock, limits.baseSliceMs);
  }

  async run(live: LiveSegment): Promise<Verification> {
    let fault: Fault | undefined;
    try {
      await this.#walk(live);
    } catch (error) {
      fault = faultOf(error, this.#log, live);
    }
    const { state, tail, foreign } = this.#log;
    const gaps = this.#gaps.map((gap) => ({ ...gap, isAdmitted: state.auditFirstIdx > gap.to }));
    return {
      journal: live.opened.journal,
      segments: this.#path.map(({ number }) => number),
      firstIdx: this.#firstIdx,
      tail,
      at: state.at,
      batches: this.#batches,
      events: this.#events,
      basesCompared: this.#basesCompared,
      basesTaken: this.#basesTaken,
      foreign: this.#foreignBefore + (foreign?.count ?? 0),
      recoveries: this.#recoveries,
      gaps: gaps.map(({ fault: { text } = {}, ...gap }) => ({
        ...gap,
        ...(text === undefined ? {} : { text }),
      })),
      fault:
        gaps.find((gap) => !gap.isAdmitted && gap.fault !== undefined)?.fault ?? this.#loss?.fault ?? fault,
    };
  }

  async #walk(live: LiveSegment): Promise<void> {
    const path = await this.#pathTo(live);
    this.#path = path;
    const first = Math.max(0, path.findIndex(hasBeginning));
    for (const [at, segment] of path.entries()) {
      const next = path[at + 1];
      const unentered = this.#unenteredBefore.get(segment.number);
      if (unentered !== undefined) this.#loss ??= { from: this.#log.tail.idx + 1, fault: unentered };
      if (this.#loss !== undefined && segment.opened.base === undefined) continue;
      try {
        await this.#checkClaim(segment);
        if (at < first) await this.#checkChain(segment, next);
        else if (at === first) await this.#begin(segment);
        else await this.#continueIn(segment);
        if (at >= first) await this.#readBatches(segment, next);
      } catch (error) {
        this.#lose(error, segment);
      }
    }
    if (first > 0) this.#noteEarlier(path[0]);
  }

  /** The check continues at the next base. @throws the error if it shows no loss */
  #lose(error: unknown, segment: LiveSegment): void {
    const fault = faultOf(error, this.#log, segment);
    if (!isLoss(fault)) throw error;
    const { idx: from = Math.max(this.#log.tail.idx, segment.opened.tail.idx) + 1 } = fault;
    this.#loss ??= { from, fault: { ...fault, idx: from } };
    this.#ahead = undefined;
  }

  /** The chain of kept segments, oldest first. A segment that cannot be entered is left out. */
  async #pathTo(live: LiveSegment): Promise<readonly LiveSegment[]> {
    const path = [live];
    for (let first = live; ; ) {
      const { previous } = first.opened;
      if (previous === undefined || !this.#kept.has(previous.segment)) return path;
      const before = await this.#openUpTo(previous.segment);
      if (before?.number !== previous.segment)
        this.#unenteredBefore.set(first.number, {
          kind: "beginning",
          segment: previous.segment,
          text: `segment ${previous.segment} cannot be entered: its first record or its \`Opened\` was changed or lost`,
        });
      if (before === undefined) return path;
      path.unshift(before);
      first = before;
    }
  }

  /** The newest kept segment up to a number that can be entered. */
  async #openUpTo(number: number): Promise<LiveSegment | undefined> {
    for (const kept of [...this.#kept].reverse()) {
      const segment = kept > number ? undefined : await openSegment(this.#deps.journal.segment(kept));
      if (segment !== undefined) return segment;
    }
    return undefined;
  }

  // --- the beginning of a segment -------------------------------------------------------------------

  async #checkClaim(segment: LiveSegment): Promise<void> {
    const claimant = await claimantOf(this.#deps.journal.segment(segment.number));
    if (claimant === segment.opened.session) return;
    throw new FaultFound({
      kind: claimant === undefined ? "unreadable" : "beginning",
      segment: segment.number,
      position: 1,
      text: `the first record of segment ${segment.number} is no claim of its writer: the record was changed or lost`,
    });
  }

  async #begin(segment: LiveSegment): Promise<void> {
    const { opened, number } = segment;
    if (opened.base !== undefined) {
      await this.#readFromBase(segment);
      this.#firstIdx = this.#log.tail.idx + 1;
      if (this.#loss !== undefined) this.#noteGap(this.#loss.from, opened.base.idx);
      await this.#enter(segment);
      return;
    }
    if (opened.tail.idx > 0)
      throw new FaultFound({
        kind: "missing",
        segment: number,
        idx: opened.tail.idx,
        text: `the journal begins with batch ${opened.tail.idx + 1}, and neither a base nor a segment holds what was before`,
      });
    this.#log.enter(segment, segment.position);
  }

  /** Retention may keep a segment without its predecessors and without a base. Its state is unknown; its hashes are
   *  checked. */
  async #checkChain({ number, opened, position }: LiveSegment, next: LiveSegment | undefined): Promise<void> {
    let { idx, hash }: Pick<ChainTail, "idx" | "hash"> = opened.tail;
    const endIdx = next?.opened.tail.idx ?? Number.POSITIVE_INFINITY;
    for await (const record of this.#deps.journal.segment(number).replay(position + 1)) {
      if (idx >= endIdx) break;
      const header = decodeBatchHeader(record.bytes);
      if (header?.journal !== opened.journal || header.session !== opened.session || header.idx !== idx + 1)
        continue;
      if (header.prev !== hash)
        throw this.#fault("changed", {
          ...{ segment: number, position: record.position, idx },
          text: `batch ${idx} was changed: its hash differs from the hash in batch ${header.idx}`,
        });
      idx = header.idx;
      hash = hashOf(record.bytes);
    }
    const previous = next?.opened.previous;
    if (previous === undefined || (previous.idx === idx && previous.hash === hash)) return;
    const isMissing = previous.idx > idx;
    const text = isMissing
      ? `batch ${idx + 1} is missing from segment ${number}, or was changed`
      : `batch ${idx} was changed: its hash differs from the hash in segment ${next?.number}`;
    throw this.#fault(isMissing ? "missing" : "changed", {
      segment: number,
      idx: isMissing ? idx + 1 : idx,
      text,
    });
  }

  /** Batches before the first kept segment are missing, unless the journal says that they are trimmed. */
  #noteEarlier(first: LiveSegment | undefined): void {
    const { auditFirstIdx } = this.#log.state;
    const to = first?.opened.tail.idx ?? 0;
    if (auditFirstIdx <= to) this.#gaps.unshift({ from: auditFirstIdx, to });
  }

  #noteGap(from: number, to: number): void {
    this.#gaps.push({ from, to, ...(this.#loss === undefined ? {} : { fault: this.#loss.fault }) });
  }

  /** A segment without kept predecessors: its state cannot be compared. */
  async #readFromBase(segment: LiveSegment): Promise<void> {
    this.#foreignBefore += this.#log.foreign?.count ?? 0;
    this.#log = await this.#ofBase(segment, () =>
      readBase(this.#deps.journal.segment(segment.number), segment, this.#deps.clock),
    );
    this.#basesTaken += 1;
    this.#deps.onBase?.(this.#log.state);
  }

  async #continueIn(segment: LiveSegment): Promise<void> {
    const { opened, number } = segment;
    const { previous, base } = opened;
    const { tail } = this.#log;
    if (previous !== undefined && previous.idx === tail.idx && previous.hash !== tail.hash)
      throw await this.#changed(previous.hash, `segment ${number}`);
    await this.#compareBase(segment);
    if (base !== undefined && base.idx > this.#log.tail.idx) {
      this.#noteGap(this.#loss?.from ?? this.#log.tail.idx + 1, base.idx);
      await this.#readFromBase(segment);
    }
    await this.#enter(segment);
  }

  /** Reads the copies of batches, and continues behind the `Opened`. */
  async #enter(segment: LiveSegment): Promise<void> {
    const { opened, number } = segment;
    await this.#readCopies(segment);
    if (isSameTail(this.#log.tail, opened.tail)) {
      this.#ahead = undefined; // never committed
      this.#loss = undefined; // the log is whole again, from a base or from copies
      return this.#log.enter(segment, segment.position);
    }
    const { idx } = this.#log.tail;
    if (this.#ahead !== undefined && opened.tail.idx > idx) throw new FaultFound(this.#ahead);
    throw new FaultFound({
      kind: opened.tail.idx > idx ? "missing" : "beginning",
      segment: number,
      idx: Math.min(idx, opened.tail.idx) + 1,
      text: `segment ${number} continues batch ${opened.tail.idx}, and the log before it ends at batch ${idx}`,
    });
  }

  /** Batches copied behind a base. If the storage lost the originals, the log continues with the copies. */
  async #readCopies(segment: LiveSegment): Promise<void> {
    for await (const { record, batch } of this.#copies(segment)) {
      const hash = hashOf(record.bytes);
      const { tail, recent } = this.#log;
      if (batch.idx <= tail.idx) {
        const original = recent.at(batch.idx);
        if (original === undefined || original === hash) continue;
        throw new FaultFound({
          kind: "beginning",
          segment: segment.number,
          position: record.position,
          idx: batch.idx,
          text: `segment ${segment.number} holds a copy of batch ${batch.idx} that differs from the batch`,
        });
      }
      if (batch.idx === tail.idx + 1 && batch.prev === tail.hash) {
        this.#log.takeCommitted(batch, hash);
        this.#count(batch, hash, segment.number, record.position);
      }
    }
  }

  async *#copies({ number, opened, position }: LiveSegment): AsyncGenerator<{
    readonly record: SegmentRecord;
    readonly batch: Batch;
  }> {
    const from = (opened.base?.position ?? 1) + 1;
    if (from >= position) return;
    for await (const record of this.#deps.journal.segment(number).replay(from, { until: position - 1 })) {
      const batch = decodeRecord(record.bytes);
      if (batch?.kind === "batch" && batch.journal === opened.journal) yield { record, batch };
    }
  }

  async #compareBase(segment: LiveSegment): Promise<void> {
    const { base } = segment.opened;
    const folded = this.#foldedAtBase;
    this.#foldedAtBase = undefined;
    if (base === undefined || base.idx > this.#log.tail.idx) return;
    const stored = new LineDigest();
    const reader = this.#deps.journal.segment(segment.number);
    await this.#ofBase(segment, async () => {
      for await (const lines of baseLines(reader, base)) for (const line of lines) stored.add(line);
    });
    if (folded === undefined) {
      this.#basesTaken += 1;
      return;
    }
    if (stored.equals(folded)) {
      this.#basesCompared += 1;
      return;
    }
    throw new FaultFound({
      kind: "base",
      segment: segment.number,
      position: base.position,
      idx: base.idx,
      text: `the base of segment ${segment.number} is not the state that the batches up to ${base.idx} make`,
    });
  }

  async #ofBase<Read>({ number }: LiveSegment, read: () => Promise<Read>): Promise<Read> {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof JournalDamagedError)) throw error;
      throw new FaultFound(
        { kind: "base", segment: number, text: withoutRemedy(error.message) },
        { cause: error },
      );
    }
  }

  // --- batches --------------------------------------------------------------------------------------

  async #readBatches(segment: LiveSegment, next: LiveSegment | undefined): Promise<void> {
    this.#noteState(next);
    for await (const record of recordsOfLog(this.#log, next, this.#deps.journal)) {
      await this.#read(record, segment);
      await this.#requireKnownHash(next);
      this.#noteState(next);
      if (this.#slices.isOver) await this.#pause(segment);
    }
  }

  async #pause({ number }: LiveSegment): Promise<void> {
    const { signal, onProgress } = this.#deps;
    signal?.throwIfAborted();
    onProgress?.({ segment: number, last: this.#path.at(-1)?.number ?? number, idx: this.#log.tail.idx });
    await this.#slices.pause();
  }

  async #read(record: SegmentRecord, segment: LiveSegment): Promise<void> {
    const header = decodeBatchHeader(record.bytes);
    const { opened, number } = segment;
    const { tail, recent } = this.#log;
    const isOwn =
      header !== undefined &&
      header.journal === opened.journal &&
      header.session === opened.session &&
      header.term === opened.term;
    const isNext = isOwn && header.idx === tail.idx + 1 && header.prev === tail.hash;
    const isAhead = isOwn && header.idx > tail.idx + 1;
    if (isAhead) this.#noteAhead(record, header, segment);
    else if (isOwn && !isNext && recent.at(header.idx) !== hashOf(record.bytes))
      throw await this.#broken(record, header, segment);
    const verdict = this.#taken(record);
    if (verdict.kind === "applied") {
      this.#count(verdict.batch, this.#log.tail.hash, number, record.position);
      this.#ahead = undefined;
    } else if (isNext)
      throw new FaultFound({
        kind: "unreadable",
        segment: number,
        position: record.position,
        idx: header.idx,
        text: `batch ${header.idx} cannot be decoded`,
      });
  }

  #count(batch: Batch, hash: string, segment: number, position: number): void {
    this.#batches += 1;
    this.#events += batch.events.length;
    this.#last = { batch, segment, position };
    for (const event of batch.events)
      if (event.type === "AuditTrimmed" && event.givenUp !== undefined)
        this.#recoveries.push({ idx: batch.idx, term: batch.term, ...event.givenUp });
    this.#deps.onBatch?.(batch, hash);
  }

  /** The next segment names the hashes of the last batches before it. */
  async #requireKnownHash(next: LiveSegment | undefined): Promise<void> {
    if (next === undefined) return;
    const { tail, recent } = next.opened;
    const { idx, hash } = this.#log.tail;
    if (idx > tail.idx || idx <= tail.idx - recent.length) return;
    const known = recent.at(idx - tail.idx - 1);
    if (known !== undefined && known !== hash) throw await this.#changed(known, `segment ${next.number}`);
  }

  #noteState(next: LiveSegment | undefined): void {
    if (next?.opened.base?.idx !== this.#log.tail.idx || this.#foldedAtBase !== undefined) return;
    const digest = new LineDigest();
    for (const line of encodeState(this.#log.state)) digest.add(line);
    this.#foldedAtBase = digest;
  }

  // --- faults ---------------------------------------------------------------------------------------

  /** A record of another program may take the position of a batch in flight, and the next batch in flight is stored.
   *  The writer then stores all of them again. A batch is missing only if no later record brings the batch. */
  #noteAhead({ position }: SegmentRecord, { idx }: BatchHeader, { number }: LiveSegment): void {
    const from = this.#log.tail.idx + 1;
    const which = idx === from + 1 ? `batch ${from} is` : `batches ${from} to ${idx - 1} are`;
    const text = `${which} missing before batch ${idx}, or can no longer be decoded`;
    this.#ahead ??= { kind: "missing", segment: number, position, idx: from, text };
  }

  /** @throws FaultFound if more batches are missing than a writer has in flight */
  #taken(record: SegmentRecord): Verdict {
    try {
      return this.#log.take(record);
    } catch (error) {
      if (!(error instanceof JournalDamagedError) || this.#ahead === undefined) throw error;
      throw new FaultFound(this.#ahead, { cause: error });
    }
  }

  /** The fault shown by a batch of the segment's writer that does not continue the log. */
  async #broken(record: SegmentRecord, header: BatchHeader, segment: LiveSegment): Promise<FaultFound> {
    const { tail } = this.#log;
    const { number } = segment;
    const { position } = record;
    const { idx } = header;
    if (idx <= tail.idx)
      return this.#fault("changed", {
        ...{ segment: number, position, idx },
        text: `segment ${number} holds a second batch ${idx}`,
      });
    const isProven = await this.#isContinued(record, header, segment);
    if (isProven !== false || this.#last === undefined)
      return await this.#changed(header.prev, `batch ${idx}`);
    const text = `batch ${idx} was changed: neither the batch before nor the batch after fits its bytes`;
    return this.#fault("changed", { segment: number, position, idx, text }, record);
  }

  /** Whether the next batch of the writer continues a batch; undefined if no batch follows. */
  async #isContinued(
    { position, bytes }: SegmentRecord,
    { idx, session, term }: BatchHeader,
    { number }: LiveSegment,
  ): Promise<boolean | undefined> {
    try {
      for await (const record of this.#deps.journal.segment(number).replay(position + 1)) {
        const header = decodeBatchHeader(record.bytes);
        if (header?.session !== session || header.term !== term || header.idx !== idx + 1) continue;
        return header.prev === hashOf(bytes);
      }
    } catch (error) {
      if (!(error instanceof JournalDamagedError)) throw error;
    }
    return undefined;
  }

  /** The newest batch read is not the batch with `hash`, which a later record names. */
  async #changed(hash: string, witness: string): Promise<FaultFound> {
    const last = this.#last;
    const idx = this.#log.tail.idx;
    const text = `batch ${idx} was changed: its hash differs from the hash in ${witness}`;
    if (last === undefined) return this.#fault("changed", { segment: this.#path[0]?.number ?? 0, idx, text });
    const { segment, position, batch } = last;
    const original = await this.#copyOf(idx, hash, segment);
    return new FaultFound({
      ...{ kind: "changed", segment, position, idx, text, events: batch.events },
      ...(original === undefined ? {} : { differences: differencesOf(original, batch) }),
    });
  }

  /** The copy of a batch in a later segment. */
  async #copyOf(idx: number, hash: string, segment: number): Promise<Batch | undefined> {
    for (const later of this.#path) {
      if (later.number <= segment) continue;
      for await (const { record, batch } of this.#copies(later))
        if (batch.idx === idx && hashOf(record.bytes) === hash) return batch;
    }
    return undefined;
  }

  #fault(
    kind: Fault["kind"],
    fault: Omit<Fault, "kind" | "events" | "differences">,
    record?: SegmentRecord,
  ): FaultFound {
    const batch = record === undefined ? undefined : decodeRecord(record.bytes);
    return new FaultFound({ kind, ...fault, ...(batch?.kind === "batch" ? { events: batch.events } : {}) });
  }
}

/** @throws the error if it is no fault of the journal */
function faultOf(error: unknown, { place, tail }: Replay, live: LiveSegment): Fault {
  if (error instanceof FaultFound) return error.fault;
  if (!(error instanceof JournalDamagedError)) throw error;
  const at =
    place === undefined ? { segment: live.number } : { segment: place.segment, position: place.position };
  const text = withoutRemedy(error.message);
  if (error instanceof UnfitBatchError) return { kind: "unfit", ...at, idx: tail.idx + 1, text };
  return {
    kind: "unreadable",
    ...at,
    ...(place === undefined ? {} : { position: place.position + 1 }),
    text,
  };
}
