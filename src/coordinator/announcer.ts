// What a coordinator says of itself on the subject `coordinator`, and who it hears there: each announces who it is and
// how far it holds the journal, for the others and for clients that watch for a new term; and answers who asks with its
// own. Not here: what is made of what the others say (announcements.ts).

import type { Clock, Random } from "../clock.ts";
import { limits } from "../limits.ts";
import { pause } from "../pause.ts";
import { decode, encode } from "../protocol/codec.ts";
import type { JournalPoint } from "../protocol/journal-point.ts";
import { type CoordinatorHeartbeat, coordinatorHeartbeatSchema } from "../protocol/schemas.ts";
import { isInbox, type Subjects } from "../protocol/subjects.ts";
import type { Message, Subscription, Transport } from "../transport/transport.ts";
import type { Announcements } from "./announcements.ts";

/** Of an inbox's name, in characters: no two are alike. */
const INBOX_LENGTH = 12;

export interface AnnouncerDeps {
  /** Of this coordinator. */
  readonly id: string;
  readonly subjects: Subjects;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  /** Where what is heard is noted. */
  readonly announcements: Announcements;
  /** Up to where it holds the journal; where it leads, committed. */
  readonly held: () => JournalPoint;
  readonly isLeading: () => boolean;
  /** Of the batch for which the journal has no room, where it leads and that is so. */
  readonly neededBytes: () => number | undefined;
  /** A standby says that it cannot read a segment. */
  readonly onUnreadable: (segment: number) => void;
}

export class Announcer {
  readonly #deps: AnnouncerDeps;
  /** While it asks. */
  #onHeard: ((id: string) => void) | undefined;

  constructor(deps: AnnouncerDeps) {
    this.#deps = deps;
  }

  /** @param more `began` with the first of a term, `leaves` with the last of all */
  announce(more: Pick<CoordinatorHeartbeat, "began" | "cannotRead" | "leaves"> = {}): void {
    const { transport, subjects } = this.#deps;
    transport.publish(subjects.coordinator, this.#announcement(more));
  }

  /** What another coordinator answers, if one does. To be asked before `takePart`: it would answer itself. */
  async greet(): Promise<JournalPoint | undefined> {
    const { transport, subjects } = this.#deps;
    const timeoutMs = limits.greetingMs;
    const answer = await transport.request(subjects.coordinator, this.#announcement(), { timeoutMs });
    if (answer.kind !== "answered") return undefined;
    const beat = decode(answer.data, coordinatorHeartbeatSchema);
    return beat.ok ? beat.value : { term: 0, idx: 0 }; // somebody is there, whatever that one means
  }

  /** Has all others say how far each holds the journal, and notes what they say within `ms`.
   *  @param awaited ids of coordinators: when each of them has spoken, or left, no more is waited for. Default:
   *  unknown */
  async ask(ms: number, awaited?: readonly string[]): Promise<void> {
    const { transport, subjects, random, clock } = this.#deps;
    const inbox = `${transport.inboxPrefix}.${random.id(INBOX_LENGTH)}`;
    const isAnswered = new AbortController();
    const silent = new Set(awaited);
    this.#onHeard = (id) => {
      silent.delete(id);
      if (awaited !== undefined && silent.size === 0) isAnswered.abort();
    };
    const answers = transport.subscribe(inbox, (message) => this.#note(message));
    transport.publish(subjects.coordinator, this.#announcement(), inbox);
    if (awaited?.length !== 0) await pause(clock, ms, isAnswered.signal);
    this.#onHeard = undefined;
    answers.unsubscribe();
  }

  /** Notes what others say, and answers who asks. */
  takePart(): Subscription {
    const { transport, subjects } = this.#deps;
    return transport.subscribe(subjects.coordinator, (message) => {
      const { reply } = message;
      if (!this.#note(message)) return;
      if (reply !== undefined && isInbox(reply)) transport.publish(reply, this.#announcement());
    });
  }

  /** @returns whether another coordinator says who it is */
  #note({ data }: Message): boolean {
    const { id, clock, announcements } = this.#deps;
    const beat = decode(data, coordinatorHeartbeatSchema);
    if (!beat.ok || beat.value.id === id) return false;
    announcements.note(beat.value, clock.monotonicMs());
    this.#onHeard?.(beat.value.id);
    if (beat.value.cannotRead !== undefined) this.#deps.onUnreadable(beat.value.cannotRead);
    return true;
  }

  #announcement(more: Pick<CoordinatorHeartbeat, "began" | "cannotRead" | "leaves"> = {}): Uint8Array {
    const { id, held, isLeading, neededBytes } = this.#deps;
    const { term, idx } = held();
    return encode({ id, term, idx, leading: isLeading(), neededBytes: neededBytes(), ...more });
  }
}
