// A simulated program that uses the swarm: it carries out the operations of the workload and keeps the outcomes. After
// a crash it repeats the operations without a known outcome, or has forgotten them.

import type { Agent } from "../../agent/agent.ts";
import { connect } from "../../client/connect.ts";
import type { Swarm } from "../../client/swarm.ts";
import type { TaskHandle } from "../../client/task-handle.ts";
import type { TaskRequest } from "../../client/task-request.ts";
import type { ResourcePatch } from "../../core/settings-patch.ts";
import { WaggleError } from "../../errors.ts";
import { taskKey } from "../../ids.ts";
import { LossError } from "../../protocol/loss-error.ts";
import type { StoryObserved } from "../history/observation.ts";
import type { Habitat } from "./habitat.ts";
import { type MachineClock, newMachine, type Session } from "./session.ts";
import type { ClientCharacter, Operation } from "./workload.ts";

type StoryAnswer = NonNullable<StoryObserved["answer"]>;

/** Longest wait for slots, ms. */
const ACQUIRE_MS = 15_000;
/** Time between two touches of slots, ms. */
const TOUCH_MS = 200;
/** Operations without a setting for the operator to restore. */
const HARMLESS: readonly Operation["does"][] = [
  "submit",
  "cancel",
  "retry",
  "revoke",
  "reschedule",
  "query",
  "await",
  "acquire",
];

export class ClientNode {
  readonly id: string;
  readonly machine: MachineClock;
  /** Tasks whose outcome the client still awaits. */
  readonly awaited = new Set<string>();
  readonly #character: ClientCharacter;
  readonly #habitat: Habitat;
  readonly #retries: boolean;
  /** Operations begun, without a known outcome. */
  readonly #open = new Set<Operation>();
  #session: Session | undefined;
  #swarm: Swarm | undefined;
  #agent: Promise<Agent> | undefined;

  /** @param retries whether a submit of many tasks waits while the swarm has no room; default: true */
  constructor(character: ClientCharacter, habitat: Habitat, { retries } = { retries: true }) {
    this.id = character.id;
    this.#retries = retries;
    this.#character = character;
    this.#habitat = habitat;
    this.machine = newMachine();
  }

  /** Tasks submitted without an answer yet: the client keeps submitting them. */
  get submitting(): readonly string[] {
    return [...this.#open].flatMap((operation) =>
      operation.does === "submit" ? operation.tasks.map(({ id = "" }) => id) : [],
    );
  }

  /**
   * Whether an operation that the operator must undo may still arrive: an open operation, also of a stopped client, or
   * a copy of a sent request on its way.
   */
  get isMeddling(): boolean {
    const { engine } = this.#habitat;
    const isAsking = [...this.#open].some(({ does }) => !HARMLESS.includes(does));
    return isAsking || this.#habitat.linkOf(this.id).lastArrivalMs > engine.nowMs;
  }

  get session(): Session | undefined {
    return this.#session;
  }

  start(): void {
    if (this.#session !== undefined) return;
    const session = this.#habitat.newSession(this.id, this.machine);
    this.#session = session;
    const { project, user } = this.#character;
    const { swarm } = this.#habitat;
    const logger = this.#habitat.loggerOf(this.id);
    const { clock, random } = session;
    const transport = this.#habitat.newConnection(this.id, session);
    connect({ transport, swarm, project, user, clock, random, logger }).then(
      (connected) => {
        this.#swarm = connected;
        for (const operation of [...this.#open]) this.#begin(operation);
      },
      (error) => this.#habitat.escaped(this.id, error),
    );
  }

  crash(forMs: number): void {
    if (this.#session === undefined) return;
    this.#session.kill();
    this.#session = undefined;
    this.#swarm = undefined;
    this.#agent = undefined;
    this.awaited.clear();
    if (!this.#character.remembers) this.#open.clear();
    this.#habitat.engine.after(forMs, "start", () => this.start());
  }

  /** Carries out the operation now, or after the next start. */
  do(operation: Operation): void {
    this.#open.add(operation);
    this.#begin(operation);
  }

  #begin(operation: Operation): void {
    const swarm = this.#swarm;
    const session = this.#session;
    if (swarm === undefined || session === undefined) return;
    session.after(0, operation.does, () => {
      this.#carryOut(operation, swarm).then(
        () => this.#open.delete(operation),
        (error: unknown) => {
          this.#open.delete(operation);
          if (!(error instanceof WaggleError)) this.#habitat.escaped(`${this.id} ${operation.does}`, error);
        },
      );
    });
  }

  async #carryOut(operation: Operation, swarm: Swarm): Promise<unknown> {
    switch (operation.does) {
      case "submit":
        return await this.#submit(operation.tasks, swarm);
      case "cancel":
        return await swarm.cancel(operation.task, { project: operation.project });
      case "retry":
        return await this.#retry(operation.task, operation.project, swarm);
      case "revoke":
        return await swarm.revoke(operation.task, { project: operation.project });
      case "reschedule": {
        const { task, project, notBefore } = operation;
        return await swarm.reschedule(task, { project, notBefore });
      }
      case "query":
        await this.#read(operation, "story", swarm);
        return await this.#read(operation, "explain", swarm);
      case "await":
        return await swarm
          .task(operation.task, { project: operation.project })
          .outcome({ timeoutMs: ACQUIRE_MS });
      case "pause":
        return await swarm.pause(operation.project);
      case "resume":
        return await swarm.resume(operation.project);
      case "drain":
        return await swarm.drain(operation.agent);
      case "undrain":
        return await swarm.undrain(operation.agent);
      case "hold":
        return await swarm.hold(operation.target, { forMs: operation.forMs });
      case "unhold":
        return await swarm.unhold(operation.target);
      case "set-project":
        return await swarm.setProject(operation.project, operation.patch);
      case "set-kind":
        return await swarm.setKind(operation.kind, operation.patch);
      case "set-policy":
        return await swarm.setPolicy(operation.patch);
      case "set-rate":
        return await swarm.setRate(operation.type, operation.patch);
      case "set-grant":
        return await swarm.setGrant(operation.group, operation.grant);
      case "remove-grant":
        return await swarm.removeGrant(operation.group);
      case "set-resource":
        return await swarm.setResource(operation.resource, {
          slots: operation.slots,
          ...alphaBeside(operation.slots),
        });
      case "acquire":
        return await this.#acquire(operation, swarm);
    }
  }

  /** Records the history of a task, or the error. */
  async #read(
    { task, project }: { readonly task: string; readonly project: string },
    how: "story" | "explain",
    swarm: Swarm,
  ): Promise<void> {
    const { engine, history } = this.#habitat;
    const node = this.#session?.name ?? this.id;
    const head = { kind: "story", node, task: taskKey({ project, task }), sentMs: engine.nowMs } as const;
    try {
      const answer = await (how === "story" ? storyOf : explanationOf)(swarm, task, project);
      history.push({ ...head, heardMs: engine.nowMs, answer });
    } catch (error) {
      const heard = {
        heardMs: engine.nowMs,
        ...(error instanceof LossError ? { saysLoss: true as const } : {}),
      };
      if (error instanceof WaggleError) history.push({ ...head, ...heard, refused: error.code });
      throw error;
    }
  }

  /** Most drawn tasks have completed or are live, so most retries are refused. */
  async #retry(task: string, project: string, swarm: Swarm): Promise<void> {
    await swarm.retry(task, { project });
    this.#keep(swarm.task(task, { project }));
  }

  async #submit(tasks: readonly TaskRequest[], swarm: Swarm): Promise<void> {
    const [first] = tasks;
    if (first !== undefined && tasks.length === 1) return this.#keep(await this.#untilKnown(first, swarm));
    const refused = tasks.map((task) => this.#call(task));
    let place = 0;
    for await (const outcome of swarm.submitMany(tasks, { retry: this.#retries })) {
      const call = refused[place];
      place += 1;
      if (outcome.ok) this.#keep(outcome.handle);
      else if (outcome.error.code === "WAGGLE_OUTCOME_UNKNOWN") {
        this.#habitat.occurrences.note("submit-unknown");
        this.#keep(await this.#untilKnown(outcome.task, swarm));
      } else call?.(outcome.error);
    }
  }

  /** Submits again with the same id while the outcome is unknown. */
  async #untilKnown(task: TaskRequest, swarm: Swarm): Promise<TaskHandle> {
    for (;;) {
      const refused = this.#call(task);
      try {
        return await swarm.submit(task);
      } catch (error) {
        if (!(error instanceof WaggleError)) throw error;
        if (error.code !== "WAGGLE_OUTCOME_UNKNOWN") {
          refused(error);
          throw error;
        }
        this.#habitat.occurrences.note("submit-unknown");
      }
    }
  }

  /** Records a call to submit a task. Returns a function to report a refusal. */
  #call({ id = "", project = "" }: TaskRequest): (error: WaggleError) => void {
    const { engine, history } = this.#habitat;
    const task = taskKey({ project, task: id });
    const head = { kind: "call", node: this.#session?.name ?? this.id, task, sentMs: engine.nowMs } as const;
    const at = history.push(head) - 1;
    return ({ code }) => {
      history[at] = { ...head, heardMs: engine.nowMs, refused: code };
    };
  }

  #keep(handle: TaskHandle): void {
    const task = taskKey({ project: handle.project, task: handle.id });
    this.awaited.add(task);
    if (handle.ack?.duplicate === true) this.#habitat.occurrences.note("submit-repeated-and-known");
    handle.outcome().then(
      () => this.awaited.delete(task),
      (error: unknown) => {
        this.awaited.delete(task);
        this.#habitat.found(
          "accepted-tasks-end",
          `${this.id} waits for ${task} and receives: ${String(error)}`,
        );
      },
    );
  }

  /** Acquires slots as an agent without tasks, under an id unlike any machine's. */
  async #acquire(
    { resources, holdMs, purpose }: Extract<Operation, { does: "acquire" }>,
    swarm: Swarm,
  ): Promise<void> {
    const session = this.#session;
    this.#agent ??= swarm.agent({ id: `${this.id}-slots`, kinds: [], handler: () => undefined });
    const started = this.#agent;
    const agent = await started.catch((error: unknown) => {
      this.#agent = undefined;
      throw error;
    });
    void agent.closed.then(() => {
      if (this.#agent === started) this.#agent = undefined;
    });
    const slot = await agent.acquire(resources, {
      timeoutMs: ACQUIRE_MS,
      holder: `h${this.#habitat.engine.events}`,
      ...purpose.terms,
    });
    const longerMs = purpose.isSilent ? (purpose.terms.idleTimeoutMs ?? 0) : 0;
    for (let leftMs = holdMs + longerMs; leftMs > 0; leftMs -= TOUCH_MS) {
      if (!purpose.isSilent) slot.touch();
      await new Promise<void>((resolve) => void session?.clock.after(Math.min(leftMs, TOUCH_MS), resolve));
    }
    if (purpose.used !== undefined) slot.report({ totalTokens: purpose.used });
    await slot.release(purpose.refused === undefined ? {} : { refused: purpose.refused });
  }
}

async function storyOf(swarm: Swarm, task: string, project: string): Promise<StoryAnswer> {
  const { status, attempts, events } = await swarm.story(task, { project });
  const named = events.filter(({ event }) => event.type !== "AssignmentsConfirmed");
  return {
    statusIdx: status.idx,
    attempts: attempts.map(attemptOf),
    events: named.map(({ idx, event: { type } }) => ({ idx, type })),
  };
}

async function explanationOf(swarm: Swarm, task: string, project: string): Promise<StoryAnswer> {
  const { idx, attempts } = await swarm.explain(task, { project });
  return { statusIdx: idx, attempts: attempts.map(attemptOf) };
}

function attemptOf({ attempt, agent, assignedIdx }: StoryAnswer["attempts"][number]) {
  return { attempt, agent, assignedIdx };
}

/** α of a resource by its slots: the policy's α for one slot, fixed for an even number, else auto-tuned. */
function alphaBeside(slots: number): ResourcePatch {
  return slots === 1 ? { alpha: null } : { alpha: slots / 10, autoTune: slots % 2 === 1 };
}
