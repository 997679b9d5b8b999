// What a leader knows and says of a journal that takes no batch: nothing is decided or answered until it has room, and
// whoever asks is told why. Not here: how it gets some (compacting/segment-retention.ts).

import type { Logger } from "pino";
import { type JournalRoom, roomFields } from "../journal-room.ts";
import type { Full } from "./writer.ts";

export class FullJournal {
  readonly #room: JournalRoom;
  readonly #logger: Logger;
  #full: Full | undefined;

  constructor(room: JournalRoom, logger: Logger) {
    this.#room = room;
    this.#logger = logger;
  }

  /** Why nothing can be decided or answered now, if so: for whoever asks, who asks again. */
  get stuckReason(): string | undefined {
    if (this.#full === undefined) return undefined;
    const { remedy } = this.#room.usage;
    return `the journal is full, and nothing is done or answered until it has room: ${this.#full.message}${remedy === undefined ? "" : `; ${remedy}`}`;
  }

  /** Of the batch for which the journal has no room, if so. */
  get neededBytes(): number | undefined {
    return this.#full?.bytes;
  }

  /** The journal takes no batch, or takes them again. */
  saw(full: Full | undefined): void {
    if (full === undefined && this.#full === undefined) return;
    this.#full = full;
    this.#room.lookAgain();
    const { bytes: _, ...bound } = roomFields(this.#room.usage); // of before it was full
    if (full !== undefined)
      this.#logger.error(
        { reason: full.message, ...bound },
        "the journal is full: nothing is done until there is room",
      );
    else this.#logger.info("the journal takes batches again");
  }
}
