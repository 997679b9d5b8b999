// Reads committed batches: pages for followers of the audit, outcomes and specifications of ended tasks. The newest
// batches come from memory, the others from the journal, within bounds (journal-reads.ts). Pages pass batches through
// as bytes, without parsing.
//
// A batch may be missing for a while: a server that takes over may not find all records yet, and a leader may not have
// recorded a gap yet. A batch counts as lost after it was missing for `limits.outcomeMissMs`.

import type { Clock } from "../../clock.ts";
import { projectOf } from "../../core/effect.ts";
import { JournalDamagedError, MissingRecordsError } from "../../errors.ts";
import { type BatchIndex, batchIndex, type Instant, NO_PROJECT, type TaskRef } from "../../ids.ts";
import type { ReadBatch } from "../../journal/open-readings.ts";
import type { RecentBatches } from "../../journal/recent-batches.ts";
import { type Batch, decodeRecord } from "../../journal/records.ts";
import { limits } from "../../limits.ts";
import { encode } from "../../protocol/codec.ts";
import type { Outcome } from "../../protocol/schemas.ts";
import type { EndedTask } from "../../state/ended-task.ts";
import type { Event, EventOf, TaskSpec } from "../../state/event.ts";
import { withoutContents } from "../contents.ts";
import { costOf, type JournalReads } from "./journal-reads.ts";

/** A batch that repeated reads did not find. */
interface Miss {
  readonly sinceMs: number;
  readonly lastMs: number;
}

export interface AuditReaderDeps {
  readonly reads: JournalReads;
  readonly recentBatches: RecentBatches;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** A range of the journal. */
export interface PageRange {
  /** With payloads and results; default false. The whole journal, of project `_`, always has them. */
  readonly withContent?: boolean;
  /** The project whose events are shown and whose budget pays; `_`: all. */
  readonly project: string;
  readonly from: BatchIndex;
  /** Up to where the journal is committed. */
  readonly last: BatchIndex;
}

export class AuditReader {
  readonly #reads: JournalReads;
  readonly #recentBatches: RecentBatches;
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** Oldest first. */
  readonly #missByIdx = new Map<BatchIndex, Miss>();
  /** A few decoded batches: clients ask for outcomes in the order of commits. */
  readonly #recentByIdx = new Map<BatchIndex, Batch>();
  readonly #readingByIdx = new Map<BatchIndex, Promise<Batch | undefined>>();

  constructor({ reads, recentBatches, clock }: AuditReaderDeps) {
    this.#reads = reads;
    this.#recentBatches = recentBatches;
    this.#clock = clock;
  }

  /** The outcome of an ended task; `gone` after its batch was removed. @param firstIdx the first batch that is kept
   *  @throws UnreachableError, BackpressureError
   *  @throws MissingRecordsError when the batch is missing just now
   *  @throws JournalDamagedError when it was missing for long, or another batch is in its place */
  async outcome(ended: EndedTask, firstIdx: BatchIndex): Promise<Outcome> {
    const { project, id, endedIdx, state } = ended;
    const batch = await this.#kept(endedIdx, firstIdx);
    if (batch === "gone") return { project, task: id, state, ...placeOf(ended), gone: true };
    for (const event of batch.events) {
      const outcome = outcomeOf(event, ended);
      if (outcome?.task === id && outcome.project === project) return outcome;
    }
    throw new JournalDamagedError(`another record is in the place of batch ${endedIdx}`);
  }

  /** The specification of an ended task in its last round; `gone` after the batch was removed.
   *  @throws as `outcome` */
  async spec({ project, id, roundIdx }: EndedTask, firstIdx: BatchIndex): Promise<TaskSpec | "gone"> {
    const batch = await this.#kept(roundIdx, firstIdx);
    if (batch === "gone") return batch;
    for (const event of batch.events)
      if (
        (event.type === "TaskSubmitted" || event.type === "TaskRetried") &&
        event.task.id === id &&
        event.task.project === project
      )
        return event.task;
    throw new JournalDamagedError(`another record is in the place of batch ${roundIdx}`);
  }

  /** A batch that the journal should hold, or that is still in memory. @param firstIdx the first batch that is kept */
  async #kept(idx: BatchIndex, firstIdx: BatchIndex): Promise<Batch | "gone"> {
    const isHeld = this.#recentBatches.at(idx) !== undefined;
    if (idx < firstIdx && !isHeld) return "gone";
    const batch = await this.#batch(idx);
    if (batch === undefined) throw this.#isLost(idx) ? notFound(idx) : notFoundYet(idx);
    this.#missByIdx.delete(idx);
    return batch;
  }

  /** A page of committed batches, as the JSON of `journalPageSchema`.
   *  @throws BackpressureError when the budget of the project, or of all projects, is used up
   *  @throws UnreachableError, JournalDamagedError */
  async page(range: PageRange): Promise<Uint8Array> {
    const { project, from } = range;
    const { budget } = this.#reads;
    const held = this.#heldFrom(range);
    if (from > range.last || held.length > 0) {
      budget.take(project, costOf(held));
      return joinPage(range, held, []);
    }
    const taken = limits.queryPageBytesMax;
    budget.take(project, taken);
    const read = batchesIn(await this.#reads.page(from), range);
    const batches = read.map(({ bytes }) => bytes);
    budget.settle(project, { taken, cost: costOf(batches) });
    const changed = read.filter(({ isChanged }) => isChanged).map(({ header }) => header.idx);
    return joinPage(range, batches, changed);
  }

  /** The first batch at or after an instant, by bisection from `first` on; `last` + 1 without such a batch. Costs
   *  as much as a page.
   *  @throws BackpressureError, UnreachableError; JournalDamagedError when a batch on the way is missing */
  async firstSince(
    since: Instant,
    {
      project,
      first,
      last,
    }: { readonly project: string; readonly first: BatchIndex; readonly last: BatchIndex },
  ): Promise<BatchIndex> {
    this.#reads.budget.take(project, limits.queryPageBytesMax);
    return await this.#reads.slot(async () => {
      let low: number = first;
      let high = last + 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        const batch = await this.#batch(batchIndex(middle));
        if (batch === undefined) throw notFound(middle);
        if (batch.at < since) low = middle + 1;
        else high = middle;
      }
      return batchIndex(low);
    });
  }

  /** The batches of a page, as far as they are in memory. */
  #heldFrom({ from, last }: PageRange): Uint8Array[] {
    const held: Uint8Array[] = [];
    for (let idx = from, bytes = 0; idx <= last; idx = batchIndex(idx + 1)) {
      const batch = this.#recentBatches.at(idx);
      if (batch === undefined) break;
      bytes += batch.length;
      if (held.length > 0 && bytes > limits.queryPageBytesMax) break;
      held.push(batch);
    }
    return held;
  }

  /** Notes a missing batch. @returns whether it counts as lost */
  #isLost(idx: BatchIndex): boolean {
    const nowMs = this.#clock.monotonicMs();
    const before = this.#missByIdx.get(idx);
    const isSame = before !== undefined && nowMs - before.lastMs <= limits.journalGapMs;
    const sinceMs = isSame ? before.sinceMs : nowMs;
    this.#missByIdx.delete(idx);
    this.#missByIdx.set(idx, { sinceMs, lastMs: nowMs });
    const [oldest] = this.#missByIdx.keys();
    if (this.#missByIdx.size > limits.missedBatchesMax && oldest !== undefined)
      this.#missByIdx.delete(oldest);
    return nowMs - sinceMs >= limits.outcomeMissMs;
  }

  /** Shared by all concurrent callers. */
  async #batch(idx: BatchIndex): Promise<Batch | undefined> {
    const known = this.#recentByIdx.get(idx) ?? this.#readingByIdx.get(idx);
    if (known !== undefined) return await known;
    const reading = this.#readBatch(idx).finally(() => this.#readingByIdx.delete(idx));
    this.#readingByIdx.set(idx, reading);
    return await reading;
  }

  async #readBatch(idx: BatchIndex): Promise<Batch | undefined> {
    const batch = this.#heldBatch(idx) ?? (await this.#reads.batch(idx));
    if (batch === undefined) return undefined;
    this.#recentByIdx.set(idx, batch);
    const oldest = this.#recentByIdx.keys().next();
    if (this.#recentByIdx.size > limits.recentBatchesMax && oldest.done === false)
      this.#recentByIdx.delete(oldest.value);
    return batch;
  }

  #heldBatch(idx: BatchIndex): Batch | undefined {
    const bytes = this.#recentBatches.at(idx);
    const batch = bytes === undefined ? undefined : decodeRecord(bytes);
    return batch?.kind === "batch" ? batch : undefined;
  }
}

/** The batches up to the first gap. */
function batchesIn(read: readonly ReadBatch[], { from, last }: PageRange): readonly ReadBatch[] {
  const end = read.findIndex(({ header }, at) => header.idx !== from + at || header.idx > last);
  return end < 0 ? read : read.slice(0, end);
}

/** Shown to every project: `AssignmentsConfirmed` says when attempts began. `TermStarted` says that a rising term is
 *  no loss. */
const shownToAll: readonly Event["type"][] = ["AssignmentsConfirmed", "TermStarted"];

/** A batch with the events of one project, about tasks and settings. */
function eventsOf(project: string, bytes: Uint8Array, withContent: boolean): Uint8Array {
  const batch = decodeRecord(bytes);
  if (batch?.kind !== "batch") return bytes;
  const events = batch.events.filter(
    (event) => shownToAll.includes(event.type) || projectOf(event) === project,
  );
  return encode({ ...batch, events: withContent ? events : events.map(withoutContents) });
}

function notFound(idx: number): JournalDamagedError {
  return new JournalDamagedError(`batch ${idx} is not found`);
}

function notFoundYet(idx: number): MissingRecordsError {
  return new MissingRecordsError(`batch ${idx} is not found at present`);
}

/** A page holds every batch, even without an event for its reader: indexes stay contiguous.
 *  @param changed indexes of batches that are not as they were written */
function joinPage(
  { project, from, last, withContent = false }: PageRange,
  batches: readonly Uint8Array[],
  changed: readonly number[],
): Uint8Array {
  const marks = changed.length === 0 ? "" : `"changed":${JSON.stringify(changed)},`;
  const head = `{"next":${from + batches.length},"last":${last},${marks}"batches":[`;
  const parts: Uint8Array[] = [Buffer.from(head)];
  for (const [at, batch] of batches.entries()) {
    if (at > 0) parts.push(Buffer.from(","));
    parts.push(project === NO_PROJECT ? batch : eventsOf(project, batch, withContent));
  }
  parts.push(Buffer.from("]}"));
  return Buffer.concat(parts);
}

/** The outcome in a terminal event; undefined for all other events.
 *  @param ended number of the task's last attempt, the ended round, and the result that the event leaves out, if it is
 *    at hand */
export function outcomeOf(
  event: Event,
  ended: { readonly attempts: number; readonly round: number; readonly unkeptResult?: string },
): Outcome | undefined {
  if (event.type === "TaskCompleted") return completionOf(event, ended);
  const place = placeOf(ended);
  switch (event.type) {
    case "TaskFailed":
      return { ...failureOf(event, place), state: "failed" };
    case "TaskDeadLettered":
      return { ...failureOf(event, place), state: "dead-lettered", reason: event.reason };
    case "TaskCancelled":
      return { ...taskOf(event), state: "cancelled", ...place, reason: event.reason };
    case "TaskExpired":
      return { ...taskOf(event), state: "expired", ...place, reason: "deadline" };
    default:
      return undefined;
  }
}

/** Not by spreading: it costs as much as the JSON, and nearly every task ends so. */
function completionOf(
  event: EventOf<"TaskCompleted">,
  {
    attempts,
    round,
    unkeptResult,
  }: { readonly attempts: number; readonly round: number; readonly unkeptResult?: string },
) {
  const outcome: Outcome = {
    project: event.project,
    task: event.task,
    state: "completed",
    attempts,
    agent: event.agent,
    latencyMs: event.latencyMs,
  };
  const result = event.result ?? unkeptResult;
  if (result !== undefined) outcome.result = result;
  if (event.resultDigest !== undefined) outcome.resultDigest = { ...event.resultDigest };
  if (round !== 1) outcome.round = round;
  if (event.encoding !== undefined) outcome.encoding = event.encoding;
  if (event.tokens !== undefined) outcome.tokens = event.tokens;
  return outcome;
}

/** The round is left out for a task without retries. */
export function placeOf({ attempts, round }: { readonly attempts: number; readonly round: number }) {
  return { attempts, ...(round === 1 ? {} : { round }) };
}

function taskOf({ project, task }: TaskRef): TaskRef {
  return { project, task };
}

function failureOf(
  event: Extract<Event, { type: "TaskFailed" | "TaskDeadLettered" }>,
  place: ReturnType<typeof placeOf>,
) {
  return {
    ...taskOf(event),
    ...place,
    agent: event.agent,
    failureClass: event.failure.class,
    error: event.failure.error,
    latencyMs: event.latencyMs,
  };
}
