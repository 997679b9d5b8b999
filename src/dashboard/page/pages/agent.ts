// The page of an agent: attempts by slot over time, score, kinds, last failures, drain.

import { h } from "preact";
import type { AgentDetail, AgentRow, AttemptBar } from "../../wire.ts";
import { ask } from "../action-dialog.ts";
import { useDashboard } from "../context.ts";
import { FailureTable } from "../failure-table.ts";
import { counted, dateTime, duration, percent, whole } from "../format.ts";
import { href } from "../router.ts";
import { Command } from "../ui/command.ts";
import { html, type View } from "../ui/html.ts";
import { LineChart } from "../ui/line-chart.ts";
import { type Span, Spans } from "../ui/spans.ts";
import { empty, head, loading, section } from "../ui/states.ts";
import { Table } from "../ui/table.ts";
import { tile } from "../ui/tile.ts";
import { badge, type Tone } from "../ui/tone.ts";
import { useLive } from "../use-live.ts";
import { observedSuccess, stateBadge } from "./agents.ts";

/** More rows are unreadable. */
const GANTT_ROWS_MAX = 24;
/** Older failures are in the agent's events. */
const FAILURES = 8;

export function AgentPage({ id }: { readonly id: string }): View {
  const { data, refused } = useLive("agent", { id });
  const crumb = html`<a href=${href(["agents"])}>Agents</a>`;
  if (refused.value !== undefined)
    return html`${head({ title: id, crumb })}
      <div class="card">${empty({ title: `No agent ${id}`, text: refused.value.message })}</div>`;
  const detail = data.value;
  if (detail === undefined)
    return html`${head({ title: id, crumb, note: "…" })}<div class="card">${loading("Loading the agent")}</div>`;
  const { agent } = detail;
  return html`
    ${head({ title: id, crumb, note: noteOf(agent), side: h(DrainButton, { detail }) })}
    <div class="row">${stateBadge(agent)}</div>
    ${figures(agent)}
    ${section(
      {
        title: "Slots",
        note: `${counted(detail.attempts.length, "attempt")} in ${duration(detail.toAt - detail.fromAt)}`,
      },
      html`<div class="card pad">${gantt(detail)}</div>`,
    )}
    ${section({ title: "Score over time", note: "at each assignment: success / (1 + load)" }, scores(detail))}
    ${section({ title: "Kinds" }, h(KindTable, { agent }))}
    ${section(
      { title: "Last failures" },
      detail.failures.length === 0
        ? html`<div class="card">${empty({ title: "No attempt of this agent failed" })}</div>`
        : h(FailureTable, { failures: detail.failures.slice(0, FAILURES) }),
    )}
    ${section({ title: "Facts" }, facts(agent, detail))}
  `;
}

function noteOf({ role, type, group }: AgentRow): string {
  const parts = [
    ...(group === undefined ? [] : [`group ${group}`]),
    ...(role === undefined ? [] : [`role ${role}`]),
    ...(type === undefined ? [] : [`type ${type}`]),
  ];
  return parts.length === 0 ? "no group, no role" : parts.join(", ");
}

function DrainButton({ detail }: { readonly detail: AgentDetail }): View {
  const dashboard = useDashboard();
  const { agent } = detail;
  if (dashboard.session.isReadOnly || agent.status === "offline") return null;
  const open = () =>
    agent.isDraining
      ? ask(dashboard, {
          ...{
            title: `Give ${agent.id} tasks again`,
            verb: "undrain",
            body: { agent: agent.id },
            button: "End the drain",
          },
          note: "The agent takes new tasks from now on.",
        })
      : ask(dashboard, {
          ...{
            title: `Drain ${agent.id}`,
            verb: "drain",
            body: { agent: agent.id },
            button: "Drain",
            isDangerous: true,
          },
          note: `It gets no new tasks. ${counted(agent.inFlight, "attempt")} in flight will finish.`,
        });
  return html`<button type="button" class="button" onClick=${open}>${agent.isDraining ? "End the drain" : "Drain…"}</button>`;
}

function figures(agent: AgentRow): View {
  const success = observedSuccess(agent);
  return html`<div class="card tiles">
    ${tile({ label: "In flight", value: `${agent.inFlight} / ${agent.maxConcurrent}`, sub: agent.prefetch > 0 ? `and ${agent.prefetch} prefetched at most` : "slots" })}
    ${tile({ label: "Success", value: percent(success), sub: agent.reported?.successRate === undefined ? "observed" : `it says ${percent(agent.reported.successRate)}`, tone: success < 0.5 ? "bad-text" : "" })}
    ${tile({ label: "Score", value: agent.score === undefined ? "–" : agent.score.toFixed(2), sub: "newest assignment" })}
    ${tile({ label: "Share", value: percent(agent.share), sub: `${whole(agent.assigned)} assignments` })}
    ${tile({ label: "Completed", value: whole(agent.completed), sub: "attempts in total" })}
    ${tile({ label: "Heartbeat", value: agent.silentMs === undefined ? "–" : duration(agent.silentMs), sub: "ago" })}
  </div>`;
}

const toneOfEnd: Readonly<Record<string, Span["tone"]>> = {
  completed: "good",
  cancelled: "idle",
  expired: "warn",
};

function spanOf(bar: AttemptBar, nowAt: number): Span {
  const to = bar.toAt ?? nowAt;
  const ended = bar.ended ?? "running";
  return {
    from: bar.fromAt,
    to,
    tone: bar.ended === undefined ? "accent" : (toneOfEnd[ended] ?? "bad"),
    title: `${bar.task}, attempt ${bar.attempt}: ${ended}, ${duration(to - bar.fromAt)}`,
    link: href(["tasks", bar.project, bar.task]),
  };
}

function gantt({ attempts, ganttRows, fromAt, toAt }: AgentDetail): View {
  if (attempts.length === 0)
    return empty({ title: "No attempt in this time", text: "Bars appear as the agent gets tasks." });
  const shown = Math.min(ganttRows, GANTT_ROWS_MAX);
  const rows = Array.from({ length: shown }, (_, ganttRow) => ({
    label: `slot ${ganttRow + 1}`,
    spans: attempts.filter((bar) => bar.ganttRow === ganttRow).map((bar) => spanOf(bar, toAt)),
  }));
  return html`
    ${h(Spans, { label: "Attempts in the agent's slots over time", rows, from: fromAt, to: toAt, axis: "clock" })}
    <p class="key">
      <span><i class="fill-2"></i>completed</span><span><i class="fill-4"></i>failed</span>
      <span><i class="fill-accent"></i>running</span><span><i class="fill-3"></i>expired</span>
      ${ganttRows > shown && html`<span>${whole(ganttRows - shown)} more slots are not shown</span>`}
    </p>
  `;
}

function scores({ scores: { times, series } }: AgentDetail): View {
  if (times.length < 2)
    return html`<div class="card">${empty({ title: "Too few assignments for a chart", text: "A point is drawn for each assignment." })}</div>`;
  return h(LineChart, {
    ...{ title: "Score, success and load", text: (value: number) => value.toFixed(2), top: 1 },
    lines: [
      { label: "score", colour: 1, fill: true },
      { label: "success", colour: 2 },
      { label: "load", colour: 3, dashed: true },
    ],
    columns: [times.map((at) => at / 1_000), series.score, series.successRate, series.load],
  });
}

function KindTable({ agent }: { readonly agent: AgentRow }): View {
  const rows = Object.entries(agent.kinds).map(([kind, row]) => ({ kind, ...row }));
  type Row = (typeof rows)[number];
  const tone = ({ suspendedUntilAt }: Row): Tone => (suspendedUntilAt === undefined ? "good" : "bad");
  return h(Table<Row>, {
    label: "Kinds",
    rows,
    id: ({ kind }) => kind,
    columns: [
      {
        title: "Kind",
        by: ({ kind }) => kind,
        cell: ({ kind }) =>
          html`<a class="strong break" href=${href(["tasks"], { kind, agent: agent.id })}>${kind}</a>`,
      },
      {
        title: "Standing",
        cell: (row) =>
          badge(
            row.suspendedUntilAt === undefined
              ? "gets tasks"
              : `suspended until ${dateTime(row.suspendedUntilAt)}`,
            tone(row),
          ),
      },
      {
        title: "Success",
        numeric: true,
        cell: ({ successRate }) => percent(successRate),
        by: ({ successRate }) => successRate,
      },
      {
        title: "Completed",
        numeric: true,
        rank: "mid",
        cell: ({ completed, attempts }) => `${whole(completed)} of ${whole(attempts)}`,
        by: ({ completed }) => completed,
      },
      {
        title: "Latency",
        numeric: true,
        rank: "mid",
        cell: ({ latencyMs }) => duration(latencyMs),
        by: ({ latencyMs }) => latencyMs,
      },
    ],
  });
}

function facts({ labels, reported }: AgentRow, { commands }: AgentDetail): View {
  const names = Object.entries(labels);
  return html`<div class="card pad">
    <dl class="facts">
      <dt>Labels</dt>
      <dd>${names.length === 0 ? "none" : names.map(([name, value]) => `${name}=${value}`).join(", ")}</dd>
      <dt>Says of itself</dt>
      <dd>${reported === undefined ? "nothing" : `${reported.status}, ${reported.inFlight} in flight${reported.latencyMs === undefined ? "" : `, latency ${duration(reported.latencyMs)}`}`}</dd>
      <dt>Its events</dt>
      <dd>${h(Command, { text: commands.events })}</dd>
      <dt>Drain</dt>
      <dd>${h(Command, { text: commands.drain })}</dd>
    </dl>
  </div>`;
}
