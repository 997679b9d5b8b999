// A simulated machine that runs an agent: the production session and runner. Handlers follow the orders in the task's
// payload and the agent's character. The machine restarts an ended agent.

import { type Agent, startAgent } from "../../agent/agent.ts";
import { Bundler } from "../../agent/bundler.ts";
import {
  type Handler,
  type HandlerContext,
  type HandlerTask,
  InfrastructureError,
  InvalidInputError,
} from "../../agent/handler.ts";
import { WaggleError } from "../../errors.ts";
import type { Incarnation } from "../../ids.ts";
import { taskKey } from "../../ids.ts";
import { pause } from "../../pause.ts";
import type { SeededRandom } from "../random.ts";
import type { Habitat } from "./habitat.ts";
import type { HandlerWatch } from "./handler-watch.ts";
import { type Orders, ordersOf } from "./payload.ts";
import { type MachineClock, newMachine, type Session } from "./session.ts";
import type { Character } from "./workload.ts";

/** Delay before a restart after the process ended by itself, ms. */
const RESTART_MS = 1_000;
/** Duration of a handler after all faults heal, unless the orders say otherwise, ms. */
const HEALED_MS = 10;
/** Longest wait of a handler for slots, ms. */
const ACQUIRE_MS = 20_000;

export class AgentNode {
  readonly id: string;
  readonly machine: MachineClock;
  readonly #character: Character;
  readonly #habitat: Habitat;
  readonly #random: SeededRandom;
  readonly #watch: HandlerWatch;
  /** Whether grants, or the policy on agents, may forbid the agent. */
  readonly #mayBeForbidden: boolean;
  readonly #sessions = new Set<Session>();
  /** Handlers that ignore their signal, freed when all faults heal. */
  readonly #hanging = new Set<() => void>();
  /** Until when two processes ran under the agent's id, virtual ms. */
  #twinsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(
    character: Character,
    deps: { habitat: Habitat; watch: HandlerWatch; random: SeededRandom; mayBeForbidden: boolean },
  ) {
    const { habitat, watch, random } = deps;
    this.#mayBeForbidden = deps.mayBeForbidden;
    this.id = character.id;
    this.#watch = watch;
    this.#character = character;
    this.#habitat = habitat;
    this.#random = random;
    this.machine = newMachine();
  }

  /** The newest session; undefined while no process runs. */
  get session(): Session | undefined {
    return [...this.#sessions].at(-1);
  }

  /**
   * Whether a process runs the given session or tries to join with it. A session replaced by a newer one without free
   * capacity does not count (docs/adr/0021-an-agent-offers-free-capacity.md).
   */
  isRunning(incarnation: Incarnation): boolean {
    const { maxConcurrent } = this.#character;
    return [...this.#sessions].some(
      (session) => session.incarnation === incarnation && !this.#watch.isTakenUp(session, maxConcurrent),
    );
  }

  /** Starts the agent unless a process runs. */
  start(): void {
    if (this.#sessions.size === 0) this.startTwin();
  }

  /** Starts a process under the same id, whether or not another runs. A second process has a link of its own. */
  startTwin(): void {
    const link = this.#sessions.size === 0 ? this.id : `${this.id}/twin`;
    const session = this.#habitat.newSession(this.id, this.machine);
    this.#sessions.add(session);
    const { id, kinds, role, type, group, labels, maxConcurrent, prefetch } = this.#character;
    const { clock, random } = session;
    const { swarm } = this.#habitat;
    const logger = this.#habitat.loggerOf(this.id);
    const ofGroup = group === undefined ? {} : { group };
    const options = {
      ...{ id, kinds, maxConcurrent, prefetch },
      ...ofGroup,
      ...(role === undefined ? {} : { role }),
      ...(type === undefined ? {} : { type }),
      labels,
      handler: this.#handler(session),
    };
    const transport = this.#habitat.newConnection(link, session);
    const bundler = new Bundler({ transport, clock, random });
    const deps = {
      swarm,
      connection: { kind: "transport", transport, bundler },
      clock,
      random,
      logger,
    } as const;
    startAgent(options, deps).then(
      (agent) => this.#joined(agent, session),
      (error) => this.#ended(session, error),
    );
    // A second agent on the connection, so that messages are bundled. It runs no tasks. The twin's is fenced, too.
    if (this.#hasCompany)
      startAgent({ id: `${id}-company`, kinds: [], ...ofGroup, handler: this.#handler(session) }, deps).catch(
        (error) => {
          if (!(error instanceof WaggleError)) this.#habitat.escaped(this.id, error);
        },
      );
  }

  /** Every second agent. */
  get #hasCompany(): boolean {
    return Number(this.id.slice(1)) % 2 === 0;
  }

  crash(forMs: number): void {
    for (const session of [...this.#sessions]) this.#end(session, forMs);
  }

  /** Restarts the process, and starts a second process under the same id after `ms`. */
  usurp(ms: number): void {
    this.crash(0);
    this.#habitat.engine.after(ms, "usurp", () => this.startTwin());
  }

  /** Frees every hanging handler. */
  heal(): void {
    for (const wake of [...this.#hanging]) wake();
  }

  #joined(agent: Agent, session: Session): void {
    void agent.closed.then((error) => this.#ended(session, error));
  }

  #ended(session: Session, error: unknown): void {
    if (error instanceof WaggleError && error.code === "WAGGLE_FENCED")
      this.#habitat.occurrences.note("agent-fenced");
    else if (this.#mayBeForbidden && error instanceof WaggleError && error.code === "WAGGLE_FORBIDDEN")
      this.#habitat.occurrences.note("agent-forbidden");
    else if (error !== undefined && !(error instanceof WaggleError)) this.#habitat.escaped(this.id, error);
    else if (error instanceof WaggleError && error.code !== "WAGGLE_UNREACHABLE")
      this.#habitat.found("agents-go-on", `${this.id} ended: ${error.message}`);
    this.#end(session, RESTART_MS);
  }

  #end(session: Session, forMs: number): void {
    session.kill();
    if (this.#sessions.size > 1) this.#twinsUntilMs = this.#habitat.engine.nowMs;
    this.#sessions.delete(session);
    this.#habitat.engine.after(forMs, "start", () => this.start());
  }

  #handler(session: Session): Handler {
    return async (task, context) => {
      const orders = ordersOf(task.payload);
      const { signal } = context;
      const startedMs = this.#habitat.engine.nowMs;
      // With two processes, the earlier one also joins anew after its lease lapsed, and takes the id back.
      const isSuperseded = () => this.#sessions.size > 1 || this.#twinsUntilMs >= startedMs;
      const { id, project, attempt } = task;
      const start = {
        task: taskKey({ project, task: id }),
        attempt,
        session,
        signal,
        isSuperseded,
        limitMs: orders.limitMs,
      };
      const ended = this.#watch.started(start, this.#character.maxConcurrent);
      try {
        return await this.#run(orders, task, context, session);
      } finally {
        ended();
      }
    };
  }

  async #run(orders: Orders, task: HandlerTask, context: HandlerContext, session: Session): Promise<string> {
    if (orders.tokens !== undefined) context.reportTokens(orders.tokens);
    if (this.#habitat.hasHealed) {
      await pause(session.clock, orders.healedMs ?? HEALED_MS, context.signal);
      return `done ${task.id}`;
    }
    if (orders.acquires === undefined) return await this.#obey(orders, task, context, session);
    const slot = await context.acquire(orders.acquires, { timeoutMs: ACQUIRE_MS });
    try {
      return await this.#obey(orders, task, context, session);
    } finally {
      if (this.#random.chance(0.8)) await slot.release(); // the remaining slots are forgotten
    }
  }

  async #obey(orders: Orders, task: HandlerTask, context: HandlerContext, session: Session): Promise<string> {
    const ms = orders.ms * this.#character.slowness;
    if (orders.reportsProgress) {
      await pause(session.clock, ms / 2, context.signal);
      context.progress(0.5, "half");
    }
    await pause(session.clock, orders.reportsProgress ? ms / 2 : ms, context.signal);
    context.signal.throwIfAborted();
    if (this.#random.chance(this.#character.failShare) && !this.#habitat.hasHealed)
      throw new Error("out of luck");
    return await this.#verdict(orders, task, context, session);
  }

  async #verdict(
    { does, times = 0, hold }: Orders,
    task: HandlerTask,
    context: HandlerContext,
    session: Session,
  ): Promise<string> {
    const isDue = task.attempt <= times;
    if (does === "fail" && isDue) throw new Error("as ordered");
    if (does === "infrastructure" && isDue) throw new InfrastructureError("as ordered", hold);
    if (does === "invalid") throw new InvalidInputError("as ordered");
    if (does === "kill") session.after(0, "poison", () => this.crash(RESTART_MS));
    if (does === "hang" || does === "kill") await this.#hang(context, context.signal);
    if (does === "stay") await this.#hang(context, undefined);
    return `done ${task.id}`;
  }

  /** Waits until all faults heal or `signal` aborts. */
  async #hang(context: HandlerContext, signal: AbortSignal | undefined): Promise<void> {
    if (this.#habitat.hasHealed) return;
    await new Promise<void>((resolve) => {
      this.#hanging.add(resolve);
      signal?.addEventListener("abort", () => resolve(), { once: true });
    });
    context.signal.throwIfAborted();
  }
}
