// What `status` and `task` answer: read from the state in one go, bounded by its tables. For people and for
// dashboards; nothing here is a decision.

import { assert } from "../../assert.ts";
import type { AgentRow, Lane, ProjectRow, SwarmState, UserRow } from "../../core/state.ts";
import { type Instant, instant, type TaskId } from "../../ids.ts";
import type { StatusResponse, TaskStatus } from "../../protocol/schemas.ts";
import { expectationOf, scoredRate } from "../../scheduling/success-rate.ts";
import type { AgentMirrors } from "../leader/agent-mirror.ts";
import type { Monitor } from "../leader/monitor.ts";
import type { Presences } from "../leader/presence.ts";
import { notYetRead, unknownTask } from "../requests/answers.ts";
import { rowsWithin } from "../requests/fitting.ts";
import { budgetStatusOf, rateStatusesOf } from "./budget-status.ts";
import { resourceStatuses } from "./resource-status.ts";
import { observedBy, swarmMetricsOf } from "./swarm-status.ts";

type AgentStatus = StatusResponse["agents"][number];

export interface StatusSources {
  readonly swarm: string;
  /** Now, for what time alone changes. */
  readonly now: Instant;
  /** Of the whole answer. */
  readonly bytesMax: number;
  readonly mirrors: AgentMirrors;
  /** Ids of those that stand by. Absent on a standby, as are the next two. */
  readonly standbys?: readonly string[];
  readonly presences?: Presences;
  readonly monitor?: Monitor;
  readonly journal: StatusResponse["journal"];
  readonly counters: Readonly<Record<string, number>>;
}

/** Which part of the answer each table may fill. All else is small: counts, the journal, what the leader observed. */
const shares = {
  agents: 1 / 4,
  queues: 1 / 8,
  /** With their users. */
  projects: 3 / 8,
  rates: 1 / 16,
  resources: 1 / 16,
  rest: 1 / 8,
} as const;
/** Of the whole answer too, within the share of the projects. */
const usersShare = 1 / 4;
assert(
  Object.values(shares).reduce<number>((sum, share) => sum + share, 0) <= 1,
  "tables that are full fit the answer together",
);
assert(usersShare < shares.projects, "users leave room for the projects they are of");

/** The whole of it where that fits a message; else as many rows as do, and how many are left out. */
export function statusOf(state: SwarmState, sources: StatusSources): StatusResponse {
  const { bytesMax } = sources;
  const agents = rowsWithin(
    mapped(state.agentById.values(), (row) => agentStatusOf(state, row, sources)),
    bytesMax * shares.agents,
  ).rows;
  const queues = rowsWithin(
    mapped(state.laneByKey.values(), (lane) => queueStatusOf(state, lane)),
    bytesMax * shares.queues,
  ).rows;
  const now = instant(Math.max(state.at, sources.now));
  const projects = projectsWithin(state, now, bytesMax);
  const rates = rowsWithin(rateStatusesOf(state, now), bytesMax * shares.rates).rows;
  const { budget } = state.policy;
  const resources = rowsWithin(resourceStatuses(state, now), bytesMax * shares.resources).rows;
  const shownUsers = projects.reduce((sum, { users }) => sum + users.length, 0);
  const omitted = {
    agents: state.agentById.size - agents.length,
    queues: state.laneByKey.size - queues.length,
    projects: state.projectById.size - projects.length,
    users: [...state.projectById.values()].reduce(
      (sum, { userByName }) => sum + userByName.size,
      -shownUsers,
    ),
    resources: state.resourceByName.size - resources.length,
    rates: state.rateByType.size - rates.length,
  };
  const isWhole = Object.values(omitted).every((count) => count === 0);
  return {
    term: state.term,
    idx: state.idx,
    at: state.at,
    swarm: sources.swarm,
    leader: state.leader,
    ...(sources.standbys === undefined ? {} : { standbys: [...sources.standbys] }),
    ...(sources.presences === undefined ? { stale: true as const } : {}),
    ...(state.isPaused ? { paused: true as const } : {}),
    tasks: { ...state.counts },
    metrics: swarmMetricsOf(state),
    ...(sources.monitor === undefined ? {} : { observed: observedBy(sources.monitor) }),
    agents,
    queues,
    projects,
    ...(budget === undefined ? {} : { budget: budgetStatusOf(state.ledger, budget, now) }),
    ...(rates.length === 0 ? {} : { rates }),
    resources,
    ...(isWhole ? {} : { omitted }),
    journal: sources.journal,
    counters: { ...sources.counters },
  };
}

export function taskStatusOf(state: SwarmState, task: TaskId, isStale: boolean): TaskStatus {
  const head = {
    ok: true as const,
    term: state.term,
    idx: state.idx,
    at: state.at,
    ...(isStale ? { stale: true as const } : {}),
  };
  const ended = state.endedById.get(task);
  if (ended !== undefined) {
    const { project, user, kind, round, attempts, submittedIdx, endedIdx, agent } = ended;
    const what = { task, project, user, kind, state: ended.state, round, attempts, submittedIdx, endedIdx };
    return { ...head, ...what, ...(agent === undefined ? {} : { agent }) };
  }
  const row = state.taskById.get(task);
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
  };
}

function agentStatusOf(state: SwarmState, row: AgentRow, { mirrors, presences }: StatusSources): AgentStatus {
  const reported = presences?.reported(row);
  const silentMs = row.online ? presences?.silentMs(row.id) : undefined;
  const outlivedMs = presences?.outlivedMs(row.id);
  return {
    id: row.id,
    status: mirrors.status(row.id),
    chart: mirrors.describe(row.id),
    draining: row.draining,
    unresponsive: row.unresponsive,
    kinds: [...row.kinds].map((kind) => {
      const record = row.recordByKind.get(kind);
      const suspension = row.suspensionByKind.get(kind);
      return {
        kind: kind as string,
        successRate: scoredRate(record, expectationOf(state.recordByKind.get(kind), state.at), state.at),
        attempts: record?.attempts ?? 0,
        latencyMs: record?.latencyMs ?? 0,
        ...(suspension === undefined ? {} : { suspendedUntil: suspension.until }),
      };
    }),
    ...(row.role === undefined ? {} : { role: row.role }),
    ...(row.agentType === undefined ? {} : { type: row.agentType }),
    labels: { ...row.labels },
    inFlight: row.open.size,
    maxConcurrent: row.maxConcurrent,
    prefetch: row.prefetch,
    load: row.open.size / row.maxConcurrent,
    completed: row.completed,
    ...(reported === undefined
      ? {}
      : {
          reported: {
            inFlight: reported.inFlight,
            ...(reported.successRate === undefined ? {} : { successRate: reported.successRate }),
            ...(reported.latencyMs === undefined ? {} : { latencyMs: reported.latencyMs }),
          },
        }),
    ...(silentMs === undefined ? {} : { silentMs }),
    ...(row.fencedAt === undefined ? {} : { fencedAt: row.fencedAt }),
    ...(outlivedMs === undefined ? {} : { outlivedMs }),
  };
}

function queueStatusOf(state: SwarmState, lane: Lane): StatusResponse["queues"][number] {
  const oldestAt = oldestIn(lane);
  return {
    kind: lane.kind,
    ...(lane.role === undefined ? {} : { role: lane.role }),
    waiting: lane.size,
    oldestMs: Math.max(0, state.at - oldestAt),
    agents: state.onlineByKind.get(lane.kind)?.size ?? 0,
  };
}

/** When the task that waits longest was queued. */
function oldestIn(lane: Lane): number {
  let oldestAt = Number.POSITIVE_INFINITY;
  for (const { memberByUser } of lane.memberByProject.values()) {
    for (const { queues } of memberByUser.values()) {
      for (const { oldest } of queues) oldestAt = Math.min(oldestAt, oldest?.queuedAt ?? oldestAt);
    }
  }
  return oldestAt;
}

/** Users take what their project and those before it leave. @param bytesMax of the whole answer */
function projectsWithin(state: SwarmState, at: Instant, bytesMax: number): StatusResponse["projects"] {
  let left = bytesMax * usersShare;
  const waitingSince = waitingSinceByUser(state);
  const users = (row: ProjectRow) => {
    const statusOf = (user: UserRow) => userStatusOf(user, state.at - (waitingSince.get(user) ?? state.at));
    const fitting = rowsWithin(mapped(row.userByName.values(), statusOf), left);
    left -= fitting.bytes;
    return fitting.rows;
  };
  const heads = mapped(state.projectById.values(), (row) => {
    const { project, counts, settings, ledger, isPaused } = row;
    const budget = settings?.budget;
    return {
      project,
      ...(isPaused ? { paused: true as const } : {}),
      tasks: { ...counts },
      ...(budget === undefined ? {} : { budget: budgetStatusOf(ledger, budget, at) }),
      users: users(row),
    };
  });
  return rowsWithin(heads, bytesMax * shares.projects).rows;
}

function* mapped<Item, Row>(items: Iterable<Item>, rowOf: (item: Item) => Row): Generator<Row> {
  for (const item of items) yield rowOf(item);
}

/** @param waitingMs of the task of theirs that waits longest; 0 where none does */
function userStatusOf({ user, counts, waitMsSum, waitMsMax, started }: UserRow, waitingMs: number) {
  return {
    user: user as string,
    tasks: { ...counts },
    started,
    waitMsMean: started === 0 ? 0 : waitMsSum / started,
    waitMsMax: Math.max(waitMsMax, waitingMs),
  };
}

/** When the task that waits longest was queued, of each user with one that waits. */
function waitingSinceByUser(state: SwarmState): ReadonlyMap<UserRow, number> {
  const since = new Map<UserRow, number>();
  for (const { memberByProject } of state.laneByKey.values())
    for (const { memberByUser } of memberByProject.values())
      for (const { row, oldest } of memberByUser.values())
        since.set(row, Math.min(oldest.queuedAt, since.get(row) ?? oldest.queuedAt));
  return since;
}
