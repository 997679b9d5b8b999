// The live tail of the journal: every decision at once, with filters and a pause. Older events are read on demand.

import { useSignal } from "@preact/signals";
import { h } from "preact";
import { useLayoutEffect, useMemo } from "preact/hooks";
import type { EventRow, EventsState } from "../../wire.ts";
import { messageOf } from "../api.ts";
import { TAIL_MAX, TYPING_MS } from "../bounds.ts";
import { useDashboard } from "../context.ts";
import { counted, exactTime, figure, whole } from "../format.ts";
import { href } from "../router.ts";
import { Command } from "../ui/command.ts";
import { html, type View } from "../ui/html.ts";
import { empty, head, loading, refusedView } from "../ui/states.ts";
import { type Placement, VirtualList } from "../ui/virtual-list.ts";
import { useLive } from "../use-live.ts";

const filterNames = ["types", "task", "agent", "project", "kind", "text"] as const;
const ROW = 34;

export function EventsPage(): View {
  const { api, router } = useDashboard();
  const { filters } = router.route.value;
  const query = Object.fromEntries(filterNames.map((name) => [name, filters[name]]));
  /** Newest first. */
  const rows = useSignal<readonly EventRow[]>([]);
  const skipped = useSignal(0);
  const isPaused = useSignal(false);
  const held = useSignal<readonly EventRow[]>([]);
  const older = useSignal<{ readonly before?: number; readonly isBusy: boolean; readonly error?: string }>({
    isBusy: false,
  });
  const { data, refused } = useLive("events", query, {
    events: (fresh, lost) => {
      skipped.value += lost;
      if (isPaused.peek()) held.value = newest(held.peek(), fresh);
      else rows.value = newest(rows.peek(), fresh);
    },
  });
  const key = JSON.stringify(query);
  // New filters begin with an empty list.
  useLayoutEffect(() => {
    rows.value = [];
    held.value = [];
    skipped.value = 0;
    older.value = { isBusy: false };
  }, [key]);
  if (refused.value !== undefined) return refusedView("Events", refused.value.message);

  const pause = () => {
    isPaused.value = !isPaused.peek();
    if (isPaused.peek()) return;
    rows.value = newest(rows.peek(), [...held.peek()].reverse());
    held.value = [];
  };
  const readOlder = async () => {
    const last = rows.peek().at(-1);
    older.value = { isBusy: true };
    try {
      const before = older.peek().before ?? last?.idx;
      const page = await api.events(
        { ...query, limit: "200", ...(before === undefined ? {} : { before: String(before) }) },
        new AbortController().signal,
      );
      const known = new Set(rows.peek().map(({ id }) => id));
      rows.value = [...rows.peek(), ...[...page.rows].reverse().filter(({ id }) => !known.has(id))];
      older.value = { isBusy: false, ...(page.before === undefined ? {} : { before: page.before }) };
      isPaused.value = true;
    } catch (error) {
      older.value = { isBusy: false, error: messageOf(error) };
    }
  };
  const state = data.value;
  return html`
    ${head({
      title: "Events",
      note:
        state === undefined
          ? "…"
          : `Batch ${whole(state.lastIdx)}; the journal keeps all since ${whole(state.firstIdx)}; ${figure(state.perSecond)} events per second. Filter by type or agent to see confirmations of agents`,
      side: html`<button type="button" class="button" aria-pressed=${String(isPaused.value)} onClick=${pause}>
        ${isPaused.value ? `Go on${held.value.length > 0 ? `, ${whole(held.value.length)} new` : ""}` : "Pause"}
      </button>`,
    })}
    ${h(EventFilters, { state })}
    <div class="card table-card">${list(rows.value, state)}</div>
    <div class="row section">
      <button type="button" class="button" disabled=${older.value.isBusy || state === undefined} onClick=${readOlder}>
        ${older.value.isBusy ? "Reading…" : "Read older events"}
      </button>
      ${older.value.error !== undefined && html`<span class="error-text">${older.value.error}</span>`}
      ${skipped.value > 0 && html`<span class="muted small">${counted(skipped.value, "event")} came too fast and are only in the journal</span>`}
      <span class="grow"></span>
      ${state !== undefined && h(Command, { text: state.command })}
    </div>
  `;
}

/** @param fresh oldest first @returns newest first, at most `TAIL_MAX` */
function newest(rows: readonly EventRow[], fresh: readonly EventRow[]): readonly EventRow[] {
  const known = new Set(rows.slice(0, 600).map(({ id }) => id));
  return [...fresh.filter(({ id }) => !known.has(id)).reverse(), ...rows].slice(0, TAIL_MAX);
}

function EventFilters({ state }: { readonly state: EventsState | undefined }): View {
  const { router } = useDashboard();
  const { filters } = router.route.value;
  const timer = useMemo<{ now?: ReturnType<typeof setTimeout> }>(() => ({}), []);
  const typed = (name: string) => (event: InputEvent) => {
    const { value } = event.target as HTMLInputElement;
    clearTimeout(timer.now);
    timer.now = setTimeout(() => router.filter({ [name]: value }), TYPING_MS);
  };
  const field = (name: string, label: string, kind = "") => html`<input
    class=${kind}
    type="search"
    placeholder=${label}
    aria-label=${label}
    defaultValue=${filters[name] ?? ""}
    onInput=${typed(name)}
  />`;
  const types = filters["types"] ?? "";
  const known = state?.types ?? [];
  return html`<div class="filters">
    ${field("text", "Part of the text", "search")}
    <select aria-label="Type" onChange=${(event: Event) => router.filter({ types: (event.target as HTMLSelectElement).value })}>
      <option value="" selected=${types === ""}>Any type</option>
      ${types !== "" && !known.includes(types) && html`<option value=${types} selected>${types.replaceAll(",", ", ")}</option>`}
      ${known.map((type) => html`<option value=${type} selected=${type === types}>${type}</option>`)}
    </select>
    ${field("task", "Task")} ${field("agent", "Agent")} ${field("project", "Project")} ${field("kind", "Kind")}
  </div>`;
}

function list(rows: readonly EventRow[], state: EventsState | undefined): View {
  if (state === undefined) return loading("Loading events");
  if (rows.length === 0)
    return empty({
      title: "No event matches yet",
      text: "Events appear as the swarm decides. Older ones can be read below.",
    });
  return html`
    <div class="vhead event-grid" aria-hidden="true">
      <span>Time</span><span class="mid number">Batch</span><span class="mid">Type</span><span>What happened</span>
    </div>
    ${h(VirtualList<EventRow>, {
      ...{ label: "Events", rows, rowPixels: ROW, pixelsMax: Math.max(10 * ROW, innerHeight - 340) },
      draw: eventRow,
    })}
  `;
}

/** Ends and failures stand out from the rest. */
function toneOf(type: string): string {
  if (type === "TaskCompleted") return "good";
  if (type === "AttemptFailed") return "warn";
  if (/Failed|DeadLettered|Expired|Exceeded|Offline|Lost|Rejected/.test(type)) return "bad";
  return type === "TaskAssigned" || type === "SlotGranted" ? "accent" : "";
}

/** Each update moves all rows: the elements stay in their places, and only their texts change. */
function eventRow(row: EventRow, style: Placement, place: number): View {
  const { idx, at, type, text, task, project, agent, isChanged } = row;
  const address =
    task !== undefined && project !== undefined
      ? href(["tasks", project, task])
      : agent !== undefined
        ? href(["agents", agent])
        : undefined;
  const body = html`
    <span class="mono muted nowrap">${exactTime(at)}</span>
    <span class="mid number muted">${idx}</span>
    <span class="mid cut muted">${type}</span>
    <span class="cut" title=${text}><i class=${`dot ${toneOf(type)}`} aria-hidden="true"></i>${isChanged && html`<b class="bad-text">changed after it was written</b> `}${text}</span>
  `;
  return html`<a class="vrow event-grid" role="listitem" key=${place} style=${style} href=${address}>${body}</a>`;
}
