// The furthest point of the journal that a client or an agent has proof of, and what it means to be told of less.
//
// Terms and batches only grow, so a leader that was asked after we knew of {term, idx}, and answers from a
// point before it in the same or a later term, leads a journal that lost its end (design section 6, "loss is
// never silent"). Answers of a lower term prove nothing: an old leader may still speak for what it committed.

import { Listeners } from "../listeners.ts";
import { LossError } from "./loss-error.ts";

/** A point of the journal: batch `idx`, written or seen in `term`. */
export interface Position {
  readonly term: number;
  readonly idx: number;
}

export class Horizon {
  #known: Position = { term: 0, idx: 0 };
  #term = 0;
  readonly #termListeners = new Listeners<[number]>();
  readonly #lossListeners = new Listeners<[LossError]>();

  /** The furthest point known. Take it when asking, give it back with the answer. */
  get known(): Position {
    return this.#known;
  }

  /** The highest term heard of. */
  get term(): number {
    return this.#term;
  }

  /** Somebody leads this term: whoever is waited upon may have changed. Says nothing about batches. */
  noteTerm(term: number): void {
    if (term <= this.#term) return;
    this.#term = term;
    this.#termListeners.tell(term);
  }

  /** Takes in what a leader said. `knownWhenAsked` is absent for what came unasked, whose order against
   *  answers proves nothing within one term. */
  note(told: Position, knownWhenAsked?: Position): void {
    const before = this.#known;
    const wasReset = knownWhenAsked !== undefined && isFurther(knownWhenAsked, before);
    const loss = wasReset ? undefined : (lossBetween(before, told) ?? lossSince(knownWhenAsked, told));
    if (loss !== undefined || isFurther(told, before)) this.#known = { term: told.term, idx: told.idx };
    this.noteTerm(told.term);
    if (loss !== undefined) this.#lossListeners.tell(loss);
  }

  /** Takes in an answer that says where the journal stood; others say nothing. */
  noteAnswer(answer: unknown, knownWhenAsked: Position): void {
    if (typeof answer !== "object" || answer === null || !("term" in answer) || !("idx" in answer)) return;
    const { term, idx } = answer;
    if (typeof term === "number" && typeof idx === "number") this.note({ term, idx }, knownWhenAsked);
  }

  /** Calls `listener` at each new term. Returns a function that stops it. */
  onTerm(listener: (term: number) => void): () => void {
    return this.#termListeners.add(listener);
  }

  /** Calls `listener` when a leader is found to know less than we do. Returns a function that stops it. */
  onLoss(listener: (loss: LossError) => void): () => void {
    return this.#lossListeners.add(listener);
  }
}

function isFurther(told: Position, known: Position): boolean {
  return told.term > known.term || (told.term === known.term && told.idx > known.idx);
}

/** Every batch of a later term stands behind every batch of an earlier one, whatever order news arrive in. */
function lossBetween(known: Position, told: Position): LossError | undefined {
  return known.term > 0 && told.term > known.term && told.idx <= known.idx
    ? new LossError(known, told)
    : undefined;
}

function lossSince(known: Position | undefined, told: Position): LossError | undefined {
  return known !== undefined && told.term === known.term && told.idx < known.idx
    ? new LossError(known, told)
    : undefined;
}
