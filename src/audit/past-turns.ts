// Whose turn it was at one moment of the past: the assignments before, and all agents as they stood for the chosen
// task. Shares of projects and waiting users are those right before. Found by replay, away from the leader. Not here:
// reading up to the moment (journal/read-to.ts).

import type { Clock } from "../clock.ts";
import { InvalidValueError } from "../errors.ts";
import type { Instant } from "../ids.ts";
import type { JournalReader } from "../journal/journal.ts";
import { readTo } from "../journal/read-to.ts";
import type { Batch } from "../journal/records.ts";
import { projectSharesOf } from "../scheduling/project-shares.ts";
import type { Event, EventOf } from "../state/event.ts";
import { isSameNeeds } from "../state/needs.ts";
import type { SwarmState, TaskQueue } from "../state/state.ts";
import { AssignmentReplay, type ReplayedAssignment } from "./assignment-replay.ts";

/** An assignment, in the order of the journal. */
export interface PastAssignment {
  readonly idx: number;
  readonly at: number;
  readonly user: string;
  readonly event: EventOf<"TaskAssigned">;
}

export interface PastProject {
  readonly project: string;
  /** Part of all tokens of the guarantee's window, [0, 1]. */
  readonly share: number;
  /** Part of the credit weights of waiting projects; absent for a project without waiting tasks. */
  readonly target?: number;
  readonly queued: number;
  readonly running: number;
}

/** A user with tasks in the queue of the chosen task. */
export interface PastUser {
  readonly project: string;
  readonly user: string;
  readonly waiting: number;
  /** Wait of the oldest task, ms. */
  readonly oldestMs: number;
}

export interface PastTurns {
  readonly idx: number;
  /** Journal time, ms since the Unix epoch. */
  readonly at: number;
  /** The first replayed batch. */
  readonly firstIdx: number;
  /** Up to the chosen one, oldest first. */
  readonly assignments: readonly PastAssignment[];
  /** Right before the batch. */
  readonly projects: readonly PastProject[];
  /** The longest wait first, right before the batch; none without a decision. */
  readonly users: readonly PastUser[];
  /** Absent if the batch assigns no task, or not the named one. */
  readonly decision?: ReplayedAssignment;
}

export interface PastMoment {
  readonly idx: number;
  /** The task assigned in the batch. Default: the last one of the batch. */
  readonly task?: { readonly project: string; readonly task: string };
  /** Maximum of assignments and of users. */
  readonly most: number;
  /** Batches to look through for assignments before `idx`, at least. */
  readonly before: number;
}

/** @throws InvalidValueError beyond the journal's end
 *  @throws AuditTrimmedError if the moment is no longer kept; UnreachableError, JournalDamagedError */
export async function pastTurns(
  deps: { readonly journal: JournalReader; readonly clock: Clock },
  { idx, task, most, before }: PastMoment,
): Promise<PastTurns> {
  const assignments: PastAssignment[] = [];
  let lastIdx = 0;
  const add = (event: EventOf<"TaskAssigned">, { idx: of, at }: Batch, state: SwarmState) => {
    assignments.push({ idx: of, at, user: state.taskById.get(event)?.spec.user ?? "", event });
    if (assignments.length >= 2 * most) assignments.splice(0, assignments.length - most);
  };
  const read = await readTo(deps, {
    ...{ idx, before },
    onBatch: (batch, state) => {
      lastIdx = batch.idx;
      for (const event of batch.events) if (event.type === "TaskAssigned") add(event, batch, state);
    },
  });
  if (read === undefined)
    throw new InvalidValueError(`idx: the journal ends with batch ${lastIdx}: choose an earlier one`, {
      field: "idx",
    });
  const { state, batch, firstIdx } = read;
  const chosen = batch.events.findLastIndex((event) => isChosen(event, task));
  const event = batch.events[chosen];
  const isAssigned = event?.type === "TaskAssigned";
  const projects = pastProjects(state, batch.at);
  const users = isAssigned ? waitingUsers(state, batch.at, event).slice(0, most) : [];
  const replay = new AssignmentReplay(
    isAssigned ? event : { project: undefined, task: "" },
    isAssigned ? event.attempt : undefined,
  );
  replay.startFrom(state);
  const decision = replay.take(batch);
  for (const each of batch.events.slice(0, chosen + 1))
    if (each.type === "TaskAssigned") add(each, batch, state);
  return {
    ...{ idx, at: batch.at, firstIdx, projects, users },
    assignments: assignments.slice(-most),
    ...(decision === undefined ? {} : { decision }),
  };
}

function isChosen(event: Event, task: PastMoment["task"]): boolean {
  if (event.type !== "TaskAssigned") return false;
  return task === undefined || (event.task === task.task && event.project === task.project);
}

function pastProjects(state: SwarmState, at: Instant): readonly PastProject[] {
  return projectSharesOf(state, at).map(({ row, share, target }) => ({
    project: row.project,
    share,
    ...(target === undefined ? {} : { target }),
    queued: row.counts.queued,
    running: row.counts.assigned + row.counts.running,
  }));
}

/** Users with tasks in the queue of the assigned task, longest wait first. */
function waitingUsers(state: SwarmState, at: Instant, event: EventOf<"TaskAssigned">): PastUser[] {
  const spec = state.taskById.get(event)?.spec;
  const users: PastUser[] = [];
  for (const queue of state.queueByKey.values())
    if (queue.kind === spec?.kind && queue.role === spec.role && isSameNeeds(queue.needs, spec.needs))
      users.push(...usersIn(queue, at));
  return users.sort((one, other) => other.oldestMs - one.oldestMs);
}

function usersIn({ memberByProject }: TaskQueue, at: Instant): PastUser[] {
  return [...memberByProject].flatMap(([project, { memberByUser }]) =>
    [...memberByUser].map(([user, { size, oldest }]) => ({
      ...{ project, user, waiting: size },
      oldestMs: Math.max(0, at - oldest.queuedAt),
    })),
  );
}
