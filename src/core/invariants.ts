// Numbered checks of a swarm's state between any two events, and after each complete turn (docs/invariants.md has the
// same numbers). The checks recount all that the core only counts, so they cost as much as the state is large. They
// serve tests, the simulator and `verify`. On the hot path `apply` asserts the parts that it touches. Checks from one
// batch to the next: succession.ts.
//
// The simulator checks after every batch. So one walk over the tasks serves all checks, and unchanged facts are not
// read again (roll.ts). A task without violations allocates no text, list or generator.

import type { AgentId, Kind, ProjectId, UserId } from "../ids.ts";
import { taskKey } from "../ids.ts";
import { limits } from "../limits.ts";
import { findHold } from "../state/hold-rows.ts";
import { isHeap } from "../state/indexed-heap.ts";
import { isKindLearnt, isKindUsed } from "../state/kind-rows.ts";
import { queueKey } from "../state/queues.ts";
import { findSlotLease } from "../state/slot-rows.ts";
import {
  type AgentRow,
  emptyCounts,
  isDueEarlier,
  type LiveTaskState,
  type OpenAttempt,
  type ProjectRow,
  type SuccessRecord,
  type SwarmState,
  type TaskCounts,
  type TaskRow,
  type TaskState,
  type Timer,
  type UserRow,
  waitingCount,
} from "../state/state.ts";
import { isKept, refOf } from "../state/task-rows.ts";
import { affinityInvariants } from "./affinity-invariants.ts";
import { holdInvariants } from "./hold-invariants.ts";
import type { Invariant, Violation } from "./invariant.ts";
import { ledgerInvariants } from "./ledger-invariants.ts";
import { queueInvariants, queueInvariantsAfterTurns } from "./queue-invariants.ts";
import { type EnrolledTask, Roll } from "./roll.ts";
import { slotInvariants, slotInvariantsAfterTurns } from "./slot-invariants.ts";

const betweenEvents: readonly Invariant[] = [
  { number: 1, name: "one-state", find: oneStateOfEnded },
  ...queueInvariants,
  { number: 4, name: "attempts-and-agents-agree", find: attemptsAndAgentsAgree },
  { number: 6, name: "assignment-numbers", find: assignmentNumbers },
  { number: 8, name: "timers-belong-to-the-living", find: timersBelongToTheLiving },
  { number: 9, name: "counters-equal-a-recount", find: countersEqualARecount },
  { number: 10, name: "online-by-kind", find: onlineByKind },
  { number: 11, name: "caps", find: caps },
  { number: 12, name: "what-was-learnt-is-sane", find: whatWasLearntIsSane },
  { number: 53, name: "term-starts", find: termStartsInOrder },
  ...slotInvariants,
  ...holdInvariants,
  ...affinityInvariants,
  ...ledgerInvariants,
];

const betweenTurns: readonly Invariant[] = [
  ...betweenEvents,
  ...queueInvariantsAfterTurns,
  { number: 14, name: "nothing-is-overdue", find: nothingIsOverdue },
  ...slotInvariantsAfterTurns,
];

/**
 * All violations of a state between two events; empty when the state is sound.
 * @param roll read after every batch before, each without violations; default: a new roll
 */
export function checkInvariants(state: SwarmState, roll = new Roll()): readonly Violation[] {
  return check(betweenEvents, state, roll);
}

/** The same, with the checks that hold only at the end of a turn that had room for all its work. */
export function checkAfterTurn(state: SwarmState, roll = new Roll()): readonly Violation[] {
  return check(betweenTurns, state, roll);
}

function check(invariants: readonly Invariant[], state: SwarmState, roll: Roll): readonly Violation[] {
  roll.read(state);
  const violations = tasksAmiss(state, roll);
  for (const { number, name, find } of invariants) {
    for (const sentence of find(state, roll)) violations.push({ number, name, sentence });
  }
  return violations;
}

/**
 * The first violation of each check of each live task. The checks are called by name and not from a list: with hundreds
 * of tasks per batch, calls that cannot be inlined cost more than the checks.
 */
function tasksAmiss(state: SwarmState, { live }: Roll): Violation[] {
  const violations: Violation[] = [];
  const note = (number: number, name: string, sentence: string | undefined) => {
    if (sentence !== undefined) violations.push({ number, name, sentence });
  };
  for (const task of live) {
    note(1, "one-state", oneStateOfTask(state, task));
    note(2, "structures-of-the-state", structuresOfTheState(task));
    note(4, "attempts-and-agents-agree", openAttemptOfTask(state, task));
    note(5, "attempts-are-contiguous", attemptsAreContiguous(task));
    note(7, "owner-and-timeout", ownerAndTimeout(state, task));
    note(8, "timers-belong-to-the-living", timersOfTask(task));
    note(11, "caps", refusalsOfTask(task));
  }
  return violations;
}

/**
 * A task must not be live and ended at once. Checked only where a fault could arise: for new entries on either side.
 */
function oneStateOfTask(state: SwarmState, { ref, id, row, isNew }: EnrolledTask): string | undefined {
  if (!isLive(row.state)) return `live task ${id} is ${row.state}`;
  if (!isNew) return undefined;
  if (row.spec.id !== id || row.spec.project !== ref.project)
    return `task ${taskKey(refOf(row.spec))} is kept as ${taskKey(ref)}`;
  if (state.endedById.has(ref)) return `task ${id} is live and has ended`;
  return undefined;
}

function* oneStateOfEnded(state: SwarmState, { newlyEnded }: Roll): Generator<string> {
  for (const ended of newlyEnded) {
    if (isLive(ended.state)) yield `ended task ${ended.id} is ${ended.state}`;
    const row = state.taskById.get(refOf(ended));
    if (row !== undefined) yield `task ${ended.id} has ended and is ${row.state}`;
  }
}

const liveStates: readonly LiveTaskState[] = ["queued", "delayed", "assigned", "running"];

function isLive(state: TaskState): state is LiveTaskState {
  return state === "queued" || state === "delayed" || state === "assigned" || state === "running";
}

function structuresOfTheState({ id, row, hasDeadline: isDue }: EnrolledTask): string | undefined {
  const isQueued = row.state === "queued";
  const isOpen = row.state === "assigned" || row.state === "running";
  const isInQueue = row.partition !== undefined;
  const hasHeapPosition = row.heapAt !== -1;
  const isReleased = row.releaseTimer !== undefined;
  const hasAttempt = row.open !== undefined;
  const hasDeadline = row.deadlineTimer !== undefined;
  if (isInQueue !== isQueued) return `task ${id} is ${row.state}, in a queue: ${isInQueue}`;
  if (hasHeapPosition !== isQueued) return `task ${id} is ${row.state}, in a heap: ${hasHeapPosition}`;
  if (isReleased !== (row.state === "delayed"))
    return `task ${id} is ${row.state}, with a release timer: ${isReleased}`;
  if (hasAttempt !== isOpen) return `task ${id} is ${row.state}, with an open attempt: ${hasAttempt}`;
  if (hasDeadline !== isDue)
    return `task ${id} with a deadline: ${isDue}, with a deadline timer: ${hasDeadline}`;
  if (isOpen && row.open?.state !== row.state) return `task ${id} is ${row.state}, its attempt is not`;
  return undefined;
}

function openAttemptOfTask(state: SwarmState, { id, row: { open } }: EnrolledTask): string | undefined {
  if (open === undefined) return undefined;
  if (open.task !== id) return `task ${id} has an attempt of ${open.task}`;
  if (state.agentById.get(open.agent)?.open.get(open.number) !== open)
    return `the attempt of ${id} does not occupy ${open.agent}`;
  return undefined;
}

function* attemptsAndAgentsAgree(state: SwarmState): Generator<string> {
  for (const agent of state.agentById.values()) {
    if (!agent.online && agent.open.size > 0) yield `offline agent ${agent.id} has open attempts`;
    for (const [number, open] of agent.open) yield* attemptOf(state, agent, number, open);
  }
}

function* attemptOf(
  state: SwarmState,
  agent: AgentRow,
  number: number,
  open: OpenAttempt,
): Generator<string> {
  const name = `attempt ${open.task}#${open.attempt}`;
  if (open.number !== number) yield `${name} is kept under ${number}`;
  if (open.agent !== agent.id) yield `${name} of ${open.agent} occupies ${agent.id}`;
  if (open.incarnation !== agent.incarnation) yield `${name} outlived its agent's incarnation`;
  const isTheTasks = state.taskById.get(open)?.open === open;
  if (isTheTasks === (open.state === "revoked")) yield `${name} is ${open.state}`;
}

/** Every attempt of the round except the open attempt ended without success, and counts as one class of failure. */
function attemptsAreContiguous({ id, row, maxAttempts }: EnrolledTask): string | undefined {
  const closed = row.attemptsBefore + row.failures + row.infrastructureFailures + row.refusals;
  const opened = closed + (row.open === undefined ? 0 : 1);
  if (row.attempt !== opened) return `task ${id} is at attempt ${row.attempt} after ${opened}`;
  if (row.open !== undefined && row.open.attempt !== row.attempt)
    return `task ${id} is at attempt ${row.attempt}, open is ${row.open.attempt}`;
  if (row.failures >= maxAttempts) return `task ${id} is live after its last attempt`;
  return undefined;
}

function* assignmentNumbers(state: SwarmState): Generator<string> {
  for (const agent of state.agentById.values()) {
    if (agent.confirmedNumber > agent.lastNumber)
      yield `agent ${agent.id} confirmed assignments that were never sent`;
    let before = 0;
    for (const { number, state: attemptState } of agent.open.values()) {
      const isConfirmed = number <= agent.confirmedNumber;
      if (number <= before || number > agent.lastNumber) yield `agent ${agent.id} has number ${number} amiss`;
      if (isConfirmed && attemptState === "assigned") yield `number ${number} of ${agent.id} is unconfirmed`;
      if (!isConfirmed && attemptState === "running") yield `number ${number} of ${agent.id} is confirmed`;
      before = number;
    }
  }
}

function ownerAndTimeout(state: SwarmState, { id, row }: EnrolledTask): string | undefined {
  if (row.state !== "assigned" && row.state !== "running") return undefined;
  if (row.open !== undefined && state.agentById.get(row.open.agent)?.online !== true)
    return `task ${id} has no online agent`;
  return row.open?.timeoutTimer === undefined ? `task ${id} is ${row.state} without a time-out` : undefined;
}

/** Timers and their owners refer to each other; running timers stand in the heap. */
function* timersBelongToTheLiving(state: SwarmState): Generator<string> {
  if (!isHeap(state.timers, isDueEarlier)) yield "the timers are out of order";
  for (const timer of state.timers.values()) {
    if (ownTimer(state, timer) !== timer) yield `a ${timer.due.kind} timer has no owner`;
  }
  for (const [agent, slots] of state.slotsByAgent) {
    for (const { handle, timeoutTimer, idleTimer } of slots.values())
      if (isStopped(timeoutTimer) || isStopped(idleTimer)) yield `a timer of ${agent}/${handle} is stopped`;
  }
  for (const agent of state.agentById.values()) {
    if (isStopped(agent.forgetTimer)) yield `the timer of agent ${agent.id} is stopped`;
    if (agent.online === (agent.forgetTimer !== undefined))
      yield `agent ${agent.id} is online: ${agent.online}, with a forget timer: ${agent.forgetTimer !== undefined}`;
  }
}

function ownTimer(state: SwarmState, { due }: Timer): Timer | undefined {
  switch (due.kind) {
    case "release":
      return liveRow(state, due.task)?.releaseTimer;
    case "deadline":
      return liveRow(state, due.task)?.deadlineTimer;
    case "timeout":
      return state.taskById.get(due.attempt)?.open?.timeoutTimer;
    case "acquire-timeout":
      return findSlotLease(state, due.slot.agent, due.slot.handle)?.timeoutTimer;
    case "slot-idle":
      return findSlotLease(state, due.slot.agent, due.slot.handle)?.idleTimer;
    case "forget":
      return state.agentById.get(due.agent)?.forgetTimer;
    case "hold":
      return findHold(state, due.hold)?.timer;
  }
}

function liveRow(state: SwarmState, row: TaskRow): TaskRow | undefined {
  return state.taskById.get(refOf(row.spec)) === row ? row : undefined;
}

function timersOfTask({ id, row }: EnrolledTask): string | undefined {
  const isOneStopped =
    isStopped(row.releaseTimer) || isStopped(row.deadlineTimer) || isStopped(row.open?.timeoutTimer);
  return isOneStopped ? `a timer of task ${id} is stopped` : undefined;
}

/** Whether an owner keeps a timer that is not in the heap. */
function isStopped(timer: Timer | undefined): boolean {
  return timer?.heapAt === -1;
}

/**
 * Live states exactly, of the swarm, each project and each user. Ended tasks only in sum: tasks beyond the horizon, and
 * tasks of evicted projects, are counted and no longer held.
 */
function* countersEqualARecount(state: SwarmState, roll: Roll): Generator<string> {
  yield* liveOnesAreCounted(state, roll);
  yield* idleOnesAreListed(state);
  yield* idleKindsAreListed(state);
  yield* needsAreCounted(state, roll);
  const ever = Object.values(state.counts).reduce((sum, count) => sum + count, 0);
  if (ever !== state.submissions) yield `${state.submissions} tasks were submitted, ${ever} are counted`;
}

function* needsAreCounted({ liveByNeeds }: SwarmState, { live }: Roll): Generator<string> {
  if (liveByNeeds.size === 0 && !live.some(({ hasNeeds }) => hasNeeds)) return; // nearly always
  const counted = new Map<string, number>();
  for (const { spec, hasNeeds } of live) {
    if (!hasNeeds) continue;
    const key = queueKey(spec.kind, spec.role, spec.needs);
    counted.set(key, (counted.get(key) ?? 0) + 1);
  }
  for (const key of new Set([...counted.keys(), ...liveByNeeds.keys()]))
    if (counted.get(key) !== liveByNeeds.get(key))
      yield `${counted.get(key) ?? 0} live tasks are of ${key}, and ${liveByNeeds.get(key) ?? 0} are counted`;
}

function* liveOnesAreCounted(state: SwarmState, roll: Roll): Generator<string> {
  const byUser = yield* recount(state, roll);
  const all = emptyCounts();
  const byProject = new Map<ProjectRow, TaskCounts>();
  for (const { projectRow, counts } of byUser.values()) {
    const sum = byProject.get(projectRow) ?? emptyCounts();
    byProject.set(projectRow, sum);
    for (const name of liveStates) {
      sum[name] += counts[name];
      all[name] += counts[name];
    }
  }
  yield* differences("the swarm", state.counts, all);
  for (const row of state.projectById.values()) {
    const name = `project ${row.project}`;
    yield* differences(name, row.counts, byProject.get(row) ?? none);
    for (const user of row.userByName.values())
      yield* differences(`user ${user.user} of ${name}`, user.counts, byUser.get(user)?.counts ?? none);
  }
}

/** The live tasks of one user, and the rows and names that all of them must share. */
interface Tally {
  readonly userRow: UserRow;
  readonly projectRow: ProjectRow;
  readonly user: UserId;
  readonly project: ProjectId;
  readonly counts: TaskCounts;
}

const none: Readonly<TaskCounts> = emptyCounts();
const states = Object.keys(none) as readonly TaskState[];

/** Counts by the rows that the tasks refer to, and checks once per user that the state refers to the same rows. */
function* recount(state: SwarmState, { live }: Roll): Generator<string, ReadonlyMap<UserRow, Tally>> {
  const byUser = new Map<UserRow, Tally>();
  let tally: Tally | undefined;
  for (const { id, row, user, project } of live) {
    const { userRow, projectRow } = row;
    // Tasks of one user come in runs: the last tally nearly always fits.
    if (tally?.userRow !== userRow) tally = byUser.get(userRow);
    if (tally === undefined) {
      tally = { userRow, projectRow, user, project, counts: emptyCounts() };
      byUser.set(userRow, tally);
      if (!isRead(state, tally)) yield `user ${user} of project ${project} has live tasks and no counters`;
    }
    if (tally.projectRow !== projectRow || tally.user !== user || tally.project !== project)
      yield `task ${id} is counted in rows outside the state`;
    tally.counts[row.state] += 1;
  }
  return byUser;
}

function isRead(state: SwarmState, { projectRow, userRow, project, user }: Tally): boolean {
  return state.projectById.get(project) === projectRow && projectRow.userByName.get(user) === userRow;
}

function* differences(owner: string, counts: TaskCounts, recount: Readonly<TaskCounts>): Generator<string> {
  for (const name of liveStates) {
    if (counts[name] !== recount[name]) yield `${owner} counts ${counts[name]} ${name}, not ${recount[name]}`;
  }
  for (const name of states) if (counts[name] < 0) yield `${owner} counts ${counts[name]} ${name}`;
}

function* onlineByKind(state: SwarmState): Generator<string> {
  for (const agent of state.agentById.values()) {
    for (const kind of agent.kinds) {
      const isListed = state.onlineByKind.get(kind)?.get(agent.id) === agent;
      if (isListed !== agent.online) yield `agent ${agent.id} is listed under ${kind}: ${isListed}`;
    }
    if (!hasRowsOfItsKinds(state, agent)) yield `agent ${agent.id} has kind rows outside the state`;
  }
  for (const [kind, agents] of state.onlineByKind) {
    if (agents.size === 0) yield `kind ${kind} is listed without agents`;
    for (const agent of agents.values())
      if (!agent.kinds.has(kind)) yield `agent ${agent.id} is listed under ${kind}, which it does not serve`;
  }
}

function hasRowsOfItsKinds(state: SwarmState, { online, kinds, kindRows }: AgentRow): boolean {
  if (kindRows.length !== (online ? kinds.size : 0)) return false;
  let at = 0;
  for (const kind of online ? kinds : []) {
    if (kindRows[at] !== state.kindByName.get(kind)) return false;
    at += 1;
  }
  return true;
}

function* idleOnesAreListed(state: SwarmState): Generator<string> {
  for (const row of state.projectById.values()) {
    const { project, counts, live, usersWaiting, userByName, idleUsers } = row;
    let waiting = 0;
    for (const user of userByName.values()) if (waitingCount(user.counts) > 0) waiting += 1;
    if (usersWaiting !== waiting)
      yield `project ${project} counts ${usersWaiting} waiting users, not ${waiting}`;
    if (live !== liveIn(counts)) yield `project ${project} counts ${live} live tasks, of ${liveIn(counts)}`;
    if (state.idleProjects.has(project) !== (live === 0 && !isKept(row)))
      yield `project ${project} with ${live} live tasks is listed wrongly`;
    for (const user of userByName.values()) {
      if (user.live !== liveIn(user.counts))
        yield `user ${user.user} counts ${user.live} live tasks, of ${liveIn(user.counts)}`;
      if (idleUsers.has(user.user) !== (user.live === 0))
        yield `user ${user.user} with ${user.live} live tasks is listed wrongly`;
    }
  }
}

/** A kind has a row only while used, or learned within the maximum of idle kinds. */
function* idleKindsAreListed(state: SwarmState): Generator<string> {
  for (const [kind, row] of state.kindByName) {
    const isUsed = isKindUsed(state, row);
    if (row.kind !== kind) yield `kind ${row.kind} is kept as ${kind}`;
    if (isUsed === state.idleKinds.has(kind)) yield `kind ${kind} is in use: ${isUsed}, and listed wrongly`;
    if (!isUsed && !isKindLearnt(state, row)) yield `kind ${kind} is kept without a reason`;
  }
  for (const kind of [...state.idleKinds, ...state.recordByKind.keys()])
    if (!state.kindByName.has(kind)) yield `values of kind ${kind} are kept without a row`;
}

function liveIn({ queued, delayed, assigned, running }: TaskCounts): number {
  return queued + delayed + assigned + running;
}

function* termStartsInOrder({ term, termStarts, idx }: SwarmState): Generator<string> {
  const rises = termStarts.every((start, at) => {
    const before = termStarts[at - 1];
    return before === undefined || (start.term > before.term && start.idx > before.idx);
  });
  if (!rises) yield "the starts of terms are out of order";
  const last = termStarts.at(-1);
  if ((last?.term ?? 0) !== term) yield `the newest start is of term ${last?.term ?? 0}, not of term ${term}`;
  if ((last?.idx ?? 0) > idx) yield `term ${term} starts behind batch ${idx}`;
}

function* caps(state: SwarmState, { live }: Roll): Generator<string> {
  let fresh = 0;
  for (const { row } of live) if (row.attempt === row.attemptsBefore) fresh += 1;
  yield* within("waiting tasks in their first attempt", fresh, limits.queuedTasksMax);
  yield* within("ended tasks", state.endedById.size, limits.rememberedTasksMax);
  yield* within("agents", state.agentById.size, limits.agentsMax);
  yield* within("starts of terms", state.termStarts.length, limits.rememberedTerms);
  yield* within("different needs", state.liveByNeeds.size, limits.needsQueuesMax);
  yield* within("idle kinds", state.idleKinds.size, limits.idleKindsMax);
  yield* within("holds on types", state.holds.type.size, limits.holdsMax);
  yield* within("types with refusals in a row", state.refusalsInARow.type.size, limits.holdsMax);
  yield* within("projects", state.projectById.size, limits.projectsMax);
  for (const { project, userByName } of state.projectById.values())
    yield* within(`users of ${project}`, userByName.size, limits.usersPerProjectMax);
  for (const agent of state.agentById.values()) {
    const { id, open, kinds, fencedIncarnations, recordByKind } = agent;
    const isWithin =
      open.size <= 2 * limits.maxConcurrentMax &&
      kinds.size <= limits.kindsPerAgentMax &&
      fencedIncarnations.length <= limits.fencedIncarnationsMax &&
      recordByKind.size <= limits.recordsPerAgentMax;
    if (isWithin) continue; // nearly always
    yield* within(`open attempts of ${id}`, open.size, 2 * limits.maxConcurrentMax);
    yield* within(`kinds of ${id}`, kinds.size, limits.kindsPerAgentMax);
    yield* within(`fenced sessions of ${id}`, fencedIncarnations.length, limits.fencedIncarnationsMax);
    yield* within(`kinds with records of ${id}`, recordByKind.size, limits.recordsPerAgentMax);
  }
}

function refusalsOfTask({ id, row }: EnrolledTask): string | undefined {
  const { infrastructureFailures: count } = row;
  const countMax = limits.infrastructureFailuresMax;
  return count > countMax ? `${count} refusals of ${id} by infrastructure, at most ${countMax}` : undefined;
}

function* within(what: string, count: number, countMax: number): Generator<string> {
  if (count > countMax) yield `${count} ${what}, at most ${countMax}`;
}

function* whatWasLearntIsSane(state: SwarmState): Generator<string> {
  yield* recordsAmiss(state, state.recordByKind);
  for (const { id, recordByKind } of state.agentById.values()) yield* recordsAmiss(state, recordByKind, id);
}

function* recordsAmiss(
  { at }: SwarmState,
  recordByKind: ReadonlyMap<Kind, SuccessRecord>,
  agent?: AgentId,
): Generator<string> {
  const owner = agent === undefined ? "the swarm" : `agent ${agent}`;
  for (const [
    kind,
    { successes, failures, attempts, timed, logLatency, spread, updatedAt },
  ] of recordByKind) {
    if (![successes, failures, timed, logLatency, spread].every(isCount))
      yield `the record of ${owner} for ${kind} has an invalid number`;
    // Rounding may exceed the count by a hair.
    if (successes + failures > attempts + 1e-6) yield `${owner} remembers more of ${kind} than it tried`;
    if (updatedAt > at) yield `the record of ${owner} for ${kind} is in the future`;
  }
}

function isCount(value: number): boolean {
  return Number.isFinite(value) && value >= 0;
}

function* nothingIsOverdue(state: SwarmState): Generator<string> {
  const first = state.timers.peek();
  if (first !== undefined && first.dueAt <= state.at)
    yield `a ${first.due.kind} timer was due ${state.at - first.dueAt} ms ago`;
}
