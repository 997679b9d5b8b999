// The agent in whose name a connection acquires slots: one without kinds, hidden, started with the first acquisition
// and ended with the connection. It contends, beats and is missed like any other.

import type { Aborts } from "../abort.ts";
import type { Agent, AgentOptions } from "../agent/agent.ts";
import { InfrastructureError } from "../agent/handler.ts";
import type { AcquireOptions, Slot } from "../agent/slots.ts";
import type { Clock } from "../clock.ts";
import { WaggleError } from "../errors.ts";

export interface WrapOptions extends AcquireOptions {
  /** One resource or several, all of which are held while the function runs. */
  readonly resource: string | readonly string[];
}

export interface SlotHolderDeps {
  readonly aborts: Aborts;
  readonly clock: Clock;
  readonly startAgent: (options: AgentOptions) => Promise<Agent>;
}

export class SlotHolder {
  readonly #deps: SlotHolderDeps;
  #agent: Promise<Agent> | undefined;
  #wraps = 0;

  constructor(deps: SlotHolderDeps) {
    this.#deps = deps;
  }

  async acquire(resources: string | readonly string[], options: AcquireOptions = {}): Promise<Slot> {
    options.signal?.throwIfAborted();
    const startedAt = this.#deps.clock.monotonicMs();
    const agent = await this.#within(options, this.#started());
    if (options.timeoutMs === undefined) return await agent.acquire(resources, options);
    // The time in which no leader was there counts.
    const waitedMs = Math.round(this.#deps.clock.monotonicMs() - startedAt);
    return await agent.acquire(resources, {
      ...options,
      timeoutMs: Math.max(0, options.timeoutMs - waitedMs),
    });
  }

  async wrap<Result>(
    work: (slot: Slot) => Result | Promise<Result>,
    { resource, ...options }: WrapOptions,
  ): Promise<Result> {
    this.#wraps += 1;
    const slot = await this.acquire(resource, { holder: `wrap-${this.#wraps}`, ...options });
    try {
      return await work(slot);
    } finally {
      await slot.release();
    }
  }

  async releaseHandle(handle: string): Promise<void> {
    const agent = await this.#started();
    await agent.releaseHandle(handle);
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

  /** Waits for the agent no longer than for a slot. */
  async #within({ signal, timeoutMs }: AcquireOptions, started: Promise<Agent>): Promise<Agent> {
    if (signal === undefined && timeoutMs === undefined) return await started;
    const settled = new AbortController();
    try {
      return await new Promise<Agent>((resolve, reject) => {
        started.then(resolve, reject);
        if (signal !== undefined) {
          const letGo = this.#deps.aborts.on(signal, () => reject(signal.reason));
          settled.signal.addEventListener("abort", letGo, { once: true });
        }
        if (timeoutMs === undefined || timeoutMs === 0) return;
        const cancel = this.#deps.clock.after(timeoutMs, () => reject(noLeaderInTime()));
        settled.signal.addEventListener("abort", cancel, { once: true });
      });
    } finally {
      settled.abort();
    }
  }
}

function noLeaderInTime(): WaggleError {
  const sentence = "no leader was there in time to ask for a slot: is a coordinator running (`waggle up`)?";
  return new WaggleError("WAGGLE_ACQUIRE_TIMED_OUT", sentence);
}

function runsNothing(): never {
  throw new InfrastructureError("an agent that only acquires slots runs no tasks");
}
