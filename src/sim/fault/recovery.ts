// P10, bounded recovery: what has to stand in the journal how long after a node ended, where nothing else goes wrong.
// Judges by the journal alone. Not here: who ends, and that nothing else goes wrong meanwhile (probe.ts).
//
// The bounds, in true time, from the protocol (following.ts, presence.ts). T is that of the term
// that ends, and a pulse at most T/12.
//
//   a leader crashed      the standby's silence, T to 1⅓ T since the last record that it read, and a pulse until it
//   → TermStarted         looks; it listens for T/20 to what the others say when asked, reads where the journal
//                         ends, and appends. Nobody else is waited for: the dead leader announced nothing that the
//                         journal lacks; of two elections one is taken. A journal that is full takes a second
//                         silence, and is not judged.
//   …while somebody else  the same, and once more a silence: a record that comes between an election's look and its
//   writes on and on      append refuses it, and is no sign of life
//   nobody can reach a    a pulse until it sees that; it gives the term up after the longer of T and 3 s, and a pulse,
//   leader → TermStarted  if it reaches the journal, and whoever reads that campaigns at once
//   a leader was stopped  it appends TermEnded, and whoever reads that campaigns at once: 200 ms
//   → TermStarted         (docs/failure-modes.md)
//   an agent crashed      H since its last message, and a pulse until the leader looks. Its attempts are closed in the
//   → AgentLeft, and its  same turn, their tasks are queued again at once, and go to whoever has a place for them.
//     tasks tried again
//
// Timers of a clock that is slow by 1 % last longer, and there are some ways of less than 1 ms to the server and back.

import { timingOf } from "../../coordinator/timing.ts";
import type { AgentId, Incarnation } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { SwarmState, TaskRow } from "../../state/state.ts";
import { refOf } from "../../state/task-rows.ts";
import type { Engine } from "./engine.ts";
import { SLOW_MAX } from "./life.ts";
import type { Occurrence } from "./occurrences.ts";

/** Ways to the server and back, and the turn of whoever is there, ms: far less, unless something waits for a timer. */
const WAYS_MS = 100;
/** From the word to stop until another leads, ms. */
const HAND_OVER_MS = 200;

/** From a leader's crash until the next term stands in the journal, at most, ms. @param timeoutMs T */
export function newTermWithinMs(timeoutMs: number): number {
  const { silenceMsMax, pulseMs, askMs } = timingOf(timeoutMs);
  return (silenceMsMax + pulseMs + askMs) * SLOW_MAX + WAYS_MS;
}

/** …while somebody else writes into the journal on and on, ms. @param timeoutMs T */
export function newTermAmongForeignWithinMs(timeoutMs: number): number {
  return 2 * newTermWithinMs(timeoutMs);
}

/** From when nobody can reach a leader until the next term stands in the journal, at most, ms. @param timeoutMs T */
export function newTermUnheardWithinMs(timeoutMs: number): number {
  const { deafMs, pulseMs } = timingOf(timeoutMs);
  return (deafMs + 2 * pulseMs) * SLOW_MAX + HAND_OVER_MS;
}

/** From an agent's last message until the journal counts it as lost, its attempts are closed and others opened, at
 *  most, ms. @param timeoutMs T */
export function lostWithinMs(timeoutMs: number): number {
  return (limits.agentLostMs + timingOf(timeoutMs).pulseMs) * SLOW_MAX + WAYS_MS;
}

/** What the journal has to show. */
interface Debt {
  readonly what: string;
  readonly sinceMs: number;
  readonly dueMs: number;
  readonly isPaid: (state: SwarmState) => boolean;
  readonly occurrence: Occurrence;
}

/** A new term that has to begin. */
interface TermDue {
  /** @param led who led, and which term */
  readonly after: (led: string) => string;
  /** @param timeoutMs T of the last term */
  readonly withinMs: (timeoutMs: number) => number;
  readonly occurrence: Occurrence;
}

export interface RecoveryDeps {
  readonly engine: Engine;
  /** As the journal is now. */
  readonly state: () => SwarmState;
  readonly found: (check: string, sentence: string) => void;
  readonly note: (occurrence: Occurrence) => void;
}

export class Recovery {
  readonly #deps: RecoveryDeps;
  #debts: readonly Debt[] = [];

  constructor(deps: RecoveryDeps) {
    this.#deps = deps;
  }

  /** Whether everything stands in the journal that has to. */
  get isOver(): boolean {
    return this.#debts.length === 0;
  }

  /** The leader's process ended where it stood. A standby must follow. */
  leaderCrashed(): void {
    this.#expectTerm({
      after: (led) => `the crash of ${led}`,
      withinMs: newTermWithinMs,
      occurrence: "term-begun-in-calm",
    });
  }

  /** …and somebody else writes into the journal on and on. */
  leaderCrashedAmongForeign(): void {
    this.#expectTerm({
      after: (led) => `the crash of ${led}, while somebody else writes into the journal`,
      withinMs: newTermAmongForeignWithinMs,
      occurrence: "term-begun-among-foreign-in-calm",
    });
  }

  /** The leader's connection to agents and clients is away, and that to the journal is not. A standby must follow. */
  leaderUnheard(): void {
    this.#expectTerm({
      after: (led) => `nobody could reach ${led}`,
      withinMs: newTermUnheardWithinMs,
      occurrence: "unheard-leader-replaced",
    });
  }

  /** The leader was told to stop. A standby must follow. */
  leaderStopped(): void {
    this.#expectTerm({
      after: (led) => `${led}, was told to stop`,
      withinMs: () => HAND_OVER_MS,
      occurrence: "term-handed-over-in-calm",
    });
  }

  /** An agent's process ended where it stood. Somebody must lead, and another agent be free for what it ran.
   *  @param heardMs when the last of what it sent arrives, virtual ms */
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
      what: `that ${id} is lost, which crashed, and ${lost.map(([{ task }]) => task).join(", ")} run elsewhere`,
      withinMs: Math.max(0, heardMs - this.#deps.engine.nowMs) + lostWithinMs(state.leaderTimeoutMs),
      isPaid: (now) => isGone(now) && isTriedAgain(now),
      occurrence: "agent-lost-in-calm",
    });
  }

  /** To be called after every event. */
  check(): void {
    if (this.#debts.length === 0) return;
    const { engine, note, found } = this.#deps;
    const state = this.#deps.state();
    for (const debt of this.#debts) {
      const isPaid = debt.isPaid(state);
      if (isPaid) note(debt.occurrence);
      else if (engine.nowMs <= debt.dueMs) continue;
      else found("recovery-is-bounded", `waited in vain, with nothing wrong, for ${textOf(debt)}`);
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
    engine.after(withinMs + 1, "due", () => undefined); // something happens then
  }
}

/** One life of an agent. */
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
