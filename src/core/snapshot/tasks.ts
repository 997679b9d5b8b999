// Tasks in a snapshot: live tasks by the start of their rounds, ended tasks in order of ending, and lost attempts with
// possible later charges. A task's cost follows from the weight, the owners from the specification.

import type { AgentId, ProjectId } from "../../ids.ts";
import type { EndedTask } from "../../state/ended-task.ts";
import { costEstimate } from "../../state/estimate.ts";
import type { TaskSpec } from "../../state/event.ts";
import { countNeeds } from "../../state/queues.ts";
import type { LiveTaskState, ProjectRow, SwarmState, TaskRow, UserRow } from "../../state/state.ts";
import { attributesText, nobody, refOf } from "../../state/task-rows.ts";
import type { Writable } from "../../state/writable.ts";
import type { AgentReader } from "./agents.ts";
import { addNew, allOf, type Fields, known, refuse } from "./checked-fields.ts";
import type { Row } from "./line.ts";
import type { QueueReader } from "./queues.ts";
import type { TimerReader } from "./timers.ts";
import { endedStates, readNeeds, readTimer, timerFields } from "./values.ts";

export function* taskRows(state: SwarmState): Generator<Row> {
  for (const row of state.taskById.values()) {
    // Field by field: spreading the rest of an object costs as much as the remaining work, with up to a million tasks.
    const fields = {
      spec: row.spec,
      hash: row.hash,
      sequence: row.sequence,
      submittedIdx: row.submittedIdx,
      round: row.round,
      roundAt: row.roundAt,
      roundIdx: row.roundIdx,
      attemptsBefore: row.attemptsBefore,
      state: row.state,
      queuedAt: row.queuedAt,
      queuedOrder: row.queuedOrder,
      queuedTick: row.queuedTick,
      queuedTurn: row.queuedTurn,
      attempt: row.attempt,
      failures: row.failures,
      infrastructureFailures: row.infrastructureFailures,
      refusals: row.refusals,
      lastAgent: row.lastAgent,
      failedBy: row.failedBy,
      releaseTimer: timerFields(row.releaseTimer),
      deadlineTimer: timerFields(row.deadlineTimer),
    };
    yield ["task", fields];
  }
  for (const ended of state.endedById.values()) yield ["ended-task", endedFields(ended)];
  for (const [key, uncharged] of state.uncharged) yield ["uncharged", { key, ...uncharged }];
}

/** In a fixed order of fields, so that the same state has the same lines. Field by field, as above. */
function endedFields(ended: EndedTask): object {
  const { attributes } = ended;
  return {
    id: ended.id,
    project: ended.project,
    user: ended.user,
    kind: ended.kind,
    hash: ended.hash,
    state: ended.state,
    sequence: ended.sequence,
    round: ended.round,
    attempts: ended.attempts,
    agent: ended.agent,
    submittedIdx: ended.submittedIdx,
    roundIdx: ended.roundIdx,
    endedAt: ended.endedAt,
    endedIdx: ended.endedIdx,
    attributes: attributes === undefined ? undefined : JSON.parse(attributes),
  };
}

const liveStates = allOf<LiveTaskState>({ queued: true, delayed: true, assigned: true, running: true });

export class TaskReader {
  readonly #state: SwarmState;
  readonly #timers: TimerReader;
  readonly #agents: AgentReader;
  readonly #queues: QueueReader;
  /** Highest sequence read of tasks in their first round, which stand in order of submission. */
  #newestSequence = 0;
  readonly #retriedSequences = new Set<number>();

  constructor(state: SwarmState, timers: TimerReader, agents: AgentReader, queues: QueueReader) {
    this.#state = state;
    this.#timers = timers;
    this.#agents = agents;
    this.#queues = queues;
  }

  readTask(fields: Fields): void {
    const spec = fields.checked<Writable<TaskSpec>>("spec", lookAtSpec);
    const projectRow: ProjectRow = known(this.#state.projectById, spec.project, "project");
    const userRow: UserRow = known(projectRow.userByName, spec.user, `user of ${spec.project}`);
    // Shares one string among all tasks, instead of a string per line.
    spec.project = projectRow.project;
    spec.user = userRow.user;
    spec.kind = this.#state.kindByName.get(spec.kind)?.kind ?? spec.kind;
    const row: TaskRow = {
      heapAt: -1,
      spec,
      hash: fields.text("hash"),
      // Field by field: after a spread the row would have another hidden class than the rows of the fold.
      sequence: fields.whole("sequence", { min: 1, max: this.#state.submissions }),
      submittedIdx: fields.whole("submittedIdx"),
      round: fields.whole("round", { min: 1 }),
      roundAt: fields.whole("roundAt"),
      roundIdx: fields.whole("roundIdx"),
      attemptsBefore: fields.whole("attemptsBefore"),
      userRow,
      projectRow,
      state: fields.oneOf("state", liveStates),
      cost: costEstimate(spec),
      queuedAt: fields.whole("queuedAt"),
      queuedOrder: fields.whole("queuedOrder", { max: this.#state.orders }),
      queuedTick: fields.whole("queuedTick"),
      queuedTurn: fields.whole("queuedTurn"),
      attempt: fields.whole("attempt"),
      failures: fields.whole("failures", { max: spec.maxAttempts - 1 }),
      infrastructureFailures: fields.whole("infrastructureFailures"),
      refusals: fields.whole("refusals"),
      lastAgent: fields.optionalText("lastAgent"),
      failedBy: failedByOf(fields),
      open: undefined,
      partition: undefined,
      older: undefined,
      newer: undefined,
      releaseTimer: undefined,
      deadlineTimer: undefined,
    };
    this.#checkOrder(row);
    const ref = refOf(spec);
    addNew(this.#state.taskById, ref, row, "task", spec.id);
    this.#count(row);
    this.#startTimers(row, fields);
    if (row.state === "queued") this.#queues.place(row);
    else if (row.state !== "delayed") row.open = this.#agents.take(ref);
    checkAttempts(row);
  }

  readEnded(fields: Fields): void {
    const ended: EndedTask = {
      id: fields.text("id"),
      project: fields.text("project"),
      user: fields.text("user"),
      kind: fields.text("kind"),
      hash: fields.text("hash"),
      state: fields.oneOf("state", endedStates),
      sequence: fields.whole("sequence", { min: 1, max: this.#state.submissions }),
      round: fields.whole("round", { min: 1 }),
      attempts: fields.whole("attempts"),
      agent: fields.optionalText("agent"),
      submittedIdx: fields.whole("submittedIdx"),
      roundIdx: fields.whole("roundIdx"),
      endedAt: fields.whole("endedAt"),
      endedIdx: fields.whole("endedIdx"),
      attributes: attributesText(fields.optionalTexts("attributes")),
    };
    const ref = refOf(ended);
    if (this.#state.taskById.has(ref)) refuse(`task ${ended.id} is live and has ended`);
    if (this.#state.endedById.has(ref)) refuse(`ended task ${ended.id} stands twice`);
    this.#state.endedById.add(ended);
  }

  readUncharged(fields: Fields): void {
    const uncharged = {
      task: fields.text<TaskSpec["id"]>("task"),
      attempt: fields.whole<NonNullable<TaskRow["open"]>["attempt"]>("attempt", { min: 1 }),
      project: fields.text<ProjectId>("project"),
      agentType: fields.optionalText("agentType"),
      tokensReserved: fields.whole("tokensReserved"),
      lostAt: fields.whole<TaskRow["queuedAt"]>("lostAt"),
    };
    const key = fields.text("key");
    if (this.#agents.isOpen(key)) refuse(`attempt ${key} is open and lost`);
    addNew(this.#state.uncharged, key, uncharged, "lost attempt");
  }

  /** After all tasks were read. */
  checkCounts(): void {
    for (const { round, sequence } of this.#retriedSequences.size === 0 ? [] : this.#state.taskById.values())
      if (round === 1 && this.#retriedSequences.has(sequence))
        refuse(`two tasks are the ${sequence}. that was submitted`);
    const ever = Object.values(this.#state.counts).reduce((sum, count) => sum + count, 0);
    if (ever !== this.#state.submissions)
      refuse(`${this.#state.submissions} tasks were submitted, ${ever} are counted`);
  }

  #checkOrder({ spec, sequence, round, attempt, attemptsBefore }: TaskRow): void {
    if ((round === 1 && attemptsBefore > 0) || attempt < attemptsBefore)
      refuse(`task ${spec.id} is at attempt ${attempt} of round ${round}, after ${attemptsBefore} before`);
    const isInOrder = round > 1 ? !this.#retriedSequences.has(sequence) : sequence > this.#newestSequence;
    if (!isInOrder) refuse(`task ${spec.id}, the ${sequence}. that was submitted, stands out of order`);
    if (round > 1) this.#retriedSequences.add(sequence);
    else this.#newestSequence = sequence;
  }

  #count({ state, projectRow, userRow, spec }: TaskRow): void {
    countNeeds(this.#state, spec, 1);
    this.#state.counts[state] += 1;
    projectRow.counts[state] += 1;
    projectRow.live += 1;
    userRow.counts[state] += 1;
    userRow.live += 1;
  }

  #startTimers(row: TaskRow, fields: Fields): void {
    const release = fields.optionalWithin("releaseTimer", readTimer);
    const deadline = fields.optionalWithin("deadlineTimer", readTimer);
    if ((release !== undefined) !== (row.state === "delayed"))
      refuse(`task ${row.spec.id} is ${row.state} with a wrong release timer`);
    if (deadline?.dueAt !== row.spec.deadline)
      refuse(`task ${row.spec.id} has a deadline timer of another instant`);
    if (release !== undefined) row.releaseTimer = this.#timers.start(release, { kind: "release", task: row });
    if (deadline !== undefined)
      row.deadlineTimer = this.#timers.start(deadline, { kind: "deadline", task: row });
  }
}

/** Every attempt of the round except the open attempt counts as one class of failure. */
function checkAttempts(row: TaskRow): void {
  const { spec, state, attempt, attemptsBefore, open, failures, infrastructureFailures, refusals } = row;
  const closed = attemptsBefore + failures + infrastructureFailures + refusals;
  const opened = closed + (open === undefined ? 0 : 1);
  if (attempt !== opened) refuse(`task ${spec.id} is at attempt ${attempt} after ${opened}`);
  if (
    open !== undefined &&
    (open.state !== state || open.attempt !== attempt || open.project !== spec.project)
  )
    refuse(`task ${spec.id} is ${state} at attempt ${attempt}, its open attempt is another`);
}

function failedByOf(fields: Fields): readonly AgentId[] {
  const agents = fields.names<AgentId>("failedBy");
  return agents.length === 0 ? nobody : agents;
}

function lookAtSpec(spec: Fields): void {
  spec.text("id");
  spec.text("kind");
  spec.optionalText("role");
  readNeeds(spec);
  spec.optionalText("affinity");
  spec.text("project");
  spec.text("user");
  spec.amount("weight", { min: Number.MIN_VALUE });
  spec.amount("priority", { min: -Number.MAX_VALUE });
  spec.text("payload", { mayBeEmpty: true });
  if (spec.has("encoding")) spec.oneOf("encoding", ["base64"]);
  spec.optionalWhole("tokens");
  spec.optionalWhole("deadline");
  spec.optionalWhole("notBefore");
  spec.whole("maxAttempts", { min: 1 });
  spec.whole("timeoutMs");
  spec.optionalWhole("stallMs");
  spec.optionalTrue("stream");
  spec.optionalTexts("attributes");
  spec.optionalText("traceparent");
  spec.optionalText("tracestate");
}
