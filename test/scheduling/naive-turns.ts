// The order of turns (docs/scheduling.md), derived from the queued tasks: members of each queue, their numbers, and the
// longest waits. Reads tasks, accounts and virtual times from the state, and the starts of waits, which only history
// knows.

import type { Instant } from "../../src/ids.ts";
import { loadOf, maximaOf, type Queue } from "../../src/scheduling/load.ts";
import type { Account } from "../../src/state/account.ts";
import type { Policy, ProjectTurnRule } from "../../src/state/policy.ts";
import type { TurnBasis } from "../../src/state/receipt.ts";
import { totalAt } from "../../src/state/rolling-window.ts";
import type { ProjectRow, SwarmState, TaskRow } from "../../src/state/state.ts";

/** A user of a project in a queue: the standing at both levels, and the assignable tasks. */
export interface Membership {
  readonly key: string;
  readonly project: Member;
  readonly user: Member;
  /** In serving order; at least one. */
  readonly takeable: readonly OrderedTask[];
}

interface Member {
  readonly basis: TurnBasis;
  /** Among members of the same class; the lowest goes first, part by part. */
  readonly claim: readonly number[];
}

/** A project's or a user's tasks in one queue. */
interface Part {
  readonly tasks: readonly TaskRow[];
  /** Assignable tasks. */
  readonly takeable: readonly TaskRow[];
}

/** The other inputs of a member's standing. */
interface Terms {
  readonly rule: ProjectTurnRule;
  readonly account: Account;
  readonly since: { readonly sinceOrder: number } | undefined;
  /** The level's ticks or turns since then. */
  readonly waited: number;
  /** Members at the level. */
  readonly sizeKey: string;
  readonly isGuaranteed: boolean;
  readonly virtualTime: number;
  readonly maxima: Queue;
}

export interface OrderedTask {
  readonly task: TaskRow;
  readonly isPastStarvationLimit: boolean;
}

/** The tasks that waited when the round began. */
interface Start {
  /** In queues that were open. */
  readonly open: readonly TaskRow[];
  /** The tasks among them whose project was not out. */
  readonly competing: readonly TaskRow[];
}

export class NaiveTurns {
  readonly #state: SwarmState;
  readonly #at: Instant;
  readonly #policy: Policy;
  readonly #projectMaxima: Queue;
  readonly #userMaxima: Queue;
  readonly #creditWeightTotal: number;
  readonly #tokensTotal: number;
  /** Number of members or tasks in a queue, in a project's part, or in a user's part. */
  readonly #sizeAtStart = new Map<string, number>();
  /** The turns of a project's part or a user's part of a queue. */
  readonly #turnsAtStart = new Map<string, number>();

  constructor(state: SwarmState, at: Instant, policy: Policy, { open, competing }: Start) {
    this.#state = state;
    this.#at = at;
    this.#policy = policy;
    const queuesBy = (keyOf: (task: TaskRow) => string) =>
      [...groupBy(open, keyOf).values()].map((tasks) => this.#queueOf(tasks));
    this.#projectMaxima = maximaOf(queuesBy(projectKey));
    this.#userMaxima = maximaOf(queuesBy(userKey));
    const competitors = new Set(competing.map(({ projectRow }) => projectRow));
    this.#creditWeightTotal = sumOf([...competitors].map(creditWeightOf));
    this.#tokensTotal = sumOf([...state.projectById.values()].map(({ ledger }) => totalAt(ledger.usage, at)));
    for (const [task] of [...groupBy(open, userKey).values()] as [TaskRow][]) {
      this.#turnsAtStart.set(projectKey(task), task.partition?.user.project.turns ?? 0);
      this.#turnsAtStart.set(userKey(task), task.partition?.user.turns ?? 0);
    }
    for (const [key, tasks] of groupBy(open, queueKey))
      this.#sizeAtStart.set(key, countBy(tasks, projectKey));
    for (const [key, tasks] of groupBy(open, projectKey)) this.#sizeAtStart.set(key, countBy(tasks, userKey));
    for (const [key, tasks] of groupBy(open, userKey)) this.#sizeAtStart.set(key, tasks.length);
  }

  /** One for each user of each project in each queue with an assignable task of the user. */
  membershipsOf(queued: readonly TaskRow[], isTakeable: (task: TaskRow) => boolean): Membership[] {
    const takeableBy = groupBy(queued.filter(isTakeable), projectKey);
    const byProject = groupBy(queued, projectKey);
    return [...groupBy(queued, userKey)].flatMap(([key, tasks]) => {
      const [task] = tasks as [TaskRow];
      const ofProject = {
        tasks: byProject.get(projectKey(task)) as TaskRow[],
        takeable: takeableBy.get(projectKey(task)) ?? [],
      };
      const ofUser = { tasks, takeable: tasks.filter(isTakeable) };
      if (ofUser.takeable.length === 0) return [];
      const user = this.#user(ofUser);
      const project = this.#policy.projectTurn === "none" ? user : this.#project(ofProject);
      return [
        { key, project, user, takeable: this.#inOrder(key, tasks).filter(({ task }) => isTakeable(task)) },
      ];
    });
  }

  /** The longest wait in one partition, if past the starvation limit; then by priority and submission. */
  #inOrder(key: string, tasks: readonly TaskRow[]): OrderedTask[] {
    const longest = [...groupBy(tasks, ({ failedBy }) => `${failedBy}`).values()]
      .map((group) => [...group].sort(byQueueing)[0] as TaskRow)
      .filter((task) => this.#hasWaited((this.#turnsAtStart.get(key) ?? 0) - task.queuedTurn, key));
    return [
      ...longest.sort(byQueueing).map((task) => ({ task, isPastStarvationLimit: true })),
      ...[...tasks].sort(bySubmission).map((task) => ({ task, isPastStarvationLimit: false })),
    ];
  }

  #project(part: Part): Member {
    const { projectRow: row } = part.tasks[0] as TaskRow;
    const { account } = row;
    const { projectTurn, guaranteeMs } = this.#policy;
    const isUnserved = account.servedOrder === 0 || this.#at - account.servedAt >= guaranteeMs;
    const hasGuarantee = projectTurn === "clock" || projectTurn === "deficit";
    const since = queueOf(this.#state, part)?.memberByProject.get(row.project);
    return this.#member(part, {
      rule: projectTurn,
      account,
      since,
      waited: this.#tick(part.tasks[0] as TaskRow) - (since?.sinceTick ?? 0),
      sizeKey: queueKey(part.tasks[0] as TaskRow),
      isGuaranteed: hasGuarantee && isUnserved,
      virtualTime: this.#state.virtualTime,
      maxima: this.#projectMaxima,
    });
  }

  #user(part: Part): Member {
    const { projectRow, userRow } = part.tasks[0] as TaskRow;
    const project = queueOf(this.#state, part)?.memberByProject.get(projectRow.project);
    const since = project?.memberByUser.get(userRow.user);
    const ticks = this.#tick(part.tasks[0] as TaskRow) - (since?.sinceTick ?? 0);
    const key = projectKey(part.tasks[0] as TaskRow);
    const turns = (this.#turnsAtStart.get(key) ?? 0) - (since?.sinceTurn ?? 0);
    return this.#member(part, {
      rule: this.#policy.userTurn,
      account: userRow.account,
      since,
      waited: this.#policy.projectTurn === "none" ? ticks : turns,
      sizeKey: projectKey(part.tasks[0] as TaskRow),
      isGuaranteed: false,
      virtualTime: projectRow.virtualTime,
      maxima: this.#userMaxima,
    });
  }

  #member(part: Part, terms: Terms): Member {
    const { rule, account, since, waited, sizeKey, isGuaranteed } = terms;
    if (since === undefined) throw new Error(`whoever has tasks in ${sizeKey} is a member of it`);
    const service = [account.servedOrder, account.arrivedOrder];
    const claim = this.#claim(part, terms);
    const isPastStarvationLimit = this.#hasWaited(waited, sizeKey);
    if (isPastStarvationLimit) return { basis: "starvation-limit", claim: [since.sinceOrder] };
    if (isGuaranteed)
      return { basis: "guarantee", claim: rule === "deficit" ? [...claim, ...service] : service };
    return { basis: "rule", claim: rule === "fifo" ? claim : [...claim, ...service] };
  }

  /** Whether a wait has reached the starvation limit. @param sizeKey of the members beside it */
  #hasWaited(waited: number, sizeKey: string): boolean {
    const { starvationLimit } = this.#policy;
    const waiting = this.#sizeAtStart.get(sizeKey) ?? 0;
    return starvationLimit > 0 && waited >= starvationLimit * waiting;
  }

  /** The inputs of the level's rule; the lowest goes first. */
  #claim({ tasks, takeable }: Part, { rule, account, virtualTime, maxima }: Terms): number[] {
    const { spec, projectRow } = tasks[0] as TaskRow;
    switch (rule) {
      case "clock":
        return [Math.max(account.clock, virtualTime)];
      case "recency": {
        const importance = this.#state.kindByName.get(spec.kind)?.settings?.importance ?? 1;
        return [-(importance * (this.#at - account.servedAt))];
      }
      case "deficit": {
        const actual =
          this.#tokensTotal === 0 ? 0 : totalAt(projectRow.ledger.usage, this.#at) / this.#tokensTotal;
        return [actual - creditWeightOf(projectRow) / this.#creditWeightTotal];
      }
      case "load":
        return [-loadOf(this.#queueOf(tasks), maxima, this.#policy.alpha)];
      case "fifo":
      case "none": {
        const [first] = [...takeable].sort(bySubmission) as [TaskRow];
        return [first.spec.priority, first.sequence];
      }
    }
  }

  /** Of one member: its weight in thousandths, and the ticks since its oldest task was queued. */
  #queueOf(tasks: readonly TaskRow[]): Queue {
    return {
      queueDepth: tasks.reduce((sum, { cost }) => sum + cost, 0),
      oldestAge: Math.max(...tasks.map((task) => this.#tick(task) - task.queuedTick)),
    };
  }

  #tick({ spec: { kind } }: TaskRow): number {
    return this.#state.kindByName.get(kind)?.tick ?? 0;
  }
}

/** By project; for the same project by user; for the same user by task. */
export function compareMemberships(a: Membership, b: Membership): number {
  return compareLevel(a.project, b.project) || compareLevel(a.user, b.user) || compareTasks(a, b);
}

function compareLevel(a: Member, b: Member): number {
  const classes: readonly TurnBasis[] = ["starvation-limit", "guarantee", "rule"];
  if (a.basis !== b.basis) return classes.indexOf(a.basis) - classes.indexOf(b.basis);
  const differsAt = a.claim.findIndex((part, at) => part !== b.claim[at]);
  return differsAt === -1 ? 0 : (a.claim[differsAt] as number) - (b.claim[differsAt] as number);
}

function compareTasks({ takeable: [a] }: Membership, { takeable: [b] }: Membership): number {
  if (a === undefined || b === undefined)
    throw new Error("whoever competes has a task that somebody may have");
  if (a.isPastStarvationLimit !== b.isPastStarvationLimit) return a.isPastStarvationLimit ? -1 : 1;
  return a.isPastStarvationLimit ? byQueueing(a.task, b.task) : bySubmission(a.task, b.task);
}

function byQueueing(a: TaskRow, b: TaskRow): number {
  return a.queuedOrder - b.queuedOrder;
}

function bySubmission(a: TaskRow, b: TaskRow): number {
  return a.spec.priority - b.spec.priority || a.sequence - b.sequence;
}

/** As receipts name it: kind, role, needs. */
export function queueKey({ spec: { kind, role, needs } }: TaskRow): string {
  const accepted = Object.entries(needs ?? {}).map(([label, values]) => `${label}=${values.join(",")}`);
  return [
    kind,
    ...(role === undefined ? [] : [role]),
    ...(accepted.length === 0 ? [] : ["needs", ...accepted]),
  ].join(" ");
}

function projectKey(task: TaskRow): string {
  return `${queueKey(task)} / ${task.spec.project}`;
}

function userKey(task: TaskRow): string {
  return `${projectKey(task)} / ${task.spec.user}`;
}

function queueOf(state: SwarmState, { tasks }: Part) {
  return state.queueByKey.get(queueKey(tasks[0] as TaskRow));
}

function creditWeightOf({ settings }: ProjectRow): number {
  return settings?.creditWeight ?? 1;
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

function groupBy(tasks: readonly TaskRow[], keyOf: (task: TaskRow) => string): Map<string, TaskRow[]> {
  const groups = new Map<string, TaskRow[]>();
  for (const task of tasks) {
    const key = keyOf(task);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [task]);
    else group.push(task);
  }
  return groups;
}

function countBy(tasks: readonly TaskRow[], keyOf: (task: TaskRow) => string): number {
  return new Set(tasks.map(keyOf)).size;
}
