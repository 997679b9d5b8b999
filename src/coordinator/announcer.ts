// A coordinator's part on the subject `coordinator`. The announcer publishes the coordinator's id and position in the
// journal, for peer coordinators and for clients watching for a new term. The announcer notes the announcements of
// peers, and answers questions. Not here: conclusions from announcements (announcements.ts).

import type { Clock, Random } from "../clock.ts";
import { limits } from "../limits.ts";
import { pause } from "../pause.ts";
import { decode, encode } from "../protocol/codec.ts";
import type { JournalPoint } from "../protocol/journal-point.ts";
import { type CoordinatorHeartbeat, coordinatorHeartbeatSchema } from "../protocol/schemas.ts";
import { isInbox, type Subjects } from "../protocol/subjects.ts";
import type { TermStart } from "../state/state.ts";
import type { Message, Subscription, Transport } from "../transport/transport.ts";
import type { Announcements } from "./announcements.ts";

/** Length of an inbox's name, in characters: long enough that no two names are the same. */
const INBOX_LENGTH = 12;

export interface AnnouncerDeps {
  /** Id of the announcing coordinator. */
  readonly id: string;
  readonly subjects: Subjects;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  /** Receives all announcements. */
  readonly announcements: Announcements;
  /** Position in the journal; for a leader, the committed position. */
  readonly held: () => JournalPoint;
  readonly isLeading: () => boolean;
  /** For a leader: the starts of recent terms. */
  readonly termStarts: () => readonly TermStart[] | undefined;
  /** For a leader: the size of a batch without room in the journal. */
  readonly neededBytes: () => number | undefined;
  /** Called when a standby announces an unreadable segment. */
  readonly onUnreadable: (segment: number) => void;
}

export class Announcer {
  readonly #deps: AnnouncerDeps;
  /** Set during `ask`. */
  #onHeard: ((id: string) => void) | undefined;

  constructor(deps: AnnouncerDeps) {
    this.#deps = deps;
  }

  /** @param more `began` with the first of a term, `leaves` with the last of all */
  announce(more: Pick<CoordinatorHeartbeat, "began" | "cannotRead" | "leaves"> = {}): void {
    const { transport, subjects } = this.#deps;
    transport.publish(subjects.coordinator, this.#announcement(more));
  }

  /** Asks whether a peer coordinator is present. To be called before `takePart`, or the coordinator would answer
   *  itself. */
  async greet(): Promise<JournalPoint | undefined> {
    const { transport, subjects } = this.#deps;
    const timeoutMs = limits.greetingMs;
    const answer = await transport.request(subjects.coordinator, this.#announcement(), { timeoutMs });
    if (answer.kind !== "answered") return undefined;
    const announcement = decode(answer.data, coordinatorHeartbeatSchema);
    return announcement.ok ? announcement.value : { term: 0, idx: 0 }; // a coordinator of another version, perhaps
  }

  /** Asks all peer coordinators for their positions, and notes the answers within `ms`.
   *  @param awaited ids of coordinators: the wait ends early once all have answered or left. Default: unknown */
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

  /** Notes announcements, and answers questions. */
  takePart(): Subscription {
    const { transport, subjects } = this.#deps;
    return transport.subscribe(subjects.coordinator, (message) => {
      const { reply } = message;
      if (!this.#note(message)) return;
      if (reply !== undefined && isInbox(reply)) transport.publish(reply, this.#announcement());
    });
  }

  /** @returns true if the message is an announcement of a peer */
  #note({ data }: Message): boolean {
    const { id, clock, announcements } = this.#deps;
    const announcement = decode(data, coordinatorHeartbeatSchema);
    if (!announcement.ok || announcement.value.id === id) return false;
    announcements.note(announcement.value, clock.monotonicMs());
    this.#onHeard?.(announcement.value.id);
    if (announcement.value.cannotRead !== undefined) this.#deps.onUnreadable(announcement.value.cannotRead);
    return true;
  }

  #announcement(more: Pick<CoordinatorHeartbeat, "began" | "cannotRead" | "leaves"> = {}): Uint8Array {
    const { id, held, isLeading, termStarts, neededBytes } = this.#deps;
    const { term, idx } = held();
    return encode({
      id,
      term,
      idx,
      leading: isLeading(),
      termStarts: termStarts(),
      neededBytes: neededBytes(),
      ...more,
    });
  }
}
