// A full journal, for the leader: no request is decided or answered until the journal has room, and clients learn the
// reason. Not here: making room (compacting/segment-retention.ts).

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

  /** The refusal while the journal is full: a sentence without its full stop. */
  get stuckReason(): string | undefined {
    if (this.#full === undefined) return undefined;
    const { remedy } = this.#room.usage;
    return `the journal is full, and nothing is done or answered until it has room: ${this.#full.message}${remedy === undefined ? "" : `; ${remedy}`}`;
  }

  /** Size of the batch that has no room. */
  get neededBytes(): number | undefined {
    return this.#full?.bytes;
  }

  /** The journal takes no batch, or takes batches again. */
  saw(full: Full | undefined): void {
    if (full === undefined && this.#full === undefined) return;
    this.#full = full;
    this.#room.lookAgain();
    const { bytes: _, ...bound } = roomFields(this.#room.usage); // outdated
    if (full !== undefined)
      this.#logger.error(
        { reason: full.message, ...bound },
        "the journal is full: nothing is done until there is room",
      );
    else this.#logger.info("the journal takes batches again");
  }
}
