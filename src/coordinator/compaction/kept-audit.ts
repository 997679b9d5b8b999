// From which batch on the record can be read, as far as this leader knows: what was purged of a full journal is put on
// record behind that (docs/adr/0012-a-journal-that-loses-records.md), by whoever leads then.

import type { Command } from "../../core/command.ts";
import type { BatchIndex } from "../../ids.ts";
import type { BatchPlaces } from "../../journal/batch-places.ts";
import type { Journal } from "../../journal/journal.ts";
import type { ReadableSnapshots } from "./readable-snapshots.ts";

export interface KeptAuditDeps {
  readonly journal: Pick<Journal, "position">;
  readonly readable: Pick<ReadableSnapshots, "leadsTo">;
  readonly places: BatchPlaces;
  /** A command for the next turn. */
  readonly ask: (command: Command) => void;
}

export class KeptAudit {
  readonly #deps: KeptAuditDeps;
  #firstIdx: BatchIndex;

  /** @param firstIdx by the record */
  constructor(deps: KeptAuditDeps, firstIdx: BatchIndex) {
    this.#deps = deps;
    this.#firstIdx = firstIdx;
  }

  /** The first batch that is not purged yet, as far as this leader purged, on record or not. */
  get firstIdx(): BatchIndex {
    return this.#firstIdx;
  }

  /** There is nothing before a record any more, whoever purged it: a leader that was deposed, and had yet to hear of
   *  that, may have made room in a full journal, and puts nothing on record itself. Has it put there, unless it is. */
  purgedBelow(firstSeq: number): void {
    const { places, ask } = this.#deps;
    const firstIdx = places.firstFrom(firstSeq);
    if (firstIdx === undefined || firstIdx <= this.#firstIdx) return;
    this.#firstIdx = firstIdx;
    ask({ type: "TrimAudit", firstIdx, reason: "storage-short" });
  }

  /** The leader before may have purged a full journal and not come to say so. Where no snapshot reaches, it was not
   *  purged but lost, which is another's to find; or the server does not know of the snapshot yet.
   *  @returns whether that is known: false where none is found that leads there
   *  @throws UnreachableError, JournalDamagedError */
  async inherit(): Promise<boolean> {
    const { journal, readable, places } = this.#deps;
    const { firstSeq } = await journal.position();
    if (firstSeq <= 1 || (places.firstFrom(firstSeq) ?? 0) <= this.#firstIdx) return true;
    if (!(await readable.leadsTo(firstSeq))) return false;
    this.purgedBelow(firstSeq);
    return true;
  }
}
