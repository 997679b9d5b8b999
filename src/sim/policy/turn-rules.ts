// Which task goes next: the published rules that order users, and their rivals. Each rule keeps its own queues.
// production.ts has Waggle's own rule, agent-choices.ts the choice of agents.

import { loadOf, maximaOf, type Queue } from "../../scheduling/load.ts";
import type { SeededRandom } from "../random.ts";
import type { SimTask } from "./dispatcher.ts";

/** Orders the waiting tasks. */
export interface TurnRule {
  submitted(task: SimTask, at: number): void;
  /** An attempt ended: a unit of work was completed. */
  ended(): void;
  /** Takes the next task of a servable kind out of its queue. */
  take(at: number, canServe: (kind: string) => boolean): SimTask | undefined;
}

/** First in, first out over all users. */
export class FifoTurns implements TurnRule {
  readonly #queue: SimTask[] = [];

  submitted(task: SimTask): void {
    this.#queue.push(task);
  }

  ended(): void {
    // Ends do not change the order of arrival.
  }

  take(_at: number, canServe: (kind: string) => boolean): SimTask | undefined {
    return takeFirst(this.#queue, ({ kind }) => canServe(kind));
  }
}

/** The scheduler that Lucio's document replaces: large tasks go to a second queue, served when the first is
 *  empty. */
export class TwoQueueTurns implements TurnRule {
  readonly #high = new FifoTurns();
  readonly #low = new FifoTurns();
  readonly #isLarge: (task: SimTask) => boolean;

  constructor(isLarge: (task: SimTask) => boolean) {
    this.#isLarge = isLarge;
  }

  submitted(task: SimTask): void {
    (this.#isLarge(task) ? this.#low : this.#high).submitted(task);
  }

  ended(): void {
    // Ends do not change this order either.
  }

  take(at: number, canServe: (kind: string) => boolean): SimTask | undefined {
    return this.#high.take(at, canServe) ?? this.#low.take(at, canServe);
  }
}

/** A user's own tasks, first in, first out, and the rule's memory of the user. */
export interface UserQueue {
  readonly user: string;
  readonly tasks: SimTask[];
  /** Sum of the weights of waiting tasks. */
  depth: number;
}

/** A rule that picks a user. A user's own tasks go first in, first out. */
export abstract class UserTurns implements TurnRule {
  protected readonly queues: UserQueue[] = [];
  readonly #byUser = new Map<string, UserQueue>();

  submitted(task: SimTask, at: number): void {
    let queue = this.#byUser.get(task.user);
    if (queue === undefined) {
      queue = { user: task.user, tasks: [], depth: 0 };
      this.#byUser.set(task.user, queue);
      this.queues.push(queue);
    }
    if (queue.tasks.length === 0) this.began(queue, at);
    queue.tasks.push(task);
    queue.depth += task.weight;
  }

  ended(): void {
    // Most rules depend on time or turns; the rule that counts ticks overrides this method.
  }

  take(at: number, canServe: (kind: string) => boolean): SimTask | undefined {
    const waiting = this.queues.filter(({ tasks }) => tasks.some(({ kind }) => canServe(kind)));
    if (waiting.length === 0) return undefined;
    const queue = this.pick(waiting, at);
    const task = takeFirst(queue.tasks, ({ kind }) => canServe(kind)) as SimTask;
    queue.depth -= task.weight;
    this.granted(queue, task, at);
    return task;
  }

  /** A user without waiting tasks submits a task. */
  protected began(_queue: UserQueue, _at: number): void {
    // For rules that do not depend on it.
  }

  /** @param waiting users with a servable task, in order of their first submission; not empty */
  protected abstract pick(waiting: readonly UserQueue[], at: number): UserQueue;

  protected granted(_queue: UserQueue, _task: SimTask, _at: number): void {
    // For rules that do not depend on it.
  }
}

/** The users in turn. */
export class RoundRobinTurns extends UserTurns {
  #last = -1;

  protected override pick(waiting: readonly UserQueue[]): UserQueue {
    const places = waiting.map((queue) => this.queues.indexOf(queue));
    const next = places.find((place) => place > this.#last) ?? (places[0] as number);
    this.#last = next;
    return this.queues[next] as UserQueue;
  }
}

/** A random waiting user. */
export class RandomTurns extends UserTurns {
  readonly #random: SeededRandom;

  constructor(random: SeededRandom) {
    super();
    this.#random = random;
  }

  protected override pick(waiting: readonly UserQueue[]): UserQueue {
    return this.#random.pick(waiting);
  }
}

/** LOCO's load function over the users' queues, computed at each grant; exact ties are drawn by seed. */
export class LocoTurns extends UserTurns {
  readonly #alpha: number;
  readonly #random: SeededRandom;
  readonly #queuedTick = new WeakMap<SimTask, number>();
  #tick = 0;

  constructor(options: { readonly alpha: number; readonly random: SeededRandom }) {
    super();
    this.#alpha = options.alpha;
    this.#random = options.random;
  }

  override ended(): void {
    this.#tick += 1;
  }

  override submitted(task: SimTask, at: number): void {
    super.submitted(task, at);
    this.#queuedTick.set(task, this.#tick);
  }

  protected override pick(waiting: readonly UserQueue[]): UserQueue {
    const loads = waiting.map((queue) => this.#queueOf(queue));
    const maxima = maximaOf(loads);
    let best: UserQueue[] = [];
    let highest = Number.NEGATIVE_INFINITY;
    for (const [at, queue] of waiting.entries()) {
      const load = loadOf(loads[at] as Queue, maxima, this.#alpha);
      if (load > highest) best = [];
      if (load >= highest) best.push(queue);
      highest = Math.max(highest, load);
    }
    return best.length === 1 ? (best[0] as UserQueue) : this.#random.pick(best);
  }

  #queueOf({ depth, tasks }: UserQueue): Queue {
    const oldest = tasks[0] as SimTask;
    return { queueDepth: depth, oldestAge: this.#tick - (this.#queuedTick.get(oldest) ?? this.#tick) };
  }
}

/** The user with the least use in the last window goes first, as under quotas by usage. */
export class WindowUsageTurns extends UserTurns {
  readonly #windowMs: number;
  readonly #grants: { readonly queue: UserQueue; readonly weight: number; readonly at: number }[] = [];
  readonly #used = new Map<UserQueue, number>();
  #oldest = 0;

  constructor(windowMs: number) {
    super();
    this.#windowMs = windowMs;
  }

  protected override pick(waiting: readonly UserQueue[], at: number): UserQueue {
    for (let grant = this.#grants[this.#oldest]; grant !== undefined; ) {
      if (grant.at > at - this.#windowMs) break;
      this.#used.set(grant.queue, this.#usedBy(grant.queue) - grant.weight);
      this.#oldest += 1;
      grant = this.#grants[this.#oldest];
    }
    return waiting.reduce((least, queue) => (this.#usedBy(queue) < this.#usedBy(least) ? queue : least));
  }

  protected override granted(queue: UserQueue, { weight }: SimTask, at: number): void {
    this.#grants.push({ queue, weight, at });
    this.#used.set(queue, this.#usedBy(queue) + weight);
  }

  #usedBy(queue: UserQueue): number {
    return this.#used.get(queue) ?? 0;
  }
}

/** Virtual clocks that count every user with a task as waiting, servable or not: the mistake that `mixed-kinds`
 *  shows. The clock of a user whose task no agent can serve stands still while the other clocks advance. */
export class StandingClockTurns extends UserTurns {
  readonly #clocks = new Map<UserQueue, number>();
  #virtualTime = 0;

  protected override began(queue: UserQueue): void {
    this.#clocks.set(queue, Math.max(this.#clockOf(queue), this.#virtualTime));
  }

  protected override pick(waiting: readonly UserQueue[]): UserQueue {
    return waiting.reduce((lowest, queue) => (this.#clockOf(queue) < this.#clockOf(lowest) ? queue : lowest));
  }

  protected override granted(queue: UserQueue, { weight }: SimTask): void {
    this.#virtualTime = Math.max(this.#virtualTime, this.#clockOf(queue));
    this.#clocks.set(queue, this.#clockOf(queue) + weight);
  }

  #clockOf(queue: UserQueue): number {
    return this.#clocks.get(queue) ?? 0;
  }
}

function takeFirst(tasks: SimTask[], isWanted: (task: SimTask) => boolean): SimTask | undefined {
  const place = tasks.findIndex(isWanted);
  return place === -1 ? undefined : tasks.splice(place, 1)[0];
}
