// The agents started over a connection. Agents end with the connection, so that the process can exit.
// agent/agent.ts defines how an agent ends.

import type { Aborts } from "../abort.ts";
import { type Agent, type AgentDeps, type AgentOptions, startAgent } from "../agent/agent.ts";
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";

export class OwnAgents {
  readonly #clock: Clock;
  readonly #aborts: Aborts;
  readonly #closing = new AbortController();
  readonly #agents = new Set<Agent>();
  /** Agents not joined yet. */
  readonly #starts = new Set<Promise<unknown>>();

  constructor({ clock, aborts }: { readonly clock: Clock; readonly aborts: Aborts }) {
    this.#clock = clock;
    this.#aborts = aborts;
  }

  get isEmpty(): boolean {
    return this.#agents.size === 0 && this.#starts.size === 0;
  }

  /** @throws as `startAgent`; after `close`, the reason given to `close` */
  async start(options: AgentOptions, deps: AgentDeps): Promise<Agent> {
    this.#closing.signal.throwIfAborted();
    const start = this.#start(options, deps);
    this.#starts.add(start);
    try {
      return await start;
    } finally {
      this.#starts.delete(start);
    }
  }

  /** Aborts pending starts, drains all agents, and stops agents still draining after `limits.closeDrainMs`.
   *  Resolves when all have ended. Never rejects. */
  async close(reason: Error): Promise<void> {
    this.#closing.abort(reason);
    await Promise.allSettled(this.#starts);
    await Promise.all([...this.#agents].map((agent) => this.#end(agent)));
  }

  async #start(options: AgentOptions, deps: AgentDeps): Promise<Agent> {
    const givenUp = this.#aborts.linkedTo(options.signal);
    const letGo = this.#aborts.on(this.#closing.signal, () => givenUp.abort(this.#closing.signal.reason));
    try {
      const agent = await startAgent({ ...options, signal: givenUp.signal }, deps);
      this.#agents.add(agent);
      void agent.closed.then(() => {
        this.#agents.delete(agent);
        givenUp.abort();
      });
      return agent;
    } catch (error) {
      givenUp.abort();
      throw error;
    } finally {
      letGo();
    }
  }

  async #end(agent: Agent): Promise<void> {
    const cancel = this.#clock.after(limits.closeDrainMs, () => void agent.stop());
    await agent.drain();
    cancel();
  }
}
