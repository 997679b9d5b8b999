// Adopts the agents of the Synadia Agent Protocol on a NATS server as agents of the swarm. Each prompt subject is one
// agent of the swarm, while at least one instance sends heartbeats.
//
// - Discovery: heartbeats first, then `$SRV.INFO.agents`. A heartbeat of an unknown instance asks for its INFO.
// - Instances of one subject share a queue group, and NATS picks an instance for each prompt. So the instances are one
//   agent of the swarm, with one prompt at a time.
// - After three missed heartbeats of its last instance the agent drains. It joins again when a heartbeat comes.
// - A killed bridge loses nothing: its agents count as lost, and the tasks run again or elsewhere.

import type { Logger } from "pino";
import type { Agent, AgentOptions } from "../../agent/agent.ts";
import type { Clock } from "../../clock.ts";
import { ForbiddenError, InvalidConfigError, messageOf } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { forbidden } from "../../protocol/forbidden.ts";
import { agentHeartbeats } from "../../protocol/service-permissions.ts";
import type { Subscription } from "../../transport/transport.ts";
import type { Answer, RequestWire } from "../nats-service/nats.ts";
import { agentHandler } from "./agent-handler.ts";
import { agentIdFor } from "./agent-id.ts";
import type { Decide } from "./decision.ts";
import { discoverySubject, type ForeignAgent, readDescription, readHeartbeat } from "./messages.ts";

export interface BridgeDeps {
  readonly wire: RequestWire;
  /** Joins an agent to the swarm. */
  readonly join: (options: AgentOptions) => Promise<Agent>;
  /** Name of the swarm; its own served kinds are left out. */
  readonly swarm: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly idleMs: number;
  readonly decide: Decide;
  /** Whether the bridge adopts a foreign agent. */
  readonly isWanted: (agent: ForeignAgent) => boolean;
}

/** One agent of the swarm, for all instances of a prompt subject. */
interface Adopted {
  /** As described by the latest INFO. */
  described: ForeignAgent;
  readonly id: string;
  readonly instances: Set<string>;
  /** Undefined: the join has failed. */
  readonly joined: Promise<Agent | undefined>;
  /** The last instance is gone, or an operator drained the agent. */
  isLeaving: boolean;
  /** Ends a join that waits for a leader. */
  readonly giveUp: () => void;
}

interface Instance {
  readonly subject: string;
  cancelTimer: () => void;
}

export class SynadiaBridge {
  readonly #deps: BridgeDeps;
  readonly #adoptedBySubject = new Map<string, Adopted>();
  readonly #instanceById = new Map<string, Instance>();
  /** Latest interval of instances whose INFO is asked for, ms. */
  readonly #asked = new Map<string, number>();
  /** Instances that are left out, for good. */
  readonly #leftOut = new Set<string>();
  readonly #subscriptions: Subscription[] = [];
  #fail: (error: Error) => void = () => undefined;
  #isStopping = false;
  /** Rejects when the bridge cannot go on: another process has taken over an agent, the swarm is gone, or the server
   *  permits no discovery or no prompts. */
  readonly failed: Promise<never>;

  constructor(deps: BridgeDeps) {
    this.#deps = deps;
    this.failed = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.failed.catch(() => undefined); // the caller may not wait yet
  }

  start(): void {
    const { wire } = this.#deps;
    this.#subscriptions.push(
      wire.subscribe(agentHeartbeats, ({ data }) => this.#noteHeartbeat(data), {
        onForbidden: (violation) => this.#fail(new ForbiddenError(forbidden(violation).message)),
      }),
      this.#ask(discoverySubject),
    );
  }

  /** Adopts no more, and drains all agents: resolves when their prompts have ended. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    for (const { cancelTimer } of this.#instanceById.values()) cancelTimer();
    await Promise.all([...this.#adoptedBySubject.values()].map((adopted) => this.#drain(adopted)));
  }

  /** Ids of the present agents. */
  agents(): readonly string[] {
    return [...this.#adoptedBySubject.values()].filter(({ isLeaving }) => !isLeaving).map(({ id }) => id);
  }

  #ask(subject: string): Subscription {
    const take = ({ isNoResponders, data }: Answer) => {
      if (!isNoResponders) this.#describe(data);
    };
    return this.#deps.wire.ask(subject, new Uint8Array(), take, (error) => this.#fail(error));
  }

  #noteHeartbeat(data: Uint8Array): void {
    const read = readHeartbeat(data);
    if (!read.ok) return this.#deps.logger.debug({ why: read.message }, "a heartbeat was not understood");
    const { instance, intervalMs } = read.value;
    const known = this.#instanceById.get(instance);
    if (known !== undefined) return this.#expect(instance, known, intervalMs);
    if (this.#isStopping || this.#leftOut.has(instance) || this.#asked.has(instance)) return;
    if (this.#asked.size >= limits.bridgedAgentsMax) return;
    this.#asked.set(instance, intervalMs);
    const answers = this.#ask(`${discoverySubject}.${instance}`);
    this.#deps.clock.after(
      limits.discoveryMs,
      () => {
        answers.unsubscribe();
        this.#asked.delete(instance); // the next heartbeat asks again
      },
      { unref: true },
    );
  }

  #describe(data: Uint8Array): void {
    if (this.#isStopping) return;
    const { logger, swarm, isWanted } = this.#deps;
    const read = readDescription(data);
    if (!read.ok) {
      const instance = instanceIn(data);
      if (this.#leftOut.has(instance)) return;
      this.#leaveOut(instance);
      return logger.warn(`an agent is left out: ${read.message}`);
    }
    const agent = read.value;
    if (this.#instanceById.has(agent.instance) || this.#leftOut.has(agent.instance)) return;
    if (agent.swarm === swarm || !isWanted(agent)) return this.#leaveOut(agent.instance);
    this.#adopt(agent);
  }

  #leaveOut(instance: string): void {
    if (this.#leftOut.size >= limits.bridgedInstancesMax) this.#leftOut.clear();
    this.#leftOut.add(instance);
  }

  #adopt(agent: ForeignAgent): void {
    const { logger } = this.#deps;
    const present = this.#adoptedBySubject.get(agent.promptSubject);
    if (present?.isLeaving === true) return; // a heartbeat after its end adopts it again
    if (this.#instanceById.size >= limits.bridgedInstancesMax) return;
    if (present === undefined && this.#adoptedBySubject.size >= limits.bridgedAgentsMax)
      return logger.warn(
        `agent ${agent.agent} is left out: the bridge has ${limits.bridgedAgentsMax} agents`,
      );
    const instance: Instance = { subject: agent.promptSubject, cancelTimer: () => undefined };
    this.#instanceById.set(agent.instance, instance);
    this.#expect(agent.instance, instance, this.#asked.get(agent.instance) ?? limits.synadiaHeartbeatMs);
    if (present !== undefined) {
      present.described = agent;
      present.instances.add(agent.instance);
      return;
    }
    const taken = new Set([...this.#adoptedBySubject.values()].map(({ id }) => id));
    const id = agentIdFor(agent, taken);
    const givenUp = new AbortController();
    const adopted: Adopted = {
      ...{ described: agent, id, instances: new Set([agent.instance]), isLeaving: false },
      joined: this.#join(id, agent, givenUp.signal),
      giveUp: () => givenUp.abort(),
    };
    this.#adoptedBySubject.set(agent.promptSubject, adopted);
    void this.#follow(adopted);
  }

  /** Undefined after a failure, which ends the bridge unless the agent itself is at fault. */
  async #join(id: string, agent: ForeignAgent, givenUp: AbortSignal): Promise<Agent | undefined> {
    const { join, logger, ...deps } = this.#deps;
    const handler = agentHandler({
      ...deps,
      onForbidden: (error) => this.#fail(error),
      agent: () => this.#adoptedBySubject.get(agent.promptSubject)?.described ?? agent,
    });
    const joining = new AbortController();
    const giveUp = () => joining.abort(givenUp.reason);
    givenUp.addEventListener("abort", giveUp, { once: true });
    try {
      const joined = await join({
        ...{ id, handler, maxConcurrent: 1, type: agent.agent, signal: joining.signal },
        kinds: ["prompt", `prompt.${agent.agent}`],
        labels: { protocol: "synadia-0.3", owner: agent.owner, session: agent.session },
      });
      logger.info(`agent ${id} joined: prompts go to ${agent.promptSubject}`);
      return joined;
    } catch (error) {
      if (error instanceof InvalidConfigError) logger.warn(`agent ${id} is left out: ${messageOf(error)}`);
      else if (!givenUp.aborted) this.#fail(error instanceof Error ? error : new Error(messageOf(error)));
      return undefined;
    } finally {
      givenUp.removeEventListener("abort", giveUp); // from now on the agent drains
    }
  }

  /** Forgets the agent after its end. An agent that an operator drained stays out while its heartbeats last. */
  async #follow(adopted: Adopted): Promise<void> {
    const joined = await adopted.joined;
    const error = await joined?.closed;
    if (error !== undefined && !this.#isStopping) return this.#fail(error);
    const wasGone = adopted.instances.size === 0;
    adopted.isLeaving = true;
    if (wasGone) this.#adoptedBySubject.delete(adopted.described.promptSubject);
    if (joined !== undefined) this.#deps.logger.info(`agent ${adopted.id} has left`);
  }

  /** Starts to wait for the next heartbeats. */
  #expect(id: string, instance: Instance, intervalMs: number): void {
    instance.cancelTimer();
    if (this.#isStopping) return;
    instance.cancelTimer = this.#deps.clock.after(
      limits.synadiaMissedHeartbeats * intervalMs,
      () => this.#lose(id, instance),
      { unref: true },
    );
  }

  #lose(id: string, { subject }: Instance): void {
    this.#instanceById.delete(id);
    const adopted = this.#adoptedBySubject.get(subject);
    adopted?.instances.delete(id);
    if (adopted === undefined || adopted.instances.size > 0) return;
    const hasLeft = adopted.isLeaving;
    adopted.isLeaving = true;
    if (hasLeft) return void this.#adoptedBySubject.delete(subject);
    this.#deps.logger.warn(
      `agent ${adopted.id} missed ${limits.synadiaMissedHeartbeats} heartbeats: it gets nothing new, and leaves`,
    );
    void this.#drain(adopted);
  }

  async #drain(adopted: Adopted): Promise<void> {
    adopted.giveUp();
    const joined = await adopted.joined;
    await joined?.drain();
  }
}

/** The id of an INFO that is otherwise wrong, or all of it. */
function instanceIn(data: Uint8Array): string {
  const text = Buffer.from(data).toString();
  return /"id"\s*:\s*"([^"]{1,64})"/.exec(text)?.[1] ?? text.slice(0, 64);
}
