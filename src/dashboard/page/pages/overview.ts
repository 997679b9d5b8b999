// The first page: the verdict with the next command, figures with links to their lists, four linked charts, queues, and
// the last failures.

import { useSignal } from "@preact/signals";
import { Fragment, h } from "preact";
import type { HealthLevel, HealthView, HistoryWindow, Overview, QueueRow } from "../../wire.ts";
import { useDashboard } from "../context.ts";
import { FailureTable } from "../failure-table.ts";
import { asSentence, count, counted, duration, figure, percent, whole } from "../format.ts";
import { PauseButton } from "../pause-button.ts";
import { href } from "../router.ts";
import { Command } from "../ui/command.ts";
import { html, type View } from "../ui/html.ts";
import { LineChart, type Zoom } from "../ui/line-chart.ts";
import { empty, head, loading, refusedView, section, segments } from "../ui/states.ts";
import { Table } from "../ui/table.ts";
import { tile } from "../ui/tile.ts";
import { badge, type Tone } from "../ui/tone.ts";
import { type ChartColumns, useHistory } from "../use-history.ts";
import { useLive } from "../use-live.ts";

export function OverviewPage(): View {
  const { router } = useDashboard();
  const range: HistoryWindow = router.route.value.filters["range"] === "6h" ? "6h" : "15m";
  const history = useHistory(range);
  const { data, refused } = useLive("overview", {}, { points: history.add });
  if (refused.value !== undefined) return refusedView("Overview", refused.value.message);
  const overview = data.value;
  return html`
    ${head({
      title: "Overview",
      note: overview === undefined ? "…" : noteOf(overview),
      side: overview && h(PauseButton, { isPaused: overview.isPaused }),
    })}
    ${overview === undefined ? html`<div class="card">${loading("Loading the overview")}</div>` : figures(overview)}
    ${h(Charts, { columns: history.columns.value, range })}
    ${overview !== undefined && lists(overview)}
  `;
}

function noteOf({ swarm, leader, standbys, term, isStale }: Overview): string {
  const led = isStale ? "answered by a standby" : `led by ${leader}, term ${term}`;
  const behind =
    standbys === undefined || standbys.length === 0 ? "no standby" : counted(standbys.length, "standby");
  return `Swarm ${swarm}, ${led}, ${behind}`;
}

const levelTone: Readonly<Record<HealthLevel | "unknown", Tone>> = {
  ok: "good",
  note: "good",
  attention: "warn",
  critical: "bad",
  unknown: "idle",
};
const levelMark: Readonly<Record<HealthLevel, string>> = {
  ok: "✓",
  note: "✓",
  attention: "!",
  critical: "✕",
};

/** The verdict on the swarm, and the command to run next. */
function verdict({ level, verdict: sentence, next, areas, findings }: HealthView): View {
  const rest = findings.slice(level === "ok" || level === "note" ? 0 : 1);
  return html`<section class="card verdict" aria-label="Health">
    <span class=${`mark tone-${levelTone[level]}`} aria-hidden="true">${levelMark[level]}</span>
    <p class="sentence"><span class="hidden-text">${level}: </span>${asSentence(sentence)}</p>
    <div class="rest">
      ${(["flow", "execution", "liveness"] as const).map((area) => badge(`${area} ${areas[area]}`, levelTone[areas[area]]))}
      ${next !== undefined && html`<span class="row"><span class="muted small">Next:</span>${h(Command, { text: next })}</span>`}
    </div>
    ${
      rest.length > 0 &&
      html`<ul class="findings">
        ${rest.map(
          (finding) => html`<li key=${finding.text}>
            ${badge(finding.level, finding.level === "note" ? "idle" : levelTone[finding.level])}
            <span class="break">${asSentence(finding.text)}</span>
            ${h(Command, { text: finding.next })}
          </li>`,
        )}
      </ul>`
    }
  </section>`;
}

function figures(overview: Overview): View {
  const { health, tasks, oldestWaitMs, lastMinute, capacity, agents, queues } = overview;
  const of = (...states: string[]) => states.reduce((sum, state) => sum + (tasks[state] ?? 0), 0);
  const perMinute = (value: number) => (value * 60_000) / Math.max(1_000, lastMinute.windowMs);
  const kinds = Object.values(queues).filter(({ waiting }) => waiting > 0).length;
  const failing = perMinute(lastMinute.failed);
  return html`
    ${verdict(health)}
    <div class="card tiles">
      ${tile({ label: "Queued", value: count(of("queued")), sub: kinds === 0 ? "nothing waits" : `of ${counted(kinds, "kind")}`, to: href(["tasks"], { state: "queued", sort: "oldest" }) })}
      ${tile({ label: "Running", value: count(of("assigned", "running")), sub: `${agents.busy} of ${counted(agents.online, "agent")} busy`, to: href(["tasks"], { state: "assigned,running" }) })}
      ${tile({ label: "Oldest wait", value: oldestWaitMs === 0 ? "–" : duration(oldestWaitMs), sub: "of a queued task", to: href(["tasks"], { state: "queued", sort: "oldest" }) })}
      ${tile({ label: "Done per minute", value: count(perMinute(lastMinute.completed)), sub: `${whole(of("completed"))} in total`, to: href(["tasks"], { state: "completed" }) })}
      ${tile({ label: "Failed per minute", value: count(failing), sub: `${whole(of("failed", "dead-lettered", "expired"))} in total`, to: href(["tasks"], { state: "failed,dead-lettered,expired" }), tone: failing > 0 ? "bad-text" : "" })}
      ${tile({ label: "Capacity used", value: capacity.total === 0 ? "–" : percent(capacity.used / capacity.total), sub: `${whole(capacity.used)} of ${whole(capacity.total)}`, to: href(["agents"]) })}
    </div>
  `;
}

function Charts({ columns, range }: { readonly columns: ChartColumns; readonly range: HistoryWindow }): View {
  const { router } = useDashboard();
  const zoom = useSignal<Zoom>(undefined);
  const group = "overview";
  const { times } = columns;
  const choose = (value: HistoryWindow) => {
    zoom.value = undefined;
    router.filter({ range: value === "6h" ? "6h" : undefined });
  };
  const side = html`<div class="row">
    ${
      zoom.value !== undefined &&
      html`<button class="button quiet" type="button" onClick=${() => (zoom.value = undefined)}>Reset zoom</button>`
    }
    ${segments(
      "Range",
      [
        ["15m", "15 min"],
        ["6h", "6 h"],
      ] as const,
      range,
      choose,
    )}
  </div>`;
  const note = "Point at one chart and the others follow; drag to zoom";
  return section(
    { title: "Activity", note, side },
    html`<div class="columns">
      ${h(LineChart, {
        ...{ title: "Throughput", note: "tasks per second", group, zoom, text: figure, top: 1 },
        lines: [
          { label: "completed", colour: 2, fill: true },
          { label: "failed", colour: 4 },
          { label: "cancelled", colour: 3 },
          { label: "submitted", colour: 1, dashed: true },
        ],
        columns: [times, columns.completed, columns.failed, columns.cancelled, columns.submitted],
      })}
      ${h(LineChart, {
        ...{ title: "Depth", note: "tasks", group, zoom, text: count, top: 5 },
        lines: [
          { label: "queued", colour: 3, fill: true },
          { label: "running", colour: 1 },
          { label: "delayed", colour: 5, dashed: true },
        ],
        columns: [times, columns.queued, columns.running, columns.delayed],
      })}
      ${h(LineChart, {
        ...{ title: "Wait", note: "submission to assignment", group, zoom, text: duration, top: 10 },
        lines: [
          { label: "p50", colour: 6 },
          { label: "p95", colour: 1 },
          { label: "p99", colour: 5 },
        ],
        columns: [times, columns.waitP50Ms, columns.waitP95Ms, columns.waitP99Ms],
      })}
      ${h(LineChart, {
        ...{ title: "Utilisation", note: "of the agents' capacity", group, zoom, text: percent, top: 1 },
        lines: [{ label: "in use", colour: 1, fill: true }],
        columns: [times, columns.utilisation],
      })}
    </div>`,
  );
}

function lists({ queues, failures, health }: Overview): View {
  return h(
    Fragment,
    null,
    section({ title: "Queues", note: "waiting tasks by kind" }, queueTable(Object.values(queues))),
    section(
      { title: "Last failures", note: "attempts; most are tried again" },
      failures.length === 0
        ? html`<div class="card">
            ${empty({ title: "No attempt failed", text: health.level === "ok" ? "Failures appear here with their error and their agent." : "Failures appear here." })}
          </div>`
        : h(FailureTable, { failures }),
    ),
  );
}

function queueTable(rows: readonly QueueRow[]): View {
  const waiting = rows.filter((row) => row.waiting > 0);
  if (waiting.length === 0)
    return html`<div class="card">
      ${empty({ title: "Nothing waits", text: "Every submitted task has an agent or has ended." })}
    </div>`;
  return h(Table<QueueRow>, {
    label: "Queues",
    rows: waiting.sort((one, other) => other.oldestMs - one.oldestMs),
    id: ({ kind, role = "" }) => `${kind} ${role}`,
    link: ({ kind }) => href(["tasks"], { state: "queued", kind, sort: "oldest" }),
    columns: [
      {
        title: "Kind",
        cell: ({
          kind,
          role,
        }) => html`<a class="strong" href=${href(["tasks"], { state: "queued", kind, sort: "oldest" })}>${kind}</a>
          ${role !== undefined && html` <span class="muted">role ${role}</span>`}`,
      },
      {
        title: "Waiting",
        numeric: true,
        cell: ({ waiting: tasks }) => whole(tasks),
        by: (row) => row.waiting,
      },
      {
        title: "Oldest",
        numeric: true,
        cell: ({ oldestMs }) => duration(oldestMs),
        by: (row) => row.oldestMs,
      },
      {
        title: "Agents",
        numeric: true,
        cell: ({ agents }) =>
          agents === 0 ? html`<span class="bad-text">none serves it</span>` : whole(agents),
        by: (row) => row.agents,
      },
    ],
  });
}
