// The agent in whose name a connection acquires slots: one without kinds, hidden, started with the first slot lease
// and ended with the connection. It contends, beats and is missed like any other. What is acquired inside a `wrap`,
// however deep in its calls and by whichever connection to that swarm, keeps name order with what that holds: else it
// could wait for itself.

import { AsyncLocalStorage } from "node:async_hooks";
import type { Aborts } from "../abort.ts";
import type { Agent, AgentOptions } from "../agent/agent.ts";
import { InfrastructureError } from "../agent/handler.ts";
import { argument, callback, oneOrSeveral, readerOf } from "../agent/options.ts";
import { noLeaderAnswered } from "../agent/slot-leases.ts";
import { type AcquireOptions, acquireRules, readSlotLease, type Slot } from "../agent/slots.ts";
import type { Clock } from "../clock.ts";
import { NoLeaderError, WaggleError } from "../errors.ts";
import type { SwarmId } from "../ids.ts";
import { limits } from "../limits.ts";

export interface WrapOptions extends AcquireOptions {
  /** One resource or several, all of which are held while the function runs. */
  readonly resource: string | readonly string[];
}

export interface SlotAgentDeps {
  readonly swarm: SwarmId;
  readonly aborts: Aborts;
  readonly clock: Clock;
  readonly startAgent: (options: AgentOptions) => Promise<Agent>;
}

/** A wrap inside which something is called. */
interface Around {
  /** By name: nothing says of two connections whether it is the same swarm on the same servers. */
  readonly swarm: SwarmId;
  readonly resources: readonly string[];
  readonly outer: Around | undefined;
  /** False for what outlives it. */
  isRunning: boolean;
}

/** Of the process: one line of work may use several connections. */
const enclosing = new AsyncLocalStorage<Around | undefined>();

export class SlotAgent {
  readonly #deps: SlotAgentDeps;
  #agent: Promise<Agent> | undefined;
  #wraps = 0;

  constructor(deps: SlotAgentDeps) {
    this.#deps = deps;
  }

  async acquire(given: string | readonly string[], options?: AcquireOptions): Promise<Slot> {
    const { signal, wanted } = readSlotLease(given, options);
    const { resources, ...terms } = wanted;
    const told = { ...terms, ...(signal === undefined ? {} : { signal }) };
    if (terms.holder === undefined) this.#checkOrder(resources);
    signal?.throwIfAborted();
    const startedAt = this.#deps.clock.monotonicMs();
    const agent = await this.#within(told, this.#started());
    if (terms.timeoutMs === undefined) return await agent.acquire(resources, told);
    // The time in which no leader was there counts.
    const waitedMs = Math.round(this.#deps.clock.monotonicMs() - startedAt);
    return await agent.acquire(resources, { ...told, timeoutMs: Math.max(0, terms.timeoutMs - waitedMs) });
  }

  async wrap<Result>(given: (slot: Slot) => Result | Promise<Result>, wrapped: WrapOptions): Promise<Result> {
    const work = argument(["wrap", "work"], given, callback<typeof given>());
    const { resource, ...options } = readWrapOptions("wrap", wrapped);
    const { holder } = options;
    if (holder === undefined) this.#checkOrder([resource].flat());
    this.#wraps += 1;
    await using slot = await this.acquire(resource, { ...options, holder: holder ?? `wrap-${this.#wraps}` });
    const around: Around = {
      swarm: this.#deps.swarm,
      resources: slot.resources,
      outer: holder === undefined ? enclosing.getStore() : undefined,
      isRunning: true,
    };
    try {
      return await enclosing.run(around, work, slot);
    } finally {
      around.isRunning = false;
    }
  }

  /** Where no leader is there for the agent to join, it waits no longer than for a release to be heard. */
  async releaseHandle(handle: string): Promise<void> {
    const released = this.#started().then((agent) => agent.releaseHandle(handle));
    await new Promise<void>((resolve, reject) => {
      const cancel = this.#deps.clock.after(limits.requestTimeoutMs, resolve, { unref: true });
      released.finally(cancel).then(resolve, reject);
    });
  }

  /** Two wraps, one inside the other, are two lines of work for the leader, who cannot know that the outer one waits
   *  for the inner. Branches of one wrap may well wait for each other. @throws WaggleError `WAGGLE_ACQUIRE_ORDER` */
  #checkOrder(wanted: readonly string[]): void {
    for (let around = enclosing.getStore(); around !== undefined; around = around.outer) {
      if (!around.isRunning || around.swarm !== this.#deps.swarm) continue;
      const last = around.resources.at(-1);
      const early = last === undefined ? undefined : wanted.find((resource) => resource <= last);
      if (early === undefined) continue;
      const sentence =
        `${early} cannot be acquired inside a wrap that holds ${last}: the two could wait for each other for ever. ` +
        "Acquire both at once, or in name order, or say with `holder` that it is another line of work";
      throw new WaggleError("WAGGLE_ACQUIRE_ORDER", sentence, { field: "resources" });
    }
  }

  /** The agent, started when there is none, or when the one before has ended. */
  #started(): Promise<Agent> {
    this.#agent ??= this.#start();
    return this.#agent;
  }

  async #start(): Promise<Agent> {
    try {
      const agent = await this.#deps.startAgent({ kinds: [], handler: runsNothing });
      void agent.closed.then(() => this.#forget());
      return agent;
    } catch (error) {
      this.#forget();
      throw error;
    }
  }

  #forget(): void {
    this.#agent = undefined;
  }

  /** Waits for the agent no longer than for any answer of a leader, nor than for a slot and as much more as a session
   *  does that hears of no leader: one that is there has time enough to take the agent in, also where nobody is to
   *  wait for a slot. */
  async #within({ signal, timeoutMs }: AcquireOptions, started: Promise<Agent>): Promise<Agent> {
    const settled = new AbortController();
    try {
      return await new Promise<Agent>((resolve, reject) => {
        started.then(resolve, reject);
        if (signal !== undefined) {
          const letGo = this.#deps.aborts.on(signal, () => reject(signal.reason));
          settled.signal.addEventListener("abort", letGo, { once: true });
        }
        const slotMs = timeoutMs === undefined ? Number.POSITIVE_INFINITY : timeoutMs + limits.acquireGraceMs;
        const cancel =
          slotMs < limits.askTimeoutMs
            ? this.#deps.clock.after(slotMs, () => reject(noLeaderInTime()))
            : this.#deps.clock.after(limits.askTimeoutMs, () =>
                reject(new NoLeaderError(noLeaderAnswered().message)),
              );
        settled.signal.addEventListener("abort", cancel, { once: true });
      });
    } finally {
      settled.abort();
    }
  }
}

const readWrapOptions = readerOf<WrapOptions>({
  each: { ...acquireRules.each, resource: oneOrSeveral },
  required: ["resource"],
  otherwise: { ...acquireRules.otherwise, resources: "resource" },
  example: '{ resource: "gpt-4o" }',
});

function noLeaderInTime(): WaggleError {
  const sentence = "no leader was there in time to ask for a slot: is a coordinator running (`waggle up`)?";
  return new WaggleError("WAGGLE_ACQUIRE_TIMED_OUT", sentence);
}

function runsNothing(): never {
  throw new InfrastructureError("an agent that only acquires slots runs no tasks");
}
