// Watches the handlers of all agents: none runs twice in one life, none beyond its agent's places, and no task is
// worked on by two at once while the first still may (P4). What an attempt's own limit ended is excepted: the word of
// it may be lost on the way. Whether it ended so is what the journal says: a leader counts a time-out from its
// decision, in journal time, and the agent hears of that decision once it is stored, however long that takes. It tells
// its handler to end by its own clock, though: behind that the time-out excuses none.

import type { AgentId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { Habitat } from "./habitat.ts";
import { type Life, SLOW_MAX } from "./life.ts";

interface Start {
  readonly task: string;
  readonly attempt: number;
  readonly life: Life;
  readonly signal: AbortSignal;
  /** Whether another process ran under its agent's id since: when that one joins, its attempts are given away at
   *  once. */
  readonly isSuperseded: () => boolean;
  /** After so long of silence the leader may give the task to another whatever the agent does, ms. */
  readonly limitMs: number;
}

interface Run extends Start {
  readonly startedMs: number;
}

/** That the journal closes an attempt for a limit of its own. */
export interface LimitReached {
  readonly task: string;
  readonly attempt: number;
  readonly by: "timed-out" | "stalled";
  /** The task's. */
  readonly timeoutMs: number;
  readonly agent: AgentId;
  /** When that was decided, virtual ms. */
  readonly decidedMs: number;
}

/** What clocks may differ over how long an attempt is silent, and messages take, ms. */
const SLACK_MS = 1_000;

export class HandlerWatch {
  readonly #habitat: Habitat;
  readonly #runsByTask = new Map<string, Set<Run>>();
  /** Of each life: what was started in it, and what runs. */
  readonly #byLife = new WeakMap<Life, { readonly started: Set<string>; readonly running: Set<Run> }>();

  readonly #everStarted = new Set<string>();
  /** By attempt, which of its limits closed it. */
  readonly #limitByAttempt = new Map<string, LimitReached>();

  constructor(habitat: Habitat) {
    this.#habitat = habitat;
  }

  hasStarted({ task, attempt }: { readonly task: string; readonly attempt: number }): boolean {
    return this.#everStarted.has(`${task}#${attempt}`);
  }

  /** Whether handlers that were told to end take all of a life's places: it may wait for one, to join again. */
  isTakenUp(life: Life, places: number): boolean {
    const running = [...(this.#byLife.get(life)?.running ?? [])];
    return running.filter(({ signal }) => signal.aborted).length >= places;
  }

  limitReached(limit: LimitReached): void {
    this.#limitByAttempt.set(`${limit.task}#${limit.attempt}`, limit);
  }

  /** A handler begins. Returns what to call when it has ended. */
  started(start: Start, places: number): () => void {
    const { task, attempt, life } = start;
    const run = { ...start, startedMs: this.#habitat.engine.nowMs };
    const own = this.#byLife.get(life) ?? { started: new Set(), running: new Set() };
    this.#byLife.set(life, own);
    if (own.started.has(`${task}#${attempt}`))
      this.#habitat.found("attempts-start-once", `${life.name} starts attempt ${attempt} of ${task} again`);
    own.started.add(`${task}#${attempt}`);
    this.#everStarted.add(`${task}#${attempt}`);
    own.running.add(run);
    if (own.running.size > places)
      this.#habitat.found(
        "handlers-fit-places",
        `${life.name} runs ${own.running.size} handlers in ${places} places`,
      );
    const runs = this.#runsByTask.get(task) ?? new Set();
    this.#runsByTask.set(task, runs);
    for (const other of runs) this.#compare(other, run);
    runs.add(run);
    return () => {
      runs.delete(run);
      own.running.delete(run);
    };
  }

  #compare(earlier: Run, later: Run): void {
    const { life, signal, startedMs } = earlier;
    const { nowMs } = this.#habitat.engine;
    const wasHeld = nowMs - life.heldUntilMs < limits.leaseTtlMs;
    const mayOverlap =
      life.hasEnded || signal.aborted || wasHeld || this.#isOver(earlier) || earlier.isSuperseded();
    if (mayOverlap || earlier.attempt >= later.attempt) return;
    const sentence =
      `${later.life.name} starts attempt ${later.attempt} of ${later.task} while ${life.name} runs attempt ` +
      `${earlier.attempt}, which nobody told to end, since ${startedMs.toFixed(0)} ms`;
    this.#habitat.found("one-handler-a-task", sentence);
  }

  /** Whether a limit of its own closed an attempt: its silence not too soon, its time-out before its agent's clock. */
  #isOver({ task, attempt, startedMs, limitMs }: Run): boolean {
    const limit = this.#limitByAttempt.get(`${task}#${attempt}`);
    const ranMs = this.#habitat.engine.nowMs - startedMs;
    if (limit === undefined) return false;
    return limit.by === "timed-out"
      ? ranMs < limit.timeoutMs * SLOW_MAX + SLACK_MS
      : ranMs > limitMs - SLACK_MS;
  }
}
