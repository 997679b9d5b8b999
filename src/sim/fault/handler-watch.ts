// Watches the handlers of all agents (P4). No attempt runs twice in a session, and no session runs more handlers than
// its capacity. No two handlers work on a task at once while the first may still work.
//
// An attempt ended by its own limit is excepted, because the message about its end may be lost. The journal decides
// whether a limit ended the attempt. The leader counts a time-out from its decision, in journal time, and the agent
// receives the assignment only after the batch is stored. But the agent also ends the handler by its own clock: after
// that moment the time-out excuses no overlap. The same holds for an attempt that an operator revoked, or whose session
// a grant forbids. Its agent hears of that after a heartbeat at the latest, or ends the handler with its lease.

import type { AgentId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { Habitat } from "./habitat.ts";
import { type Session, SLOW_MAX } from "./session.ts";

interface Start {
  readonly task: string;
  readonly attempt: number;
  readonly session: Session;
  readonly signal: AbortSignal;
  /** Whether another process has run under the agent's id since the start: its join reassigns the attempts at once. */
  readonly isSuperseded: () => boolean;
  /** After so much silence the leader may reassign the task, whatever the agent does, ms. */
  readonly limitMs: number;
}

interface Run extends Start {
  readonly startedMs: number;
}

/** An attempt closed by the journal at a limit of the attempt, by an operator, or with a forbidden session. */
export interface LimitReached {
  readonly task: string;
  readonly attempt: number;
  readonly by: "timed-out" | "stalled" | "revoked" | "forbidden";
  /** Time-out of the task. */
  readonly timeoutMs: number;
  readonly agent: AgentId;
  /** Time of the decision, virtual ms. */
  readonly decidedMs: number;
}

/** Tolerance for drifting clocks and messages on their way, ms. */
const SLACK_MS = 1_000;

export class HandlerWatch {
  readonly #habitat: Habitat;
  readonly #runsByTask = new Map<string, Set<Run>>();
  /** By session: started attempts and running handlers. */
  readonly #bySession = new WeakMap<Session, { readonly started: Set<string>; readonly running: Set<Run> }>();

  readonly #everStarted = new Set<string>();
  /** By attempt: the limit that closed the attempt. */
  readonly #limitByAttempt = new Map<string, LimitReached>();

  constructor(habitat: Habitat) {
    this.#habitat = habitat;
  }

  hasStarted({ task, attempt }: { readonly task: string; readonly attempt: number }): boolean {
    return this.#everStarted.has(`${task}#${attempt}`);
  }

  /**
   * Whether aborted handlers occupy the whole capacity of a session: the agent may then wait for one before it rejoins.
   */
  isTakenUp(session: Session, capacity: number): boolean {
    const running = [...(this.#bySession.get(session)?.running ?? [])];
    return running.filter(({ signal }) => signal.aborted).length >= capacity;
  }

  limitReached(limit: LimitReached): void {
    this.#limitByAttempt.set(`${limit.task}#${limit.attempt}`, limit);
  }

  /** A handler starts. Returns a function to call at its end. */
  started(start: Start, capacity: number): () => void {
    const { task, attempt, session } = start;
    const run = { ...start, startedMs: this.#habitat.engine.nowMs };
    const own = this.#bySession.get(session) ?? { started: new Set(), running: new Set() };
    this.#bySession.set(session, own);
    if (own.started.has(`${task}#${attempt}`))
      this.#habitat.found(
        "attempts-start-once",
        `${session.name} starts attempt ${attempt} of ${task} again`,
      );
    own.started.add(`${task}#${attempt}`);
    this.#everStarted.add(`${task}#${attempt}`);
    own.running.add(run);
    if (own.running.size > capacity)
      this.#habitat.found(
        "handlers-fit-places",
        `${session.name} runs ${own.running.size} handlers with capacity ${capacity}`,
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
    const { session, signal, startedMs } = earlier;
    const { nowMs } = this.#habitat.engine;
    const wasHeld = nowMs - session.heldUntilMs < limits.leaseTtlMs;
    const mayOverlap =
      session.hasEnded || signal.aborted || wasHeld || this.#isOver(earlier) || earlier.isSuperseded();
    if (mayOverlap || earlier.attempt >= later.attempt) return;
    const sentence =
      `${later.session.name} starts attempt ${later.attempt} of ${later.task} while ${session.name} runs attempt ` +
      `${earlier.attempt} without an abort since ${startedMs.toFixed(0)} ms`;
    this.#habitat.found("one-handler-a-task", sentence);
  }

  /** Whether a limit closed the attempt. The silence limit counts if not too early, the time-out before the agent's
   *  clock. A revocation, or the end of a forbidden session, counts until the agent must have heard of it. */
  #isOver({ task, attempt, startedMs, limitMs }: Run): boolean {
    const limit = this.#limitByAttempt.get(`${task}#${attempt}`);
    const { nowMs } = this.#habitat.engine;
    const ranMs = nowMs - startedMs;
    if (limit === undefined) return false;
    if (limit.by === "revoked" || limit.by === "forbidden")
      return nowMs - limit.decidedMs < limits.leaseTtlMs * SLOW_MAX + SLACK_MS;
    return limit.by === "timed-out"
      ? ranMs < limit.timeoutMs * SLOW_MAX + SLACK_MS
      : ranMs > limitMs - SLACK_MS;
  }
}
