// The agent that acquires slots for a connection: hidden and without kinds. The first slot lease starts the
// agent, and the connection ends it. It contends, sends heartbeats and is declared lost like any agent.

import type { Aborts } from "../abort.ts";
import type { Agent, AgentOptions } from "../agent/agent.ts";
import { InfrastructureError } from "../agent/handler.ts";
import { noLeaderAnswered } from "../agent/slot-leases.ts";
import type { ReleaseOptions } from "../agent/slot-refusal.ts";
import type { SlotReport } from "../agent/slot-usage.ts";
import { type AcquireOptions, readSlotLease, type Slot, type SlotTicket, ticketOf } from "../agent/slots.ts";
import { checkWrapOrder, type WrapOptions, wrapWork } from "../agent/wraps.ts";
import type { Clock } from "../clock.ts";
import { NoLeaderError, WaggleError } from "../errors.ts";
import type { SwarmId } from "../ids.ts";
import { limits } from "../limits.ts";

export interface SlotAgentDeps {
  readonly swarm: SwarmId;
  /** The connection's project. */
  readonly project: string;
  readonly user: string | undefined;
  readonly aborts: Aborts;
  readonly clock: Clock;
  readonly startAgent: (options: AgentOptions) => Promise<Agent>;
}

export class SlotAgent {
  readonly #deps: SlotAgentDeps;
  #agent: Promise<Agent> | undefined;

  constructor(deps: SlotAgentDeps) {
    this.#deps = deps;
  }

  async acquire(given: string | readonly string[], options?: AcquireOptions): Promise<Slot> {
    const { signal, wanted } = readSlotLease(given, options);
    const { resources, ...terms } = wanted;
    const asked = { ...this.#forWhom(terms), ...(signal === undefined ? {} : { signal }) };
    if (terms.holder === undefined) checkWrapOrder(this.#deps.swarm, resources);
    signal?.throwIfAborted();
    const startedAt = this.#deps.clock.monotonicMs();
    const agent = await this.#within(asked, this.#started());
    if (terms.timeoutMs === undefined) return await agent.acquire(resources, asked);
    // The time without a leader counts.
    const waitedMs = Math.round(this.#deps.clock.monotonicMs() - startedAt);
    return await agent.acquire(resources, { ...asked, timeoutMs: Math.max(0, terms.timeoutMs - waitedMs) });
  }

  async wrap<Result>(work: (slot: Slot) => Result | Promise<Result>, options: WrapOptions): Promise<Result> {
    return await wrapWork(this.#deps.swarm, (...asked) => this.acquire(...asked), work, options);
  }

  async acquireStart(resources: string | readonly string[], options?: AcquireOptions): Promise<SlotTicket> {
    return ticketOf(await this.acquire(resources, options));
  }

  /** Without a leader for the agent to join, waits only as long as a release waits for an answer. */
  async releaseHandle(
    handle: string | SlotTicket,
    report?: SlotReport,
    options?: ReleaseOptions,
  ): Promise<void> {
    const released = this.#started().then((agent) => agent.releaseHandle(handle, report, options));
    await new Promise<void>((resolve, reject) => {
      const cancel = this.#deps.clock.after(limits.requestTimeoutMs, resolve, { unref: true });
      released.finally(cancel).then(resolve, reject);
    });
  }

  /** Tokens are charged to the connection's project, unless the call names another. */
  #forWhom(terms: AcquireOptions): AcquireOptions {
    const { project, user } = this.#deps;
    return {
      ...(terms.tokens === undefined ? {} : { project }),
      ...(user === undefined ? {} : { user }),
      ...terms,
    };
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

function noLeaderInTime(): WaggleError {
  const sentence =
    "no leader accepted the request for a slot in time: is a coordinator running (`waggle up`)?";
  return new WaggleError("WAGGLE_ACQUIRE_TIMED_OUT", sentence);
}

function runsNothing(): never {
  throw new InfrastructureError("an agent that only acquires slots runs no tasks");
}
