// Resources: each limit with the command behind it, holders, waiters with L and both terms, and α over time.

import { h } from "preact";
import type { ResourceRow, Resources, SlotLeaseStatus } from "../../wire.ts";
import { useDashboard } from "../context.ts";
import { counted, duration, percent, whole } from "../format.ts";
import { href } from "../router.ts";
import { Command } from "../ui/command.ts";
import { html, type View } from "../ui/html.ts";
import { LineChart } from "../ui/line-chart.ts";
import { empty, head, loading, refusedView } from "../ui/states.ts";
import { badge, bar, plainBadge } from "../ui/tone.ts";
import { useLive } from "../use-live.ts";
import { holdText } from "./agents.ts";

export function ResourcesPage(): View {
  const { router } = useDashboard();
  const { data, refused } = useLive("resources");
  if (refused.value !== undefined) return refusedView("Resources", refused.value.message);
  const resources = data.value;
  const only = router.route.value.path[1];
  return html`
    ${head({ title: "Resources", note: "Slots that agents share: a model's rate, a licence, a machine" })}
    ${resources === undefined ? html`<div class="card">${loading("Loading resources")}</div>` : listOf(resources, only)}
  `;
}

function listOf({ resources, windowMs, omitted }: Resources, only: string | undefined): View {
  const rows = Object.values(resources)
    .filter(({ resource }) => only === undefined || resource === only)
    .sort((one, other) => one.resource.localeCompare(other.resource));
  if (rows.length === 0)
    return html`<div class="card">
      ${empty({
        title: only === undefined ? "No resource is shared" : `No resource ${only}`,
        text: "Set a limit, and agents take turns at its slots: swarm.wrap(work, { resource }).",
        command: "waggle resource set gpt-4o --slots 4",
      })}
    </div>`;
  return html`
    ${rows.map((row) => html`<section class="card pad resource" key=${row.resource}>${resourceView(row, windowMs)}</section>`)}
    ${omitted > 0 && html`<p class="muted">${counted(omitted, "resource")} more did not fit the answer.</p>`}
  `;
}

function resourceView(row: ResourceRow, windowMs: number): View {
  const { resource, slots, inUse, waiting, maxWaiters, setBy, utilisation, alpha, isAutoTuned, alphaFrom } =
    row;
  const isFull = inUse >= slots;
  return html`
    <div class="row">
      <h2><a class="strong break" href=${href(["resources", resource])}>${resource}</a></h2>
      ${row.hold !== undefined && plainBadge(holdText(row.hold), "warn")}
      ${badge(isFull ? (waiting > 0 ? "full, requests wait" : "full") : "free slots", isFull ? (waiting > 0 ? "warn" : "accent") : "good")}
      <span class="grow"></span><span class="muted small">limit set by</span>${h(Command, { text: setBy })}
    </div>
    <div class="bar-row" style=${{ margin: "12px 0 14px" }}>
      ${bar([{ share: slots === 0 ? 0 : inUse / slots, tone: isFull && waiting > 0 ? "warn" : "accent" }], `${inUse} of ${slots} slots in use`)}
      <span class="nowrap"><strong>${whole(inUse)}</strong> of ${whole(slots)} slots</span>
    </div>
    <dl class="figures">
      ${[
        ["Waiting", `${whole(waiting)} of at most ${whole(maxWaiters)}`],
        ["Granted", `${whole(row.granted)} in ${duration(windowMs)}`],
        ["Throttled", row.delayed === 0 ? "none" : `${whole(row.delayed)} had to wait`],
        ["Delay p50, p95", `${delay(row.delayP50Ms)}, ${delay(row.delayP95Ms)}`],
        ["Utilisation", percent(utilisation)],
        ["α", `${alpha.toFixed(2)}${isAutoTuned ? ", tuned" : ""}, by the ${alphaFrom}`],
      ].map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
    </dl>
    <div class="columns" style=${{ marginTop: "16px" }}>
      <div><h3>Holders</h3>${holders(row)}</div>
      <div><h3>Waiters</h3>${waiters(row)}</div>
    </div>
    ${alphas(row)}
  `;
}

function delay(ms: number | undefined): string {
  return ms === undefined ? "–" : duration(ms);
}

function slotLeaseName({ agent, handle, as }: SlotLeaseStatus): View {
  const name = as === undefined ? agent : `${agent}/${as}`;
  return html`<a class="break" href=${href(["agents", agent])} title=${`handle ${handle}`}>${name}</a>`;
}

/** What the slots are for: label, task, project and user, tokens, and what the tokens wait for. */
function purpose({ label, task, project, user, tokens, waitsFor }: SlotLeaseStatus): View {
  const account = project === undefined || task !== undefined ? [] : [project];
  const parts = [...account, ...(user === undefined ? [] : [user])].join("/");
  const notes = [
    ...(label === undefined ? [] : [label]),
    ...(parts === "" ? [] : [parts]),
    ...(tokens === undefined ? [] : [counted(tokens, "token")]),
    ...(waitsFor === undefined ? [] : [`lacks room in ${lacks[waitsFor]}`]),
  ];
  const served =
    task &&
    html`<a class="break" href=${href(["tasks", task.project, task.task])}>${task.task}#${task.attempt}</a>`;
  return html`<span class="break">${served}${served !== undefined && notes.length > 0 && ", "}${notes.join(", ")}</span>`;
}

const lacks = {
  "project-budget": "the project's budget",
  "global-budget": "the swarm's budget",
  rate: "a rate",
} as const;

function holders({ holders: all, inUse }: ResourceRow): View {
  if (all.length === 0) return html`<p class="muted small">No slot is held.</p>`;
  return html`<table class="compact">
    <thead><tr><th>Agent</th><th>For</th><th class="number">Held for</th></tr></thead>
    <tbody>
      ${all.map((holder) => html`<tr key=${holder.handle}><td>${slotLeaseName(holder)}</td><td>${purpose(holder)}</td><td class="number">${duration(holder.forMs)}</td></tr>`)}
      ${inUse > all.length && html`<tr><td class="muted" colspan="3">the oldest of ${whole(inUse)}</td></tr>`}
    </tbody>
  </table>`;
}

function waiters({ waiters: all, waiting }: ResourceRow): View {
  if (all.length === 0) return html`<p class="muted small">No request waits.</p>`;
  const isOrdered = all.some(({ order }) => order !== undefined);
  return html`<table class="compact">
    <thead>
      <tr>
        ${isOrdered && html`<th>Next</th>`}<th>Agent</th><th>For</th><th class="number">Waits</th>
        ${isOrdered && html`<th class="number" title="L = α · backlog + (1 − α) · waited, each over the largest">L</th><th class="number wide">waited</th><th class="number wide">backlog</th>`}
      </tr>
    </thead>
    <tbody>
      ${all.map(
        (waiter) => html`<tr key=${waiter.handle}>
          ${isOrdered && html`<td>${waiter.order}</td>`}<td>${slotLeaseName(waiter)}</td><td>${purpose(waiter)}</td><td class="number">${duration(waiter.forMs)}</td>
          ${isOrdered && html`<td class="number">${term(waiter.load)}</td><td class="number wide">${term(waiter.waitedTerm)}</td><td class="number wide">${term(waiter.backlogTerm)}</td>`}
        </tr>`,
      )}
      ${waiting > all.length && html`<tr><td class="muted" colspan="7">${isOrdered ? "the next" : "the oldest"} of ${whole(waiting)}</td></tr>`}
    </tbody>
  </table>`;
}

function term(value: number | undefined): string {
  return value === undefined ? "–" : value.toFixed(3);
}

function alphas({ alphas: { times, series }, isAutoTuned }: ResourceRow): View {
  if (!isAutoTuned || times.length < 2) return null;
  return h(LineChart, {
    ...{ title: "α over time", text: (value: number) => value.toFixed(2), top: 0.5, height: 110 },
    lines: [{ label: "α", colour: 1 }],
    columns: [times.map((at) => at / 1_000), series.alpha],
  });
}
