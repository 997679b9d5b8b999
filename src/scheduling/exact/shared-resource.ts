// LOCO's contention over one resource, to the letter ("Contention Resolution"): a free slot is granted at once.
// Otherwise each release advances the tick, ages the waiting tasks, scores all agents again and grants the highest. A
// model in one process, for plans, simulations and vectors. Live slots, with leases, aborts and lost agents, are
// journaled rows. They share the score and the pick (contention.ts), not this class.

import { BackpressureError, InvalidValueError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { checkAlpha } from "../../state/alpha.ts";
import { checkObject, checkPositive, checkText, checkWhole } from "../../state/argument.ts";
import { pickWaiter } from "../contention.ts";
import type { Queue } from "../load.ts";

export interface SharedResourceOptions {
  /** Slots, ≥ 1. */
  readonly capacity: number;
  /** [0, 1] */
  readonly alpha: number;
  /** LOCO's `max_waiters`, a whole number ≥ 0, default 100. */
  readonly maxWaiters?: number;
}

interface QueuedTask {
  readonly weight: number;
  readonly queuedTick: number;
}

/** The outcome of a release. */
export interface Released {
  /** Releases so far. */
  readonly tick: number;
  /** The agent that got the slot, or undefined without waiters. */
  readonly granted: string | undefined;
}

export class SharedResource {
  readonly #capacity: number;
  readonly #alpha: number;
  readonly #maxWaiters: number;
  /** Waiting tasks, oldest first; an agent without tasks has no entry. */
  readonly #queueByAgent = new Map<string, QueuedTask[]>();
  /** Slots held, by agent. */
  readonly #heldByAgent = new Map<string, number>();
  /** Agents that asked and wait, in order of asking; an agent may wait several times. */
  #waiters: string[] = [];
  #inUse = 0;
  #tick = 0;

  /** @throws InvalidValueError for a capacity below 1, an α outside [0, 1], or a bound that is no whole number */
  constructor(options: SharedResourceOptions) {
    checkObject(options, "options");
    const { capacity, alpha, maxWaiters = limits.waitersPerResourceMax } = options;
    checkWhole(capacity, "capacity", 1);
    checkAlpha(alpha);
    checkWhole(maxWaiters, "maxWaiters", 0);
    this.#capacity = capacity;
    this.#alpha = alpha;
    this.#maxWaiters = maxWaiters;
  }

  get inUse(): number {
    return this.#inUse;
  }

  /** The held share of the slots, [0, 1]. */
  get utilisation(): number {
    return this.#inUse / this.#capacity;
  }

  /** Releases so far: LOCO's clock. */
  get tick(): number {
    return this.#tick;
  }

  /** Puts a task in the agent's queue. @throws InvalidValueError for a weight that is no positive number */
  submit(agent: string, weight: number): void {
    checkText(agent, "agent");
    checkPositive(weight, "weight");
    const queue = this.#queueByAgent.get(agent);
    const task = { weight, queuedTick: this.#tick };
    if (queue === undefined) this.#queueByAgent.set(agent, [task]);
    else queue.push(task);
  }

  /**
   * Asks for a slot for the agent's oldest queued task.
   *
   * @returns true when granted at once; else the agent waits, and a later release reports the grant
   * @throws InvalidValueError when the agent already waits for every task in its queue
   * @throws BackpressureError when `maxWaiters` wait already
   */
  acquire(agent: string): boolean {
    const queued = this.#queueByAgent.get(agent)?.length ?? 0;
    const waiting = this.#waiters.filter((waiter) => waiter === agent).length;
    if (queued <= waiting) {
      throw new InvalidValueError(`${agent} has no queued task to acquire for`, { field: "agent" });
    }
    if (this.#inUse < this.#capacity) {
      this.#grant(agent);
      return true;
    }
    if (this.#waiters.length >= this.#maxWaiters) {
      const sentence = `${this.#maxWaiters} wait for this resource already`;
      throw new BackpressureError(sentence, limits.retryAfterMs);
    }
    this.#waiters.push(agent);
    return false;
  }

  /**
   * Frees one slot of the agent: tick, ageing, scores, grant.
   *
   * @throws InvalidValueError when the agent holds no slot
   */
  release(agent: string): Released {
    const held = this.#heldByAgent.get(agent) ?? 0;
    if (held === 0) throw new InvalidValueError(`${agent} holds no slot to release`, { field: "agent" });
    this.#heldByAgent.set(agent, held - 1);
    this.#inUse -= 1;
    this.#tick += 1;
    return { tick: this.#tick, granted: this.#grantHighest() };
  }

  /** Q and D of one agent at this tick. */
  queueOf(agent: string): Queue {
    const queue = this.#queueByAgent.get(agent) ?? [];
    const oldest = queue[0];
    return {
      queueDepth: queue.reduce((depth, { weight }) => depth + weight, 0),
      oldestAge: oldest === undefined ? 0 : this.#tick - oldest.queuedTick,
    };
  }

  #grantHighest(): string | undefined {
    const queueByAgent = new Map([...this.#queueByAgent.keys()].map((agent) => [agent, this.queueOf(agent)]));
    const picked = pickWaiter({
      waiters: this.#waiters,
      queueOf: (agent) => queueByAgent.get(agent) as Queue,
      queues: queueByAgent.values(),
      alpha: this.#alpha,
    });
    if (picked === undefined) return undefined;
    const at = this.#waiters.indexOf(picked.waiter);
    this.#waiters = this.#waiters.toSpliced(at, 1);
    this.#grant(picked.waiter);
    return picked.waiter;
  }

  /** The agent's oldest task leaves its queue and stops ageing. */
  #grant(agent: string): void {
    const queue = this.#queueByAgent.get(agent) as QueuedTask[];
    queue.shift();
    if (queue.length === 0) this.#queueByAgent.delete(agent);
    this.#heldByAgent.set(agent, (this.#heldByAgent.get(agent) ?? 0) + 1);
    this.#inUse += 1;
  }
}
