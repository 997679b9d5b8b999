// Decides the batches of a journal once more: the inputs found in a batch go into the step, and its decisions are
// compared with the recorded decisions, event by event. Not here: reading a journal (audit/decision-replay.ts).
//
// One input is in no journal: while the journal's storage is nearly full, a leader assigns nothing. A batch without any
// assignment, where the planner would assign, is counted as withheld.

import type { BatchIndex, Instant } from "../ids.ts";
import { Planner } from "../scheduling/planner.ts";
import type { Event } from "../state/event.ts";
import type { SwarmState } from "../state/state.ts";
import type { Command } from "./command.ts";
import { JsonWriter } from "./json-writer.ts";
import { causeOf, retryJitter } from "./recorded-inputs.ts";
import { Turn } from "./step.ts";

/** A batch as recorded. */
export interface RecordedBatch {
  readonly idx: BatchIndex;
  readonly at: Instant;
  readonly events: readonly Event[];
}

export type Reproduced =
  /** @property inputs the commands of the batch, in order */
  | { readonly kind: "same"; readonly inputs: readonly Command[]; readonly isWithheld: boolean }
  /** The first event that differs; undefined on the side that has no such event. */
  | {
      readonly kind: "different";
      /** Place of the event in the batch, from 0. */
      readonly place: number;
      readonly recorded: Event | undefined;
      readonly decided: Event | undefined;
    };

type Different = Extract<Reproduced, { kind: "different" }>;

export class Reproduction {
  readonly state: SwarmState;
  #planner: Planner;
  readonly #json = new JsonWriter();

  /** @param state before the first batch to take; the reproduction takes it over */
  constructor(state: SwarmState) {
    this.state = state;
    this.#planner = new Planner(state);
  }

  /** Decides the next batch. Useless after a batch that differs. */
  take(batch: RecordedBatch): Reproduced {
    const { idx, at, events } = batch;
    const turn = new Turn(this.state, at, idx, this.#planner, this.#json);
    const compared = new Compared(turn, events);
    const inputs: Command[] = [];
    for (;;) {
      const from = turn.recorded.length;
      const cause = causeOf(this.state, events, { from, at });
      if (cause === "due" || cause === "plan" || from >= events.length) break;
      if (cause !== undefined) turn.take(cause);
      const different = turn.recorded.length === from ? compared.missing() : compared.next();
      if (different !== undefined) return different;
      if (cause !== undefined) inputs.push(cause);
    }
    turn.takeDue(() => retryJitter(this.state, events[turn.recorded.length]));
    const afterDue = compared.next();
    if (afterDue !== undefined) return afterDue;
    const isWithheld = turn.recorded.length === events.length && !turn.isFull && this.#wouldAssign(at);
    if (!isWithheld && !turn.isFull) turn.plan();
    return compared.next() ?? compared.rest() ?? { kind: "same", inputs, isWithheld };
  }

  #wouldAssign(at: Instant): boolean {
    const round = this.#planner.open(at);
    const assigned = round.next();
    round.abandon();
    if (assigned !== undefined) this.#planner = new Planner(this.state);
    return assigned !== undefined;
  }
}

/** Compares the events of a turn with the recorded events. */
class Compared {
  readonly #turn: Turn;
  readonly #events: readonly Event[];
  #count = 0;

  constructor(turn: Turn, events: readonly Event[]) {
    this.#turn = turn;
    this.#events = events;
  }

  /** The first new event of the turn that differs. */
  next(): Different | undefined {
    for (; this.#count < this.#turn.recorded.length; this.#count += 1) {
      const decided = this.#turn.recorded[this.#count]?.event;
      const recorded = this.#events[this.#count];
      if (!isSame(decided, recorded)) return { kind: "different", place: this.#count, recorded, decided };
    }
    return undefined;
  }

  /** The next recorded event, which the turn does not decide. */
  missing(): Different {
    return {
      kind: "different",
      place: this.#count,
      recorded: this.#events[this.#count],
      decided: undefined,
    };
  }

  /** Missing events at the end. */
  rest(): Different | undefined {
    return this.#count < this.#events.length ? this.missing() : undefined;
  }
}

/** Compares values of JSON; an absent field equals an undefined field. */
function isSame(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null)
    return one === other;
  for (const name in one) if (!isSame(Reflect.get(one, name), Reflect.get(other, name))) return false;
  for (const name in other)
    if (Reflect.get(one, name) === undefined && Reflect.get(other, name) !== undefined) return false;
  return true;
}
