// Answers `status` from one look at the state: the most important rows of each table, as many as fit a message. Not
// here: the contents of a row (status-rows.ts).

import { assert } from "../assert.ts";
import { type Instant, instant, type ProjectId } from "../ids.ts";
import { limits } from "../limits.ts";
import { type StatusResponse, type StatusTable, statusTables } from "../protocol/schemas.ts";
import type { Presences } from "../requests/presence.ts";
import { meetsNeeds } from "../state/needs.ts";
import {
  type AgentRow,
  emptyCounts,
  type ProjectRow,
  type SwarmState,
  type TaskCounts,
  type TaskQueue,
  type UserRow,
} from "../state/state.ts";
import { mostWithin, rowsWithin } from "./fitting.ts";
import {
  agentStatusOf,
  budgetStatusOf,
  holdStatusesOf,
  rateStatusesOf,
  resourceStatuses,
  swarmMetricsOf,
} from "./status-rows.ts";

export interface StatusSources {
  readonly swarm: string;
  /** Journal time, for values that change with time alone. */
  readonly now: Instant;
  /** Maximum size of the whole answer. */
  readonly bytesMax: number;
  /** Only this table, without its first rows. */
  readonly page?: { readonly table: StatusTable; readonly from: number };
  /** Only the row of this project. */
  readonly project?: ProjectId;
  /** Ids of the standbys. Absent on a standby, like the next two. */
  readonly standbys?: readonly string[];
  readonly presences?: Presences;
  /** The leader's observations, for the whole swarm. */
  readonly observed?: NonNullable<StatusResponse["observed"]>;
  readonly journal: StatusResponse["journal"];
  readonly counters: Readonly<Record<string, number>>;
}

/** The share of the answer per table. The rest is small: counts, the journal, the leader's observations. */
const shares = {
  agents: 1 / 4,
  queues: 1 / 8,
  /** With their users. */
  projects: 3 / 8,
  rates: 1 / 16,
  resources: 1 / 16,
  rest: 1 / 8,
} as const;
/** The holds' share of the whole answer; a part of `shares.rest`. */
const holdsShare = 1 / 16;
/** The users' share of the whole answer; a part of `shares.projects`. */
const usersShare = 1 / 4;
/** The share in an answer of one table. */
const pageShare = 3 / 4;
assert(
  Object.values(shares).reduce<number>((sum, share) => sum + share, 0) <= 1,
  "tables that are full fit the answer together",
);
assert(usersShare < shares.projects, "users leave room for the projects they are of");

/** All rows if they fit a message, else the most important rows, with counts of omitted rows. */
export function statusOf(state: SwarmState, sources: StatusSources): StatusResponse {
  const { bytesMax, page, project } = sources;
  const now = instant(Math.max(state.at, sources.now));
  const part = <Row>(table: StatusTable, rows: Iterable<Row>): Iterable<Row> => {
    if (project !== undefined) return [];
    return page === undefined ? rows : page.table === table ? skipped(rows, page.from) : [];
  };
  const room = (table: keyof typeof shares) => bytesMax * (page === undefined ? shares[table] : pageShare);

  const agents = rowsOf(
    mostWithin(part("agents", state.agentById.values()), {
      bytesMax: room("agents"),
      rowOf: (row) => agentStatusOf(state, row, sources.presences),
      rankOf: agentRank,
    }),
  );
  const serving = new ServingCounts(state);
  const queues = rowsOf(
    mostWithin(part("queues", state.queueByKey.values()), {
      bytesMax: room("queues"),
      rowOf: (queue) => queueStatusOf(state, queue, serving),
      rankOf: (queue) => queueRank(state, queue, serving),
    }),
  );
  const projects =
    project !== undefined
      ? [oneProject(state, project, now, bytesMax * usersShare)]
      : page?.table === "users"
        ? usersFrom(state, now, { from: page.from, bytesMax: bytesMax * pageShare })
        : projectsWithin(part("projects", state.projectById.values()), state, now, {
            usersBytesMax: page === undefined ? bytesMax * usersShare : 0,
            bytesMax: room("projects"),
          });
  const rates = rowsWithin(part("rates", rateStatusesOf(state, now)), room("rates")).rows;
  const holds = rowsWithin(
    project === undefined && page === undefined ? holdStatusesOf(state) : [],
    bytesMax * holdsShare,
  ).rows;
  const { budget } = state.policy;
  const resources = rowsOf(
    mostWithin(part("resources", resourceStatuses(state, now)), {
      bytesMax: room("resources"),
      rowOf: (row) => row,
      rankOf: ({ waiting, utilisation }) => waiting + utilisation,
    }),
  );
  const shownUsers = projects.reduce((sum, { users }) => sum + users.length, 0);
  const omitted = {
    agents: state.agentById.size - agents.length,
    queues: state.queueByKey.size - queues.length,
    projects: state.projectById.size - projects.length,
    users: [...state.projectById.values()].reduce(
      (sum, { userByName }) => sum + userByName.size,
      -shownUsers,
    ),
    resources: state.resourceByName.size - resources.length,
    rates: [...state.ratesByType.values()].flat().length - rates.length,
  };
  if (project !== undefined) {
    const users = state.projectById.get(project)?.userByName.size ?? 0;
    for (const table of statusTables) omitted[table] = table === "users" ? users - shownUsers : 0;
  } else if (page !== undefined)
    for (const table of statusTables)
      omitted[table] = table === page.table ? Math.max(0, omitted[table] - page.from) : 0;
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
    ...(project === undefined ? swarmTotals(state) : { tasks: { ...projectCounts(state, project) } }),
    ...(sources.observed === undefined ? {} : { observed: sources.observed }),
    agents,
    queues,
    projects,
    ...(budget === undefined || project !== undefined
      ? {}
      : { budget: budgetStatusOf(state.ledger, budget, now) }),
    ...(rates.length === 0 ? {} : { rates }),
    ...(holds.length === 0 ? {} : { holds }),
    resources,
    ...(isWhole ? {} : { omitted }),
    journal: sources.journal,
    counters: project === undefined ? { ...sources.counters } : {},
  };
}

function swarmTotals(state: SwarmState) {
  return { tasks: { ...state.counts }, metrics: swarmMetricsOf(state) };
}

function projectCounts(state: SwarmState, project: ProjectId): TaskCounts {
  return state.projectById.get(project)?.counts ?? emptyCounts();
}

function queueStatusOf(
  state: SwarmState,
  queue: TaskQueue,
  serving: ServingCounts,
): StatusResponse["queues"][number] {
  const oldestAt = oldestIn(queue);
  const { kind, role, needs, size } = queue;
  return {
    kind,
    ...(role === undefined ? {} : { role }),
    ...(needs === undefined
      ? {}
      : { needs: Object.fromEntries(Object.entries(needs).map(([label, values]) => [label, [...values]])) }),
    waiting: size,
    oldestMs: Math.max(0, state.at - oldestAt),
    agents: serving.of(queue),
  };
}

/**
 * Online agents of queues. Those with the labels are counted within `limits.statusLabelsComparedMax` comparisons;
 * beyond, all agents of the kind count.
 */
class ServingCounts {
  readonly #state: SwarmState;
  readonly #countByQueue = new Map<TaskQueue, number>();
  #compared = 0;

  constructor(state: SwarmState) {
    this.#state = state;
  }

  of(queue: TaskQueue): number {
    const { kind, needs } = queue;
    const agents = this.#state.onlineByKind.get(kind);
    if (agents === undefined) return 0;
    if (needs === undefined) return agents.size;
    const known = this.#countByQueue.get(queue);
    if (known !== undefined) return known;
    this.#compared += agents.size;
    if (this.#compared > limits.statusLabelsComparedMax) return agents.size;
    let count = 0;
    for (const { labels } of agents.values()) if (meetsNeeds(labels, needs)) count += 1;
    this.#countByQueue.set(queue, count);
    return count;
  }
}

/** When the oldest task of a queue was queued. */
function oldestIn(queue: TaskQueue): number {
  let oldestAt = Number.POSITIVE_INFINITY;
  for (const { memberByUser } of queue.memberByProject.values()) {
    for (const { partitions } of memberByUser.values()) {
      for (const { oldest } of partitions) oldestAt = Math.min(oldestAt, oldest?.queuedAt ?? oldestAt);
    }
  }
  return oldestAt;
}

interface Room {
  readonly bytesMax: number;
  /** The part for users. */
  readonly usersBytesMax: number;
}

/** All users if the answer has room, else the most important users. Their projects come first, then projects with
 *  settings. */
function projectsWithin(
  rows: Iterable<ProjectRow>,
  state: SwarmState,
  at: Instant,
  { bytesMax, usersBytesMax }: Room,
): StatusResponse["projects"] {
  const waitingSince = waitingSinceByUser(state);
  const projects = [...rows];
  const users = mostWithin(usersOf(projects), {
    bytesMax: usersBytesMax,
    rowOf: ({ user }) => userStatusOf(user, waitingMsOf(user, waitingSince, state)),
    rankOf: ({ user }) => userRank(user, waitingMsOf(user, waitingSince, state)),
  });
  const shown = groupedByProject(users);
  return rowsOf(
    mostWithin(projects, {
      bytesMax,
      rowOf: (row) => projectStatusOf(row, shown.get(row) ?? [], at),
      rankOf: (row) =>
        (shown.has(row) ? 4 : 0) + (row.isPaused ? 2 : 0) + (row.settings?.budget === undefined ? 0 : 1),
    }),
  );
}

/** One project with its most important users. Zeros for a project without a row: the first task or setting creates
 *  the row. */
function oneProject(
  state: SwarmState,
  project: ProjectId,
  at: Instant,
  usersBytesMax: number,
): StatusResponse["projects"][number] {
  const row = state.projectById.get(project);
  if (row === undefined) return { project, tasks: emptyCounts(), users: [] };
  const waitingSince = waitingSinceByUser(state);
  const users = mostWithin(usersOf([row]), {
    bytesMax: usersBytesMax,
    rowOf: ({ user }) => userStatusOf(user, waitingMsOf(user, waitingSince, state)),
    rankOf: ({ user }) => userRank(user, waitingMsOf(user, waitingSince, state)),
  });
  return projectStatusOf(row, rowsOf(users), at);
}

/** Users alone, without the first `from`, below the names of their projects. */
function usersFrom(
  state: SwarmState,
  at: Instant,
  { from, bytesMax }: { readonly from: number; readonly bytesMax: number },
): StatusResponse["projects"] {
  const waitingSince = waitingSinceByUser(state);
  const users = mostWithin(skipped(usersOf(state.projectById.values()), from), {
    bytesMax: bytesMax / 2,
    rowOf: ({ user }) => userStatusOf(user, waitingMsOf(user, waitingSince, state)),
    rankOf: () => 0,
  });
  return [...groupedByProject(users)].map(([row, shown]) => projectStatusOf(row, shown, at));
}

interface UserOfProject {
  readonly user: UserRow;
  readonly project: ProjectRow;
}

function* usersOf(projects: Iterable<ProjectRow>): Generator<UserOfProject> {
  for (const project of projects) for (const user of project.userByName.values()) yield { user, project };
}

function groupedByProject(
  users: readonly { readonly item: UserOfProject; readonly row: UserStatus }[],
): Map<ProjectRow, UserStatus[]> {
  const byProject = new Map<ProjectRow, UserStatus[]>();
  for (const { item, row } of users) {
    const shown = byProject.get(item.project);
    if (shown === undefined) byProject.set(item.project, [row]);
    else shown.push(row);
  }
  return byProject;
}

type UserStatus = StatusResponse["projects"][number]["users"][number];

function projectStatusOf(
  { project, counts, settings, ledger, isPaused }: ProjectRow,
  users: readonly UserStatus[],
  at: Instant,
): StatusResponse["projects"][number] {
  const budget = settings?.budget;
  return {
    project,
    ...(isPaused ? { paused: true as const } : {}),
    tasks: { ...counts },
    ...(budget === undefined ? {} : { budget: budgetStatusOf(ledger, budget, at) }),
    users: [...users],
  };
}
function* skipped<Row>(rows: Iterable<Row>, count: number): Generator<Row> {
  let at = 0;
  for (const row of rows) {
    if (at >= count) yield row;
    at += 1;
  }
}

function rowsOf<Row>(entries: readonly { readonly row: Row }[]): Row[] {
  return entries.map(({ row }) => row);
}

// --- what matters most: the higher, the earlier (docs/operations.md, "What status lists") --------------

/** Online agents in trouble first, then the most loaded, then the offline agents. */
function agentRank({ online, unresponsive, suspensionByKind, open, maxConcurrent }: AgentRow): number {
  const isInTrouble = unresponsive || suspensionByKind.size > 0;
  return (online ? 4 : 0) + (isInTrouble ? 2 : 0) + Math.min(1, open.size / maxConcurrent);
}

/** Queues without an agent come first, then queues by the wait of their oldest task, longest first. */
function queueRank(state: SwarmState, queue: TaskQueue, serving: ServingCounts): number {
  const isServed = serving.of(queue) > 0;
  return state.at - oldestIn(queue) + (isServed ? 0 : Number.MAX_SAFE_INTEGER / 2);
}

/** Users with the oldest waiting tasks first, then users with tasks under way, then users with failed tasks. */
function userRank({ counts }: UserRow, waitingMs: number): number {
  if (counts.queued > 0) return 2 + waitingMs;
  const failures = counts.failed + counts["dead-lettered"] + counts.expired;
  return counts.running + counts.assigned + counts.delayed > 0 ? 1 : failures / (failures + 1);
}

/** @param waitingMs the wait of the user's oldest waiting task; 0 without one */
function userStatusOf({ user, counts, waitMsSum, waitMsMax, started }: UserRow, waitingMs: number) {
  return {
    user: user as string,
    tasks: { ...counts },
    started,
    waitMsMean: started === 0 ? 0 : waitMsSum / started,
    waitMsMax: Math.max(waitMsMax, waitingMs),
  };
}

function waitingMsOf(user: UserRow, waitingSince: ReadonlyMap<UserRow, number>, { at }: SwarmState): number {
  return at - (waitingSince.get(user) ?? at);
}

/** By user with waiting tasks: when the oldest was queued. */
function waitingSinceByUser(state: SwarmState): ReadonlyMap<UserRow, number> {
  const since = new Map<UserRow, number>();
  for (const { memberByProject } of state.queueByKey.values())
    for (const { memberByUser } of memberByProject.values())
      for (const { row, oldest } of memberByUser.values())
        since.set(row, Math.min(oldest.queuedAt, since.get(row) ?? oldest.queuedAt));
  return since;
}
