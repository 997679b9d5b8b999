// Whether the last batch that was committed still stands where it was stored; and where it does not, whether somebody
// else holds it all the same. A journal that lost its end may have gone on with another line.
//
// The rule: what is not found, and what nobody saved as far as is known, is believed only once it lasts, for a server
// that just took over may answer from before. Not here: what stands behind it (expected-place.ts), and putting back
// what is missing (end-refill.ts).

import type { Clock } from "../../clock.ts";
import { Endurance, lossEndurance } from "../../endurance.ts";
import { UnreachableError } from "../../errors.ts";
import { decodeBatch } from "../../journal/batch.ts";
import type { Journal } from "../../journal/journal.ts";
import { forkError } from "../../journal/journal-errors.ts";
import { isSameBytes, type RecentRecords } from "../../journal/recent-records.ts";
import { isSameLine } from "../../journal/refill.ts";
import type { ChainTail } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";
import type { SavedCheck } from "../repair/saved-end.ts";
import type { ChainEnd } from "./chain-end.ts";

export interface CommittedTailDeps {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly recent: RecentRecords;
  readonly end: ChainEnd;
  /** What is sent behind it, oldest first. */
  readonly inFlight: () => readonly ChainTail[];
  /** Default: nobody saves anything. */
  readonly isSaved: SavedCheck | undefined;
  readonly lineMiss: Endurance | undefined;
}

/** `gone`: another line stands there. `unknown`: nobody answers, or it is not found, and has not been missing for
 *  long. */
export type TailLook =
  | { readonly kind: "stands"; readonly seq: number }
  | { readonly kind: "gone" }
  | { readonly kind: "unknown" };

export class CommittedTail {
  readonly #deps: CommittedTailDeps;
  readonly #isSaved: SavedCheck;
  /** For how long the last committed batch is not found. */
  readonly #miss: Endurance;
  /** For how long a record from there to the end is not found. */
  readonly #lineMiss: Endurance;
  /** For how long nobody is known to have saved what was committed here, where another line stands. */
  readonly #unsaved: Endurance;

  constructor(deps: CommittedTailDeps) {
    this.#deps = deps;
    this.#isSaved = deps.isSaved ?? (async () => false);
    this.#miss = new Endurance(deps.clock, limits.readBackPatienceMs);
    this.#lineMiss =
      deps.lineMiss ?? lossEndurance(deps.clock, limits.readBackPatienceMs, deps.journal.sharable);
    this.#unsaved = lossEndurance(deps.clock, limits.readBackPatienceMs, deps.isSaved !== undefined);
  }

  /** Another batch was committed behind it. */
  moved(): void {
    this.#miss.renew();
    this.#lineMiss.renew();
  }

  /** Whether it stands as before, so that at most dead records behind it were lost, and others stand in their place.
   *  Where nothing was read behind it, what stands differently is itself. */
  async look(): Promise<TailLook> {
    const { journal, end } = this.#deps;
    const tail = end.tailRecord;
    if (tail === undefined || tail.seq === end.lastSeq) return { kind: "gone" };
    try {
      const found = await journal.read(tail.seq);
      if (found === undefined) return { kind: this.#miss.isBelieved() ? "gone" : "unknown" };
      this.#miss.renew();
      return isSameBytes(found.bytes, tail.bytes) ? { kind: "stands", seq: tail.seq } : { kind: "gone" };
    } catch (cause) {
      if (!(cause instanceof UnreachableError)) return { kind: "gone" }; // what was found before says more
      this.#miss.renew();
      return { kind: "unknown" };
    }
  }

  /** Where it was committed, once no batch stands there any more: the journal lost its end, and what somebody else
   *  wrote there is dead to all. What stands behind that is to be read first: another may lead by now.
   *  @throws UnreachableError; JournalDamagedError where it is a batch */
  async replacedSeq(): Promise<number | undefined> {
    const { journal, end } = this.#deps;
    const tail = end.tailRecord;
    const found = tail && (await journal.read(tail.seq));
    if (tail === undefined || found === undefined || isSameBytes(found.bytes, tail.bytes)) return undefined;
    if (decodeBatch(found.bytes) !== undefined) throw forkError(tail.seq);
    return tail.seq;
  }

  /** Whether no other records stand up to the end, from it on, than were read there. False where one is not found that
   *  has not been missing for long: what then is for who reads back (read-back.ts).
   *  @throws JournalDamagedError when others stand there; UnreachableError */
  async isSameLine(): Promise<boolean> {
    const { journal, recent, end } = this.#deps;
    return await isSameLine(journal, recent, end.lastSeq, this.#lineMiss);
  }

  /** Where another line stands than ours: whether it holds all that was told of what was committed all the same. What
   *  was committed behind that, while the journal was not known to keep it, nobody was told of (embargo.ts). Undefined
   *  when that is not known, for nobody answers, or has not been seen for long. */
  async isSaved(): Promise<boolean | undefined> {
    const { end, inFlight } = this.#deps;
    try {
      if (await this.#isSaved({ committed: end.sinceTold, inFlight: inFlight() })) return true;
      return this.#unsaved.isBelieved() ? false : undefined;
    } catch (cause) {
      if (!(cause instanceof UnreachableError)) return false;
      this.#unsaved.renew();
      return undefined;
    }
  }
}
