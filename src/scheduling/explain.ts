// Why a task waits: obstacles, every agent's standing, and the task's position. Reports the planner's present view;
// decides nothing, changes nothing, and leaves the queues' order alone. For an assigned task, the receipt in the
// journal names the agent and the reasons (state/receipt.ts).
//
// Obstacles stand in the order of resolution: first obstacles for a person to remove, then obstacles that pass by
// themselves.

import type { AgentId, Instant, Kind, ProjectId, TaskId, UserId } from "../ids.ts";
import { limits } from "../limits.ts";
import { preferredAgent } from "../state/affinity-rows.ts";
import { type HoldBasis, type HoldScope, holdScopes } from "../state/hold.ts";
import { isSetBackBy, phaseOf } from "../state/hold-rows.ts";
import { nearMisses } from "../state/near-miss.ts";
import { meetsNeeds, type Needs, unmetNeeds } from "../state/needs.ts";
import { usedOf } from "../state/rate.ts";
import { type IneligibleReason, waitingReasons } from "../state/receipt.ts";
import { totalAt } from "../state/rolling-window.ts";
import { firstTask } from "../state/service-order.ts";
import { isHard, type RateWindow } from "../state/settings.ts";
import type {
  HoldRow,
  ProjectRow,
  QueueProject,
  QueueUser,
  SwarmState,
  TaskRow,
  TokenLedger,
} from "../state/state.ts";
import { peersOf } from "./eligibility.ts";
import { type AgentVerdict, countsByReason, verdictsOn, type Wanted, Wanting } from "./explain-agents.ts";
import { type Position, positionOf } from "./explain-position.ts";
import {
  type BudgetVerdict,
  budgetOpensAt,
  budgetVerdict,
  closedRate,
  projectGate,
  rateReserved,
} from "./gates.ts";
import { lastHoldOn } from "./hold.ts";
import { RoundSizes } from "./round-sizes.ts";
import { goesByStarvationLimit, lateTasks } from "./starvation-limit.ts";

/**
 * Why a live task has no agent. A closed set: the gates of state/receipt.ts, and:
 *
 * - `journal-tight`: the journal has too little room for any assignment.
 * - `not-before`: the task is not due.
 * - `no-agent-serves-kind`, `no-agent-has-role`, `no-agent-has-labels`, `no-agent-of-type`: no such agent is online and
 *   not draining.
 * - `all-full`: every agent of the kind is full.
 * - `rate-limited`: the agents' type has used up its rate.
 * - `on-hold`: the agents, or all agents of their type, are on hold.
 * - `none-eligible`: each agent of the kind fails some filter.
 * - `room-kept`: the rest of a budget is kept for a task past the starvation limit.
 * - `later-turn`: some agent may have the task, when its turn comes.
 */
export const obstacleReasons = [
  "journal-tight",
  ...waitingReasons,
  "not-before",
  "no-agent-serves-kind",
  "no-agent-has-role",
  "no-agent-has-labels",
  "no-agent-of-type",
  "all-full",
  "rate-limited",
  "on-hold",
  "none-eligible",
  "room-kept",
  "later-turn",
] as const;
export type ObstacleReason = (typeof obstacleReasons)[number];

type Simple<Reason extends ObstacleReason, Facts extends object> = {
  readonly reason: Reason;
} & Readonly<Facts>;

export type Obstacle =
  | Simple<"journal-tight", JournalFacts>
  | Simple<"swarm-paused", object>
  | Simple<"project-paused", { project: ProjectId }>
  /**
   * `isRetry`: the task pauses after a failed attempt; else the submitter set a not-before. `probed`: the attempt was a
   * refused probe, so another task makes the next probe of this hold.
   */
  | Simple<"not-before", { until: Instant; isRetry: boolean; probed?: HoldFacts }>
  /**
   * `offline`, `draining`: agents that would serve the kind. `nearMisses`: served kinds with a similar name, when no
   * agent serves the kind and the submitter named it.
   */
  | Simple<
      "no-agent-serves-kind",
      { kind: Kind; nearMisses: readonly Kind[]; offline: number; draining: number }
    >
  /**
   * `agents` serve the kind in other roles. `offline`, `draining`: agents in the role; `drained` is one that drains.
   * `nearMisses`: similar roles, when no agent has this role.
   */
  | Simple<
      "no-agent-has-role",
      {
        kind: Kind;
        role: string;
        nearMisses: readonly string[];
        agents: number;
        offline: number;
        draining: number;
        drained?: AgentId;
      }
    >
  /**
   * `agents` serve the kind, in its role if any, without the labels. `unmet`: the needs that the closest of them lack.
   * `nearMisses`: labels of agents that resemble the unmet needs, when no agent has the labels. `offline`, `draining`:
   * agents with the labels.
   */
  | Simple<
      "no-agent-has-labels",
      {
        kind: Kind;
        role?: string;
        needs: Needs;
        unmet: Needs;
        nearMisses: readonly string[];
        agents: number;
        offline: number;
        draining: number;
        drained?: AgentId;
      }
    >
  /**
   * Under a budget that downgrades the task: `agents` serve the kind, in its role if any, and are of other types.
   * `offline`, `draining`: agents of the type. `nearMisses`: similar types among them, when no agent has this type.
   */
  | Simple<
      "no-agent-of-type",
      {
        kind: Kind;
        role?: string;
        type: string;
        nearMisses: readonly string[];
        agents: number;
        offline: number;
        draining: number;
        drained?: AgentId;
      }
    >
  | Simple<"project-budget" | "global-budget", BudgetFacts>
  | Simple<"swarm-limit", { open: number; topN: number }>
  | Simple<"project-concurrency", { project: ProjectId; open: number; maxConcurrent: number }>
  | Simple<"all-full", { agents: number; taken: number; capacity: number }>
  /** Only the token rate keeps the task from the `agents` of the type. With several such types: the type that opens
   *  first, at `opensAt` by time alone. With several used-up rates of the type: the rate that opens last. */
  | Simple<
      "rate-limited",
      {
        type: string;
        used: number;
        /** Reserved by open attempts. */
        reserved: number;
        tokensMax: number;
        window: RateWindow;
        agents: number;
        opensAt?: Instant;
      }
    >
  /** Only the hold keeps the task from the `agents`. With several holds: the hold that elapses first. `until` is
   *  absent while its probe is under way. */
  | Simple<"on-hold", HoldFacts & { agents: number; until?: Instant }>
  /** Agents of the kind, by the filter that each fails; `until`: when time alone lets the first agent pass. */
  | Simple<"none-eligible", { counts: Readonly<Partial<Record<IneligibleReason, number>>>; until?: Instant }>
  | Simple<"room-kept", { task: TaskId; project: ProjectId; user: UserId }>
  | Simple<"later-turn", { feasible: number }>;

/** The fill of the journal that records decisions. */
export interface JournalFacts {
  readonly bytes: number;
  readonly bytesMax: number;
  /** How to give the journal more room: a clause. */
  readonly remedy?: string;
}

/** A hold. `hold`: its reason. */
interface HoldFacts {
  readonly on: HoldScope;
  readonly name: string;
  readonly by: HoldBasis;
  readonly hold?: string;
}

function holdFacts({ on, name, by, reason }: HoldRow): HoldFacts {
  return { on, name, by, ...(reason === undefined ? {} : { hold: reason }) };
}

/** Tokens of a hard budget's window. */
export interface BudgetFacts {
  /** Absent: the swarm's. */
  readonly project?: ProjectId;
  readonly spent: number;
  /** Reserved by open attempts. */
  readonly reserved: number;
  readonly tokens: number;
  readonly windowMs: number;
  /** The task's expected use. */
  readonly needed: number;
  /**
   * When enough tokens have left the window, if none are added or returned; absent when time alone never makes room.
   */
  readonly opensAt?: Instant;
}

export interface WaitExplanation {
  /** The first obstacle is the answer; never empty. */
  readonly obstacles: readonly Obstacle[];
  /** Since the task was last queued, ms and ticks of its kind; 0 while delayed. */
  readonly ageMs: number;
  readonly ageTicks: number;
  /** The cheaper kind that a budget imposes, or a hold on all agents of the own kind. */
  readonly runsAs?: Kind;
  /** The only agent type that the budget allows. */
  readonly cheaperType?: string;
  /** Every agent: agents that may have the task first, best first. */
  readonly agents: readonly AgentVerdict[];
  /** Absent while the task is delayed. */
  readonly position?: Position;
}

/** Facts outside the state. */
export interface WaitMoment {
  /** Not before the newest event of the state. */
  readonly at: Instant;
  /** Present while the journal has too little room for any assignment. */
  readonly tightJournal?: JournalFacts | undefined;
}

/** @param row a task that is queued or delayed */
export function explainWait(state: SwarmState, row: TaskRow, moment: WaitMoment): WaitExplanation {
  return new WaitingTask(state, row, moment).explanation();
}

interface Judged {
  readonly verdict: BudgetVerdict;
  readonly wanted: Wanted;
  readonly agents: readonly AgentVerdict[];
}

function judged(state: SwarmState, row: TaskRow, at: Instant, isDowngraded = false): Judged {
  const verdict = budgetVerdict(state, row.projectRow, row.spec, at, isDowngraded);
  const wanted = {
    kind: verdict.runsAs ?? row.spec.kind,
    role: row.spec.role,
    needs: row.spec.needs,
    agentType: verdict.cheaperType,
    access: state.grants.accessOf(row.spec.project),
    avoid: row.failedBy,
    isLastAttempt: row.failures + 1 >= row.spec.maxAttempts,
    preferred: preferredAgent(state, row.spec, at),
  };
  return { verdict, wanted, agents: verdictsOn(state, wanted, at) };
}

/** The task as the cheaper kind, where all agents of the own kind are on hold. Undefined if all agents of the cheaper
 *  kind are on hold as well, and none is due to probe. */
function asCheaper(
  state: SwarmState,
  row: TaskRow,
  at: Instant,
  { wanted, agents }: Judged,
): Judged | undefined {
  if (state.kindByName.get(row.spec.kind)?.settings?.cheaper === undefined) return undefined;
  if (agents.some(isEligible) || !peersOf(state, wanted).areOnHold) return undefined;
  const cheaper = judged(state, row, at, true);
  const peers = peersOf(state, cheaper.wanted);
  const isOutOfHold = peers.agents.length > 0 && !peers.areOnHold;
  return isOutOfHold || cheaper.agents.some(isEligible) ? cheaper : undefined;
}

class WaitingTask {
  readonly #state: SwarmState;
  readonly #row: TaskRow;
  readonly #at: Instant;
  readonly #tightJournal: JournalFacts | undefined;
  readonly #verdict: BudgetVerdict;
  readonly #agents: readonly AgentVerdict[];
  /** Verdicts on agents that serve the task's kind. */
  readonly #serving: readonly AgentVerdict[];
  readonly #unserved: readonly Obstacle[];
  readonly #wanting: Wanting;
  #looked = 0;

  constructor(state: SwarmState, row: TaskRow, { at, tightJournal }: WaitMoment) {
    this.#state = state;
    this.#row = row;
    this.#at = at;
    this.#tightJournal = tightJournal;
    const own = judged(state, row, at);
    const { verdict, agents } = asCheaper(state, row, at, own) ?? own;
    this.#verdict = verdict;
    this.#agents = agents;
    this.#serving = this.#agents.filter(({ servesKind }) => servesKind);
    this.#unserved = this.#obstaclesOfKind();
    this.#wanting = new Wanting(state, at);
  }

  explanation(): WaitExplanation {
    const { runsAs, cheaperType } = this.#verdict;
    const age = ageOf(this.#row, this.#state, this.#at);
    return {
      obstacles: this.#row.state === "delayed" ? this.#untilDue() : this.#untilAssigned(),
      ...age,
      ...(runsAs === undefined ? {} : { runsAs }),
      ...(cheaperType === undefined ? {} : { cheaperType }),
      agents: this.#agents,
      ...(this.#row.state === "delayed" ? {} : { position: positionOf(this.#state, this.#row, this.#at) }),
    };
  }

  /** The wait for the not-before, and obstacles that a person should know earlier. */
  #untilDue(): Obstacle[] {
    const { releaseTimer, attempt, spec } = this.#row;
    const until = releaseTimer?.dueAt ?? this.#at;
    const isRetry = attempt > 0 && until !== spec.notBefore;
    return [
      { reason: "not-before", until, isRetry, ...this.#holdProbed() },
      ...this.#heldBack(),
      ...this.#unserved,
    ];
  }

  /** The hold whose last refused probe was an attempt of the task. */
  #holdProbed(): { readonly probed?: HoldFacts } {
    for (const on of holdScopes)
      for (const hold of this.#state.holds[on].values())
        if (isSetBackBy(hold, this.#row)) return { probed: holdFacts(hold) };
    return {};
  }

  #untilAssigned(): Obstacle[] {
    const obstacles = [
      ...this.#heldBack(),
      ...this.#unserved,
      ...this.#overBudget(),
      ...this.#overLimit(),
      ...this.#noCapacity(),
    ];
    return obstacles.length > 0 ? obstacles : [this.#laterTurn()];
  }

  /** Obstacles of the whole swarm or project. */
  #heldBack(): Obstacle[] {
    const { project, isPaused } = this.#row.projectRow;
    const found: Obstacle[] = [];
    if (this.#tightJournal !== undefined) found.push({ reason: "journal-tight", ...this.#tightJournal });
    if (this.#state.isPaused) found.push({ reason: "swarm-paused" });
    if (isPaused) found.push({ reason: "project-paused", project });
    return found;
  }

  #obstaclesOfKind(): Obstacle[] {
    const kind = this.#kind;
    const { role, needs } = this.#row.spec;
    const serving = this.#serving;
    const here = serving.filter(({ standing }) => !isAway(standing));
    if (role !== undefined && serving.length > 0) {
      const ofRole = this.#obstaclesOfRole(kind, role, here.length);
      return ofRole.length > 0 ? ofRole : this.#obstaclesOfLabels(kind);
    }
    // With needs, the labels say more: an agent without them does not help when it is started again.
    if (here.length === 0 && (needs === undefined || serving.length === 0)) {
      const isKnown = serving.length > 0 || this.#verdict.runsAs !== undefined;
      const misses = isKnown ? [] : nearMisses(kind, this.#state.onlineByKind.keys());
      const draining = serving.filter(({ standing }) => standing === "draining").length;
      const offline = serving.length - draining;
      return [{ reason: "no-agent-serves-kind", kind, nearMisses: misses, offline, draining }];
    }
    return this.#obstaclesOfLabels(kind);
  }

  /** When agents serve the kind in the role, and none of them has the labels. */
  #obstaclesOfLabels(kind: Kind): Obstacle[] {
    const { role, needs } = this.#row.spec;
    if (needs === undefined) return this.#obstaclesOfType(kind);
    const labelsOf = ({ agent }: AgentVerdict) => this.#state.agentById.get(agent)?.labels ?? {};
    const inRole = this.#inRole;
    const labelled = inRole.filter((verdict) => meetsNeeds(labelsOf(verdict), needs));
    if (labelled.some(({ standing }) => !isAway(standing))) return this.#obstaclesOfType(kind);
    const agents = inRole.filter(({ standing }) => !isAway(standing)).length;
    const { unmet, nearMisses } =
      labelled.length > 0 ? { unmet: needs, nearMisses: [] } : unmetNeeds(needs, inRole.map(labelsOf));
    const asked = { kind, ...(role === undefined ? {} : { role }), needs };
    return [{ reason: "no-agent-has-labels", ...asked, unmet, nearMisses, agents, ...awayOf(labelled) }];
  }

  /** Verdicts on agents of the kind in the task's role. */
  get #inRole(): readonly AgentVerdict[] {
    const { role } = this.#row.spec;
    const { agentById } = this.#state;
    return this.#serving.filter(({ agent }) => role === undefined || agentById.get(agent)?.role === role);
  }

  /** @param agents number of agents that serve the kind and are not away, in any role */
  #obstaclesOfRole(kind: Kind, role: string, agents: number): Obstacle[] {
    const roleOf = ({ agent }: AgentVerdict) => this.#state.agentById.get(agent)?.role;
    const inRole = this.#serving.filter((verdict) => roleOf(verdict) === role);
    if (inRole.some(({ standing }) => !isAway(standing))) return [];
    if (inRole.length > 0 && this.#row.spec.needs !== undefined) return []; // the labels say more
    const roles = new Set(this.#serving.flatMap((verdict) => roleOf(verdict) ?? []));
    const misses = inRole.length > 0 ? [] : nearMisses(role, roles);
    return [{ reason: "no-agent-has-role", kind, role, nearMisses: misses, agents, ...awayOf(inRole) }];
  }

  /** When a budget allows one type only, and agents of other types would serve. */
  #obstaclesOfType(kind: Kind): Obstacle[] {
    const type = this.#verdict.cheaperType;
    if (type === undefined) return [];
    const { role } = this.#row.spec;
    const { agentById } = this.#state;
    const inRole = this.#inRole.filter(({ standing }) => standing !== "label");
    const ofType = inRole.filter((verdict) => this.#typeOf(verdict) === type);
    if (ofType.some(({ standing }) => !isAway(standing))) return [];
    const types = new Set(inRole.flatMap(({ agent }) => agentById.get(agent)?.agentType ?? []));
    const misses = ofType.length > 0 ? [] : nearMisses(type, types);
    const agents = inRole.filter(({ standing }) => !isAway(standing)).length;
    const asked = { kind, ...(role === undefined ? {} : { role }), type };
    return [{ reason: "no-agent-of-type", ...asked, nearMisses: misses, agents, ...awayOf(ofType) }];
  }

  #overBudget(): Obstacle[] {
    const { projectRow } = this.#row;
    if (this.#verdict.kind === "runs") return [];
    const { reason, tokens } = this.#verdict;
    const isOwn = reason === "project-budget";
    const budget = isOwn ? projectRow.settings?.budget : this.#state.policy.budget;
    if (budget === undefined) return [];
    const ledger: TokenLedger = isOwn ? projectRow.ledger : this.#state.ledger;
    const opensAt = budgetOpensAt(ledger, budget, tokens, this.#at);
    return [
      {
        reason,
        ...(isOwn ? { project: projectRow.project } : {}),
        spent: ledger.spent === undefined ? 0 : totalAt(ledger.spent, this.#at),
        reserved: ledger.reserved,
        tokens: budget.tokens,
        windowMs: budget.windowMs,
        needed: tokens,
        ...(opensAt === undefined ? {} : { opensAt }),
      },
    ];
  }

  #overLimit(): Obstacle[] {
    const { openAttempts, policy } = this.#state;
    const { projectRow } = this.#row;
    const found: Obstacle[] = [];
    if (policy.topN !== undefined && openAttempts >= policy.topN)
      found.push({ reason: "swarm-limit", open: openAttempts, topN: policy.topN });
    const maxConcurrent = projectRow.settings?.maxConcurrent;
    if (maxConcurrent !== undefined && projectRow.openAttempts >= maxConcurrent) {
      const { project, openAttempts: open } = projectRow;
      found.push({ reason: "project-concurrency", project, open, maxConcurrent });
    }
    return found;
  }

  /** When some agent serves the kind, but none may have the task now. */
  #noCapacity(): Obstacle[] {
    if (this.#feasible > 0 || this.#unserved.length > 0) return [];
    const counts = countsByReason(this.#serving);
    const able = this.#serving.filter(({ standing }) => !awayReasons.has(standing));
    if (able.length === 0) return [{ reason: "none-eligible", counts }];
    if (able.every(({ standing }) => standing === "full")) {
      const capacity = able.reduce((sum, agent) => sum + agent.capacity, 0);
      const free = able.reduce((sum, agent) => sum + agent.free, 0);
      return [{ reason: "all-full", agents: able.length, taken: capacity - free, capacity }];
    }
    const rate = this.#usedUpRate(able);
    if (able.every(({ standing }) => standing === "rate-limited")) return rate;
    const holds = this.#firstHold(able);
    if (able.every(({ standing }) => standing === "on-hold")) return holds;
    const openings = able.flatMap(({ until }) => until ?? []);
    return [
      {
        reason: "none-eligible",
        counts,
        ...(openings.length === 0 ? {} : { until: Math.min(...openings) as Instant }),
      },
      ...rate,
      ...holds,
    ];
  }

  #firstHold(able: readonly AgentVerdict[]): Obstacle[] {
    const held = able.filter(({ standing }) => standing === "on-hold");
    const holds = held.flatMap(({ agent }) => {
      const row = this.#state.agentById.get(agent);
      return (row && lastHoldOn(this.#state, row, this.#verdict.runsAs ?? this.#row.spec.kind)) ?? [];
    });
    const [first] = holds.toSorted((a, b) => a.until - b.until);
    if (first === undefined) return [];
    return [
      {
        reason: "on-hold",
        ...holdFacts(first),
        agents: holds.filter((hold) => hold === first).length,
        ...(phaseOf(first) === "held" ? { until: first.until } : {}),
      },
    ];
  }

  #usedUpRate(able: readonly AgentVerdict[]): Obstacle[] {
    const limited = able.filter(({ standing }) => standing === "rate-limited");
    const [first] = limited.toSorted((a, b) => (a.until ?? 0) - (b.until ?? 0));
    const closed = first && closedRate(this.#state, this.#typeOf(first), this.#at);
    if (closed === undefined) return [];
    const { row } = closed;
    const { agentType: type, use, settings } = row;
    const { tokensMax, window } = settings;
    const agents = limited.filter((agent) => this.#typeOf(agent) === type).length;
    const opensAt = first?.until === undefined ? {} : { opensAt: first.until };
    const used = usedOf(use, settings, this.#at);
    const reserved = rateReserved(this.#state, row);
    return [{ reason: "rate-limited", type, used, reserved, tokensMax, window, agents, ...opensAt }];
  }

  #typeOf({ agent }: AgentVerdict): string {
    return this.#state.agentById.get(agent)?.agentType ?? "";
  }

  #laterTurn(): Obstacle {
    const ahead = this.#keptFor();
    if (ahead === undefined) return { reason: "later-turn", feasible: this.#feasible };
    const { id, project, user } = ahead.spec;
    return { reason: "room-kept", task: id, project, user };
  }

  /**
   * The task past the starvation limit that the rest of a budget is kept for (docs/scheduling.md, "Fitting the
   * budget"). The search is bounded by limits.explainedUsersMax and explainedDemandsMax, so that it delays no other
   * work. Beyond the bounds the answer is `later-turn`.
   */
  #keptFor(): TaskRow | undefined {
    const { projectRow } = this.#row;
    const isShared = isHard(this.#state.policy.budget);
    if (!isShared && !isHard(projectRow.settings?.budget)) return undefined;
    for (const queue of this.#state.queueByKey.values()) {
      for (const project of queue.memberByProject.values()) {
        if (project.row !== projectRow && !isShared) continue;
        const kept = this.#lateMisfit(project);
        if (kept !== undefined) return kept;
      }
    }
    return undefined;
  }

  #lateMisfit(project: QueueProject): TaskRow | undefined {
    if (projectGate(project.row) !== undefined) return undefined;
    for (const user of project.memberByUser.values()) {
      this.#looked += 1;
      if (this.#looked > limits.explainedUsersMax) return undefined;
      for (const task of dueTasks(this.#state, user)) {
        if (task !== this.#row && this.#keepsRoom(task, project.row)) return task;
      }
    }
    return undefined;
  }

  #keepsRoom({ spec, failedBy }: TaskRow, row: ProjectRow): boolean {
    const verdict = budgetVerdict(this.#state, row, spec, this.#at);
    if (verdict.kind === "runs" || (row !== this.#row.projectRow && verdict.reason !== "global-budget"))
      return false;
    const { runsAs = spec.kind, cheaperType: agentType } = verdict;
    const { role, needs } = spec;
    const access = this.#state.grants.accessOf(spec.project);
    const demand = { kind: runsAs, role, needs, agentType, access, avoid: failedBy };
    return this.#wanting.asked < limits.explainedDemandsMax && this.#wanting.isByAny(demand);
  }

  get #kind(): Kind {
    return this.#verdict.runsAs ?? this.#row.spec.kind;
  }

  get #feasible(): number {
    return this.#agents.filter(isEligible).length;
  }
}

function isEligible({ standing }: AgentVerdict): boolean {
  return standing === "feasible" || standing === "probe";
}

/** Counts of agents that are all offline or draining. */
function awayOf(agents: readonly AgentVerdict[]) {
  const drained = agents.filter(({ standing }) => standing === "draining");
  const [first] = drained;
  const draining = drained.length;
  return {
    offline: agents.length - draining,
    draining,
    ...(first === undefined ? {} : { drained: first.agent }),
  };
}

function isAway(standing: AgentVerdict["standing"]): boolean {
  return standing === "offline" || standing === "draining";
}

/** Filters that waiting does not change: an agent that fails such a filter will never have the task. */
const awayReasons: ReadonlySet<AgentVerdict["standing"]> = new Set([
  "offline",
  "draining",
  "label",
  "not-granted",
  "wrong-role",
  "wrong-type",
]);

function ageOf(row: TaskRow, state: SwarmState, at: Instant) {
  if (row.partition === undefined) return { ageMs: 0, ageTicks: 0 };
  const tick = state.kindByName.get(row.spec.kind)?.tick ?? row.queuedTick;
  return { ageMs: Math.max(0, at - row.queuedAt), ageTicks: tick - row.queuedTick };
}

/**
 * A user's tasks that keep room without fitting: tasks past the starvation limit, or the next task of a user past the
 * limit.
 */
function dueTasks(state: SwarmState, user: QueueUser): TaskRow[] {
  const sizes = new RoundSizes(state.policy.starvationLimit);
  const late = lateTasks(sizes, user);
  const next = goesByStarvationLimit(state, sizes, user) ? firstTask(user) : undefined;
  return next === undefined ? late : [...late, next];
}
