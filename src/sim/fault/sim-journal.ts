// One life's journal: the production one over a simulated line, with what a run wants to know of its appends counted.

import type { AppendOutcome } from "../../journal/journal.ts";
import { StreamJournal, type StreamJournalOptions } from "../../journal/stream/stream-journal.ts";
import { limits } from "../../limits.ts";
import { Listeners } from "../../listeners.ts";
import type { SimStream } from "./jetstream.ts";
import type { Line } from "./jetstream-wire.ts";
import type { Life } from "./life.ts";
import type { Link } from "./link.ts";
import type { Occurrences } from "./occurrences.ts";

interface SimJournalOptions extends StreamJournalOptions {
  /** What is stored, whatever anybody is told. */
  readonly stored: SimStream;
  readonly occurrences: Occurrences;
  /** Told of every record that is sent. */
  readonly onSend: (bytes: Uint8Array, expectedSeq: number) => void;
}

export class SimJournal extends StreamJournal {
  readonly #stored: SimStream;
  readonly #occurrences: Occurrences;
  readonly #onSend: SimJournalOptions["onSend"];
  #inFlight = 0;

  constructor(options: SimJournalOptions) {
    super(options);
    this.#stored = options.stored;
    this.#occurrences = options.occurrences;
    this.#onSend = options.onSend;
  }

  /** Appends that were not answered yet. */
  get inFlight(): number {
    return this.#inFlight;
  }

  override async append(bytes: Uint8Array, expectedSeq: number): Promise<AppendOutcome> {
    this.#inFlight += 1;
    this.#onSend(bytes, expectedSeq);
    const outcome = await super.append(bytes, expectedSeq);
    this.#inFlight -= 1;
    if (outcome.kind === "unknown") this.#noteAmbiguity(bytes, expectedSeq);
    return outcome;
  }

  #noteAmbiguity(bytes: Uint8Array, expectedSeq: number): void {
    const found = this.#stored.at(expectedSeq + 1);
    if (found === undefined) this.#occurrences.note("ambiguous-append-not-landed");
    else if (Buffer.compare(found, bytes) === 0) this.#occurrences.note("ambiguous-append-landed");
    else this.#occurrences.note("ambiguous-append-foreign");
  }
}

/** A link as the journal's wire sees it. */
export class LinkLine implements Line {
  readonly #life: Life;
  readonly #link: Link;
  readonly #listeners = new Listeners();
  #status: Line["status"] = "connected";

  constructor(life: Life, link: Link) {
    this.#life = life;
    this.#link = link;
  }

  get status(): Line["status"] {
    return this.#status;
  }

  carry(direction: "there" | "back", arrive: () => void): void {
    if (direction === "there") this.#link.carry("up", arrive);
    else if (!this.#life.hasEnded) this.#link.carry("down", arrive, this.#life);
  }

  onStatus(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  /** The connection breaks, and is made again as soon as the link allows. */
  lose(): void {
    if (this.#status !== "connected") return;
    this.#life.after(0, "lost", () => {
      this.#become("reconnecting");
      this.#tryAgain(limits.reconnectMs);
    });
  }

  #tryAgain(ms: number): void {
    this.#life.after(ms * (0.5 + this.#life.random.next() / 2), "reconnect", () => {
      if (this.#link.isDown) this.#tryAgain(Math.min(limits.reconnectMsMax, 2 * ms));
      else this.#become("connected");
    });
  }

  #become(status: Line["status"]): void {
    this.#status = status;
    this.#listeners.tell();
  }
}
