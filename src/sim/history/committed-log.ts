// The final journal for the checkers: the committed batches in order, and the history of each task, derived from the
// events alone. On purpose not `apply`: a second opinion must share no code with the code under test.

import { type TaskRef, taskKey } from "../../ids.ts";
import { decodeRecord, hashOf } from "../../journal/records.ts";
import { emptyTail } from "../../journal/replay.ts";
import type { EndedTaskState } from "../../state/ended-task.ts";
import type { Event, TaskSpec, TrimReason } from "../../state/event.ts";
import type { LiveTaskState } from "../../state/state.ts";
import { refOf } from "../../state/task-rows.ts";

/** A record of the journal, in any segment. */
export interface LogRecord {
  readonly bytes: Uint8Array;
  /** Hash of a batch rebuilt from its events when the bytes are unknown. Default: the hash of `bytes`. */
  readonly hash?: string;
}

export interface LogBatch {
  readonly idx: number;
  readonly term: number;
  readonly at: number;
  readonly hash: string;
  readonly bytes: Uint8Array;
  readonly events: readonly Event[];
}

/** A state of a task, from batch `idx` until the batch of the next stretch. */
export interface TaskStretch {
  readonly idx: number;
  readonly state: LiveTaskState | EndedTaskState;
  readonly round: number;
  /** The last attempt opened. */
  readonly attempts: number;
}

export interface AttemptHistory {
  readonly round: number;
  readonly agent: string;
  readonly incarnation: string;
  readonly number: number;
  readonly token: string;
  readonly openedIdx: number;
  /** The end of the attempt; absent while the attempt runs. Cancellation and expiry of the task end the attempt too. */
  closed?: { readonly idx: number; readonly event: Event };
}

/** A round of a task, from submission or retry to the end. */
export interface TaskRound {
  readonly round: number;
  readonly spec: TaskSpec;
  readonly openedIdx: number;
  ended?: { readonly idx: number; readonly state: EndedTaskState; readonly event: Event };
}

export interface TaskHistory {
  /** The task as submitted. */
  readonly spec: TaskSpec;
  readonly submittedIdx: number;
  /** Starts with the first round. */
  readonly rounds: [TaskRound, ...TaskRound[]];
  readonly stretches: TaskStretch[];
  readonly attempts: Map<number, AttemptHistory>;
  /** The events that name the task, in order. */
  readonly events: { readonly idx: number; readonly type: Event["type"] }[];
}

export function newestRound({ rounds }: TaskHistory): TaskRound {
  return rounds.at(-1) ?? rounds[0];
}

const endOf: Partial<Record<Event["type"], EndedTaskState>> = {
  TaskCompleted: "completed",
  TaskFailed: "failed",
  TaskDeadLettered: "dead-lettered",
  TaskCancelled: "cancelled",
  TaskExpired: "expired",
};

/** Events of a task's history that name the task. */
const ofHistory: ReadonlySet<Event["type"]> = new Set([
  "TaskSubmitted",
  "TaskRetried",
  "TaskReleased",
  "TaskRescheduled",
  "TaskAssigned",
  "AttemptFailed",
  "AttemptReleased",
  "TokensCharged",
  "TaskCompleted",
  "TaskFailed",
  "TaskDeadLettered",
  "TaskCancelled",
  "TaskExpired",
]);

/** An event of batch `idx`: the audit begins at the later batch `firstIdx`. */
interface Trim {
  readonly idx: number;
  readonly firstIdx: number;
  readonly reason: TrimReason;
}

/** Reasons for an unwanted later begin of the audit. */
const losses: ReadonlySet<TrimReason> = new Set(["lost"]);

export class CommittedLog {
  /** By index: `batches[idx - 1]`. */
  readonly batches: readonly LogBatch[];
  /** By `taskKey`. */
  readonly taskById = new Map<string, TaskHistory>();
  /**
   * Sentences about impossible events: a task submitted twice, a round opened or ended twice, a task assigned while not
   * queued.
   */
  readonly faults: string[] = [];
  /** Every change of the first kept batch, in order. */
  readonly #trims: Trim[] = [];
  /** By agent: tasks with an unconfirmed newest attempt. */
  readonly #unconfirmed = new Map<string, Set<string>>();

  /**
   * @param records all records of the journal from the first batch on, in order, of all segments; records that continue
   * no batch are skipped
   */
  constructor(records: Iterable<LogRecord>) {
    this.batches = batchesOf(records);
    for (const { idx, events } of this.batches)
      for (const event of events) {
        this.#take(event, idx);
        this.#list(event, idx);
      }
  }

  get lastIdx(): number {
    return this.batches.length;
  }

  at(idx: number): LogBatch | undefined {
    return this.batches[idx - 1];
  }

  /**
   * The first batch kept as of the end of batch `idx`. Lost records are gone at once, although the journal records the
   * loss later, after the swarm goes on. A full journal is also purged before it records the purge. That record comes
   * next, behind only the records that already waited (docs/adr/0012-a-journal-that-loses-records.md).
   */
  firstKeptAt(idx: number): number {
    const isNext = this.#shortBehind(idx);
    const isGone = (trim: Trim) => trim.idx <= idx || losses.has(trim.reason) || isNext.has(trim);
    return this.#trims.findLast(isGone)?.firstIdx ?? 1;
  }

  /** The first run of adjacent batches after `idx` that record a lack of room. */
  #shortBehind(idx: number): ReadonlySet<Trim> {
    const found = new Set<Trim>();
    let lastIdx: number | undefined;
    for (const trim of this.#trims) {
      if (trim.idx <= idx || trim.reason !== "storage-short") continue;
      if (lastIdx !== undefined && trim.idx > lastIdx + 1) break;
      found.add(trim);
      lastIdx = trim.idx;
    }
    return found;
  }

  #take(event: Event, idx: number): void {
    switch (event.type) {
      case "AuditTrimmed":
        this.#trims.push({ idx, firstIdx: event.firstIdx, reason: event.reason });
        return;
      case "TaskSubmitted":
        return this.#submit(event, idx);
      case "TaskRetried":
        return this.#retry(event, idx);
      case "TaskReleased":
        return this.#move(taskKey(event), idx, "queued");
      case "TaskRescheduled":
        return this.#move(taskKey(event), idx, this.#isLater(event.notBefore, idx) ? "delayed" : "queued");
      case "TaskAssigned":
        return this.#assign(event, idx);
      case "AssignmentsConfirmed":
        return this.#confirm(event, idx);
      case "AttemptFailed": {
        this.#close(event, idx);
        return this.#move(taskKey(event), idx, this.#isLater(event.retryAt, idx) ? "delayed" : "queued");
      }
      case "TaskCompleted":
      case "TaskFailed":
      case "TaskDeadLettered":
        this.#close(event, idx);
        return this.#end(event, idx);
      case "TaskCancelled":
      case "TaskExpired":
        return this.#end(event, idx);
      default:
        return; // of no task's history
    }
  }

  /** Adds the event to the history of the task that it names. */
  #list(event: Event, idx: number): void {
    if (!("task" in event) || !ofHistory.has(event.type)) return;
    const ref = typeof event.task === "string" ? (event as TaskRef) : refOf(event.task);
    this.taskById.get(taskKey(ref))?.events.push({ idx, type: event.type });
  }

  #submit({ task: spec }: Extract<Event, { type: "TaskSubmitted" }>, idx: number): void {
    if (this.taskById.has(taskKey(refOf(spec)))) this.#fault(idx, `submits ${spec.id} a second time`);
    else {
      const state = this.#isLater(spec.notBefore, idx) ? "delayed" : "queued";
      const stretches: TaskStretch[] = [{ idx, state, round: 1, attempts: 0 }];
      const rounds: TaskHistory["rounds"] = [{ round: 1, spec, openedIdx: idx }];
      this.taskById.set(taskKey(refOf(spec)), {
        spec,
        submittedIdx: idx,
        rounds,
        stretches,
        attempts: new Map(),
        events: [],
      });
    }
  }

  #retry({ task: spec, round }: Extract<Event, { type: "TaskRetried" }>, idx: number): void {
    const history = this.taskById.get(taskKey(refOf(spec)));
    const before = history && newestRound(history);
    if (history === undefined || before === undefined)
      return this.#fault(idx, `retries ${spec.id}, which was never submitted`);
    const { ended } = before;
    if (ended === undefined || ended.state === "completed" || round !== before.round + 1)
      this.#fault(
        idx,
        `opens round ${round} of ${spec.id}, which is ${ended?.state ?? "live"} in round ${before.round}`,
      );
    if (!isSameWork(spec, history.spec))
      this.#fault(idx, `has ${spec.id} do in round ${round} what it was not asked to`);
    const state = this.#isLater(spec.notBefore, idx) ? "delayed" : "queued";
    history.rounds.push({ round, spec, openedIdx: idx });
    history.stretches.push({ idx, state, round, attempts: history.stretches.at(-1)?.attempts ?? 0 });
  }

  #assign(event: Extract<Event, { type: "TaskAssigned" }>, idx: number): void {
    const history = this.#living(taskKey(event), event.type, idx);
    if (history === undefined) return;
    const { attempt, agent, incarnation, number, token } = event;
    const task = taskKey(event);
    const last = history.stretches.at(-1);
    if (last?.state !== "queued" || attempt !== last.attempts + 1)
      this.#fault(
        idx,
        `opens attempt ${attempt} of ${task}, which is ${last?.state} after ${last?.attempts}`,
      );
    const { round } = newestRound(history);
    history.attempts.set(attempt, { round, agent, incarnation, number, token, openedIdx: idx });
    history.stretches.push({ idx, state: "assigned", round, attempts: attempt });
    const unconfirmed = this.#unconfirmed.get(agent) ?? new Set();
    this.#unconfirmed.set(agent, unconfirmed.add(task));
  }

  #confirm({ agent, upTo }: Extract<Event, { type: "AssignmentsConfirmed" }>, idx: number): void {
    const unconfirmed = this.#unconfirmed.get(agent) ?? new Set();
    for (const task of unconfirmed) {
      const history = this.taskById.get(task);
      const last = history?.stretches.at(-1);
      const attempt = history?.attempts.get(last?.attempts ?? 0);
      if (last?.state !== "assigned" || attempt?.agent !== agent) unconfirmed.delete(task);
      else if (attempt.number <= upTo) {
        unconfirmed.delete(task);
        this.#move(task, idx, "running");
      }
    }
  }

  #close(event: Event & TaskRef & { readonly attempt: number }, idx: number): void {
    const attempt = this.taskById.get(taskKey(event))?.attempts.get(event.attempt);
    if (attempt === undefined || attempt.closed !== undefined)
      this.#fault(idx, `${event.type} closes attempt ${event.attempt} of ${event.task}, which is not open`);
    else attempt.closed = { idx, event };
  }

  #end(event: Event & TaskRef, idx: number): void {
    const history = this.#living(taskKey(event), event.type, idx);
    const state = endOf[event.type];
    if (history === undefined || state === undefined) return;
    const attempts = history.stretches.at(-1)?.attempts ?? 0;
    const open = history.attempts.get(attempts);
    if (open !== undefined) open.closed ??= { idx, event };
    const newest = newestRound(history);
    newest.ended = { idx, state, event };
    history.stretches.push({ idx, state, round: newest.round, attempts });
  }

  #move(task: string, idx: number, state: LiveTaskState): void {
    const history = this.#living(task, `its way to ${state}`, idx);
    if (history === undefined) return;
    const { round } = newestRound(history);
    history.stretches.push({ idx, state, round, attempts: history.stretches.at(-1)?.attempts ?? 0 });
  }

  #living(task: string, what: string, idx: number): TaskHistory | undefined {
    const history = this.taskById.get(task);
    const ended = history && newestRound(history).ended;
    if (history !== undefined && ended === undefined) return history;
    const why = history === undefined ? "was never submitted" : `ended in batch ${ended?.idx}`;
    this.#fault(idx, `${what} is of ${task}, which ${why}`);
    return undefined;
  }

  #isLater(instant: number | undefined, idx: number): boolean {
    return instant !== undefined && instant > (this.at(idx)?.at ?? 0);
  }

  #fault(idx: number, what: string): void {
    this.faults.push(`batch ${idx} ${what}`);
  }
}

/** A retry changes only the times. */
function isSameWork(spec: TaskSpec, first: TaskSpec): boolean {
  const { deadline: _, notBefore: __, ...work } = spec;
  const { deadline: ___, notBefore: ____, ...asked } = first;
  return JSON.stringify(work) === JSON.stringify(asked);
}

/** The committed batches among the records, by the rule of every reader. */
function batchesOf(records: Iterable<LogRecord>): LogBatch[] {
  const log: LogBatch[] = [];
  let tail: { readonly idx: number; readonly hash: string } = emptyTail;
  for (const { bytes, hash } of records) {
    const batch = decodeRecord(bytes);
    if (batch?.kind !== "batch" || batch.prev !== tail.hash || batch.idx !== tail.idx + 1) continue;
    const { idx, term, at, events } = batch;
    tail = { idx, hash: hash ?? hashOf(bytes) };
    log.push({ idx, term, at, hash: tail.hash, bytes, events });
  }
  return log;
}
