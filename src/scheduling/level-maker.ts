// Makes the levels of a round's queues by the policy's rules, with the totals and maxima of the round's start.

import { assert } from "../assert.ts";
import type { Instant } from "../ids.ts";
import type { Member } from "../state/clock-queue.ts";
import type { ProjectTurnRule, UserTurnRule } from "../state/policy.ts";
import { totalAt } from "../state/rolling-window.ts";
import {
  kindSettingsOf,
  projectSettingsOf,
  type QueueProject,
  type QueueUser,
  type SwarmState,
  type TaskQueue,
  type TaskRow,
} from "../state/state.ts";
import {
  type Claim,
  claimOfTask,
  compareClaims,
  guaranteeClaim,
  ruleClaim,
  starvationLimitClaim,
} from "./claim.ts";
import { projectGate } from "./gates.ts";
import {
  type Best,
  ClockLevel,
  type ClockTerms,
  clockClaim,
  isGuaranteed,
  type Level,
  RankedLevel,
} from "./level.ts";
import { loadOf, maximaOf, type Queue } from "./load.ts";
import type { RoundSizes } from "./round-sizes.ts";
import {
  isPastStarvationLimit,
  mayBePastStarvationLimitOfProjects,
  mayBePastStarvationLimitOfUsers,
  type StarvationLimitTerms,
  starvationLimitOfProjects,
  starvationLimitOfUsers,
} from "./starvation-limit.ts";

export interface LevelMakerInit {
  readonly state: SwarmState;
  readonly at: Instant;
  readonly queues: readonly TaskQueue[];
  readonly sizes: RoundSizes;
  readonly bestUserOf: (project: QueueProject) => Best<QueueUser> | undefined;
  readonly firstTaskOf: (user: QueueUser) => TaskRow | undefined;
}

export class LevelMaker {
  readonly #init: LevelMakerInit;
  /** The deepest queue and the oldest wait at the start of the round, before any grant. */
  readonly #maxima: Maxima;
  readonly #shares: Shares;

  constructor(init: LevelMakerInit) {
    this.#init = init;
    const { projectTurn, userTurn } = init.state.policy;
    const isByLoad = projectTurn === "load" || userTurn === "load";
    this.#maxima = isByLoad ? maximaIn(init.queues) : nobodysMaxima;
    this.#shares = projectTurn === "deficit" ? this.#sharesOf() : nobodysShares;
  }

  ofProjects(): Level<TaskQueue, QueueProject> {
    const rule = this.#init.state.policy.projectTurn;
    if (rule === "clock")
      return new ClockLevel({
        queueOf: (queue) => queue.projects,
        ownerOf: () => this.#init.state,
        starvationLimitOf: (queue) => starvationLimitOfProjects(this.#init.sizes, queue),
        mayBePastStarvationLimit: (queue) => mayBePastStarvationLimitOfProjects(this.#init.sizes, queue),
        guaranteedUntil: this.#guaranteedUntil,
      });
    return new RankedLevel({
      membersOf: (queue) => queue.memberByProject.values(),
      claimOf: (project) => this.#rankedProjectClaim(project, rule, this.#projectTerms(project.queue)),
    });
  }

  ofUsers(): Level<QueueProject, QueueUser> {
    const { userTurn: rule, projectTurn } = this.#init.state.policy;
    if (rule === "clock") {
      assert(projectTurn !== "none", "users go by clocks only within projects that take turns");
      return new ClockLevel({
        queueOf: (project) => project.users,
        ownerOf: (project) => project.row,
        starvationLimitOf: (project) => starvationLimitOfUsers(this.#init.state, this.#init.sizes, project),
        mayBePastStarvationLimit: (project) => mayBePastStarvationLimitOfUsers(this.#init.sizes, project),
        guaranteedUntil: undefined,
      });
    }
    return new RankedLevel({
      membersOf: (project) => project.memberByUser.values(),
      claimOf: (user) => this.#userClaim(user, rule, this.#userTerms(user.project).starvationLimit),
    });
  }

  /**
   * One project's claim in its queue under the present rule: ordering by these claims gives the order of `ofProjects`.
   * For display, not for rounds.
   */
  claimOfProject(project: QueueProject): Claim | undefined {
    const rule = this.#init.state.policy.projectTurn;
    const terms = this.#projectTerms(project.queue);
    return rule === "clock" ? clockClaim(project, terms) : this.#rankedProjectClaim(project, rule, terms);
  }

  /** One user's claim within its project; see `claimOfProject`. */
  claimOfUser(user: QueueUser): Claim | undefined {
    const rule = this.#init.state.policy.userTurn;
    const terms = this.#userTerms(user.project);
    return rule === "clock" ? clockClaim(user, terms) : this.#userClaim(user, rule, terms.starvationLimit);
  }

  #projectTerms(queue: TaskQueue): ClockTerms & { readonly guaranteedUntil: Instant } {
    const { state, sizes } = this.#init;
    const guaranteedUntil = this.#guaranteedUntil;
    return { owner: state, starvationLimit: starvationLimitOfProjects(sizes, queue), guaranteedUntil };
  }

  get #guaranteedUntil(): Instant {
    return (this.#init.at - this.#init.state.policy.guaranteeMs) as Instant;
  }

  #userTerms(project: QueueProject): ClockTerms {
    const { state, sizes } = this.#init;
    const starvationLimit = starvationLimitOfUsers(state, sizes, project);
    return { owner: project.row, starvationLimit, guaranteedUntil: undefined };
  }

  #rankedProjectClaim(
    project: QueueProject,
    rule: Exclude<ProjectTurnRule, "clock">,
    { starvationLimit, guaranteedUntil }: ClockTerms & { readonly guaranteedUntil: Instant },
  ): Claim | undefined {
    if (rule === "none") return this.#init.bestUserOf(project)?.claim;
    if (project.size === 0) return undefined;
    if (isPastStarvationLimit(project, starvationLimit)) return starvationLimitClaim(project);
    return this.#projectClaim(project, rule, guaranteedUntil);
  }

  #projectClaim(
    project: QueueProject,
    rule: Exclude<ProjectTurnRule, "clock" | "none">,
    guaranteedUntil: Instant,
  ): Claim {
    const { account, queue } = project;
    switch (rule) {
      case "deficit": {
        const deficit = this.#deficitOf(project);
        return isGuaranteed(project, guaranteedUntil)
          ? guaranteeClaim(account, deficit)
          : ruleClaim(account, deficit);
      }
      case "recency":
        return this.#recencyClaim(project, queue);
      case "load":
        return ruleClaim(
          account,
          -loadOf(queueOfProject(project), this.#maxima.projects, this.#init.state.policy.alpha),
        );
      case "fifo": {
        const firsts = [...project.memberByUser.values()].flatMap(
          (user) => this.#init.firstTaskOf(user) ?? [],
        );
        return firsts.map(claimOfTask).reduce(earlier, fifoLast);
      }
    }
  }

  #userClaim(
    user: QueueUser,
    rule: Exclude<UserTurnRule, "clock">,
    starvationLimit: StarvationLimitTerms,
  ): Claim | undefined {
    if (user.size === 0) return undefined;
    if (isPastStarvationLimit(user, starvationLimit)) return starvationLimitClaim(user);
    switch (rule) {
      case "recency":
        return this.#recencyClaim(user, user.project.queue);
      case "load":
        return ruleClaim(
          user.account,
          -loadOf(queueOfUser(user), this.#maxima.users, this.#init.state.policy.alpha),
        );
      case "fifo": {
        const first = this.#init.firstTaskOf(user);
        return first === undefined ? undefined : claimOfTask(first);
      }
    }
  }

  /** `priority_score = task_weight · (current_time − user_last_scheduled_time)` (Lucio, "The Scoring Formula"). */
  #recencyClaim({ account }: Member, { kindRow }: TaskQueue): Claim {
    const { importance } = kindSettingsOf(kindRow);
    return ruleClaim(account, -importance * (this.#init.at - account.servedAt));
  }

  /** `actual_ratio − target_ratio` (budget document, 2.5). */
  #deficitOf({ row }: QueueProject): number {
    const shares = this.#shares;
    const target = projectSettingsOf(row).creditWeight / shares.creditWeight;
    return totalAt(row.ledger.usage, this.#init.at) / shares.tokens - target;
  }

  #sharesOf(): Shares {
    const { state, at, queues } = this.#init;
    const waiting = new Set(projectsOf(queues).map(({ row }) => row));
    let creditWeight = 0;
    for (const row of waiting)
      if (projectGate(row) === undefined) creditWeight += projectSettingsOf(row).creditWeight;
    let tokens = 0;
    for (const row of state.projectById.values()) tokens += totalAt(row.ledger.usage, at);
    return { creditWeight, tokens: tokens === 0 ? 1 : tokens };
  }
}

interface Shares {
  /** Sum over all waiting projects with open gates. */
  readonly creditWeight: number;
  /** Tokens used in their windows by all projects; 1 when none were. */
  readonly tokens: number;
}

interface Maxima {
  readonly projects: Queue;
  readonly users: Queue;
}

/** For policies whose rules use no totals. */
const nobodysMaxima: Maxima = { projects: maximaOf([]), users: maximaOf([]) };
const nobodysShares: Shares = { creditWeight: 1, tokens: 1 };

function maximaIn(queues: readonly TaskQueue[]): Maxima {
  const projects = projectsOf(queues);
  return {
    projects: maximaOf(projects.map(queueOfProject)),
    users: maximaOf(projects.flatMap(usersOf).map(queueOfUser)),
  };
}

const fifoLast: Claim = { class: 2, first: Number.POSITIVE_INFINITY, second: 0, third: 0 };

function earlier(a: Claim, b: Claim): Claim {
  return compareClaims(a, b) <= 0 ? a : b;
}

function projectsOf(queues: readonly TaskQueue[]): QueueProject[] {
  return queues.flatMap((queue) => [...queue.memberByProject.values()]);
}

function usersOf(project: QueueProject): QueueUser[] {
  return [...project.memberByUser.values()];
}

function queueOfUser(user: QueueUser): Queue {
  const oldestTick = Math.min(
    ...user.partitions.map(({ oldest }) => oldest?.queuedTick ?? Number.POSITIVE_INFINITY),
  );
  return { queueDepth: user.cost, oldestAge: user.project.queue.kindRow.tick - oldestTick };
}

function queueOfProject(project: QueueProject): Queue {
  let oldestAge = 0;
  for (const user of project.memberByUser.values())
    oldestAge = Math.max(oldestAge, queueOfUser(user).oldestAge);
  return { queueDepth: project.cost, oldestAge };
}
