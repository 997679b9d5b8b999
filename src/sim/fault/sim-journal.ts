// A process's journal: the production journal over a simulated line, with a count of its appends.

import type { AppendOptions, AppendOutcome, Segment } from "../../journal/journal.ts";
import { StreamJournal, type StreamJournalOptions } from "../../journal/stream/stream-journal.ts";
import { limits } from "../../limits.ts";
import { Listeners } from "../../listeners.ts";
import type { Link } from "./link.ts";
import type { Occurrences } from "./occurrences.ts";
import type { Session } from "./session.ts";
import type { Line } from "./stream-wire.ts";

interface SimJournalWatch {
  /** The stored record, whatever an answer says. */
  readonly stored: (segment: number, position: number) => Uint8Array | undefined;
  readonly occurrences: Occurrences;
  /** Called for every record sent. */
  readonly onSend: (bytes: Uint8Array) => void;
}

export class SimJournal extends StreamJournal {
  readonly #watch: SimJournalWatch;
  #inFlight = 0;

  constructor(options: StreamJournalOptions, watch: SimJournalWatch) {
    super(options);
    this.#watch = watch;
  }

  /** Appends without an answer yet. */
  get inFlight(): number {
    return this.#inFlight;
  }

  override segment(number: number): Segment {
    const segment = super.segment(number);
    return {
      number,
      append: (bytes, expected, options) => this.#append(segment, bytes, { expected, options }),
      end: () => segment.end(),
      read: (position) => segment.read(position),
      opened: () => segment.opened(),
      replay: (from, options) => segment.replay(from, options),
      follow: (from, signal) => segment.follow(from, signal),
      seal: () => segment.seal(),
    };
  }

  async #append(
    segment: Segment,
    bytes: Uint8Array,
    { expected, options }: { readonly expected: number; readonly options: AppendOptions | undefined },
  ): Promise<AppendOutcome> {
    this.#inFlight += 1;
    this.#watch.onSend(bytes);
    const outcome = await segment.append(bytes, expected, options);
    this.#inFlight -= 1;
    if (outcome.kind === "unknown")
      this.#noteAmbiguity(bytes, this.#watch.stored(segment.number, expected + 1));
    return outcome;
  }

  #noteAmbiguity(bytes: Uint8Array, found: Uint8Array | undefined): void {
    const { occurrences } = this.#watch;
    if (found === undefined) occurrences.note("ambiguous-append-not-landed");
    else if (Buffer.compare(found, bytes) === 0) occurrences.note("ambiguous-append-landed");
    else occurrences.note("ambiguous-append-foreign");
  }
}

/** A link as the journal's wire sees it. */
export class LinkLine implements Line {
  readonly #session: Session;
  readonly #link: Link;
  readonly #listeners = new Listeners();
  #status: Line["status"] = "connected";

  constructor(session: Session, link: Link) {
    this.#session = session;
    this.#link = link;
  }

  get status(): Line["status"] {
    return this.#status;
  }

  carry(direction: "there" | "back", arrive: () => void): void {
    if (direction === "there") this.#link.carry("up", arrive);
    else if (!this.#session.hasEnded) this.#link.carry("down", arrive, this.#session);
  }

  onStatus(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Breaks the connection; it reconnects as soon as the link allows. */
  lose(): void {
    if (this.#status !== "connected") return;
    this.#session.after(0, "lost", () => {
      this.#become("reconnecting");
      this.#tryAgain(limits.reconnectMs);
    });
  }

  #tryAgain(ms: number): void {
    this.#session.after(ms * (0.5 + this.#session.random.next() / 2), "reconnect", () => {
      if (this.#link.isDown) this.#tryAgain(Math.min(limits.reconnectMsMax, 2 * ms));
      else this.#become("connected");
    });
  }

  #become(status: Line["status"]): void {
    this.#status = status;
    this.#listeners.notify();
  }
}
