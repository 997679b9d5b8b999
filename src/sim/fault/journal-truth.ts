// Reads the simulated journal as it is written, folds it as any standby would, and checks the invariants after every
// batch. The truth of a run: what is stored, whoever was told so.

import type { PendingBatch } from "../../coordinator/append/sends.ts";
import { checkAfterTurn, checkInvariants } from "../../core/invariants.ts";
import { Roll } from "../../core/roll.ts";
import { Succession } from "../../core/succession.ts";
import { refOfKey, taskKey } from "../../ids.ts";
import { type Batch, decodeBatch, hashOf } from "../../journal/batch.ts";
import type { JournalRecord } from "../../journal/journal.ts";
import { type ChainPosition, foldedBehind, Replay } from "../../journal/replay.ts";
import { decodeManifest } from "../../journal/snapshot/manifest.ts";
import { limits } from "../../limits.ts";
import { subjectsOf } from "../../protocol/subjects.ts";
import type { Event, EventOf, EventType, TrimReason } from "../../state/event.ts";
import { placesOf, type SwarmState } from "../../state/state.ts";
import type { Observation } from "../history/observation.ts";
import type { Habitat } from "./habitat.ts";
import type { LimitReached } from "./handler-watch.ts";
import type { Occurrence } from "./occurrences.ts";

/** How it was before a batch. */
interface Before {
  readonly leader: string;
  readonly term: number;
  /** When the batch was decided, virtual ms. */
  readonly decidedMs: number;
}

/** Of a stream: a leader counts what it stored since it asked, and rather too much. */
const CROWDED_SHARE = 0.5;
/** The invariant that a leader may break while there is hardly any room: nothing is assigned then. */
const WORK_CONSERVING = 13;
/** A leader knows by then that there is room, however long the journal was away, ms. */
const ROOM_KNOWN_MS = 60_000;

export class JournalTruth {
  readonly #habitat: Habitat;
  #replay = new Replay();
  #succession = new Succession();
  #roll = new Roll();
  /** Told of every life of an agent that the journal counts as lost, and when that was decided, virtual ms. */
  onLapsed: (lapsed: EventOf<"AgentLeft">, decidedMs: number) => void = () => undefined;
  /** Told of every attempt that the journal closes for its silence, or at its time-out, which is over by journal
   *  time. */
  onLimitReached: (closed: LimitReached) => void = () => undefined;
  /** What leaders have decided that may not be stored. */
  pending: () => readonly PendingBatch[] = () => [];
  /** In the order in which they were stored. */
  readonly #records: JournalRecord[] = [];
  /** Those of them that stand in the journal, or did until they were purged, by sequence. */
  readonly #standing: JournalRecord[] = [];
  /** When each of those was stored, virtual ms. */
  readonly #readMs: number[] = [];
  /** From which record on it is not known whether the journal still has what it had. */
  #doubtedSeq: number | undefined;
  /** Up to which batch of the last end that was lost for good; 0 where there was none. */
  #savedIdx = 0;
  /** Nobody has gone on behind that yet. */
  #isEndLost = false;
  /** An end was lost that may come back; or a leader that cannot put it back, or believes so of a server that lags,
   *  saves its state and goes on in its place. */
  #mayBeSaved = false;
  /** What leaders have decided since an end or records within were lost, by its hash: a snapshot of it makes it
   *  durable, though it stands nowhere. */
  readonly #decidedByHash = new Map<string, Uint8Array>();
  /** Hashes of those of them that stood in the journal before. */
  readonly #stoodBefore = new Set<string>();
  /** Behind a hole that nobody has rescued yet. */
  #unrescuedSeq: number | undefined;
  #aliensSinceBatch = 0;
  #isBroken = false;
  /** Where the journal began when it was read last. */
  #firstSeq = 1;
  /** When there was last so little room in it that a leader may have taken it for tight, virtual ms. */
  #crowdedMs = Number.NEGATIVE_INFINITY;
  /** The least that it was bounded to lately, and when it last was: a leader may not know of more yet. */
  #bound = { bytesMax: Number.POSITIVE_INFINITY, seenMs: 0 };

  constructor(habitat: Habitat) {
    this.#habitat = habitat;
  }

  get state(): SwarmState {
    return this.#replay.state;
  }

  /** Of the last batch. */
  get lastEventType(): EventType | undefined {
    return this.#replay.lastEventType;
  }

  get position(): ChainPosition {
    return this.#replay.position;
  }

  /** Whether its last record is the last batch: none behind it is dead. */
  get endsWithBatch(): boolean {
    return this.#replay.places.seqOf(this.state.idx) === this.#standing.length;
  }

  /** Up to which batch nothing is left of an end of the journal but what was made of it; 0 where none was lost so. */
  get savedIdx(): number {
    return this.#savedIdx;
  }

  /** Whether another batch than that has its index; false where that is not known. */
  isOfAnotherLine({ idx, hash }: Pick<ChainPosition, "idx" | "hash">): boolean {
    return this.#replay.places.isBatch(idx, hash) === false;
  }

  /** Where the last batch stands, or stood, at or before a record; undefined where none does. */
  batchSeqUntil(seq: number): number | undefined {
    const { places } = this.#replay;
    const idx = places.lastUntil(seq);
    return idx && places.seqOf(idx);
  }

  /** Everything that was ever stored and not replaced, from the first record on, though it be purged, or lost. */
  get records(): readonly JournalRecord[] {
    return this.#records;
  }

  /** Whether the journal has what it had, or a snapshot stands for it. */
  get isWhole(): boolean {
    return this.#doubtedSeq === undefined && this.#unrescuedSeq === undefined && !this.#isEndLost;
  }

  /** How many of the last records were stored after an instant, virtual ms. */
  storedSince(ms: number): number {
    const first = this.#readMs.findIndex((readMs) => readMs > ms);
    return first === -1 ? 0 : this.#readMs.length - first;
  }

  /** Notes a result that comes when its task is with another agent already, or was. */
  noteObserved(observation: Observation): void {
    if (observation.kind !== "result" || observation.answer !== "stale") return;
    const { task, attempt, outcome } = observation;
    const newest = this.state.taskById.get(refOfKey(task))?.attempt ?? 0;
    if (outcome !== "revoked" && newest > attempt)
      this.#habitat.occurrences.note("result-after-a-new-attempt");
  }

  /** The journal ends at `lastSeq` now: what stood behind it may come back. */
  lostTail(lastSeq: number): void {
    this.#doubtedSeq = lastSeq + 1;
    this.#beginNoting();
    this.#mayBeSaved = true;
    for (const { bytes } of this.#standing.slice(lastSeq)) {
      if (decodeBatch(bytes) === undefined) continue;
      this.#decidedByHash.set(hashOf(bytes), bytes);
      this.#stoodBefore.add(hashOf(bytes));
    }
  }

  /** The journal ends at `lastSeq` now, and what stood behind it is gone for good. It counts all the same. */
  lostEnd(lastSeq: number): void {
    this.#standing.length = lastSeq;
    this.#readMs.length = lastSeq;
    this.#replay = new Replay(foldedBehind(this.#replay, lastSeq));
    this.#savedIdx = this.state.idx;
    this.#beginNoting();
    this.#isEndLost = true;
  }

  /** Records before `seq` are gone for good. */
  lostMiddle(seq: number): void {
    this.#beginNoting();
    this.#unrescuedSeq = seq;
  }

  /** To note what leaders decide from now on, unless that has begun. */
  #beginNoting(): void {
    if (this.#isToBeSaved) return;
    this.#decidedByHash.clear();
    this.#stoodBefore.clear();
  }

  /** Reads on to where the journal ends now. Cheap when nothing is new. Returns the state there. */
  readOn(): SwarmState {
    const { stream } = this.#habitat;
    if (this.#doubtedSeq !== undefined) this.#compare(this.#doubtedSeq);
    if (this.#isToBeSaved) for (const { hash, bytes } of this.pending()) this.#decidedByHash.set(hash, bytes);
    if (stream.firstSeq >= (this.#unrescuedSeq ?? Number.POSITIVE_INFINITY)) this.#unrescuedSeq = undefined;
    this.#notePurged(stream.firstSeq);
    this.#noteCrowded(stream.usage);
    for (let seq = this.#standing.length + 1; seq <= stream.lastSeq && !this.#isBroken; seq += 1) {
      const bytes = stream.at(seq);
      if (bytes === undefined) break;
      const batch = this.#isToBeSaved ? decodeBatch(bytes) : undefined;
      if (batch !== undefined) this.#takeUnstored(seq, batch);
      this.#records.push({ seq, bytes });
      this.#standing.push({ seq, bytes });
      this.#readMs.push(this.#habitat.engine.nowMs);
      this.#take(seq, bytes);
    }
    return this.state;
  }

  /** Whoever leads saves its state, and with it what it decided and could not append. */
  get #isToBeSaved(): boolean {
    return this.#isEndLost || this.#unrescuedSeq !== undefined || this.#mayBeSaved;
  }

  #noteCrowded({ bytes, bytesMax }: { readonly bytes: number; readonly bytesMax: number }): void {
    const { nowMs } = this.#habitat.engine;
    const isOld = nowMs - this.#bound.seenMs > ROOM_KNOWN_MS;
    if (isOld || bytesMax <= this.#bound.bytesMax) this.#bound = { bytesMax, seenMs: nowMs };
    if (bytes > CROWDED_SHARE * this.#bound.bytesMax) this.#crowdedMs = nowMs;
  }

  /** A journal that takes no batch is purged before that is on record. */
  #notePurged(firstSeq: number): void {
    if (firstSeq <= this.#firstSeq) return;
    this.#firstSeq = firstSeq;
    const recordedSeq = this.#replay.places.seqOf(this.state.auditFirstIdx) ?? 1;
    if (firstSeq > recordedSeq) this.#habitat.occurrences.note("purged-when-full");
  }

  /** What is stored again must be what stood there; where it is not, what stood there never counted. */
  #compare(fromSeq: number): void {
    const { stream, occurrences } = this.#habitat;
    for (let seq = fromSeq; seq <= stream.lastSeq; seq += 1) {
      const before = this.#standing[seq - 1];
      if (before === undefined) break;
      const bytes = stream.at(seq);
      if (bytes === undefined || Buffer.compare(bytes, before.bytes) !== 0) return this.#goBack(seq - 1);
      this.#doubtedSeq = seq + 1;
    }
    if (stream.lastSeq < this.#standing.length) return;
    occurrences.note("tail-refilled");
    this.#doubtedSeq = undefined;
    this.#mayBeSaved = false;
  }

  /** Folds anew up to a record: the rest is void. */
  #goBack(lastSeq: number): void {
    this.#records.length -= this.#standing.length - lastSeq;
    this.#standing.length = lastSeq;
    this.#readMs.length = lastSeq;
    this.#doubtedSeq = undefined;
    this.#replay = new Replay();
    this.#succession = new Succession();
    this.#roll = new Roll();
    for (const record of this.#records) {
      if (record.seq <= this.#replay.position.seq)
        this.#replay = new Replay(foldedBehind(this.#replay, record.seq - 1));
      this.#replay.take(record);
    }
    // What was never stored, and counts, has the places of what is void.
    if (this.#replay.position.seq > lastSeq) this.#replay = new Replay(foldedBehind(this.#replay, lastSeq));
    this.#succession.check(this.state); // what comes next is compared with this; there is nothing to compare it with
  }

  /** Whether there is a snapshot up to a batch. Behind a hole a leader may find what is missing all the same, and the
   *  batch that it had in flight behind it is dead. */
  #isSaved(hash: string): boolean {
    const { snapshotStream, swarm } = this.#habitat;
    const manifests = snapshotStream.under(subjectsOf(swarm).snapshotManifest).map(decodeManifest);
    return manifests.some(({ position }) => position.hash === hash);
  }

  /** Takes what a leader had decided that went on behind a snapshot of it, before the batch that it appends there. */
  #takeUnstored(seq: number, { prev }: Batch): void {
    if (!this.#isEndLost && !this.#isSaved(prev)) return;
    const unstored: Uint8Array[] = [];
    for (let at = prev; at !== this.position.hash; ) {
      const bytes = this.#decidedByHash.get(at);
      const batch = bytes && decodeBatch(bytes);
      if (bytes === undefined || batch === undefined) return; // not of our line
      unstored.unshift(bytes);
      at = batch.prev;
    }
    if (unstored.length === 0) return;
    for (const [nth, bytes] of unstored.entries()) {
      const record = { seq: seq + nth, bytes };
      this.#records.push(record);
      if (this.#stoodBefore.has(hashOf(bytes))) this.#replay.take(record);
      else this.#take(record.seq, bytes);
    }
    this.#savedIdx = this.state.idx;
    this.#replay = new Replay(foldedBehind(this.#replay, seq - 1));
  }

  #take(seq: number, bytes: Uint8Array): void {
    const batch = this.#fold(seq, bytes);
    if (batch === undefined) return;
    const { state } = this.#replay;
    // A turn may leave something undone only when it was full, or tasks queued when the journal nearly is; what starts
    // a term is none, nor is a beat, which a leader that saves its state appends while turns wait.
    const [first, second] = batch.events;
    const isBeat = first?.type === "TermRenewed" && second === undefined;
    const isTurn = first?.type !== "TermStarted" && !isBeat;
    const isRoomy = this.#habitat.engine.nowMs - this.#crowdedMs > ROOM_KNOWN_MS;
    const isComplete = isTurn && bytes.length < limits.turnBytesMax;
    const found = isComplete ? checkAfterTurn(state, this.#roll) : checkInvariants(state, this.#roll);
    const violations = [
      ...found.filter(({ number }) => isRoomy || number !== WORK_CONSERVING),
      ...this.#succession.check(state),
    ];
    for (const { number, name, sentence } of violations)
      this.#habitat.found(`invariant ${number} ${name}`, `after record ${seq}: ${sentence}`);
    if (violations.length > 0) this.#isBroken = true;
    const wrong = this.#habitat.pace.check({ ...batch, hash: this.#replay.position.hash });
    if (wrong !== undefined) this.#habitat.found("journal-time-keeps-pace", wrong);
  }

  /** The batch, or undefined when the record is dead. */
  #fold(seq: number, bytes: Uint8Array): Batch | undefined {
    const { leader, term } = this.#replay.state;
    try {
      const verdict = this.#replay.take({ seq, bytes });
      if (verdict.kind === "dead") {
        this.#habitat.occurrences.note("dead-record");
        if (verdict.reason === "alien") this.#aliensSinceBatch += 1;
        return undefined;
      }
      const { pace, engine, occurrences } = this.#habitat;
      if (this.#isEndLost) occurrences.note("lost-end-saved");
      this.#isEndLost = false;
      this.#mayBeSaved = false;
      const stamped = { ...verdict.batch, hash: this.#replay.position.hash };
      const decidedMs = pace.decidedMs(stamped) ?? engine.nowMs;
      for (const event of verdict.batch.events) this.#noteEvent(event, { leader, term, decidedMs });
      this.#aliensSinceBatch = 0;
      return verdict.batch;
    } catch (error) {
      this.#isBroken = true;
      this.#habitat.found("the-journal-folds", `record ${seq}: ${String(error)}`);
      return undefined;
    }
  }

  #noteEvent(event: Event, before: Before): void {
    const { occurrences } = this.#habitat;
    const occurrence = occurrenceOf(event);
    if (occurrence !== undefined) occurrences.note(occurrence);
    if (event.type === "AgentLeft" && event.reason === "lapsed") this.onLapsed(event, before.decidedMs);
    if (event.type === "AttemptFailed") this.#noteFailed(event, before.decidedMs);
    if (event.type === "AuditTrimmed" && event.reason === "hole") this.#unrescuedSeq = undefined;
    if (event.type !== "TermStarted") return;
    if (before.term > 0 && before.leader !== event.leader) occurrences.note("term-begun-by-another");
    if (before.term > 0 && this.#aliensSinceBatch > 1) occurrences.note("term-begun-among-aliens");
    this.#noteFailOver();
  }

  #noteFailed(event: EventOf<"AttemptFailed">, decidedMs: number): void {
    const { attempt, agent, failure, latencyMs } = event;
    const { class: by } = failure;
    const timeoutMs = this.state.taskById.get(event)?.spec.timeoutMs ?? Number.POSITIVE_INFINITY;
    if (by === "stalled" || (by === "timed-out" && latencyMs >= timeoutMs))
      this.onLimitReached({ task: taskKey(event), attempt, agent, by, timeoutMs, decidedMs });
  }

  #noteFailOver(): void {
    const { occurrences } = this.#habitat;
    for (const agent of this.state.agentById.values()) {
      if (agent.open.size > 0 && agent.open.size >= placesOf(agent))
        occurrences.note("full-agent-at-fail-over");
      if (agent.confirmedNumber < agent.lastNumber) occurrences.note("unconfirmed-assignment-at-fail-over");
    }
  }
}

const occurrenceByType: Partial<Record<EventType, Occurrence>> = {
  TermEnded: "term-handed-over",
  AgentSuspended: "agent-suspended",
  TaskExpired: "task-expired",
  TaskCancelled: "task-cancelled",
  TaskRetried: "task-retried",
  SlotAwaited: "slot-waited-for",
  BudgetExceeded: "budget-exceeded",
};

const occurrenceByTrim: Partial<Record<TrimReason, Occurrence>> = {
  retention: "journal-purged",
  "storage-short": "storage-short",
  hole: "hole-rescued",
};

function occurrenceOf(event: Event): Occurrence | undefined {
  if (event.type === "AgentLeft" && event.reason === "lapsed") return "agent-lost";
  if (event.type === "AuditTrimmed") return occurrenceByTrim[event.reason];
  if (event.type === "AttemptFailed" && event.failure.class === "timed-out") return "attempt-timed-out";
  if (event.type === "TaskDeadLettered" && event.failure.class === "lost") return "poison-dead-lettered";
  return occurrenceByType[event.type];
}
