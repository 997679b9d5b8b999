// P10, bounded recovery: the journal must show the recovery from a node's end within a bound, if nothing else fails.
// Judges by the journal alone. probe.ts ends the nodes and keeps other faults away.
//
// The bounds are in true time and follow from the protocol (following.ts, presence.ts). T belongs to the ended term,
// and a pulse is at most T/12.
//
//   a leader crashed      the standby's silence, T to 1⅓ T since the last record read, and a pulse until its check.
//   → TermStarted         It then listens for T/20 to the other standbys, reads the end of the journal, and appends.
//                         No wait for other nodes: the dead leader announced no batch that the journal lacks.
//                         Of two elections one is taken. With a full journal a second silence follows, not judged.
//   …while a foreign      the same, and a second silence: a record between an election's read and its append refuses
//   client writes         the append, and is no sign of life
//   a leader unreachable  a pulse until the leader notices; it ends the term after the longer of T and 3 s, and a
//   → TermStarted         pulse, if it reaches the journal. A standby that reads the end campaigns at once.
//   a leader was stopped  it appends TermEnded, and a standby that reads it campaigns at once: 200 ms
//   → TermStarted         (docs/failure-modes.md)
//   an agent crashed      H since its last message, and a pulse until the leader checks. The same turn closes its
//   → AgentLeft, and its  attempts and queues their tasks again. The tasks go to agents with free capacity.
//     tasks tried again
//
// Timers of a clock slow by 1 % last longer. A bound also covers a few round trips to the server of less than 1 ms.

import { timingOf } from "../../coordinator/timing.ts";
import type { AgentId, Incarnation } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { SwarmState, TaskRow } from "../../state/state.ts";
import { refOf } from "../../state/task-rows.ts";
import type { Engine } from "./engine.ts";
import type { Occurrence } from "./occurrences.ts";
import { SLOW_MAX } from "./session.ts";

/** Round trips to the server and the turns of the nodes, ms: far less, unless a step waits for a timer. */
const WAYS_MS = 100;
/** From the request to stop until the next term, ms. */
const HAND_OVER_MS = 200;

/** Longest time from a leader's crash until the next term is in the journal, ms. @param timeoutMs T */
export function newTermWithinMs(timeoutMs: number): number {
  const { silenceMsMax, pulseMs, askMs } = timingOf(timeoutMs);
  return (silenceMsMax + pulseMs + askMs) * SLOW_MAX + WAYS_MS;
}

/** …while a foreign client keeps writing into the journal, ms. @param timeoutMs T */
export function newTermAmongForeignWithinMs(timeoutMs: number): number {
  return 2 * newTermWithinMs(timeoutMs);
}

/** Longest time from the loss of a leader's connection until the next term is in the journal, ms. @param timeoutMs T */
export function newTermUnheardWithinMs(timeoutMs: number): number {
  const { isolationMs, pulseMs } = timingOf(timeoutMs);
  return (isolationMs + 2 * pulseMs) * SLOW_MAX + HAND_OVER_MS;
}

/**
 * Longest time from an agent's last message until the journal declares the agent lost and closes its attempts, ms.
 * @param timeoutMs T
 */
export function lostWithinMs(timeoutMs: number): number {
  return (limits.agentLostMs + timingOf(timeoutMs).pulseMs) * SLOW_MAX + WAYS_MS;
}

/** A recovery that the journal must show. */
interface Debt {
  readonly what: string;
  readonly sinceMs: number;
  readonly dueMs: number;
  readonly isPaid: (state: SwarmState) => boolean;
  readonly occurrence: Occurrence;
}

/** A new term due in the journal. */
interface TermDue {
  /** @param led the old leader and its term */
  readonly after: (led: string) => string;
  /** @param timeoutMs T of the last term */
  readonly withinMs: (timeoutMs: number) => number;
  readonly occurrence: Occurrence;
}

export interface RecoveryDeps {
  readonly engine: Engine;
  /** The state at the end of the journal. */
  readonly state: () => SwarmState;
  readonly found: (check: string, sentence: string) => void;
  readonly note: (occurrence: Occurrence) => void;
}

export class RecoveryCheck {
  readonly #deps: RecoveryDeps;
  #debts: readonly Debt[] = [];

  constructor(deps: RecoveryDeps) {
    this.#deps = deps;
  }

  /** Whether the journal shows every due recovery. */
  get isOver(): boolean {
    return this.#debts.length === 0;
  }

  /** The leader's process ended at once. A standby must take over. */
  leaderCrashed(): void {
    this.#expectTerm({
      after: (led) => `the crash of ${led}`,
      withinMs: newTermWithinMs,
      occurrence: "term-begun-in-calm",
    });
  }

  /** …and a foreign client keeps writing into the journal. */
  leaderCrashedAmongForeign(): void {
    this.#expectTerm({
      after: (led) => `the crash of ${led}, while a foreign client writes into the journal`,
      withinMs: newTermAmongForeignWithinMs,
      occurrence: "term-begun-among-foreign-in-calm",
    });
  }

  /**
   * The leader's connection to agents and clients is down, but not its link to the journal. A standby must take over.
   */
  leaderUnheard(): void {
    this.#expectTerm({
      after: (led) => `the loss of the connection of ${led}`,
      withinMs: newTermUnheardWithinMs,
      occurrence: "unheard-leader-replaced",
    });
  }

  /** The leader was asked to stop. A standby must take over. */
  leaderStopped(): void {
    this.#expectTerm({
      after: (led) => `the stop of ${led}`,
      withinMs: () => HAND_OVER_MS,
      occurrence: "term-handed-over-in-calm",
    });
  }

  /**
   * An agent's process ended at once. A leader must run, and another agent must have capacity for the tasks.
   * @param heardMs arrival of the agent's last message, virtual ms
   */
  agentCrashed({ id, incarnation }: Lived, heardMs: number): void {
    const state = this.#deps.state();
    const lost = tasksOf(state, { id, incarnation }).map((task) => [refOf(task.spec), task.attempt] as const);
    const isGone = ({ agentById }: SwarmState) => {
      const row = agentById.get(id);
      return row?.online !== true || row.incarnation !== incarnation;
    };
    const isTriedAgain = ({ taskById }: SwarmState) =>
      lost.every(([ref, attempt]) => {
        const { attempt: newest = 0, open } = taskById.get(ref) ?? {};
        const isElsewhere = open?.agent !== id || open.incarnation !== incarnation;
        return newest > attempt && open !== undefined && isElsewhere;
      });
    this.#expect({
      what: `the loss of ${id} after its crash, and new attempts of ${lost.map(([{ task }]) => task).join(", ")}`,
      withinMs: Math.max(0, heardMs - this.#deps.engine.nowMs) + lostWithinMs(state.leaderTimeoutMs),
      isPaid: (now) => isGone(now) && isTriedAgain(now),
      occurrence: "agent-lost-in-calm",
    });
  }

  /** Call after every event. */
  check(): void {
    if (this.#debts.length === 0) return;
    const { engine, note, found } = this.#deps;
    const state = this.#deps.state();
    for (const debt of this.#debts) {
      const isPaid = debt.isPaid(state);
      if (isPaid) note(debt.occurrence);
      else if (engine.nowMs <= debt.dueMs) continue;
      else found("recovery-is-bounded", `without other faults, the journal does not show ${textOf(debt)}`);
      this.#debts = this.#debts.filter((each) => each !== debt);
    }
  }

  #expectTerm({ after, withinMs, occurrence }: TermDue): void {
    const { term, leader, leaderTimeoutMs } = this.#deps.state();
    this.#expect({
      what: `a new term after ${after(`${leader}, which led term ${term}`)}`,
      withinMs: withinMs(leaderTimeoutMs),
      isPaid: (state) => state.term > term,
      occurrence,
    });
  }

  #expect({ withinMs, ...debt }: Omit<Debt, "sinceMs" | "dueMs"> & { readonly withinMs: number }): void {
    const { engine } = this.#deps;
    const sinceMs = engine.nowMs;
    this.#debts = [...this.#debts, { ...debt, sinceMs, dueMs: sinceMs + withinMs }];
    engine.after(withinMs + 1, "due", () => undefined); // an event at that time, so that `check` runs
  }
}

/** A session of an agent. */
interface Lived {
  readonly id: AgentId;
  readonly incarnation: Incarnation;
}

function tasksOf({ taskById }: SwarmState, { id, incarnation }: Lived): TaskRow[] {
  return [...taskById.values()].filter(({ open }) => open?.agent === id && open.incarnation === incarnation);
}

function textOf({ what, sinceMs, dueMs }: Debt): string {
  return `${what}: it was due after ${Math.round(dueMs - sinceMs)} ms`;
}
