// Answers about a task: `task` gives its state, `explain` also the reasons why it waits. In a project's subject a
// query means a task of the project. In the swarm's subject (`_`) it means the task of the only project with such an
// id.

import { type Instant, instant, NO_PROJECT, type ProjectId, type TaskId, type TaskRef } from "../ids.ts";
import { limits } from "../limits.ts";
import type { Decoded } from "../protocol/codec.ts";
import type { ExplainedTask, ExplainResponse, TaskObstacle, TaskWait } from "../protocol/explain-schemas.ts";
import type { TaskStatus } from "../protocol/schemas.ts";
import { codedError, notYetRead, unknownTask } from "../requests/answers.ts";
import { explainWait, type JournalFacts, type Obstacle } from "../scheduling/explain.ts";
import { preferredAgent } from "../state/affinity-rows.ts";
import type { Needs } from "../state/needs.ts";
import { slotsAwaitedBy } from "../state/slot-rows.ts";
import type { SwarmState, TaskRow } from "../state/state.ts";
import { rowsWithin } from "./fitting.ts";
import { attributesIn } from "./task-scan.ts";

/** Finds the project of a task. The project of an unknown task stays `_`. */
export function taskNamed(state: SwarmState, project: ProjectId, task: TaskId): Decoded<TaskRef> {
  if (project !== NO_PROJECT) return { ok: true, value: { project, task } };
  const projects = new Set([...state.taskById.projectsWith(task), ...state.endedById.projectsWith(task)]);
  if (projects.size > 1) return ambiguous(task, [...projects].sort());
  const [only = project] = projects;
  return { ok: true, value: { project: only, task } };
}

function ambiguous(task: TaskId, projects: readonly ProjectId[]) {
  const named = projects.slice(0, limits.ambiguousProjectsShown);
  const more = projects.length - named.length;
  const list = `${named.join(", ")}${more === 0 ? "" : ` and ${more} more`}`;
  return codedError(
    "WAGGLE_AMBIGUOUS_TASK",
    `${projects.length} projects have a task ${task}: ${list}. Name the project (\`--project ${named[0]}\`, or { project: "${named[0]}" })`,
    { field: "project" },
  );
}

export function taskStatusOf(state: SwarmState, ref: TaskRef, isStale: boolean): TaskStatus {
  const { task } = ref;
  const head = {
    ok: true as const,
    term: state.term,
    idx: state.idx,
    at: state.at,
    ...(isStale ? { stale: true as const } : {}),
  };
  const ended = state.endedById.get(ref);
  if (ended !== undefined) {
    const { project, user, kind, round, attempts, submittedIdx, endedIdx, endedAt, agent } = ended;
    const what = { task, project, user, kind, state: ended.state, round, attempts, submittedIdx };
    const end = { endedIdx, endedAt };
    return { ...head, ...what, ...end, ...(agent === undefined ? {} : { agent }), ...attributesIn(ended) };
  }
  const row = state.taskById.get(ref);
  if (row === undefined) return isStale ? notYetRead(task, state.idx) : unknownTask(task);
  const { project, user, kind } = row.spec;
  return {
    ...head,
    task,
    project,
    user,
    kind,
    state: row.state,
    round: row.round,
    attempts: row.attempt,
    submittedIdx: row.submittedIdx,
    ...(row.open === undefined ? {} : { agent: row.open.agent }),
    ...attributesIn(row),
  };
}

export interface Moment {
  /** Journal time; on a standby, the wall clock. */
  readonly now: Instant;
  readonly isStale: boolean;
  /** The project in the query's subject: the answer names no task, project or user of other projects. Absent: `_`. */
  readonly within?: ProjectId | undefined;
  /** Limit of the whole answer. */
  readonly bytesMax: number;
  /** While the journal has too little room to assign anything. */
  readonly tightJournal?: JournalFacts | undefined;
}

export function explanationOf(
  state: SwarmState,
  ref: TaskRef,
  { now, isStale, within, bytesMax, tightJournal }: Moment,
): ExplainResponse {
  const status = taskStatusOf(state, ref, isStale);
  const row = state.taskById.get(ref);
  if (!status.ok || row === undefined) return status;
  const { role, needs, affinity } = row.spec;
  const at = instant(Math.max(state.at, now));
  const preferred = preferredAgent(state, row.spec, at);
  const head = {
    ...status,
    ...(role === undefined ? {} : { role }),
    ...(needs === undefined ? {} : { needs: asWritten(needs) }),
    ...(affinity === undefined
      ? {}
      : { affinity: { key: affinity, ...(preferred === undefined ? {} : { agent: preferred }) } }),
    ...awaitedSlots(state, row, at),
  };
  if (row.state !== "queued" && row.state !== "delayed") return head;

  const { obstacles, agents, ...rest } = explainWait(state, row, { at, tightJournal });
  const { rows } = rowsWithin(agents, Math.min(limits.explainedAgentsBytesMax, bytesMax / 2));
  const omitted = agents.length - rows.length;
  const waiting: TaskWait = { ...rest, obstacles: obstacles.map(asSent), agents: rows };
  return {
    ...head,
    at,
    waiting: within === undefined ? waiting : confined(waiting, within),
    ...(omitted === 0 ? {} : { omitted: { agents: omitted } }),
  };
}

/** The slots that a running attempt waits for. */
function awaitedSlots(state: SwarmState, { open }: TaskRow, at: Instant): Pick<ExplainedTask, "slots"> {
  if (open === undefined) return {};
  const slots = slotsAwaitedBy(state, open).map(({ needs, requestedAt }) => {
    const resources = [...needs.keys()];
    const hold = resources.map((name) => state.holds.resource.get(name)).find((each) => each !== undefined);
    const until = hold?.timer === undefined ? {} : { until: hold.until };
    return {
      resources,
      sinceMs: Math.max(0, at - requestedAt),
      ...(hold === undefined ? {} : { onHold: { resource: hold.name, ...until } }),
    };
  });
  return slots.length === 0 ? {} : { slots };
}

/** Without names of tasks, projects and users of other projects. */
function confined(wait: TaskWait, within: ProjectId): TaskWait {
  const { position, obstacles } = wait;
  return {
    ...wait,
    obstacles: obstacles.map((obstacle) =>
      obstacle.reason === "room-kept" && obstacle.project !== within ? { reason: "room-kept" } : obstacle,
    ),
    ...(position === undefined || position.next?.project === within
      ? {}
      : { position: { ...position, next: undefined } }),
  };
}

/** The lists as values that may be changed, as the schemas type them. */
function asWritten(needs: Needs): Record<string, string[]> {
  return Object.fromEntries(Object.entries(needs).map(([label, values]) => [label, [...values]]));
}

function asSent(obstacle: Obstacle): TaskObstacle {
  if (obstacle.reason === "no-agent-has-labels") {
    const { needs, unmet, nearMisses } = obstacle;
    return { ...obstacle, needs: asWritten(needs), unmet: asWritten(unmet), nearMisses: [...nearMisses] };
  }
  return "nearMisses" in obstacle ? { ...obstacle, nearMisses: [...obstacle.nearMisses] } : obstacle;
}
