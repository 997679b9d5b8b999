// Reads the simulated journal as it grows, folds it as a standby would, and checks the invariants after every batch.
// The truth of a run: the committed batches, whatever coordinators or clients heard.
//
// A batch is true once its segment stores it after its predecessor. The batch stays true when the store loses it: a
// coordinator with a copy continues from the batch in the next segment. A base may hold batches never stored in a
// segment, because they were in flight. So every decided batch is noted, and found again by hash.

import type { PendingBatch } from "../../coordinator/leader/writer.ts";
import { departureErrors } from "../../core/decide-agent.ts";
import { checkAfterTurn, checkInvariants } from "../../core/invariants.ts";
import { Roll } from "../../core/roll.ts";
import { Succession } from "../../core/succession.ts";
import { refOfKey, taskKey } from "../../ids.ts";
import { liveIn } from "../../journal/live.ts";
import { isSameTail } from "../../journal/log.ts";
import { type Batch, type ChainTail, decodeRecord, hashOf } from "../../journal/records.ts";
import { type LiveSegment, Replay } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";
import type { JournalPoint } from "../../protocol/journal-point.ts";
import type { Event, EventOf, EventType, TrimReason } from "../../state/event.ts";
import { capacityOf, type SwarmState } from "../../state/state.ts";
import type { Observation } from "../history/observation.ts";
import type { Habitat } from "./habitat.ts";
import type { LimitReached } from "./handler-watch.ts";
import type { Occurrence } from "./occurrences.ts";
import type { SimStream } from "./stream.ts";

/** A batch decided by a leader, with the time of its first sight, virtual ms. */
interface DecidedBatch {
  readonly bytes: Uint8Array;
  readonly decidedMs: number;
}

/** The state before a batch, as far as needed. */
interface Before {
  readonly leader: string;
  readonly term: number;
  /** Time of the decision, virtual ms. */
  readonly decidedMs: number;
}

/** Share of the journal's bound: a leader estimates the stored bytes since its last query, rather too high. */
const CROWDED_SHARE = 0.5;
/** The invariant that a leader may break while the journal is nearly full: then it assigns nothing. */
const WORK_CONSERVING = 13;
/** Longest time until a leader notices free room, however long the journal was away, ms. */
const ROOM_KNOWN_MS = 60_000;
/** Most decided batches to remember. */
const NOTED_MAX = 10_000;

export class JournalTruth {
  /** Called for every session declared lost by the journal, with the time of the decision, virtual ms. */
  onLapsed: (lapsed: EventOf<"AgentLeft">, decidedMs: number) => void = () => undefined;
  /** Called for every attempt closed by the journal for silence or at its time-out. */
  onLimitReached: (closed: LimitReached) => void = () => undefined;
  /** Batches decided by leaders and perhaps not stored. */
  pending: () => readonly PendingBatch[] = () => [];
  readonly #habitat: Habitat;
  #replay = new Replay();
  #succession = new Succession();
  #roll = new Roll();
  /** Bytes of the committed batches, in order. */
  #batches: Uint8Array[] = [];
  /** Times at which the committed batches were read, virtual ms. */
  #readMs: number[] = [];
  /** Decided batches by hash. */
  readonly #noted = new Map<string, DecidedBatch>();
  #lastEventType: EventType | undefined;
  #isBroken = false;
  #isDirty = true;
  #crowdedMs = Number.NEGATIVE_INFINITY;
  #bound = { bytesMax: Number.POSITIVE_INFINITY, seenMs: 0 };
  #foreignSinceBatch = 0;

  constructor(habitat: Habitat) {
    this.#habitat = habitat;
    habitat.onStored = () => {
      this.#isDirty = true;
    };
  }

  get state(): SwarmState {
    return this.#replay.state;
  }

  get tail(): ChainTail {
    return this.#replay.tail;
  }

  /** Type of the last event of the last batch. */
  get lastEventType(): EventType | undefined {
    return this.#lastEventType;
  }

  /** Bytes of every committed batch, from the first. */
  get batches(): readonly Uint8Array[] {
    return this.#batches;
  }

  /** The current segment. */
  get live(): LiveSegment | undefined {
    return this.#replay.live;
  }

  /** Number of the current segment; 0 before the first. */
  get segment(): number {
    return this.#replay.place?.segment ?? 0;
  }

  /** Whether the store still holds the current segment up to the last record read, without a gap. A seal or a foreign
   *  record may have taken the position of a lost record. */
  get isWhole(): boolean {
    const { place, live, recordHash } = this.#replay;
    if (place === undefined) return true;
    const stream = this.#habitat.segmentStream(place.segment);
    const last = stream?.at(place.position);
    if (stream === undefined || last === undefined || this.#hasGap(stream, place.position)) return false;
    return hashOf(last) === (recordHash === "" ? live?.openedHash : recordHash);
  }

  /** Whether the current segment is sealed. */
  get isSealed(): boolean {
    const stream = this.#habitat.segmentStream(this.segment);
    return stream?.firstOf(this.#habitat.subjects.segmentSealed(this.segment)) !== undefined;
  }

  /**
   * Every batch up to the batch with the given hash, from the first on. Undefined if the decision of any batch was
   * never seen.
   */
  logUpTo(hash: string): readonly DecidedBatch[] | undefined {
    const log: DecidedBatch[] = [];
    for (let next = hash; next !== ""; ) {
      const decided = this.#noted.get(next);
      const batch = decided && decodeRecord(decided.bytes);
      if (decided === undefined || batch?.kind !== "batch") return undefined;
      log.unshift(decided);
      next = batch.prev;
    }
    return log;
  }

  /** Points of the decided batches that a log lacks. */
  pointsBeside(log: readonly DecidedBatch[]): readonly JournalPoint[] {
    const inLog = new Set(log);
    return [...this.#noted.values()].flatMap((decided) => {
      const batch = inLog.has(decided) ? undefined : decodeRecord(decided.bytes);
      return batch?.kind === "batch" ? [{ term: batch.term, idx: batch.idx }] : [];
    });
  }

  /** Number of the last batches read after an instant, virtual ms. */
  storedSince(ms: number): number {
    const first = this.#readMs.findIndex((readMs) => readMs > ms);
    return first === -1 ? 0 : this.#readMs.length - first;
  }

  /** Notes a result for a task already assigned to another agent. */
  noteObserved(observation: Observation): void {
    if (observation.kind !== "result" || observation.answer !== "stale") return;
    const { task, attempt, outcome } = observation;
    const newest = this.state.taskById.get(refOfKey(task))?.attempt ?? 0;
    if (outcome !== "revoked" && newest > attempt)
      this.#habitat.occurrences.note("result-after-a-new-attempt");
  }

  /** Called when the store lost or changed records. */
  lost(): void {
    this.#isDirty = true;
  }

  /** Reads up to the end of the journal, cheaply if nothing is new. Returns the state at the end. */
  readOn(): SwarmState {
    for (const { hash, bytes } of this.pending()) this.#note(hash, bytes);
    if (!this.#isDirty || this.#isBroken) return this.state;
    this.#isDirty = false;
    this.#noteCrowded();
    try {
      this.#readSegment();
      for (const live of this.#following()) this.#enter(live);
    } catch (error) {
      this.#isBroken = true;
      this.#habitat.found(
        "the-journal-folds",
        error instanceof Error ? (error.stack ?? error.message) : String(error),
      );
    }
    return this.state;
  }

  // --- segments -------------------------------------------------------------------------------------

  /** Live segments after the current segment, ascending. */
  #following(): LiveSegment[] {
    const found: LiveSegment[] = [];
    for (const number of this.#habitat.segmentNumbers()) {
      if (number <= this.segment) continue;
      const live = this.liveOf(number);
      if (live !== undefined) found.push(live);
    }
    return found;
  }

  /** Undefined when a segment does not exist or is not open. */
  liveOf(number: number): LiveSegment | undefined {
    const stream = this.#habitat.segmentStream(number);
    const first = stream?.at(1);
    const claim = first && decodeRecord(first);
    const seq = stream?.firstOf(this.#habitat.subjects.segmentOpened(number));
    const bytes = seq === undefined ? undefined : stream?.at(seq);
    if (bytes === undefined || seq === undefined) return undefined;
    return liveIn({ position: seq, bytes }, { number }, claim?.kind === "claim" ? claim.session : undefined);
  }

  /** Continues the log in a live segment. */
  #enter(live: LiveSegment): void {
    const { tail } = live.opened;
    if (!isSameTail(this.tail, tail)) this.#reach(tail);
    if (!isSameTail(this.tail, tail)) {
      this.#habitat.found(
        "the-log-continues",
        `segment ${live.number} continues batch ${tail.idx}, but the log ends with batch ${this.tail.idx}`,
      );
      this.#isBroken = true;
      return;
    }
    if (this.live?.opened.term === live.opened.term) this.#habitat.occurrences.note("segment-changed");
    this.#replay.enter(live, live.position);
    this.#readSegment();
  }

  /** Takes batches held only by a base, or goes back to the point where the segment continues. */
  #reach(tail: ChainTail): void {
    const missing: Uint8Array[] = [];
    for (let hash = tail.hash; hash !== this.tail.hash; ) {
      const bytes = this.#noted.get(hash)?.bytes;
      const batch = bytes && decodeRecord(bytes);
      if (bytes === undefined || batch?.kind !== "batch") return this.#goBack(tail);
      missing.unshift(bytes);
      hash = batch.prev;
    }
    for (const bytes of missing) this.#take(bytes, this.#replay.place?.position ?? 0);
    this.#habitat.occurrences.note("committed-by-a-base");
  }

  /**
   * Drops batches after `tail`: they never counted or were lost. Answers are then checked against the remaining
   * batches.
   */
  #goBack({ idx, hash }: ChainTail): void {
    const kept = this.#batches.slice(0, idx);
    if (kept.length < idx || (idx > 0 && hashOf(kept.at(-1) ?? new Uint8Array()) !== hash)) return;
    this.#batches = [];
    this.#readMs = this.#readMs.slice(0, idx);
    this.#replay = new Replay();
    this.#succession = new Succession();
    this.#roll = new Roll();
    for (const bytes of kept) this.#refold(bytes);
    this.#succession.check(this.state); // the next batch is compared with this state
  }

  #refold(bytes: Uint8Array): void {
    const batch = decodeRecord(bytes);
    if (batch?.kind !== "batch") return;
    this.#replay.takeCommitted(batch, hashOf(bytes));
    this.#batches.push(bytes);
  }

  #readSegment(): void {
    const { place, live } = this.#replay;
    if (place === undefined || live === undefined) return;
    const stream = this.#habitat.segmentStream(place.segment);
    if (stream === undefined) return;
    const sealSeq =
      stream.firstOf(this.#habitat.subjects.segmentSealed(place.segment)) ?? Number.POSITIVE_INFINITY;
    for (let seq = place.position + 1; seq <= stream.lastSeq && seq < sealSeq && !this.#isBroken; seq += 1) {
      const bytes = stream.at(seq);
      if (bytes === undefined || stream.isDamaged(seq)) return;
      this.#takeRecord(bytes, seq, live);
    }
  }

  #takeRecord(bytes: Uint8Array, seq: number, { opened }: LiveSegment): void {
    const record = decodeRecord(bytes);
    const isNext =
      record?.kind === "batch" && record.prev === this.tail.hash && record.idx === this.tail.idx + 1;
    if (isNext && record.session === opened.session && record.term === opened.term)
      return this.#take(bytes, seq);
    this.#replay.take({ position: seq, bytes });
    this.#habitat.occurrences.note("skipped-record");
    if (record === undefined) this.#foreignSinceBatch += 1;
  }

  #hasGap(stream: SimStream, position: number): boolean {
    for (let seq = Math.max(1, position - GAP_LOOK); seq <= position; seq += 1)
      if (stream.at(seq) === undefined || stream.isDamaged(seq)) return true;
    return false;
  }

  // --- batches --------------------------------------------------------------------------------------

  #note(hash: string, bytes: Uint8Array): void {
    if (this.#noted.has(hash)) return;
    this.#noted.set(hash, { bytes, decidedMs: this.#habitat.engine.nowMs });
    if (this.#noted.size <= NOTED_MAX) return;
    const [oldest] = this.#noted.keys();
    if (oldest !== undefined) this.#noted.delete(oldest);
  }

  #noteCrowded(): void {
    const { nowMs } = this.#habitat.engine;
    const { bytes, bytesMax } = this.#habitat.usage;
    const isOld = nowMs - this.#bound.seenMs > ROOM_KNOWN_MS;
    if (isOld || bytesMax <= this.#bound.bytesMax) this.#bound = { bytesMax, seenMs: nowMs };
    if (bytes > CROWDED_SHARE * this.#bound.bytesMax) this.#crowdedMs = nowMs;
  }

  #take(bytes: Uint8Array, position: number): void {
    const batch = decodeRecord(bytes);
    if (batch?.kind !== "batch") return;
    const { leader, term } = this.state;
    const hash = hashOf(bytes);
    this.#note(hash, bytes);
    this.#replay.takeCommitted(batch, hash);
    this.#replay.continueAt(this.#replay.tail, position, hash);
    this.#batches.push(bytes);
    this.#readMs.push(this.#habitat.engine.nowMs);
    this.#lastEventType = batch.events.at(-1)?.type;
    const { pace, engine } = this.#habitat;
    const decidedMs = pace.decidedMs({ ...batch, hash }) ?? engine.nowMs;
    for (const event of batch.events) this.#noteEvent(event, { leader, term, decidedMs });
    this.#foreignSinceBatch = 0;
    this.#check(batch, bytes, hash);
  }

  #check(batch: Batch, bytes: Uint8Array, hash: string): void {
    const { state } = this;
    // Only a full turn may leave work undone, or any turn while the journal is nearly full. A batch that only renews
    // the term may be appended while turns wait.
    const [first, second] = batch.events;
    const isHeartbeat = first?.type === "TermRenewed" && second === undefined;
    const isRoomy = this.#habitat.engine.nowMs - this.#crowdedMs > ROOM_KNOWN_MS;
    const isComplete = !isHeartbeat && bytes.length < limits.turnBytesMax;
    const found = isComplete ? checkAfterTurn(state, this.#roll) : checkInvariants(state, this.#roll);
    const violations = [
      ...found.filter(({ number }) => isRoomy || number !== WORK_CONSERVING),
      ...this.#succession.check(state),
    ];
    for (const { number, name, sentence } of violations)
      this.#habitat.found(`invariant ${number} ${name}`, `after batch ${batch.idx}: ${sentence}`);
    if (violations.length > 0) this.#isBroken = true;
    const wrong = this.#habitat.pace.check({ ...batch, hash });
    if (wrong !== undefined) this.#habitat.found("journal-time-keeps-pace", wrong);
  }

  #noteEvent(event: Event, before: Before): void {
    const { occurrences } = this.#habitat;
    const occurrence = occurrenceOf(event);
    if (occurrence !== undefined) occurrences.note(occurrence);
    if (event.type === "AgentLeft" && event.reason === "lapsed") this.onLapsed(event, before.decidedMs);
    if (event.type === "AttemptFailed") this.#noteFailed(event, before.decidedMs);
    if (event.type === "AttemptFailed" || event.type === "TaskDeadLettered")
      this.#noteForbidden(event, before.decidedMs);
    if (event.type !== "TermStarted") return;
    if (before.term > 0 && before.leader !== event.leader) occurrences.note("term-begun-by-another");
    if (before.term > 0 && this.#foreignSinceBatch > 1) occurrences.note("term-begun-among-foreign");
    this.#noteFailOver();
  }

  #noteFailed(event: EventOf<"AttemptFailed">, decidedMs: number): void {
    const { attempt, agent, failure, latencyMs } = event;
    // Nobody reported such a refusal: the time ended in the wait for a resource on hold, which is named, or the agent
    // on hold had not begun the attempt.
    const isUnreported = failure.class === "refused" && event.revoked === true;
    const by = isUnreported ? (event.refusal === undefined ? "revoked" : "timed-out") : failure.class;
    const timeoutMs = this.state.taskById.get(event)?.spec.timeoutMs ?? Number.POSITIVE_INFINITY;
    if (by === "stalled" || by === "revoked" || (by === "timed-out" && latencyMs >= timeoutMs))
      this.onLimitReached({ task: taskKey(event), attempt, agent, by, timeoutMs, decidedMs });
  }

  /** The agent has not given the attempt up, and may learn later than another agent that the attempt has ended. */
  #noteForbidden(
    { attempt, agent, failure, ...ref }: EventOf<"AttemptFailed" | "TaskDeadLettered">,
    decidedMs: number,
  ): void {
    if (failure.class !== "lost" || failure.error !== departureErrors.forbidden) return;
    const task = taskKey(ref);
    this.onLimitReached({ task, attempt, agent, by: "forbidden", timeoutMs: 0, decidedMs });
  }

  #noteFailOver(): void {
    const { occurrences } = this.#habitat;
    for (const agent of this.state.agentById.values()) {
      if (agent.open.size > 0 && agent.open.size >= capacityOf(agent))
        occurrences.note("full-agent-at-fail-over");
      if (agent.confirmedNumber < agent.lastNumber) occurrences.note("unconfirmed-assignment-at-fail-over");
    }
  }
}

/** Number of records before the last record read to check for damage. */
const GAP_LOOK = 64;

const occurrenceByType: Partial<Record<EventType, Occurrence>> = {
  AgentSuspended: "agent-suspended",
  HoldPlaced: "hold-placed",
  TaskExpired: "task-expired",
  TaskCancelled: "task-cancelled",
  TaskRetried: "task-retried",
  TaskRescheduled: "task-rescheduled",
  SlotAwaited: "slot-waited-for",
  SlotRefused: "slot-refused-late",
  SlotCharged: "slot-charged-late",
  BudgetExceeded: "budget-exceeded",
};

const occurrenceByTrim: Partial<Record<TrimReason, Occurrence>> = {
  retention: "journal-trimmed",
  lost: "segment-renewed",
};

function occurrenceOf(event: Event): Occurrence | undefined {
  if (event.type === "AgentLeft" && event.reason === "lapsed") return "agent-lost";
  if (event.type === "AgentLeft" && event.reason === "forbidden") return "session-forbidden";
  if (event.type === "TaskAssigned") {
    const { decidedBy, ineligible } = event.receipt;
    if (decidedBy === "affinity") return "agent-of-an-affinity";
    return (ineligible.label ?? 0) > 0 ? "agent-without-labels" : undefined;
  }
  if (event.type === "HoldPlaced" && event.by === "refusals" && event.on === "resource")
    return "resource-refused-in-a-row";
  if (event.type === "HoldEnded") return event.reason === "probed" ? "hold-probed" : undefined;
  if (event.type === "SlotReleased" && event.reason === "idle") return "slot-taken-back-for-idleness";
  if (event.type === "AuditTrimmed") return occurrenceByTrim[event.reason];
  if (event.type === "AttemptFailed" && event.failure.class === "timed-out") return "attempt-timed-out";
  if (event.type === "AttemptFailed" && event.failure.class === "revoked") return "attempt-revoked";
  if (event.type === "TaskDeadLettered" && event.failure.class === "lost") return "poison-dead-lettered";
  return occurrenceByType[event.type];
}
