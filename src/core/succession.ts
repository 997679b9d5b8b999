// Numbered checks from one batch to the next (docs/invariants.md). Remembers of the previous state only what the checks
// need. Not here: checks of single states (invariants.ts), and whether a record continues the chain (replay.ts).

import type { AgentId, Incarnation, TaskRef } from "../ids.ts";
import { taskKey } from "../ids.ts";
import type { EndedTask } from "../state/ended-task.ts";
import { capacityOf, type SwarmState } from "../state/state.ts";
import { isRetryable, refOf } from "../state/task-rows.ts";
import type { Violation } from "./invariant.ts";
import { LedgerSuccession } from "./ledger-invariants.ts";
import { SlotSuccession } from "./slot-invariants.ts";

interface SeenAgent {
  readonly incarnation: Incarnation;
  readonly online: boolean;
  readonly lastNumber: number;
  readonly confirmedNumber: number;
  readonly inFlight: number;
}

/** Checks the state after each batch, in order. */
export class Succession {
  #numbers: ReadonlyMap<string, number> = new Map();
  /** Places and records of ended tasks, in order of ending. */
  #places: number[] = [];
  #ended: EndedTask[] = [];
  /** Keys and attempts of the live tasks, in the state's order. */
  readonly #tasks: TaskRef[] = [];
  readonly #attempts: number[] = [];
  #agentById: ReadonlyMap<AgentId, SeenAgent> = new Map();
  readonly #slots = new SlotSuccession();
  readonly #ledgers = new LedgerSuccession();

  /** Forbidden changes since the last call. */
  check(state: SwarmState): readonly Violation[] {
    const violations = [
      ...named(15, "terminal-absorbs", this.#revived(state)),
      ...named(16, "attempts-grow-by-one", this.#leaps(state)),
      ...named(17, "capacity", this.#overfilled(state)),
      ...named(18, "never-back", this.#steppedBack(state)),
      ...this.#slots.check(state),
      ...this.#ledgers.check(state),
    ];
    this.#remember(state);
    return violations;
  }

  /**
   * Ended tasks stay unchanged within the horizon of idempotency; beyond the horizon an id is free again. A task ended
   * without completion may be in its next round, or have ended the next round.
   */
  *#revived(state: SwarmState): Generator<string> {
    for (const before of this.#goneOrMoved(state)) {
      const { id } = before;
      const ref = refOf(before);
      const now = state.endedById.get(ref);
      if (now !== undefined && isSameEnd(now, before)) continue;
      const next = now ?? state.taskById.get(ref);
      if (next?.round === before.round + 1 && isRetryable(before.state)) continue;
      if (!isWithinHorizon(state, before)) continue;
      if (state.taskById.has(ref)) yield `task ${id} had ended (${before.state}) and is live`;
      else if (now === undefined) yield `task ${id} had ended (${before.state}) and is forgotten`;
      else yield `task ${id} ended ${before.state}, then ${now.state}`;
    }
  }

  /**
   * Ended tasks that are gone or have moved. Walks the old and the new list in parallel: equal entries, nearly all,
   * need no look-up. Remembers the new list.
   */
  #goneOrMoved({ endedById }: SwarmState): readonly EndedTask[] {
    const suspects: EndedTask[] = [];
    let at = 0;
    for (const place of endedById.places()) {
      for (; at < this.#ended.length && this.#places[at] !== place; at += 1)
        suspects.push(this.#ended[at] as EndedTask);
      if (at === this.#ended.length) {
        this.#places.push(place);
        this.#ended.push(endedById.at(place));
      }
      at += 1;
    }
    if (at < this.#ended.length) suspects.push(...this.#ended.slice(at));
    if (suspects.length > 0) {
      this.#places = [...endedById.places()];
      this.#ended = [...endedById.values()];
    }
    return suspects;
  }

  /**
   * A batch has one plan, so at most one new attempt per task. Remembers the present attempts. Walks the old and the
   * new list in parallel, as `#goneOrMoved` does.
   */
  *#leaps({ taskById }: SwarmState): Generator<string> {
    const tasks = this.#tasks;
    const attempts = this.#attempts;
    const count = tasks.length;
    const passedOver = new Map<string, number>();
    let from = 0;
    let to = 0; // never beyond `from` while anything is left to be read
    for (const [ref, { attempt, attemptsBefore }] of taskById) {
      for (; from < count && !isSame(tasks[from] as TaskRef, ref); from += 1)
        passedOver.set(taskKey(tasks[from] as TaskRef), attempts[from] as number);
      const before = (from < count ? attempts[from] : passedOver.get(taskKey(ref))) ?? attemptsBefore;
      if (attempt < before || attempt > before + 1)
        yield `task ${ref.task} went from attempt ${before} to ${attempt}`;
      from += 1;
      tasks[to] = ref;
      attempts[to] = attempt;
      to += 1;
    }
    tasks.length = to;
    attempts.length = to;
  }

  /** Only an agent with a lowered capacity may hold more attempts than the capacity, and never more than before. */
  *#overfilled(state: SwarmState): Generator<string> {
    for (const agent of state.agentById.values()) {
      const before = this.#sameIncarnation(agent)?.inFlight ?? 0;
      if (agent.open.size > capacityOf(agent) && agent.open.size > before)
        yield `agent ${agent.id} has ${agent.open.size} attempts with a capacity of ${capacityOf(agent)}, ${before} before`;
    }
  }

  *#steppedBack(state: SwarmState): Generator<string> {
    for (const [what, now] of numbersOf(state)) {
      const before = this.#numbers.get(what) ?? 0;
      if (now < before) yield `${what} went from ${before} to ${now}`;
    }
    for (const agent of state.agentById.values()) {
      const before = this.#sameIncarnation(agent);
      if (before === undefined) continue;
      if (agent.lastNumber < before.lastNumber)
        yield `agent ${agent.id} restarted its numbers in the same session`;
      if (agent.confirmedNumber < before.confirmedNumber)
        yield `agent ${agent.id} confirms fewer assignments than before`;
    }
  }

  #sameIncarnation(agent: {
    readonly id: AgentId;
    readonly incarnation: Incarnation;
  }): SeenAgent | undefined {
    const before = this.#agentById.get(agent.id);
    return before?.online === true && before.incarnation === agent.incarnation ? before : undefined;
  }

  #remember(state: SwarmState): void {
    this.#numbers = new Map(numbersOf(state));
    this.#agentById = new Map(
      [...state.agentById].map(([id, { incarnation, online, lastNumber, confirmedNumber, open }]) => [
        id,
        { incarnation, online, lastNumber, confirmedNumber, inFlight: open.size },
      ]),
    );
  }
}

/** By value: a state folded again has different objects. */
function isSame(a: TaskRef, b: TaskRef): boolean {
  return a === b || (a.task === b.task && a.project === b.project);
}

function isSameEnd(a: EndedTask, b: EndedTask): boolean {
  return a.state === b.state && a.round === b.round && a.endedIdx === b.endedIdx;
}

function isWithinHorizon(state: SwarmState, { endedAt }: EndedTask): boolean {
  return state.endedById.size < state.policy.rememberedTasks && endedAt >= state.horizonAt;
}

function numbersOf(state: SwarmState): [what: string, now: number][] {
  const { term, idx, at, tick, submissions, assignments, slotLeases, timersEver } = state;
  return Object.entries({ term, idx, at, tick, submissions, assignments, slotLeases, timersEver });
}

function* named(number: number, name: string, sentences: Iterable<string>): Generator<Violation> {
  for (const sentence of sentences) yield { number, name, sentence };
}
