// Whether the stream is still the one that was opened. One that was deleted, or made again under the same name, is
// another journal: whoever goes on with it appends to what nobody else knows, so whoever sees it halts.
//
// "Not found" proves nothing by itself: servers that fail over may not know their streams yet. Said for long enough and
// often enough, with nothing else said and no silence between, it is meant.

import type { Clock } from "../../clock.ts";
import { Endurance } from "../../endurance.ts";
import { JournalDamagedError } from "../../errors.ts";
import { limits } from "../../limits.ts";

/** What nats-server 2.9 says of a stream that it is just making, for another who asked first: Go's zero time. */
const NOT_YET = "0001-01-01T00:00:00Z";

export class StreamIdentity {
  readonly #stream: string;
  /** As the server tells it; undefined until it did. */
  #created: string | undefined;
  readonly #absence: Endurance;

  /** @param created when the stream was created, as the server told whoever opened it; undefined: the first word
   *  counts */
  constructor(stream: string, created: string | undefined, clock: Clock) {
    this.#stream = stream;
    this.#absence = new Endurance(clock, limits.streamMissingMs, limits.lossLooksMin);
    if (created !== undefined) this.described(created);
  }

  /** The server knows the stream, or says nothing of whether it does. */
  mayExist(): void {
    this.#absence.renew();
  }

  /** It says when it was created. @throws JournalDamagedError when that is another stream */
  described(created: string): void {
    if (created === NOT_YET) return;
    this.#created ??= created;
    if (created === this.#created) return;
    throw new JournalDamagedError(
      `the stream ${this.#stream} was deleted and made again while this coordinator ran (created ${created}, before ` +
        `${this.#created}): the journal is lost. ${adviceOnLostStream(this.#stream)}`,
    );
  }

  /** It says that there is none. @throws JournalDamagedError once it has said so for `limits.streamMissingMs`, as often
   *  as `limits.lossLooksMin` */
  missing(): void {
    if (!this.#absence.isBelieved()) return;
    throw new JournalDamagedError(
      `the stream ${this.#stream} is gone: somebody deleted it, or the server lost its storage. ${adviceOnLostStream(this.#stream)}`,
    );
  }
}

/** What to do where the journal's stream is not the one that it was, or not there any more. */
export function adviceOnLostStream(stream: string): string {
  const streams = `\`nats stream rm ${stream}\`, \`nats stream rm ${stream}_SNAP\``;
  return (
    "Stop all coordinators; put the stream back from a backup, or, to begin anew without what it held, remove it and its " +
    `snapshots (${streams}; one that is gone is no matter) and start them again`
  );
}
