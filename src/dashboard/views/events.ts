// The page of events: older ones from the journal, page by page backwards, and the live tail.

import { eventTypes } from "../../audit/event-types.ts";
import type { Swarm } from "../../client/swarm.ts";
import { defined, type Widened } from "../../defined.ts";
import { limits } from "../../limits.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import { commandOf } from "../command-text.ts";
import { isWanted, type KnownRow, rowOf } from "../event-row.ts";
import type { EventTap } from "../event-tap.ts";
import type { EventFilter } from "../requests.ts";
import type { EventPage, EventQuery, EventRow, EventsState } from "../wire.ts";

/** Batches of the first look backwards; each further look takes four times as many. */
const FIRST_LOOK = 256;

/** The newest wanted events before a batch. Looks through a bounded part of the journal, so that a page may be short.
 *  @throws NoLeaderError, UnreachableError, AuditTrimmedError */
export async function eventsPage(
  swarm: Pick<Swarm, "events">,
  { idx, journal }: Pick<StatusResponse, "idx" | "journal">,
  { before, limit = limits.dashboardEventsShownDefault, ...filter }: Widened<EventQuery>,
): Promise<EventPage> {
  const firstIdx = journal.auditFirstIdx;
  const kinds = new Map<string, string>();
  let rows: EventRow[] = [];
  let from = Math.min(before ?? idx + 1, idx + 1);
  const floor = Math.max(firstIdx, from - limits.dashboardEventBatchesMax);
  for (let span = FIRST_LOOK; from > floor && rows.length < limit; span *= 4) {
    const to = from - 1;
    from = Math.max(floor, from - span);
    const found: KnownRow[] = [];
    for await (const journaled of swarm.events({ from, ...journalFilter(filter) })) {
      if (journaled.idx > to) break;
      found.push(rowOf(journaled, (key) => kinds.get(key)));
    }
    rows = [...found.filter((each) => isWanted(each, filter)).map(({ row }) => row), ...rows];
  }
  const shown = newestOf(rows, limit);
  const next = shown.length < rows.length ? (shown[0]?.idx ?? from) : from;
  return {
    rows: shown,
    ...(next > firstIdx ? { before: next } : {}),
    command: eventsCommand(filter, "--from", "start"),
  };
}

/** The newest rows, without half a batch at the beginning. */
function newestOf(rows: readonly EventRow[], limit: number): readonly EventRow[] {
  const first = rows[rows.length - limit];
  return first === undefined ? rows : rows.filter(({ idx }) => idx >= first.idx);
}

/** What the journal's readers filter themselves. */
function journalFilter({ types, task, agent, project }: EventFilter) {
  return defined({ types, task, agent, project });
}

export function eventsState(
  { idx, journal }: Pick<StatusResponse, "idx" | "journal">,
  tap: EventTap,
  filter: EventFilter,
): EventsState {
  return {
    types: eventTypes,
    lastIdx: Math.max(idx, tap.lastIdx),
    firstIdx: journal.auditFirstIdx,
    perSecond: tap.eventsPerSecond,
    command: eventsCommand(filter, "--follow"),
  };
}

/** The command line does not filter by text. */
function eventsCommand(
  { types, task, agent, project, kind }: EventFilter,
  ...more: readonly string[]
): string {
  const flag = (name: string, value: string | undefined) => (value === undefined ? [] : [`--${name}`, value]);
  const filters = [
    ...flag("type", types?.join(",")),
    ...flag("task", task),
    ...flag("agent", agent),
    ...flag("kind", kind),
    ...flag("project", project),
  ];
  return commandOf("events", ...more, ...filters);
}

/** Rows for the viewers of one filter, as they come. */
export class EventTail {
  readonly #tap: EventTap;
  readonly #filter: EventFilter;
  readonly #stop: () => void;
  #pending: EventRow[] = [];
  #skipped = 0;

  constructor(tap: EventTap, filter: EventFilter) {
    this.#tap = tap;
    this.#filter = filter;
    this.#stop = tap.on((_, rows) => {
      for (const known of rows) if (isWanted(known, filter)) this.#add(known.row);
    });
  }

  take(): { readonly rows: readonly EventRow[]; readonly skipped: number } {
    const taken = { rows: this.#pending, skipped: this.#skipped };
    this.#pending = [];
    this.#skipped = 0;
    return taken;
  }

  /** What a viewer missed since the batch `idx`; for a new viewer the newest rows. Pending rows come by `take`. */
  since(idx: number | undefined): { readonly rows: readonly EventRow[]; readonly skipped: number } {
    const pending = new Set(this.#pending.map(({ id }) => id));
    const known = this.#tap.rows.newest();
    const wanted = known
      .filter((each) => isWanted(each, this.#filter) && (idx === undefined || each.row.idx > idx))
      .map(({ row }) => row)
      .filter(({ id }) => !pending.has(id));
    const shown = idx === undefined ? limits.dashboardEventsShownDefault : limits.dashboardEventsShown;
    const rows = wanted.slice(-shown);
    const [oldest] = known;
    const lost = idx === undefined || oldest === undefined ? 0 : Math.max(0, oldest.row.idx - idx - 1);
    return { rows, skipped: (idx === undefined ? 0 : wanted.length - rows.length) + lost };
  }

  close(): void {
    this.#stop();
  }

  #add(row: EventRow): void {
    if (this.#pending.length < limits.dashboardEventsShown) this.#pending.push(row);
    else this.#skipped += 1;
  }
}
