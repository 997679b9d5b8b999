// The agent that acquires slots for a connection: hidden and without kinds. The first slot lease starts the
// agent, and the connection ends it. It contends, sends heartbeats and is declared lost like any agent.
// Acquisitions inside a `wrap` must follow name order after the resources of the `wrap`, at any depth and over
// any connection to the swarm: otherwise the work could wait for itself.

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
  /** A resource, or several, held while the function runs. */
  readonly resource: string | readonly string[];
}

export interface SlotAgentDeps {
  readonly swarm: SwarmId;
  readonly aborts: Aborts;
  readonly clock: Clock;
  readonly startAgent: (options: AgentOptions) => Promise<Agent>;
}

/** An enclosing call of `wrap`. */
interface Around {
  /** By name: two connections cannot prove that they reach the same swarm on the same servers. */
  readonly swarm: SwarmId;
  readonly resources: readonly string[];
  readonly outer: Around | undefined;
  /** False when the `wrap` has ended; calls may outlive it. */
  isRunning: boolean;
}

/** Of the whole process, because a holder may use several connections. */
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
    const asked = { ...terms, ...(signal === undefined ? {} : { signal }) };
    if (terms.holder === undefined) this.#checkOrder(resources);
    signal?.throwIfAborted();
    const startedAt = this.#deps.clock.monotonicMs();
    const agent = await this.#within(asked, this.#started());
    if (terms.timeoutMs === undefined) return await agent.acquire(resources, asked);
    // The time without a leader counts.
    const waitedMs = Math.round(this.#deps.clock.monotonicMs() - startedAt);
    return await agent.acquire(resources, { ...asked, timeoutMs: Math.max(0, terms.timeoutMs - waitedMs) });
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

  /** Without a leader for the agent to join, waits only as long as a release waits for an answer. */
  async releaseHandle(handle: string): Promise<void> {
    const released = this.#started().then((agent) => agent.releaseHandle(handle));
    await new Promise<void>((resolve, reject) => {
      const cancel = this.#deps.clock.after(limits.requestTimeoutMs, resolve, { unref: true });
      released.finally(cancel).then(resolve, reject);
    });
  }

  /** For the leader, nested wraps are two holders: the leader cannot know that the outer waits for the inner.
   *  Branches of one wrap may wait for each other. @throws WaggleError `WAGGLE_ACQUIRE_ORDER` */
  #checkOrder(wanted: readonly string[]): void {
    for (let around = enclosing.getStore(); around !== undefined; around = around.outer) {
      if (!around.isRunning || around.swarm !== this.#deps.swarm) continue;
      const last = around.resources.at(-1);
      const early = last === undefined ? undefined : wanted.find((resource) => resource <= last);
      if (early === undefined) continue;
      const sentence =
        `${early} cannot be acquired inside a wrap that holds ${last}: the two could block each other. ` +
        "Acquire both at once, or in name order, or name a separate `holder`";
      throw new WaggleError("WAGGLE_ACQUIRE_ORDER", sentence, { field: "resources" });
    }
  }

  /** The agent. Starts a new agent when none runs. */
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

  /** Waits for the agent at most as long as for any answer of a leader, and at most `limits.acquireGraceMs`
   *  longer than for the slot. An active leader has time to accept the agent within the grace, also with
   *  `timeoutMs: 0`. */
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
  const sentence =
    "no leader accepted the request for a slot in time: is a coordinator running (`waggle up`)?";
  return new WaggleError("WAGGLE_ACQUIRE_TIMED_OUT", sentence);
}

function runsNothing(): never {
  throw new InfrastructureError("an agent that only acquires slots runs no tasks");
}
