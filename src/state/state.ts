// The state that the journal's events add up to: tasks, attempts, agents, queues, and learned values. One owner mutates
// the state, through `apply` alone; all other code only reads. An open round of the planner borrows the queues
// (planner.ts). Everything here follows from events: a replay, a standby and the leader hold the same state at the same
// batch. Not here: heartbeats, connections, and pending replies (the coordinator's shell keeps them).

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
  TaskRef,
  Term,
  Token,
  UserId,
} from "../ids.ts";
import { limits } from "../limits.ts";
import type { Account } from "./account.ts";
import { AgedMap } from "./aged-map.ts";
import type { ClockQueue, Member } from "./clock-queue.ts";
import type { EndedTaskState } from "./ended-task.ts";
import { EndedTasks } from "./ended-tasks.ts";
import type { SlotReleaseReason, SlotWaitEndReason, TaskSpec } from "./event.ts";
import { Grants } from "./grant.ts";
import type { HoldBasis, HoldProbe, HoldScope, RefusalRow } from "./hold.ts";
import { type HeapItem, IndexedHeap } from "./indexed-heap.ts";
import type { Labels, Needs } from "./needs.ts";
import { defaultPolicy, type Policy } from "./policy.ts";
import type { RateUse } from "./rate.ts";
import { emptyWindow, type RollingWindow } from "./rolling-window.ts";
import type { KindSettings, ProjectSettings, RateSettings, ResourceSettings } from "./settings.ts";
import { TaskMap } from "./task-map.ts";
import type { UseHistory } from "./use-history.ts";

export type LiveTaskState = "queued" | "delayed" | "assigned" | "running";
export type TaskState = LiveTaskState | EndedTaskState;

export interface TaskRow extends HeapItem {
  /** As submitted; `notBefore` changes when the task is rescheduled. */
  spec: TaskSpec;
  /** Hash of the submitted content: a submit with the same id and hash is the same task. */
  readonly hash: string;
  /** Order of submission, from 1, unique in the journal. A retry keeps the sequence. */
  readonly sequence: number;
  readonly submittedIdx: BatchIndex;
  /** From 1: the number of submissions and retries. */
  readonly round: number;
  /**
   * When the round began, by the submission or a retry, and the batch of that event. The payload stands in the batch.
   */
  readonly roundAt: Instant;
  readonly roundIdx: BatchIndex;
  /** The last attempt of earlier rounds; 0 in the first round. */
  readonly attemptsBefore: number;
  /** The rows that count the task: its user's and its project's. Rows with live tasks are never evicted. */
  readonly userRow: UserRow;
  readonly projectRow: ProjectRow;
  state: LiveTaskState;
  /** The weight in whole thousandths: a grant's charge. */
  readonly cost: number;
  /** When the task was last queued; its age counts from here. */
  queuedAt: Instant;
  /** `state.orders`, its kind's tick, and its user's turns in the queue, when the task was last queued. */
  queuedOrder: number;
  queuedTick: number;
  queuedTurn: number;
  /** The last attempt that was opened; 0 before the first. Attempt numbers continue from round to round. */
  attempt: number;
  /** Attempts of the round that count against `maxAttempts`. */
  failures: number;
  infrastructureFailures: number;
  /** Attempts of the round that ended with their agent on hold. They count towards no limit. */
  refusals: number;
  /** The agent of the last attempt in any round. */
  lastAgent: AgentId | undefined;
  /**
   * Agents that failed the task in its present round, sorted. These agents get the task again only when no other agent
   * serves its kind.
   */
  failedBy: readonly AgentId[];
  open: OpenAttempt | undefined;
  partition: TaskPartition | undefined;
  /** Neighbours in the partition by `queuedOrder`. */
  older: TaskRow | undefined;
  newer: TaskRow | undefined;
  releaseTimer: Timer | undefined;
  deadlineTimer: Timer | undefined;
}

/** An attempt that occupies its agent's capacity: under way, or revoked and not yet confirmed as stopped. */
export interface OpenAttempt {
  readonly task: TaskId;
  readonly project: ProjectId;
  /** The kind that runs: the task's own, or the cheaper kind chosen by a budget. */
  readonly kind: Kind;
  readonly weight: number;
  /** Reserved in the budgets until the attempt is settled. */
  readonly tokensReserved: number;
  /** The submitter's estimate, if any. */
  readonly tokensSaid: number | undefined;
  /** The agent's type at assignment: its rates count the attempt's tokens. */
  readonly agentType: string | undefined;
  /** The grant's charge to project and user, thousandths of weight. */
  readonly charged: number;
  readonly attempt: AttemptNumber;
  readonly agent: AgentId;
  readonly incarnation: Incarnation;
  readonly number: AssignmentNumber;
  readonly token: Token;
  readonly assignedAt: Instant;
  readonly assignedTick: number;
  /** `revoked`: the task has moved on; the agent has not yet confirmed that the attempt stopped. */
  state: "assigned" | "running" | "revoked";
  /** Resources with refusals in a row whose slots the attempt released unrefused: its completion empties their rows. */
  clears: readonly ResourceName[];
  /** Whether the attempt was granted slots. */
  hasHeldSlots: true | undefined;
  timeoutTimer: Timer | undefined;
}

/** Successes and failures of one agent (or the swarm) for one kind, with exponential forgetting applied. */
export interface SuccessRecord {
  successes: number;
  failures: number;
  /** Attempts ever completed, without forgetting. */
  completed: number;
  /** Attempts ever counted, without forgetting. */
  attempts: number;
  /** Completed attempts with a remembered latency, faded like the counts. */
  timed: number;
  /** Mean of log₂ of the latencies in ms, each bounded (`limits.latencyOutlierBits`); 0 before the first. */
  logLatency: number;
  /** Mean squared deviation of log₂ from that mean; 0 before the second. */
  spread: number;
  /** Slow probes less quick probes of a slow agent, from 0 to `limits.probeStepMax`. */
  probeStep: number;
  /** A slow agent is probed once the swarm has made so many attempts of the kind; 0: the agent is not slow. */
  probeFrom: number;
  updatedAt: Instant;
  /**
   * The last step of time (`limits.rateEpochMs`) with an outcome, and the expectation at its start. Only the swarm's
   * records use these fields.
   */
  epochAt: Instant;
  epochRate: number;
  epochAttempts: number;
  /** Absent while no latency was known. */
  epochLogLatency: number | undefined;
}

export interface Suspension {
  readonly until: Instant;
  /** From 1; the back-off doubles with each step. */
  readonly step: number;
}

export interface AgentRow {
  readonly id: AgentId;
  /** Group of the present or last session; `_`: none. */
  group: GroupId;
  incarnation: Incarnation;
  online: boolean;
  draining: boolean;
  unresponsive: boolean;
  kinds: ReadonlySet<Kind>;
  role: string | undefined;
  agentType: string | undefined;
  labels: Labels;
  /** The rows of the agent's kinds while online; empty while offline. */
  kindRows: readonly KindRow[];
  /** The n-th join of the swarm. */
  joinedOrder: number;
  maxConcurrent: number;
  prefetch: number;
  /** The attempts that occupy the agent's capacity, by assignment number, oldest first. */
  readonly open: Map<AssignmentNumber, OpenAttempt>;
  /** Highest assignment number of this incarnation; 0 before the first assignment. */
  lastNumber: number;
  /** Highest assignment number that the agent received with none missing. */
  confirmedNumber: number;
  /** `state.assignments` at the agent's last assignment: smaller means longer ago. */
  lastAssignedOrder: number;
  /** Attempts completed in all sessions. */
  completed: number;
  joinedAt: Instant;
  leftAt: Instant | undefined;
  /**
   * Sessions ended by a later start, newest last, and when the newest ended: processes that may still believe they are
   * the agent. At most `limits.fencedIncarnationsMax`, the newest.
   */
  fencedIncarnations: readonly Incarnation[];
  fencedAt: Instant | undefined;
  readonly recordByKind: Map<Kind, SuccessRecord>;
  readonly suspensionByKind: Map<Kind, Suspension>;
  forgetTimer: Timer | undefined;
}

/** Queued tasks of one kind and role, with the same needs. */
export interface TaskQueue {
  readonly key: string;
  readonly kind: Kind;
  readonly role: string | undefined;
  readonly needs: Needs | undefined;
  readonly kindRow: KindRow;
  /** Tasks in the queue. */
  size: number;
  readonly memberByProject: Map<ProjectId, QueueProject>;
  readonly projects: ClockQueue<QueueProject>;
}

/** A project's part of a queue. */
export interface QueueProject extends Member {
  readonly row: ProjectRow;
  readonly queue: TaskQueue;
  /** Grants since the project entered. */
  turns: number;
  size: number;
  /** Cost of the project's tasks in the queue, thousandths of weight. */
  cost: number;
  readonly memberByUser: Map<UserId, QueueUser>;
  readonly users: ClockQueue<QueueUser>;
}

/** A user's part of a project's part of a queue. */
export interface QueueUser extends Member {
  readonly row: UserRow;
  readonly project: QueueProject;
  /** Grants since the user entered. */
  turns: number;
  size: number;
  cost: number;
  /** None empty. Nearly always one. */
  readonly partitions: TaskPartition[];
  /**
   * The user's first task in the queue by (priority, submission) and the longest waiting task, with the values that
   * compare them across queues. So a decision reads one task, not a task of each queue.
   */
  first: TaskRow;
  firstPriority: number;
  firstSequence: number;
  oldest: TaskRow;
  oldestOrder: number;
  oldestTurn: number;
}

/** Tasks that any given agent may either all run or all not run. */
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

/** Work due at an instant; popped by `Tick`. */
export interface Timer extends HeapItem {
  readonly dueAt: Instant;
  /** Total order among equal instants. */
  readonly order: number;
  readonly due:
    | { readonly kind: "release" | "deadline"; readonly task: TaskRow }
    | { readonly kind: "timeout"; readonly attempt: OpenAttempt }
    | { readonly kind: "acquire-timeout" | "slot-idle"; readonly slot: SlotLeaseRow }
    | { readonly kind: "forget"; readonly agent: AgentId }
    | { readonly kind: "hold"; readonly hold: HoldRow };
}

/**
 * Live tasks by state and ended tasks by outcome: counters, never recounts. Ended tasks count for ever. A retried task
 * counts as live again, and no longer by its old outcome. The row of a project or user evicted meanwhile lost the old
 * count, and loses nothing more.
 */
export type TaskCounts = Record<TaskState, number>;

/** The swarm's knowledge of a kind, beyond the kind's agents and queues. */
export interface KindRow {
  readonly kind: Kind;
  /** Absent while nothing was set. */
  settings: KindSettings | undefined;
  /** Mean tokens of the kind's attempts that reported tokens, exponentially weighted; absent before the first. */
  tokensMean?: number;
  /**
   * The same mean of estimates and of use, in tokens, over attempts with a submitter's estimate; absent before the
   * first.
   */
  estimateMeans?: { estimated: number; used: number };
  /** Times that capacity became free at agents of the kind, since the row was made: no task waits from before. */
  tick: number;
  /** Queues with tasks of the kind. */
  queues: number;
}

export interface ResourceRow {
  readonly resource: ResourceName;
  settings: ResourceSettings;
  /** Releases so far: LOCO's clock. Waiters' ages are in these ticks. */
  tick: number;
  /** Slots held; above `settings.slots` only after an operator lowered the number. */
  inUse: number;
  /** Slot leases that hold and that wait for slots, in order of granting and of asking, by `slotLeaseKey`. */
  readonly holdings: Map<string, SlotLeaseRow>;
  readonly waiting: Map<string, SlotLeaseRow>;
  /** Sum of the waiting weights. */
  waitingWeightThousandths: number;
  /** α as tuned automatically since α was last set, here or in the policy; absent until α moves. */
  tunedAlpha: number | undefined;
  /** Waiting weights after each of the last ticks, oldest first (`depthsWith`). */
  depths: readonly number[];
  /** Grants ever made. */
  grants: number;
  /** Integrals over time since the resource was first set: slots held, and slots configured; slot-milliseconds. */
  heldSlotMs: number;
  slotMs: number;
  /** The instant up to which the integrals count. */
  measuredAt: Instant;
}

/** One slot lease, from the request to the release: all its slots wait, or all are held. */
export interface SlotLeaseRow {
  readonly handle: SlotHandle;
  readonly agent: AgentId;
  readonly incarnation: Incarnation;
  /** The line of work within the agent that holds the slots; absent when the agent as a whole does. */
  readonly holder: string | undefined;
  /** Slots wanted by resource, in name order. */
  readonly needs: ReadonlyMap<ResourceName, number>;
  readonly weightThousandths: number;
  /** Queue of its own within the agent; absent: the agent's. */
  readonly as: string | undefined;
  readonly label: string | undefined;
  readonly project: ProjectId | undefined;
  readonly user: UserId | undefined;
  /** Expected tokens; 0: none. */
  readonly tokens: number;
  /** The agent's type at the request. Its token rates count the tokens, as do rates of types named like the
   *  resources. */
  readonly agentType: string | undefined;
  readonly idleTimeoutMs: number | undefined;
  /** Order of asking, from 1, unique in the journal. */
  readonly order: number;
  readonly requestedAt: Instant;
  /** Each resource's tick at the request. */
  readonly requestedTicks: ReadonlyMap<ResourceName, number>;
  state: "waiting" | "held";
  /** Absent while the request waits. */
  grantedAt: Instant | undefined;
  /** When the wait ends without a slot. */
  readonly deadline: Instant | undefined;
  timeoutTimer: Timer | undefined;
  /** Due at the end of the idle time; only of a held lease with an idle time. */
  idleTimer: Timer | undefined;
}

/** A slot lease that was lost, or taken back for idleness. A report that comes after all is charged, once. */
export interface UnchargedSlots {
  readonly project: ProjectId | undefined;
  readonly rates: readonly string[];
  /** As reserved. */
  readonly tokens: number;
  /** The part of `tokens` that was charged when the lease ended. */
  readonly charged: number;
  readonly lostAt: Instant;
}

/** How a slot lease ended. */
export type SlotEnding = SlotReleaseReason | SlotWaitEndReason;

/** A hold that was placed and has not ended. */
export interface HoldRow {
  readonly on: HoldScope;
  readonly name: string;
  /** When the target was put on hold first; renewals keep it. */
  readonly placedAt: Instant;
  until: Instant;
  by: HoldBasis;
  /** Successive holds whose time is a guess, from 1; the time doubles with each. Absent where a time was given. */
  step: number | undefined;
  reason: string | undefined;
  /** For a hold on a resource: by agent, the kinds of which the resource refused an attempt since the placing. The
   *  agent gets no tasks of these kinds while the hold lasts, except the probe. */
  readonly users: Map<AgentId, Set<Kind>>;
  /** The task whose attempt was the last refused probe. It lets another task make the next probe. */
  setBack: TaskRef | undefined;
  /** Due at the end of the hold's time, then at the `trustedAt` of the probe, if any. */
  timer: Timer | undefined;
  /** The probe under way. */
  probe: HoldProbe | undefined;
  /** `Holds.changes` at the last change of this row. */
  changedAt: number;
}

/** Holds by what they stop, each by name, in order of placing. */
export interface Holds extends Readonly<Record<HoldScope, Map<string, HoldRow>>> {
  /** Resources on hold by the agents in `HoldRow.users`. */
  readonly byUser: Map<AgentId, Set<HoldRow>>;
  /** Changes of holds and probes in this process, for readers that keep what they saw. Not journaled. */
  changes: number;
}

/** The agent that ran the last task with an affinity. */
export interface AffinityRow {
  readonly project: ProjectId;
  readonly affinity: string;
  readonly agent: AgentId;
  /** The last assignment, or the last end of an attempt. */
  readonly usedAt: Instant;
}

/** Tokens used by agents of one type in one window. */
export interface RateRow {
  readonly agentType: string;
  settings: RateSettings;
  readonly use: RateUse;
}

/** No list empty; at most one row per window, the shortest window first. */
export type RatesByType = Map<string, readonly RateRow[]>;

/** Tokens of a project, or of the swarm (state/budget-rows.ts changes ledgers). */
export interface TokenLedger {
  /** The sum of the reservations of open attempts, revoked attempts included, and of held slots. */
  reserved: number;
  /** Spent in the last `policy.guaranteeMs`, with or without a budget: the measure for comparing shares. */
  usage: RollingWindow;
  /** Spent in the budget's own window; absent without a budget. */
  spent: RollingWindow | undefined;
  /** Spent so far: the source of a window that is new, or of another length. */
  readonly history: UseHistory;
  /** When the journal last recorded that the budget is exceeded. */
  exceededAt: Instant | undefined;
}

/**
 * An attempt whose reservation was returned because its agent was lost. A report that comes after all is charged, once.
 */
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
  /** Attempts that occupy capacity, revoked attempts included. */
  openAttempts: number;
  /** Slot leases that name the project, waiting or held. */
  slotLeases: number;
  readonly account: Account;
  /** Virtual time of the level of the project's users. */
  virtualTime: number;
  /** Tasks that have not ended. */
  live: number;
  /** Users with tasks that are queued or delayed. */
  usersWaiting: number;
  readonly userByName: Map<UserId, UserRow>;
  /** Users without live tasks, idle longest first: evicted when new users need room. */
  readonly idleUsers: Set<UserId>;
}

export interface TermStart {
  readonly term: Term;
  /** The term's first batch. */
  readonly idx: BatchIndex;
  /** The beginning of the hash in `TermStarted`. After a loss two terms may share a number, but not this. */
  readonly opened: string;
}

export interface SwarmState {
  term: Term;
  /** Starts of the newest terms, at most `limits.rememberedTerms`, oldest first. Shows whether the log still has a
   *  batch of an earlier term (protocol/horizon.ts). */
  termStarts: readonly TermStart[];
  leader: string;
  /** T of the term: how long its leader may be silent, ms; 0 before the first term. */
  leaderTimeoutMs: number;
  /** Index of the last applied batch; 0 before the first. */
  idx: BatchIndex;
  /** The first batch that can still be read; 1 until the audit was trimmed. */
  auditFirstIdx: BatchIndex;
  at: Instant;
  /** Tasks that ended before the horizon may be forgotten: `policy.rememberMs` of led time ago (journal-time.ts). */
  horizonAt: Instant;
  /** Units of work completed. */
  tick: number;
  /** Tasks ever submitted; equals the last task's `sequence`. */
  submissions: number;
  /** Assignments ever made. */
  assignments: number;
  /** Joins ever. */
  joins: number;
  /** Entries into queues and assignments ever: a later event has a higher order. */
  orders: number;
  /** Virtual time of the level of the projects (docs/scheduling.md, "The clocks"). */
  virtualTime: number;
  timersEver: number;
  /** Live tasks, in the order in which their rounds began. */
  readonly taskById: TaskMap<TaskRow>;
  /** In order of ending. */
  readonly endedById: EndedTasks;
  readonly agentById: Map<AgentId, AgentRow>;
  /** Online agents by the kinds they serve, in order of joining. */
  readonly onlineByKind: Map<Kind, Map<AgentId, AgentRow>>;
  readonly queueByKey: Map<string, TaskQueue>;
  /** Live tasks with needs, by the name of their queue: also tasks that are delayed, and return to their queue. */
  readonly liveByNeeds: Map<string, number>;
  readonly timers: IndexedHeap<Timer>;
  readonly recordByKind: Map<Kind, SuccessRecord>;
  readonly projectById: Map<ProjectId, ProjectRow>;
  /** Projects without live tasks and settings, idle longest first: evicted when new projects need room. */
  readonly idleProjects: Set<ProjectId>;
  readonly counts: TaskCounts;
  readonly ledger: TokenLedger;
  /** Attempts that occupy capacity, revoked attempts included. */
  openAttempts: number;
  readonly budgetedProjects: Set<ProjectId>;
  /** By `unchargedKey`, lost longest ago first. */
  readonly uncharged: AgedMap<string, UnchargedAttempt>;
  policy: Policy;
  grants: Grants;
  isPaused: boolean;
  /** Kinds in use, and kinds with learned values (kind-rows.ts). */
  readonly kindByName: Map<Kind, KindRow>;
  /** Kinds of `kindByName` not in use, idle longest first: evicted when further kinds need room. */
  readonly idleKinds: Set<Kind>;
  readonly resourceByName: Map<ResourceName, ResourceRow>;
  /** Resources with waiters. */
  readonly contendedByName: Map<ResourceName, ResourceRow>;
  /** Slot leases that wait or are held; an agent without slot leases has no entry. */
  readonly slotsByAgent: Map<AgentId, Map<SlotHandle, SlotLeaseRow>>;
  /** By `slotLeaseKey`, ended longest ago first; at most `limits.endedHandlesMax`. */
  readonly endedSlotByKey: AgedMap<string, SlotEnding>;
  /** Slot leases ever begun; equals the last lease's `order`. */
  slotLeases: number;
  /** Requests with expected tokens that wait for slots: they may wait for a budget or a rate alone. */
  waitsWithTokens: number;
  /** By `slotLeaseKey`, lost longest ago first; at most `limits.unchargedAttemptsMax`. */
  readonly unchargedSlots: AgedMap<string, UnchargedSlots>;
  readonly ratesByType: RatesByType;
  /**
   * Tokens reserved by open attempts, by the type of their agents, and by held slots, by the type of their agent and by
   * resource. Kept for types without rates too.
   */
  readonly reservedByType: Map<string, number>;
  /**
   * Rates that were removed, longest ago first, while some of their use counts: a rate set again continues from that
   * use.
   */
  readonly removedRatesByType: RatesByType;
  /** By `affinityKey`, used longest ago first; at most `limits.affinitiesMax`. */
  readonly affinityByKey: AgedMap<string, AffinityRow>;
  readonly holds: Holds;
  /** Refusals without a time since the target's last success or hold, by name. Of types at most `limits.holdsMax`. */
  readonly refusalsInARow: Readonly<Record<HoldScope, Map<string, RefusalRow>>>;
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
    termStarts: [],
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
    endedById: new EndedTasks(),
    agentById: new Map(),
    onlineByKind: new Map(),
    queueByKey: new Map(),
    liveByNeeds: new Map(),
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
    grants: Grants.none,
    isPaused: false,
    kindByName: new Map(),
    idleKinds: new Set(),
    resourceByName: new Map(),
    contendedByName: new Map(),
    slotsByAgent: new Map(),
    endedSlotByKey: new AgedMap(),
    slotLeases: 0,
    waitsWithTokens: 0,
    unchargedSlots: new AgedMap(),
    ratesByType: new Map(),
    reservedByType: new Map(),
    removedRatesByType: new Map(),
    affinityByKey: new AgedMap(),
    holds: { agent: new Map(), type: new Map(), resource: new Map(), byUser: new Map(), changes: 0 },
    refusalsInARow: { agent: new Map(), type: new Map(), resource: new Map() },
  };
}

/** The settings of a project without settings of its own. */
export const defaultProjectSettings: ProjectSettings = {
  creditWeight: 1,
  queueMax: limits.queuedTasksPerProjectMax,
};

/** The settings of a kind without settings of its own. */
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

/** The agent's capacity: concurrent tasks and prefetched tasks together. */
export function capacityOf(agent: AgentRow): number {
  return agent.maxConcurrent + agent.prefetch;
}

/**
 * Whether the agent runs tasks. An agent without kinds exists for slots alone: it is never a candidate, and code that
 * counts or compares agents skips it.
 */
export function runsTasks(agent: AgentRow): boolean {
  return agent.kinds.size > 0;
}

/**
 * Whether the agent only ever used slots, in all its sessions: it has no learned values, and never got an assignment
 * number or token.
 */
export function cameForSlots(agent: AgentRow): boolean {
  return !runsTasks(agent) && agent.lastAssignedOrder === 0;
}

/** When the next timer is due; undefined without timers. */
export function nextDueAt(state: SwarmState): Instant | undefined {
  return state.timers.peek()?.dueAt;
}

/** Tasks that wait: queued or delayed. */
export function waitingCount(counts: TaskCounts): number {
  return counts.queued + counts.delayed;
}
