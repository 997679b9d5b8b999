// The furthest point of the journal that a client or an agent has proof of, and what it means to be told of less.
//
// Terms and batches only grow, so a leader that was asked after we knew of {term, idx}, and answers from a
// point before it in the same or a later term, leads a journal that lost its end: loss is never silent. Answers of a
// lower term prove nothing at first: an old leader may still speak for what it committed.
//
// Anybody may announce a term that does not exist. So words must become deeds here, too: where leaders have answered us
// from lower terms for `limits.termDoubtedMs`, and nobody from the highest heard of, it is given up for theirs, and
// only answers are believed until one tells of a later term. A leader that was deposed answers nothing definite for so
// long (docs/adr/0012-a-journal-that-loses-records.md).

import type { Clock } from "../clock.ts";
import { GracePeriod } from "../grace-period.ts";
import { limits } from "../limits.ts";
import { Listeners } from "../listeners.ts";
import { isFurther, type JournalPoint } from "./journal-point.ts";
import { LossError } from "./loss-error.ts";

export class Horizon {
  #known: JournalPoint = { term: 0, idx: 0 };
  #term = 0;
  /** How long leaders answer from lower terms than the highest heard of, and nobody from it. */
  readonly #doubt: GracePeriod;
  /** A term was given up: what is said unasked is not believed. */
  #isWary = false;
  readonly #termListeners = new Listeners<[number]>();
  readonly #leaderListeners = new Listeners();
  readonly #lossListeners = new Listeners<[LossError]>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#doubt = new GracePeriod(clock, limits.termDoubtedMs);
  }

  /** The furthest point known. Take it when asking, give it back with the answer. */
  get known(): JournalPoint {
    return this.#known;
  }

  /** The highest term heard of and not given up. */
  get term(): number {
    return this.#term;
  }

  /** Somebody says that this term is led: whoever is waited upon may have changed. Says nothing about batches. */
  noteTerm(term: number): void {
    if (!this.#isWary) this.#raise(term);
  }

  /** Takes in what a leader said. `knownWhenAsked` is absent for what came unasked, whose order against
   *  answers proves nothing within one term. */
  note(told: JournalPoint, knownWhenAsked?: JournalPoint): void {
    if (knownWhenAsked !== undefined) this.#weigh(told);
    else if (this.#isWary && told.term > this.#term) return;
    const before = this.#known;
    const wasReset = knownWhenAsked !== undefined && isFurther(knownWhenAsked, before);
    const loss = wasReset ? undefined : (lossBetween(before, told) ?? lossSince(knownWhenAsked, told));
    if (loss !== undefined || isFurther(told, before)) this.#known = { term: told.term, idx: told.idx };
    this.#raise(told.term);
    if (loss !== undefined) this.#lossListeners.tell(loss);
  }

  /** Takes in an answer that says where the journal stood; others say nothing. */
  noteAnswer(answer: unknown, knownWhenAsked: JournalPoint): void {
    if (typeof answer !== "object" || answer === null || !("term" in answer) || !("idx" in answer)) return;
    const { term, idx } = answer;
    if (typeof term === "number" && typeof idx === "number") this.note({ term, idx }, knownWhenAsked);
  }

  /** Calls `listener` at each new term. Returns a function that stops it. */
  onTerm(listener: (term: number) => void): () => void {
    return this.#termListeners.add(listener);
  }

  /** Calls `listener` when somebody else leads than before: at each new term but the first that is heard of, whose
   *  leader may be the one that was asked. Returns a function that stops it. */
  onNewLeader(listener: () => void): () => void {
    return this.#leaderListeners.add(listener);
  }

  /** Calls `listener` when a leader is found to know less than we do. Returns a function that stops it. */
  onLoss(listener: (loss: LossError) => void): () => void {
    return this.#lossListeners.add(listener);
  }

  #raise(term: number): void {
    const before = this.#term;
    if (term <= before) return;
    this.#term = term;
    if (before > 0) this.#leaderListeners.tell();
    this.#termListeners.tell(term);
  }

  /** What an answer means for the highest term heard of: that it is led, or that nobody leads it. */
  #weigh(told: JournalPoint): void {
    if (told.term >= this.#term) {
      if (told.term > this.#term) this.#isWary = false;
      this.#doubt.renew();
      return;
    }
    if (this.#doubt.isBelieved()) this.#giveUpFor(told);
  }

  #giveUpFor(told: JournalPoint): void {
    this.#term = told.term;
    this.#isWary = true;
    this.#doubt.renew();
    const known = this.#known;
    if (known.term <= told.term) return;
    this.#known = { term: told.term, idx: told.idx };
    this.#lossListeners.tell(new LossError(known, told));
  }
}

/** Every batch of a later term stands behind every batch of an earlier one, whatever order news arrive in. */
function lossBetween(known: JournalPoint, told: JournalPoint): LossError | undefined {
  return known.term > 0 && told.term > known.term && told.idx <= known.idx
    ? new LossError(known, told)
    : undefined;
}

function lossSince(known: JournalPoint | undefined, told: JournalPoint): LossError | undefined {
  return known !== undefined && told.term === known.term && told.idx < known.idx
    ? new LossError(known, told)
    : undefined;
}
