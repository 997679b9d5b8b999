// What the journal adds up to: tasks, attempts, agents, queues, and what was learnt. One owner mutates it,
// through `apply` alone; everybody else reads (an open round of the planner borrows the queues: planner.ts).
// Everything here follows from events, so that a replay, a standby and the leader hold the same state at the same
// batch.
// Not here: heartbeats, connections, who waits for an answer (the coordinator's shell keeps those).

import type {
  AgentId,
  AssignmentNumber,
  AttemptNumber,
  BatchIndex,
  GroupId,
  Incarnation,
  Instant,
  Kind,
  ProjectId,
  ResourceName,
  SlotHandle,
  TaskId,
  Term,
  Token,
  UserId,
} from "../ids.ts";
import { limits } from "../limits.ts";
import type { Account } from "./account.ts";
import { AgedMap } from "./aged-map.ts";
import type { ClockQueue, Member } from "./clock-queue.ts";
import type { SlotReleaseReason, SlotWaitEndReason, TaskSpec } from "./event.ts";
import { type HeapItem, IndexedHeap } from "./indexed-heap.ts";
import { defaultPolicy, type Policy } from "./policy.ts";
import type { RateUse } from "./rate.ts";
import { emptyWindow, type RollingWindow } from "./rolling-window.ts";
import type { KindSettings, ProjectSettings, RateSettings, ResourceSettings } from "./settings.ts";
import { TaskMap } from "./task-map.ts";
import type { UseHistory } from "./use-history.ts";

export type LiveTaskState = "queued" | "delayed" | "assigned" | "running";
export type EndedTaskState = "completed" | "failed" | "cancelled" | "expired" | "dead-lettered";
export type TaskState = LiveTaskState | EndedTaskState;

export interface TaskRow extends HeapItem {
  readonly spec: TaskSpec;
  /** Of the submitted content: same id and hash is the same task. */
  readonly hash: string;
  /** Order of submission, from 1, unique in the journal. A retry keeps it. */
  readonly sequence: number;
  readonly submittedIdx: BatchIndex;
  /** From 1: how often it was submitted or retried. */
  readonly round: number;
  /** When its round began, by its submission or by a retry, and the batch that says so: its payload stands there. */
  readonly roundAt: Instant;
  readonly roundIdx: BatchIndex;
  /** The last attempt of the rounds before; 0 in the first. */
  readonly attemptsBefore: number;
  /** Where it is counted: its user's row and its project's; rows with live tasks are never evicted. */
  readonly userRow: UserRow;
  readonly projectRow: ProjectRow;
  state: LiveTaskState;
  /** Its weight in whole thousandths: what a grant charges. */
  readonly cost: number;
  /** When it was last queued; its age counts from here. */
  queuedAt: Instant;
  /** `state.orders`, its kind's tick, and the turns its user has had in the queue, when it was last queued. */
  queuedOrder: number;
  queuedTick: number;
  queuedTurn: number;
  /** The last attempt that was opened; 0 before the first. Attempts are numbered on from round to round. */
  attempt: number;
  /** Attempts of its round that count against `maxAttempts`. */
  failures: number;
  infrastructureFailures: number;
  /** The agent of the last attempt of this or an earlier round. */
  lastAgent: AgentId | undefined;
  /** Agents that failed the task in its present round, sorted. They get the task again only when no other agent serves
   *  its kind. */
  failedBy: readonly AgentId[];
  open: OpenAttempt | undefined;
  partition: TaskPartition | undefined;
  /** Its neighbours in the queue by `queuedOrder`. */
  older: TaskRow | undefined;
  newer: TaskRow | undefined;
  releaseTimer: Timer | undefined;
  deadlineTimer: Timer | undefined;
}

/** An attempt that occupies one of its agent's places: under way, or revoked and not yet confirmed as stopped. */
export interface OpenAttempt {
  readonly task: TaskId;
  readonly project: ProjectId;
  /** What it runs as: the task's own kind, or the cheaper one that a budget made of it. */
  readonly kind: Kind;
  readonly weight: number;
  /** Held back from the budgets until it is settled. */
  readonly tokensReserved: number;
  /** The submitter's estimate, if it gave one. */
  readonly tokensSaid: number | undefined;
  /** Of its agent when it was assigned: whose rate its tokens count for. */
  readonly agentType: string | undefined;
  /** What its grant charged to its project and user, thousandths of weight. */
  readonly charged: number;
  readonly attempt: AttemptNumber;
  readonly agent: AgentId;
  readonly incarnation: Incarnation;
  readonly number: AssignmentNumber;
  readonly token: Token;
  readonly assignedAt: Instant;
  readonly assignedTick: number;
  /** `revoked`: the task has moved on, the agent has not yet confirmed that it stopped. */
  state: "assigned" | "running" | "revoked";
  timeoutTimer: Timer | undefined;
}

/** Successes and failures of one agent (or the swarm) for one kind, with exponential forgetting applied. */
export interface SuccessRecord {
  successes: number;
  failures: number;
  /** Attempts ever completed here, without forgetting. */
  completed: number;
  /** Attempts ever counted here, without forgetting. */
  attempts: number;
  /** Completed attempts of which the latency is remembered, with the same forgetting in count. */
  timed: number;
  /** Mean of log₂ of their latencies in ms, each bounded (`limits.latencyOutlierBits`); 0 before the first. */
  logLatency: number;
  /** Mean of their squared distances from that mean; 0 before the second. */
  spread: number;
  /** Of a slow agent: how often its probes were slow, less how often they were quick. */
  probeStep: number;
  /** A slow agent is probed once the swarm has made so many attempts of the kind; 0: the agent is not slow. */
  probeFrom: number;
  updatedAt: Instant;
  /** The last step of time (`limits.rateEpochMs`) with an outcome, and what was expected when it began. Kept for
   *  the swarm's records. */
  epochAt: Instant;
  epochRate: number;
  epochAttempts: number;
  /** Absent while no latency was known. */
  epochLogLatency: number | undefined;
}

export interface Suspension {
  readonly until: Instant;
  /** From 1; the back-off doubles with it. */
  readonly step: number;
}

export interface AgentRow {
  readonly id: AgentId;
  /** Of its present or last life; `_`: none. */
  group: GroupId;
  incarnation: Incarnation;
  online: boolean;
  draining: boolean;
  unresponsive: boolean;
  kinds: ReadonlySet<Kind>;
  role: string | undefined;
  agentType: string | undefined;
  labels: Readonly<Record<string, string>>;
  /** The rows of its kinds while it is online; empty while it is not. */
  kindRows: readonly KindRow[];
  /** The n-th join of the swarm. */
  joinedOrder: number;
  maxConcurrent: number;
  prefetch: number;
  /** What occupies its places, by assignment number, oldest first. */
  readonly open: Map<AssignmentNumber, OpenAttempt>;
  /** Of this incarnation; 0 before the first. */
  lastNumber: number;
  /** Highest number it is known to have received with none missing. */
  confirmedNumber: number;
  /** `state.assignments` at its last assignment: smaller means longer ago. */
  lastAssignedOrder: number;
  /** Attempts it completed, in all its lives. */
  completed: number;
  joinedAt: Instant;
  leftAt: Instant | undefined;
  /** Lives of it that a later start put an end to, newest last, and when the newest ended: processes that may still
   *  think they are alive. The newest `limits.fencedLivesMax`. */
  fencedLives: readonly Incarnation[];
  fencedAt: Instant | undefined;
  /** Lives of it that were assigned something and ended otherwise, newest last: a join of one that comes late begins
   *  nothing. The newest `limits.pastLivesMax`. */
  pastLives: readonly Incarnation[];
  readonly recordByKind: Map<Kind, SuccessRecord>;
  readonly suspensionByKind: Map<Kind, Suspension>;
  forgetTimer: Timer | undefined;
}

/** Queued tasks of one kind and role. */
export interface TaskQueue {
  readonly key: string;
  readonly kind: Kind;
  readonly role: string | undefined;
  readonly kindRow: KindRow;
  /** Tasks that wait in it. */
  size: number;
  readonly memberByProject: Map<ProjectId, QueueProject>;
  readonly projects: ClockQueue<QueueProject>;
}

/** A project's part of a queue. */
export interface QueueProject extends Member {
  readonly row: ProjectRow;
  readonly queue: TaskQueue;
  /** Grants since it entered. */
  turns: number;
  size: number;
  /** Of its tasks here, thousandths of weight. */
  cost: number;
  readonly memberByUser: Map<UserId, QueueUser>;
  readonly users: ClockQueue<QueueUser>;
}

/** A user's part of a project's part of a queue. */
export interface QueueUser extends Member {
  readonly row: UserRow;
  readonly project: QueueProject;
  /** Grants since it entered. */
  turns: number;
  size: number;
  cost: number;
  /** None of them empty. Nearly always one. */
  readonly partitions: TaskPartition[];
  /** Which of its tasks here is least by (priority, submission), and which waits longest; and by what tasks are
   *  compared with those of other queues, so that a decision reads one task and not one of each queue. */
  first: TaskRow;
  firstPriority: number;
  firstSequence: number;
  oldest: TaskRow;
  oldestOrder: number;
  oldestTurn: number;
}

/** Tasks that any given agent may either all run or all not. */
export interface TaskPartition {
  readonly user: QueueUser;
  /** Agents that failed these tasks, sorted. */
  readonly avoid: readonly AgentId[];
  /** By (priority, order of submission). */
  readonly tasks: IndexedHeap<TaskRow>;
  /** By `queuedOrder`: the ends of a list through `TaskRow.newer` and `TaskRow.older`. */
  oldest: TaskRow | undefined;
  newest: TaskRow | undefined;
}

/** Something due at an instant; popped by `Tick`. */
export interface Timer extends HeapItem {
  readonly dueAt: Instant;
  /** Total order among equal instants. */
  readonly order: number;
  readonly due:
    | { readonly kind: "release" | "deadline"; readonly task: TaskRow }
    | { readonly kind: "timeout"; readonly attempt: OpenAttempt }
    | { readonly kind: "acquire-timeout"; readonly slot: SlotLeaseRow }
    | { readonly kind: "forget"; readonly agent: AgentId };
}

/** What remains of an ended task within the horizon of idempotency. Its result stands in batch `endedIdx`, its payload
 *  in batch `roundIdx`. */
export interface EndedTask {
  readonly id: TaskId;
  readonly project: ProjectId;
  readonly user: UserId;
  readonly kind: Kind;
  readonly hash: string;
  readonly state: EndedTaskState;
  readonly sequence: number;
  /** The one that ended. */
  readonly round: number;
  /** The last attempt, of all rounds; 0 when it never had one. */
  readonly attempts: number;
  /** The agent of the last attempt; absent when it never had one. */
  readonly agent?: AgentId;
  readonly submittedIdx: BatchIndex;
  readonly roundIdx: BatchIndex;
  readonly endedAt: Instant;
  readonly endedIdx: BatchIndex;
}

/** Live tasks by state and ended ones by outcome: counters, never recounts. Ended ones are counted for ever; a task
 *  that is retried is counted as live again, and no longer as it had ended. A project or user whose row gave way to
 *  another meanwhile had lost that count, and loses no other. */
export type TaskCounts = Record<TaskState, number>;

/** What the swarm knows of a kind beyond its agents and its queue. */
export interface KindRow {
  readonly kind: Kind;
  /** Absent while nothing was set. */
  settings: KindSettings | undefined;
  /** Mean tokens of its attempts that reported any, exponentially weighted; absent before the first. */
  tokensMean?: number;
  /** The same mean of what was estimated and of what was used, tokens, of its attempts whose submitter gave an
   *  estimate; absent before the first. */
  estimateMeans?: { estimated: number; used: number };
  /** Places that became free at agents that serve it, since the row was made: no task waits from before. */
  tick: number;
  /** Queues it has tasks in. */
  queues: number;
}

export interface ResourceRow {
  readonly resource: ResourceName;
  settings: ResourceSettings;
  /** Releases so far: LOCO's clock. Ages of what waits here are in these ticks. */
  tick: number;
  /** Slots held; more than there are only after their number was lowered. */
  inUse: number;
  /** What holds and what waits for slots of it, in order of granting and of asking, by `slotLeaseKey`. */
  readonly holdings: Map<string, SlotLeaseRow>;
  readonly waiting: Map<string, SlotLeaseRow>;
  /** Sum of what waits. */
  waitingWeightThousandths: number;
  /** α as it has moved by itself since it was last set, here or in the policy; absent until it moves. */
  tunedAlpha: number | undefined;
  /** Weights that waited after each of the last ticks, oldest first (`depthsWith`). */
  depths: readonly number[];
  /** Grants ever made. */
  grants: number;
  /** Integrals over time since it was first set: slots held, and slots there were; slot-milliseconds. */
  heldSlotMs: number;
  slotMs: number;
  /** Up to when. */
  measuredAt: Instant;
}

/** One slot lease, from the request to the release: all of its slots wait, or all are held. */
export interface SlotLeaseRow {
  readonly handle: SlotHandle;
  readonly agent: AgentId;
  readonly incarnation: Incarnation;
  /** The line of work within the agent that holds it; absent when the agent as a whole does. */
  readonly holder: string | undefined;
  /** Slots wanted by resource, in name order. */
  readonly needs: ReadonlyMap<ResourceName, number>;
  readonly weightThousandths: number;
  /** Order of asking, from 1, unique in the journal. */
  readonly order: number;
  readonly requestedAt: Instant;
  /** Each resource's tick when it was asked for. */
  readonly requestedTicks: ReadonlyMap<ResourceName, number>;
  state: "waiting" | "held";
  /** Absent while it waits. */
  grantedAt: Instant | undefined;
  /** When the wait ends without a slot. */
  readonly deadline: Instant | undefined;
  timeoutTimer: Timer | undefined;
}

/** What remains of a slot lease that ended: how. */
export type SlotEnding = SlotReleaseReason | SlotWaitEndReason;

/** Tokens used by agents of one type in one window. */
export interface RateRow {
  readonly agentType: string;
  settings: RateSettings;
  readonly use: RateUse;
}

/** None of the lists empty; at most one row for each window, the shortest window first. */
export type RatesByType = Map<string, readonly RateRow[]>;

/** Tokens of a project, or of the swarm (state/budget-rows.ts keeps it). */
export interface TokenLedger {
  /** Held back for open attempts, revoked ones included: the sum of what each reserved. */
  reserved: number;
  /** Spent in the last `policy.guaranteeMs`, with or without a budget: what shares are compared by. */
  usage: RollingWindow;
  /** Spent in the budget's own window; absent without a budget. */
  spent: RollingWindow | undefined;
  /** Spent so far: where a window that is new, or of another length, begins. */
  readonly history: UseHistory;
  /** When it was last put on record that the budget is exceeded. */
  exceededAt: Instant | undefined;
}

/** An attempt whose reservation was returned because its agent was lost: what it used all the same is charged
 *  when its report comes after all, once. */
export interface UnchargedAttempt {
  readonly task: TaskId;
  readonly attempt: AttemptNumber;
  readonly project: ProjectId;
  readonly agentType: string | undefined;
  readonly tokensReserved: number;
  readonly lostAt: Instant;
}

export interface UserRow {
  readonly user: UserId;
  readonly counts: TaskCounts;
  readonly account: Account;
  /** Tasks that have not ended. */
  live: number;
  /** Sum and maximum of the time from submission to the first assignment, ms. */
  waitMsSum: number;
  waitMsMax: number;
  started: number;
}

export interface ProjectRow {
  readonly project: ProjectId;
  /** Absent while nothing was set: the defaults hold (`projectSettingsOf`). A row with settings is never evicted. */
  settings: ProjectSettings | undefined;
  isPaused: boolean;
  readonly counts: TaskCounts;
  readonly ledger: TokenLedger;
  /** Attempts that occupy a place, revoked ones included. */
  openAttempts: number;
  readonly account: Account;
  /** Of its users. */
  virtualTime: number;
  /** Tasks that have not ended. */
  live: number;
  /** Users with tasks that are queued or delayed. */
  usersWaiting: number;
  readonly userByName: Map<UserId, UserRow>;
  /** Users without live tasks, idle longest first: they give way to new ones. */
  readonly idleUsers: Set<UserId>;
}

export interface SwarmState {
  term: Term;
  leader: string;
  /** T of the term: how long its leader may be silent, ms; 0 before the first term. */
  leaderTimeoutMs: number;
  /** Of the last applied batch; 0 before the first. */
  idx: BatchIndex;
  /** The first batch that is kept to be read; 1 until the audit was trimmed. */
  auditFirstIdx: BatchIndex;
  at: Instant;
  /** What ended before may be forgotten: `policy.rememberMs` of led time ago (journal-time.ts). */
  horizonAt: Instant;
  /** Units of work completed. */
  tick: number;
  /** Tasks ever submitted; the last one's `sequence`. */
  submissions: number;
  /** Assignments ever made. */
  assignments: number;
  /** Joins ever. */
  joins: number;
  /** Entries into queues and assignments ever: what comes later has the higher order. */
  orders: number;
  /** Of the projects (docs/scheduling.md, "The clocks"). */
  virtualTime: number;
  timersEver: number;
  /** Live tasks, in the order in which their rounds began. */
  readonly taskById: TaskMap<TaskRow>;
  /** In order of ending. */
  readonly endedById: TaskMap<EndedTask>;
  readonly agentById: Map<AgentId, AgentRow>;
  /** Online agents by the kinds they serve, in order of joining. */
  readonly onlineByKind: Map<Kind, Map<AgentId, AgentRow>>;
  readonly queueByKey: Map<string, TaskQueue>;
  readonly timers: IndexedHeap<Timer>;
  readonly recordByKind: Map<Kind, SuccessRecord>;
  readonly projectById: Map<ProjectId, ProjectRow>;
  /** Projects without live tasks and settings, idle longest first: they give way to new ones. */
  readonly idleProjects: Set<ProjectId>;
  readonly counts: TaskCounts;
  readonly ledger: TokenLedger;
  /** Attempts that occupy a place, revoked ones included. */
  openAttempts: number;
  /** Those with a budget. */
  readonly budgetedProjects: Set<ProjectId>;
  /** By `unchargedKey`, lost longest ago first. */
  readonly uncharged: AgedMap<string, UnchargedAttempt>;
  policy: Policy;
  isPaused: boolean;
  /** Those in use, and of which something was learnt (kind-rows.ts). */
  readonly kindByName: Map<Kind, KindRow>;
  /** Of those the ones not in use, idle longest first: they give way to others. */
  readonly idleKinds: Set<Kind>;
  readonly resourceByName: Map<ResourceName, ResourceRow>;
  /** Resources that somebody waits for. */
  readonly contendedByName: Map<ResourceName, ResourceRow>;
  /** Slot leases that wait or are held; agents without any are not in it. */
  readonly slotsByAgent: Map<AgentId, Map<SlotHandle, SlotLeaseRow>>;
  /** By `slotLeaseKey`, ended longest ago first; as many as `limits.endedHandlesMax`. */
  readonly endedSlotByKey: AgedMap<string, SlotEnding>;
  /** Slot leases ever begun; the last one's `order`. */
  slotLeases: number;
  readonly ratesByType: RatesByType;
  /** What open attempts reserved by the type of their agents, of types with one; limited or not. */
  readonly reservedByType: Map<string, number>;
  /** Rates that were removed, longest ago first, while something of their use counts: set anew, they go on from it. */
  readonly removedRatesByType: RatesByType;
}

export function emptyCounts(): TaskCounts {
  return {
    queued: 0,
    delayed: 0,
    assigned: 0,
    running: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
    expired: 0,
    "dead-lettered": 0,
  };
}

/** @param usageMs `policy.guaranteeMs` */
export function emptyLedger(usageMs: number): TokenLedger {
  return { reserved: 0, usage: emptyWindow(usageMs), spent: undefined, history: [], exceededAt: undefined };
}

/** The state before the first batch. */
export function emptyState(): SwarmState {
  return {
    term: 0 as Term,
    leader: "",
    leaderTimeoutMs: 0,
    idx: 0 as BatchIndex,
    auditFirstIdx: 1 as BatchIndex,
    at: 0 as Instant,
    horizonAt: -defaultPolicy.rememberMs as Instant,
    tick: 0,
    submissions: 0,
    assignments: 0,
    joins: 0,
    orders: 0,
    virtualTime: 0,
    timersEver: 0,
    taskById: new TaskMap(),
    endedById: new TaskMap(),
    agentById: new Map(),
    onlineByKind: new Map(),
    queueByKey: new Map(),
    timers: new IndexedHeap(isDueEarlier),
    recordByKind: new Map(),
    projectById: new Map(),
    idleProjects: new Set(),
    counts: emptyCounts(),
    ledger: emptyLedger(defaultPolicy.guaranteeMs),
    openAttempts: 0,
    budgetedProjects: new Set(),
    uncharged: new AgedMap(),
    policy: defaultPolicy,
    isPaused: false,
    kindByName: new Map(),
    idleKinds: new Set(),
    resourceByName: new Map(),
    contendedByName: new Map(),
    slotsByAgent: new Map(),
    endedSlotByKey: new AgedMap(),
    slotLeases: 0,
    ratesByType: new Map(),
    reservedByType: new Map(),
    removedRatesByType: new Map(),
  };
}

/** What holds for a project of which nothing was set. */
export const defaultProjectSettings: ProjectSettings = {
  creditWeight: 1,
  queueMax: limits.queuedTasksPerProjectMax,
};

/** What holds for a kind of which nothing was set. */
export const defaultKindSettings: KindSettings = { importance: 1 };

export function projectSettingsOf(row: ProjectRow): ProjectSettings {
  return row.settings ?? defaultProjectSettings;
}

export function kindSettingsOf(row: KindRow): KindSettings {
  return row.settings ?? defaultKindSettings;
}

export function isDueEarlier(a: Timer, b: Timer): boolean {
  return a.dueAt !== b.dueAt ? a.dueAt < b.dueAt : a.order < b.order;
}

/** The places an agent has in all: what runs at once and what it prefetches. */
export function placesOf(agent: AgentRow): number {
  return agent.maxConcurrent + agent.prefetch;
}

/** Whether it is there to run tasks. One without kinds is there for slots alone: it is no candidate for anything, and
 *  whoever counts or compares agents leaves it out. */
export function runsTasks(agent: AgentRow): boolean {
  return agent.kinds.size > 0;
}

/** Whether it came for slots alone, in all its lives: nothing was learnt of it, and no number or token given to it. */
export function cameForSlots(agent: AgentRow): boolean {
  return !runsTasks(agent) && agent.lastAssignedOrder === 0;
}

/** When the next timer is due, or undefined when nothing waits for time. */
export function nextDueAt(state: SwarmState): Instant | undefined {
  return state.timers.peek()?.dueAt;
}

/** Tasks that wait: queued or delayed. */
export function waitingCount(counts: TaskCounts): number {
  return counts.queued + counts.delayed;
}
