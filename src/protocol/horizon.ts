// The furthest point of the journal with proof, for a client or an agent, and the detection of lost records. Terms
// and batches only grow. Suppose a client knew {term, idx} before a request, and a leader answers from an earlier
// point of the same or a later term. Then the leader's journal lost records: loss is never silent. An answer of a
// lower term alone proves nothing: an old leader may still report old commits.
// A message may announce a false term, so an announcement needs the proof of an answer. If for `limits.termDoubtedMs`
// all answers come from lower terms, and none from the highest known term, then the horizon gives up the highest
// term. From then on only answers count, until an answer has a later term. A deposed leader gives no definite answers
// for so long (docs/adr/0012-a-journal-that-loses-records.md).
// A later term may have grown past the known point before its first answer arrives. Then only the starts of terms show
// a loss: a point of an earlier term is lost if a later term starts at or before the point's batch. A point is lost,
// too, if its term has another hash. The leader's state names the starts of recent terms (`limits.rememberedTerms`).

import type { Clock } from "../clock.ts";
import { GracePeriod } from "../grace-period.ts";
import { limits } from "../limits.ts";
import { Listeners } from "../listeners.ts";
import { isFurther, type JournalPoint } from "./journal-point.ts";
import { LossError } from "./loss-error.ts";
import type { TermStart } from "./schemas.ts";

export class Horizon {
  #known: JournalPoint = { term: 0, idx: 0 };
  #term = 0;
  /** Time for which all answers come from terms below the highest known term. */
  readonly #lowerTerms: GracePeriod;
  /** A term was given up: announcements are not believed. */
  #ignoresAnnouncements = false;
  /** The furthest points of earlier terms, until the starts of terms show whether the leader's log has them. */
  #unproven: readonly JournalPoint[] = [];
  /** Start of the term of the last answer, once a leader named it. */
  #start: TermStart | undefined;
  readonly #termListeners = new Listeners<[number]>();
  readonly #leaderListeners = new Listeners();
  readonly #lossListeners = new Listeners<[LossError]>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#lowerTerms = new GracePeriod(clock, limits.termDoubtedMs);
  }

  /** The furthest known point. Read before a request, and passed with the answer. */
  get known(): JournalPoint {
    return this.#known;
  }

  /** The highest term heard of and not given up. */
  get term(): number {
    return this.#term;
  }

  /** Notes an announced term: the leader may have changed. Proves nothing about batches. */
  noteTerm(term: number): void {
    if (!this.#ignoresAnnouncements) this.#raise(term);
  }

  /** Notes a point from a leader. `knownWhenAsked` is absent for a message without a request: within a term, the order
   *  of messages and answers proves nothing. */
  note(heard: JournalPoint, knownWhenAsked?: JournalPoint): void {
    if (knownWhenAsked !== undefined) this.#weigh(heard);
    else if (this.#ignoresAnnouncements && heard.term > this.#term) return;
    const before = this.#known;
    const wasReset = knownWhenAsked !== undefined && isFurther(knownWhenAsked, before);
    const loss = wasReset ? undefined : (lossBetween(before, heard) ?? lossSince(knownWhenAsked, heard));
    if (loss !== undefined || isFurther(heard, before)) this.#known = { term: heard.term, idx: heard.idx };
    if (loss !== undefined) this.#forget();
    else if (before.term > 0 && heard.term > before.term)
      this.#unproven = [...this.#unproven.slice(1 - limits.rememberedTerms), before];
    this.#raise(heard.term);
    if (loss !== undefined) this.#lossListeners.notify(loss);
  }

  /** Whether a leader's starts of terms are needed to show that the journal lost nothing. */
  get needsTermStarts(): boolean {
    const { term } = this.#known;
    return term > 0 && (this.#unproven.length > 0 || this.#start?.term !== term);
  }

  /** Notes the starts of recent terms, oldest first, from a leader's state. Starts that do not include the term of the
   *  last answer are of another leader, and prove nothing. */
  noteTermStarts(starts: readonly TermStart[]): void {
    const start = starts.find(({ term }) => term === this.#known.term);
    if (start === undefined) return;
    const [points, before] = [this.#unproven, this.#start];
    this.#unproven = [];
    this.#start = start;
    const begunAgain = starts.find(({ term, opened }) => term === before?.term && opened !== before.opened);
    const loss =
      begunAgain === undefined
        ? firstLost(points, starts)
        : new LossError(points.find(({ term }) => term === begunAgain.term) ?? this.#known, begunAgain);
    if (loss !== undefined) this.#lossListeners.notify(loss);
  }

  /** Notes an answer with a point of the journal; ignores answers without a point. */
  noteAnswer(answer: unknown, knownWhenAsked: JournalPoint): void {
    if (typeof answer !== "object" || answer === null || !("term" in answer) || !("idx" in answer)) return;
    const { term, idx } = answer;
    if (typeof term === "number" && typeof idx === "number") this.note({ term, idx }, knownWhenAsked);
  }

  /** Calls `listener` at each new term. Returns a function that ends the calls. */
  onTerm(listener: (term: number) => void): () => void {
    return this.#termListeners.add(listener);
  }

  /** Calls `listener` when the leader has changed: at each new term except the first, because the first leader may
   *  have got the request. Returns a function that ends the calls. */
  onNewLeader(listener: () => void): () => void {
    return this.#leaderListeners.add(listener);
  }

  /** Calls `listener` when a leader knows less than this process. Returns a function that ends the calls. */
  onLoss(listener: (loss: LossError) => void): () => void {
    return this.#lossListeners.add(listener);
  }

  /** What is known of the lost log proves nothing about the log after the loss. */
  #forget(): void {
    this.#unproven = [];
    this.#start = undefined;
  }

  #raise(term: number): void {
    const before = this.#term;
    if (term <= before) return;
    this.#term = term;
    if (before > 0) this.#leaderListeners.notify();
    this.#termListeners.notify(term);
  }

  /** Whether an answer confirms the highest known term or raises doubt. */
  #weigh(heard: JournalPoint): void {
    if (heard.term >= this.#term) {
      if (heard.term > this.#term) this.#ignoresAnnouncements = false;
      this.#lowerTerms.renew();
      return;
    }
    if (this.#lowerTerms.isBelieved()) this.#giveUpFor(heard);
  }

  #giveUpFor(heard: JournalPoint): void {
    this.#term = heard.term;
    this.#ignoresAnnouncements = true;
    this.#forget();
    this.#lowerTerms.renew();
    const known = this.#known;
    if (known.term <= heard.term) return;
    this.#known = { term: heard.term, idx: heard.idx };
    this.#lossListeners.notify(new LossError(known, heard));
  }
}

function firstLost(points: readonly JournalPoint[], starts: readonly TermStart[]): LossError | undefined {
  for (const known of points) {
    const found = starts.find(({ term, idx }) => term > known.term && idx <= known.idx);
    if (found !== undefined) return new LossError(known, found);
  }
  return undefined;
}

/** Every batch of a later term follows all batches of earlier terms, in whatever order news arrive. */
function lossBetween(known: JournalPoint, heard: JournalPoint): LossError | undefined {
  return known.term > 0 && heard.term > known.term && heard.idx <= known.idx
    ? new LossError(known, heard)
    : undefined;
}

function lossSince(known: JournalPoint | undefined, heard: JournalPoint): LossError | undefined {
  return known !== undefined && heard.term === known.term && heard.idx < known.idx
    ? new LossError(known, heard)
    : undefined;
}
