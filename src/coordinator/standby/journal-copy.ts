// The copy of the journal that a coordinator keeps: folded as far as it was read, with the newest records as they stood
// there, and what was found of its snapshots. A leader takes it over. Not here: reading, and when what was read is
// thrown away (follower.ts).

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import { hashOf } from "../../journal/batch.ts";
import type { JournalRecord } from "../../journal/journal.ts";
import { isSameBytes, RecentRecords } from "../../journal/recent-records.ts";
import { type Folded, Replay, stoodThere, type Verdict } from "../../journal/replay.ts";
import type { FoundSnapshots } from "../../journal/snapshot/found.ts";
import type { Restored } from "../../journal/snapshot/restore.ts";
import type { ReadableSnapshots } from "../compaction/readable-snapshots.ts";

export interface JournalCopyDeps {
  readonly readable: Pick<ReadableSnapshots, "found">;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly logger: Logger;
}

export class JournalCopy {
  readonly #deps: JournalCopyDeps;
  #replay = new Replay();
  #recent = new RecentRecords();
  #foundSnapshots: FoundSnapshots = { read: undefined, unreadable: [] };

  constructor(deps: JournalCopyDeps) {
    this.#deps = deps;
  }

  /** The journal, folded as far as it was read; the leader's own while one leads here. */
  get replay(): Replay {
    return this.#replay;
  }

  get recent(): RecentRecords {
    return this.#recent;
  }

  /** The last time that snapshots were looked for. */
  get foundSnapshots(): FoundSnapshots {
    return this.#foundSnapshots;
  }

  fold(record: JournalRecord): Verdict {
    const verdict = this.#replay.take(record);
    const isDead = verdict.kind === "dead";
    this.#recent.add(record, this.#deps.clock.monotonicMs(), { isDead });
    return verdict;
  }

  /** Snapshots were looked for. */
  sawSnapshots(found: FoundSnapshots): void {
    this.#foundSnapshots = found;
    this.#deps.readable.found(found);
  }

  /** Goes on from a snapshot, and keeps what stands there; what is kept of another line, or not up to there, is let
   *  go. */
  restored({ replay, found, ending }: Restored): void {
    this.#replay = replay;
    const last = ending.at(-1);
    if (last === undefined ? !this.#isOnLine(replay) : !this.#isKept(last)) this.forgetRecords();
    for (const record of ending) if (record.seq >= this.#recent.firstSeq) this.#keep(record);
    this.sawSnapshots(found);
  }

  goOnFrom(folded: Folded): void {
    this.#replay = new Replay(folded);
  }

  /** Throws away what was folded. */
  forget(): void {
    this.#replay = new Replay();
  }

  /** What stood in the journal stands there no more, and is not to be put back. */
  forgetRecords(): void {
    this.#recent = new RecentRecords();
  }

  /** It was read to its end. */
  tellRead(ms: number): void {
    const { position, state, tail } = this.#replay;
    const { idx, term } = position;
    if (idx === 0) return; // nothing was ever written
    const { read } = this.#foundSnapshots;
    const from = read === undefined ? {} : { snapshotIdx: tail.fromIdx };
    const told = {
      idx,
      term,
      leader: state.leader,
      ...from,
      batches: idx - tail.fromIdx,
      tookMs: Math.round(ms),
    };
    this.#deps.logger.info(told, "the journal was read");
  }

  #isKept({ seq, bytes }: JournalRecord): boolean {
    const kept = this.#recent.at(seq);
    return kept !== undefined && isSameBytes(kept.bytes, bytes);
  }

  #keep(record: JournalRecord): void {
    const isDead = !stoodThere(record, this.#replay);
    this.#recent.add(record, this.#deps.clock.monotonicMs(), { isDead });
  }

  /** Whether what is kept of the journal is of the line that was restored, as far as both know. */
  #isOnLine({ places, position }: Folded): boolean {
    const seq = places.seqOf(position.idx);
    const kept = seq === undefined ? undefined : this.#recent.at(seq);
    return kept === undefined || hashOf(kept.bytes) === position.hash;
  }
}
