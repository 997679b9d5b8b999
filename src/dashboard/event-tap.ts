// Follows the events that leaders publish for every committed batch, by a plain subscription: the leader pays nothing,
// and no coordinator is asked. While nobody watches, only assignments are heard, for the history's waits, and they are
// not even parsed. With the first viewer all events are followed, after the newest batches were read once.

import type { Logger } from "pino";
import type { JournaledEvent } from "../audit/journaled-event.ts";
import type { Swarm } from "../client/swarm.ts";
import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import { parseText } from "../protocol/codec.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { Event } from "../state/event.ts";
import type { Subscription, Transport } from "../transport/transport.ts";
import type { ActivityBook } from "./activity-book.ts";
import { type KnownRow, rowOf } from "./event-row.ts";
import { Ring } from "./ring.ts";

export interface EventTapDeps {
  readonly swarm: Pick<Swarm, "events">;
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly book: ActivityBook;
  /** Called with the wait of each assigned task, ms. */
  readonly onWait: (ms: number) => void;
}

type Listener = (events: readonly JournaledEvent[], rows: readonly KnownRow[]) => void;

export class EventTap {
  readonly #deps: EventTapDeps;
  readonly rows = new Ring<KnownRow>(limits.dashboardEventsKept);
  readonly #listeners = new Set<Listener>();
  #subscription: Subscription | undefined;
  #isFollowing = false;
  /** Number of the present following; a later one ends the reading of an earlier one. */
  #times = 0;
  /** Events that came while older ones were read. */
  #held: JournaledEvent[] | undefined;
  #lastIdx = 0;
  #perSecond: readonly { readonly second: number; count: number }[] = [];

  constructor(deps: EventTapDeps) {
    this.#deps = deps;
    this.#listenForWaits();
  }

  /** The newest batch with an event that was heard. */
  get lastIdx(): number {
    return this.#lastIdx;
  }

  /** Over the last ten seconds. */
  get eventsPerSecond(): number {
    const now = Math.floor(this.#deps.clock.monotonicMs() / 1_000);
    const whole = this.#perSecond.filter(({ second }) => second < now && second >= now - 10);
    return whole.reduce((sum, { count }) => sum + count, 0) / 10;
  }

  /** Follows all events, from the newest batches on.
   *  @param presentIdx the newest batch, from a status; undefined if nobody answers: then only new events */
  follow(presentIdx: number | undefined): void {
    if (this.#isFollowing) return;
    this.#isFollowing = true;
    this.#times += 1;
    const { transport, subjects, book } = this.#deps;
    this.#subscription?.unsubscribe();
    this.#held = presentIdx === undefined ? undefined : [];
    this.#subscription = transport.subscribe(subjects.eventsOf("_"), ({ data }) => this.#heard(data));
    book.clear();
    this.rows.clear();
    this.#lastIdx = 0;
    if (presentIdx === undefined) return;
    const from = Math.max(1, presentIdx - limits.dashboardBackfillBatchesMax + 1);
    void this.#readFrom(from, this.#times); // reports its own errors
  }

  /** Back to the waits alone. */
  rest(): void {
    if (!this.#isFollowing) return;
    this.#isFollowing = false;
    this.#held = undefined;
    this.#subscription?.unsubscribe();
    this.#listenForWaits();
  }

  /** Calls `listener` with events as they come. Returns a function that ends the calls. */
  on(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#times += 1;
    this.#subscription?.unsubscribe();
  }

  #listenForWaits(): void {
    const { transport, subjects, onWait } = this.#deps;
    this.#subscription = transport.subscribe(subjects.event("*", "task", "assigned"), ({ data }) => {
      for (const [, ms] of Buffer.from(data)
        .toString("latin1")
        .matchAll(/"waitedMs":(\d+)/g))
        onWait(Number(ms));
    });
  }

  /** Batches of the journal, then what came meanwhile. Without them the page still shows what comes. */
  async #readFrom(from: number, time: number): Promise<void> {
    const { swarm, logger } = this.#deps;
    let lastIdx = from - 1;
    try {
      for await (const journaled of swarm.events({ from })) {
        if (this.#times !== time || !this.#isFollowing) return;
        lastIdx = journaled.idx;
        this.#take([journaled], { isPast: true });
      }
    } catch (error) {
      logger.warn({ err: error }, "batches of the journal could not be read; the dashboard shows what comes");
    }
    if (this.#times !== time || !this.#isFollowing) return;
    const held = this.#held ?? [];
    this.#held = undefined;
    this.#take(
      held.filter(({ idx }) => idx > lastIdx),
      { isPast: false },
    );
  }

  /** Every batch is published, so a missing index means lost messages: those batches are read from the journal. */
  #heard(bytes: Uint8Array): void {
    const events = eventsIn(bytes);
    const [first] = events;
    if (first === undefined) return;
    if (this.#held !== undefined) {
      if (this.#held.length < limits.dashboardEventsKept) this.#held.push(...events);
      return;
    }
    const isGap = this.#lastIdx > 0 && first.idx > this.#lastIdx + 1;
    if (!isGap) return this.#take(events, { isPast: false });
    this.#held = [...events];
    const from = Math.max(this.#lastIdx + 1, first.idx - limits.dashboardBackfillBatchesMax);
    void this.#readFrom(from, this.#times); // reports its own errors
  }

  /** @param of.isPast read from the journal: the events belong to no present rate or wait */
  #take(events: readonly JournaledEvent[], { isPast }: { readonly isPast: boolean }): void {
    if (events.length === 0) return;
    const { book, onWait } = this.#deps;
    const rows: KnownRow[] = [];
    for (const journaled of events) {
      const { event, idx } = journaled;
      book.observe(journaled);
      if (event.type === "TaskAssigned" && !isPast) onWait(event.receipt.waitedMs);
      const row = rowOf(journaled, (key) => book.kindOf(key));
      this.rows.push(row);
      rows.push(row);
      this.#lastIdx = Math.max(this.#lastIdx, idx);
    }
    if (!isPast) this.#count(events.length);
    for (const listener of this.#listeners) listener(events, rows);
  }

  #count(count: number): void {
    const second = Math.floor(this.#deps.clock.monotonicMs() / 1_000);
    const last = this.#perSecond.at(-1);
    if (last?.second === second) last.count += count;
    else
      this.#perSecond = [...this.#perSecond.filter((each) => each.second >= second - 10), { second, count }];
  }
}

/** Not checked by a schema, which would cost more than all the rest; an unreadable message counts as no event. */
function eventsIn(bytes: Uint8Array): readonly JournaledEvent[] {
  try {
    const { term, idx, at, events } = parseText(bytes) as Partial<Record<string, unknown>>;
    if (typeof term !== "number" || typeof idx !== "number" || typeof at !== "number") return [];
    if (!Array.isArray(events)) return [];
    return (events as readonly Event[]).map((event) => ({ idx, term, at, event }));
  } catch {
    return []; // any client with the right to publish could have sent it
  }
}
