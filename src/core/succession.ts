// What must be true from one batch to the next, as numbered checks (docs/invariants.md). Remembers of the state
// before no more than the checks need. Not a judge of single states (invariants.ts), nor of records: whether a
// record continues the chain is for replay.ts to say.

import type { AgentId, Incarnation, TaskRef } from "../ids.ts";
import { taskKey } from "../ids.ts";
import { type EndedTask, placesOf, type SwarmState } from "../state/state.ts";
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

/** Looks at one state after each of its batches, in order. */
export class Succession {
  #numbers: ReadonlyMap<string, number> = new Map();
  /** In order of ending. */
  #ended: EndedTask[] = [];
  /** Of live tasks, in the order in which the state holds them: what they are called, and their attempts. */
  readonly #tasks: TaskRef[] = [];
  readonly #attempts: number[] = [];
  #agentById: ReadonlyMap<AgentId, SeenAgent> = new Map();
  readonly #slots = new SlotSuccession();
  readonly #ledgers = new LedgerSuccession();

  /** What changed since the last call in a way in which it never may. */
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

  /** Within the horizon of idempotency; beyond it an id is free again. A task that did not complete may have its next
   *  round, or have had it. */
  *#revived(state: SwarmState): Generator<string> {
    for (const before of this.#goneOrMoved(state)) {
      const { id } = before;
      const ref = refOf(before);
      const now = state.endedById.get(ref);
      if (now === before) continue;
      const next = now ?? state.taskById.get(ref);
      if (next?.round === before.round + 1 && isRetryable(before.state)) continue;
      if (!isWithinHorizon(state, before)) continue;
      if (state.taskById.has(ref)) yield `task ${id} had ended (${before.state}) and lives`;
      else if (now === undefined) yield `task ${id} had ended (${before.state}) and is forgotten`;
      else yield `task ${id} ended ${before.state}, then ${now.state}`;
    }
  }

  /** What had ended and does not stand where it stood among what has. Walks both in their order: what is the same
   *  there, which is nearly all, costs no look-up. Remembers what has ended now. */
  #goneOrMoved({ endedById }: SwarmState): readonly EndedTask[] {
    const suspects: EndedTask[] = [];
    let at = 0;
    for (const now of endedById.values()) {
      for (; at < this.#ended.length && this.#ended[at] !== now; at += 1)
        suspects.push(this.#ended[at] as EndedTask);
      if (at === this.#ended.length) this.#ended.push(now);
      at += 1;
    }
    if (at < this.#ended.length) suspects.push(...this.#ended.slice(at));
    if (suspects.length > 0) this.#ended = [...endedById.values()];
    return suspects;
  }

  /** One plan a batch, so one attempt. Remembers the attempts of now. Walks what was and what is in their order, as
   *  `#goneOrMoved` does: most tasks stand where they stood, and cost no look-up. */
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

  /** Beyond its places only an agent whose places were lowered, and then with fewer and fewer attempts. */
  *#overfilled(state: SwarmState): Generator<string> {
    for (const agent of state.agentById.values()) {
      const before = this.#sameLife(agent)?.inFlight ?? 0;
      if (agent.open.size > placesOf(agent) && agent.open.size > before)
        yield `agent ${agent.id} has ${agent.open.size} attempts in ${placesOf(agent)} places, ${before} before`;
    }
  }

  *#steppedBack(state: SwarmState): Generator<string> {
    for (const [what, now] of numbersOf(state)) {
      const before = this.#numbers.get(what) ?? 0;
      if (now < before) yield `${what} went from ${before} to ${now}`;
    }
    for (const agent of state.agentById.values()) {
      const before = this.#sameLife(agent);
      if (before === undefined) continue;
      if (agent.lastNumber < before.lastNumber) yield `agent ${agent.id} was numbered anew in the same life`;
      if (agent.confirmedNumber < before.confirmedNumber) yield `agent ${agent.id} unsaw an assignment`;
    }
  }

  #sameLife(agent: { readonly id: AgentId; readonly incarnation: Incarnation }): SeenAgent | undefined {
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

/** By value: a state that was folded anew has other objects. */
function isSame(a: TaskRef, b: TaskRef): boolean {
  return a === b || (a.task === b.task && a.project === b.project);
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
