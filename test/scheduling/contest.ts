// A swarm without free capacity, where a project or a user waits among rivals that try to delay the victim. One
// attempt ends per tick, then all possible assignments are made. Measures the victim's wait, in ticks of its kind,
// against the bound of docs/scheduling.md.

import { kind, projectId, userId } from "../../src/ids.ts";
import type { EventOf } from "../../src/state/event.ts";
import type { Policy } from "../../src/state/policy.ts";
import type { TurnBasis } from "../../src/state/receipt.ts";
import type { OpenAttempt, QueueProject, QueueUser } from "../../src/state/state.ts";
import { Dice } from "./random-swarm.ts";
import { SwarmFixture } from "./swarm-fixture.ts";

/** The delaying moves before each tick; sees everything. */
export type Strategy = (contest: Contest) => void;

/** One wait of the victim. */
export interface Wait {
  /** In ticks of its kind, or, for a user among others, in turns of its project. */
  readonly waited: number;
  /** The bound. */
  readonly bound: number;
  /** The end of the wait; undefined while the wait lasts. */
  readonly basis: TurnBasis | undefined;
}

/** The bound's components so far, of a wait that is under way. */
interface Waiting {
  readonly sinceOrder: number;
  readonly sinceTick: number;
  /** Turns of the victim's project in the queue since. */
  turns: number;
  /** For the project's own wait: the maximum of members, and the members before the victim at the start. */
  projectsMax: number;
  projectsBefore: number;
  /** All memberships of other projects, in any queue. */
  othersMax: number;
  usersMax: number;
  usersBefore: number;
  /** Attempts whose end counted as a tick, while their capacity stayed occupied. */
  revoked: number;
}

export const victim = { project: "victim", user: "vic" };

export class Contest {
  readonly swarm = new SwarmFixture();
  readonly dice: Dice;
  readonly waits: Wait[] = [];
  /** Attempts that the current tick revoked. */
  revoked = 0;
  readonly #of: "project" | "user";
  readonly #open: OpenAttempt[] = [];
  #waiting: Waiting | undefined;
  #tasks = 0;
  readonly #clocks = new Map<object, number>();

  /** @param of the measured wait: the project's, or a user's */
  constructor(of: "project" | "user", seed: number, policy: Partial<Policy>) {
    this.#of = of;
    this.dice = new Dice(seed);
    this.swarm.setPolicy(policy);
    this.swarm.setProject(victim.project, { creditWeight: 0.3 });
    this.swarm.setKind("l", { importance: 5 });
    for (let n = 0; n < 3; n += 1) this.swarm.join(`a${n}`, { kinds: ["k"], maxConcurrent: 2 });
    this.swarm.join("both", { kinds: ["k", "l"], maxConcurrent: 2 });
  }

  submit(project: string, user: string, { of = "k", weight = 1, priority = 100 } = {}): void {
    this.#tasks += 1;
    this.swarm.submit(`t${this.#tasks}`, { project, user, kind: of, weight, priority });
  }

  queuedOf(project: string): number {
    return this.swarm.state.projectById.get(projectId(project))?.counts.queued ?? 0;
  }

  /** The wait that is under way. */
  get current(): Wait | undefined {
    const waiting = this.#waiting;
    if (waiting === undefined) return undefined;
    return { waited: this.#waited(waiting), bound: this.#bound(waiting), basis: undefined };
  }

  get #tick(): number {
    return this.swarm.state.kindByName.get(kind("k"))?.tick ?? 0;
  }

  /** Cancels one of the running tasks. The end counts at once; the capacity is free when the agent confirms. */
  revokeOne(): void {
    const row = [...this.swarm.state.taskById.values()].find(
      ({ open, spec }) => open !== undefined && spec.project !== victim.project,
    );
    if (row?.open === undefined) return;
    this.swarm.cancel(row.spec.id);
    this.revoked += 1;
  }

  /** @param strategy of all others */
  tick(strategy: Strategy): void {
    this.swarm.pass(this.dice.below(40));
    this.revoked = 0;
    if (this.#victimsTasks() === 0) this.submit(victim.project, victim.user);
    strategy(this);
    this.#endOne();
    this.#look();
    for (const event of this.swarm.plan()) this.#note(event);
    this.#checkClocks();
  }

  #victimsTasks(): number {
    return [...this.swarm.state.taskById.values()].filter(
      ({ spec, state }) => spec.user === victim.user && state === "queued",
    ).length;
  }

  #endOne(): void {
    for (const agent of this.swarm.state.agentById.values()) {
      for (const { state, project, task, attempt } of [...agent.open.values()]) {
        if (state !== "revoked" || this.dice.below(4) > 0) continue;
        this.swarm.apply({
          type: "AttemptReleased",
          project,
          task,
          attempt,
          agent: agent.id,
          reason: "confirmed",
        });
      }
    }
    const open = this.#open.filter(({ state }) => state !== "revoked");
    const ended = this.dice.of(open);
    this.#open.splice(0, this.#open.length, ...open.filter((other) => other !== ended));
    if (ended !== undefined) this.swarm.complete(ended.task, 10);
  }

  /** Virtual time never falls, and no clock goes back. */
  #checkClocks(): void {
    const { state } = this.swarm;
    const times: (readonly [owner: object, time: number])[] = [[state, state.virtualTime]];
    for (const row of state.projectById.values()) {
      times.push([row, row.virtualTime], [row.account, row.account.clock]);
      for (const { account } of row.userByName.values()) times.push([account, account.clock]);
    }
    for (const [owner, time] of times) {
      if (time < (this.#clocks.get(owner) ?? 0)) throw new Error(`a clock went back to ${time}`);
      this.#clocks.set(owner, time);
    }
  }

  /** Before a round: the waiting members, and their number. */
  #look(): void {
    const { queueByKey } = this.swarm.state;
    const project = queueByKey.get("k")?.memberByProject.get(projectId(victim.project));
    const user = project?.memberByUser.get(userId(victim.user));
    const member = this.#of === "project" ? project : user;
    if (project === undefined || user === undefined || member === undefined) {
      this.#waiting = undefined;
      return;
    }
    const projects = [...queueByKey.values()].flatMap((queue) => [...queue.memberByProject.values()]);
    const users = [...project.memberByUser.values()];
    if (this.#waiting?.sinceOrder !== member.sinceOrder) {
      this.#waiting = {
        sinceOrder: member.sinceOrder,
        sinceTick: member.sinceTick,
        turns: 0,
        projectsMax: 0,
        projectsBefore: countBefore(projects, project),
        othersMax: 0,
        usersMax: 0,
        usersBefore: countBefore(users, user),
        revoked: 0,
      };
    }
    const waiting = this.#waiting;
    waiting.projectsMax = Math.max(waiting.projectsMax, project.queue.memberByProject.size);
    waiting.othersMax = Math.max(waiting.othersMax, projects.length - 1);
    waiting.usersMax = Math.max(waiting.usersMax, users.length);
    waiting.revoked += this.revoked;
  }

  #note(event: EventOf<"TaskAssigned">): void {
    const row = this.swarm.task(event.task);
    this.#open.push(row.open as OpenAttempt);
    const { project, user, kind: of } = row.spec;
    const isVictim = project === victim.project && (this.#of === "project" || user === victim.user);
    if (this.#waiting !== undefined && !isVictim && project === victim.project && of === "k")
      this.#waiting.turns += 1;
    if (this.#waiting === undefined || !isVictim || of !== "k") return;
    this.waits.push({
      waited: this.#waited(this.#waiting),
      bound: this.#bound(this.#waiting),
      basis: event.receipt.turn?.[this.#of] ?? "rule",
    });
    this.#waiting = undefined;
  }

  /** A project's wait counts in ticks, a user's in turns of its project, where projects take turns. */
  get #isCountedInTurns(): boolean {
    return this.#of === "user" && this.swarm.state.policy.projectTurn !== "none";
  }

  #waited({ sinceTick, turns }: Waiting): number {
    return this.#isCountedInTurns ? turns : this.#tick - sinceTick;
  }

  #bound({ projectsMax, projectsBefore, othersMax, usersMax, usersBefore, revoked }: Waiting): number {
    const { starvationLimit } = this.swarm.state.policy;
    if (this.#isCountedInTurns) return starvationLimit * usersMax + usersBefore;
    if (this.#of === "project") return starvationLimit * projectsMax + projectsBefore + revoked;
    return (
      starvationLimit * usersMax + (usersBefore + 1) * (starvationLimit * projectsMax + othersMax) + revoked
    );
  }
}

function countBefore(members: readonly (QueueProject | QueueUser)[], of: QueueProject | QueueUser): number {
  return members.filter(({ sinceOrder }) => sinceOrder < of.sinceOrder).length;
}
