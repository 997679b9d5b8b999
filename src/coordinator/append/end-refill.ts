// Puts back what the journal lost behind what a term has committed (journal/refill.ts), and says when that is believed
// to be in vain: what is missing is not held any more, or the journal does not take it back, or lacks nothing and takes
// nothing behind that either, for as long as a server that just took over may answer from before.

import type { Clock } from "../../clock.ts";
import { Endurance, lossEndurance } from "../../endurance.ts";
import type { JournalDamagedError } from "../../errors.ts";
import type { Journal } from "../../journal/journal.ts";
import {
  forkError,
  lostTailError,
  refusedPlaceError,
  unreadableError,
} from "../../journal/journal-errors.ts";
import type { RecentRecords } from "../../journal/recent-records.ts";
import { refill } from "../../journal/refill.ts";
import { limits } from "../../limits.ts";
import type { LineOwner } from "../repair/line-end.ts";
import type { ChainEnd } from "./chain-end.ts";

export interface EndRefillDeps {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly recent: RecentRecords;
  readonly end: ChainEnd;
  /** Whose line the journal ends with at `lastSeq`; absent where nothing follows from it here.
   *  @throws UnreachableError, JournalDamagedError */
  readonly ownerOfEnd:
    | ((lastSeq: number, options: { readonly mayLack: boolean }) => Promise<LineOwner>)
    | undefined;
}

/** What came of it. `unchanged`: nothing was missing, or it is not known yet whether it can be put back. */
export type EndRefilled =
  | { readonly kind: "refilled"; readonly records: number }
  | { readonly kind: "unchanged" }
  /** The journal ends at `lastSeq`, and what is missing behind it is held by nobody here. */
  | { readonly kind: "lost"; readonly lastSeq: number; readonly error: JournalDamagedError }
  /** It has not been taken back for long; said once in each `limits.readBackPatienceMs`. */
  | { readonly kind: "kept-out"; readonly cause: unknown }
  /** Nothing is missing, and nothing has been taken behind it for long; said as often. */
  | { readonly kind: "refused"; readonly error: JournalDamagedError }
  /** Whoever purged so far has gone on. */
  | { readonly kind: "purged" };

export class EndRefill {
  readonly #deps: EndRefillDeps;
  /** For how long what is missing is not held here any more. */
  readonly #loss: Endurance;
  /** For how long the journal does not take what is to stand at its end. */
  readonly #refusal: Endurance;
  /** For how long the record is not found with which the journal ends now. */
  readonly #endMiss: Endurance;
  /** For how long nothing proves whose line the journal ends with. */
  readonly #unprovenEnd: Endurance;

  constructor(deps: EndRefillDeps) {
    this.#deps = deps;
    this.#loss = new Endurance(deps.clock, deps.journal.sharable ? limits.journalHoleMs : 0);
    this.#refusal = new Endurance(deps.clock, limits.readBackPatienceMs);
    this.#endMiss = lossEndurance(deps.clock, limits.readBackPatienceMs, deps.journal.sharable);
    this.#unprovenEnd = lossEndurance(deps.clock, limits.readBackPatienceMs, deps.journal.sharable);
  }

  /** A batch was committed. */
  moved(): void {
    this.#refusal.renew();
    this.renew();
  }

  /** Nobody answers: a loss that is seen counts anew. */
  renew(): void {
    this.#loss.renew();
    this.#unprovenEnd.renew();
  }

  /** To be called where an append behind all that was committed was refused, and nothing is found there.
   *  @throws UnreachableError; JournalDamagedError when the journal went on differently, also where another did from
   *  before what is missing */
  async run(): Promise<EndRefilled> {
    const { journal, recent, end } = this.#deps;
    const untilSeq = Math.max(recent.lastSeq, end.lastSeq);
    const refilled = await refill(journal, recent, untilSeq, this.#endMiss);
    if (refilled.kind !== "not-held") this.#loss.renew();
    if (refilled.kind !== "not-held") this.#unprovenEnd.renew();
    switch (refilled.kind) {
      case "refilled":
      case "purged":
        this.#refusal.renew();
        return refilled;
      case "whole":
        return this.#wholeUntil(refilled.lastSeq, untilSeq);
      case "not-held": {
        const { lastSeq } = refilled;
        if (!this.#loss.isBelieved()) return { kind: "unchanged" };
        const owner = await this.#ownerOf(lastSeq);
        if (owner === "another") throw forkError(lastSeq);
        if (owner === "unknown") return this.#keptOut(unreadableError(lastSeq));
        return { kind: "lost", lastSeq, error: lostTailError(lastSeq, end.lastSeq) };
      }
      case "unfinished":
        return this.#keptOut(refilled.cause);
    }
  }

  /** What is not found for long is lost. */
  async #ownerOf(lastSeq: number): Promise<LineOwner> {
    const { ownerOfEnd } = this.#deps;
    if (ownerOfEnd === undefined) return "ours";
    const owner = await ownerOfEnd(lastSeq, { mayLack: false });
    if (owner === "unknown" && this.#unprovenEnd.isBelieved())
      return await ownerOfEnd(lastSeq, { mayLack: true });
    if (owner !== "unknown") this.#unprovenEnd.renew();
    return owner;
  }

  /** Something stands there after all; or nothing does, and it is refused all the same. */
  #wholeUntil(lastSeq: number, untilSeq: number): EndRefilled {
    if (lastSeq > untilSeq) this.#refusal.renew();
    else if (this.#isRefusing()) return { kind: "refused", error: refusedPlaceError(lastSeq) };
    return { kind: "unchanged" };
  }

  #keptOut(cause: unknown): EndRefilled {
    return this.#isRefusing() ? { kind: "kept-out", cause } : { kind: "unchanged" };
  }

  /** For long; once in each `limits.readBackPatienceMs`. */
  #isRefusing(): boolean {
    const isBelieved = this.#refusal.isBelieved();
    if (isBelieved) this.#refusal.renew();
    return isBelieved;
  }
}
