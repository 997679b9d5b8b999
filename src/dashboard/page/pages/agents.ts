// All agents: their state in the chart, capacity, kinds, success, load, score and share.

import { h } from "preact";
import type { AgentRow, Agents, HoldBadge } from "../../wire.ts";
import { useDashboard } from "../context.ts";
import { counted, dateTime, duration, percent, whole } from "../format.ts";
import { href } from "../router.ts";
import { html, type View } from "../ui/html.ts";
import { empty, head, loading, refusedView } from "../ui/states.ts";
import { type Column, Table } from "../ui/table.ts";
import { badge, bar, plainBadge, type Tone } from "../ui/tone.ts";
import { useLive } from "../use-live.ts";

const columns: readonly Column<AgentRow>[] = [
  {
    title: "Agent",
    by: ({ id }) => id,
    cell: (agent) => html`<div class="stack">
          <a class="strong break" href=${href(["agents", agent.id])}>${agent.id}</a>
          <span class="muted small break">${kindsText(agent)}</span>
        </div>`,
  },
  { title: "State", cell: stateBadge, by: ({ status }) => status },
  {
    title: "Capacity",
    by: ({ inFlight, maxConcurrent }) => inFlight / maxConcurrent,
    cell: ({ inFlight, maxConcurrent, status }) => html`<div class="bar-row">
          ${bar([{ share: inFlight / maxConcurrent, tone: status === "offline" ? "idle" : "accent" }], `${inFlight} of ${maxConcurrent} slots in use`)}
          <span class="nowrap">${inFlight}/${maxConcurrent}</span>
        </div>`,
  },
  {
    title: "Load",
    numeric: true,
    rank: "mid",
    cell: ({ load, status }) => (status === "offline" ? "–" : load.toFixed(2)),
    by: ({ load }) => load,
  },
  { title: "Success", numeric: true, cell: successCell, by: observedSuccess },
  { title: "Latency", numeric: true, rank: "wide", cell: (agent) => latencyText(agent), by: meanLatency },
  {
    title: "Score",
    numeric: true,
    rank: "mid",
    cell: ({ score }) => (score === undefined ? "–" : score.toFixed(2)),
    by: ({ score = -1 }) => score,
  },
  {
    title: "Share",
    numeric: true,
    rank: "mid",
    cell: ({ share }) => percent(share),
    by: ({ share }) => share,
  },
  {
    title: "Completed",
    numeric: true,
    rank: "wide",
    cell: ({ completed }) => whole(completed),
    by: ({ completed }) => completed,
  },
  {
    title: "Heartbeat",
    numeric: true,
    rank: "mid",
    cell: ({ silentMs }) => (silentMs === undefined ? "–" : duration(silentMs)),
    by: ({ silentMs = -1 }) => silentMs,
  },
];

export function AgentsPage(): View {
  const { router } = useDashboard();
  const { filters } = router.route.value;
  const { data, refused } = useLive("agents");
  if (refused.value !== undefined) return refusedView("Agents", refused.value.message);
  const agents = data.value;
  const shown =
    agents === undefined
      ? []
      : Object.values(agents.agents)
          .filter((agent) => fits(agent, filters))
          .sort(byRank);
  return html`
    ${head({ title: "Agents", note: agents === undefined ? "…" : noteOf(agents) })}
    <div class="filters">
      <input
        class="search"
        type="search"
        placeholder="Id, kind, role, type or label"
        aria-label="Search agents"
        value=${filters["text"] ?? ""}
        onInput=${(event: InputEvent) => router.filter({ text: (event.target as HTMLInputElement).value })}
      />
      <select
        aria-label="State"
        onChange=${(event: Event) => router.filter({ status: (event.target as HTMLSelectElement).value })}
      >
        ${[
          ["", "Any state"],
          ["ready", "ready"],
          ["busy", "busy"],
          ["draining", "draining"],
          ["offline", "offline"],
        ].map(
          ([value, text]) =>
            html`<option value=${value} selected=${(filters["status"] ?? "") === value}>${text}</option>`,
        )}
      </select>
    </div>
    ${body(agents, shown)}
  `;
}

function noteOf({ agents, omitted }: Agents): string {
  const all = Object.values(agents);
  const online = all.filter(({ status }) => status !== "offline");
  const used = online.reduce((sum, { inFlight }) => sum + inFlight, 0);
  const total = online.reduce((sum, { maxConcurrent }) => sum + maxConcurrent, 0);
  const more = omitted > 0 ? `; ${whole(omitted)} more are not shown` : "";
  return `${counted(online.length, "agent")} online, ${all.length - online.length} offline; ${whole(used)} of ${whole(total)} slots in use${more}`;
}

function body(agents: Agents | undefined, shown: readonly AgentRow[]): View {
  if (agents === undefined) return html`<div class="card">${loading("Loading agents")}</div>`;
  if (Object.keys(agents.agents).length === 0)
    return html`<div class="card">
      ${empty({
        title: "No agent has joined yet",
        text: "Tasks wait until an agent serves their kind. Any command that reads its input can be an agent.",
        command: "waggle agent --kind count --exec 'wc -w'",
      })}
    </div>`;
  if (shown.length === 0)
    return html`<div class="card">${empty({ title: "No agent matches", text: "Change the search or the state." })}</div>`;
  return h(Table<AgentRow>, {
    label: "Agents",
    rows: shown,
    id: ({ id }) => id,
    link: ({ id }) => href(["agents", id]),
    columns,
  });
}

export function stateBadge(agent: AgentRow): View {
  const suspended = Object.values(agent.kinds).filter(
    ({ suspendedUntilAt }) => suspendedUntilAt !== undefined,
  ).length;
  return html`<span class="row">
    ${badge(agent.isSaturated && agent.status === "busy" ? "full" : agent.status, statusTone(agent))}
    ${agent.isDraining && plainBadge("draining", "warn")}
    ${agent.isUnresponsive && plainBadge("silent", "bad")}
    ${agent.hold !== undefined && plainBadge(holdText(agent.hold), "warn")}
    ${suspended > 0 && plainBadge("suspended", "bad")}
  </span>`;
}

/** `on hold until 14:30:00`, `type on hold until …`. */
export function holdText({ on, untilAt, isProbed }: HoldBadge): string {
  const what = on === "type" ? "type on hold" : "on hold";
  return isProbed ? `${what}, probe runs` : `${what} until ${dateTime(untilAt)}`;
}

function statusTone({ status }: AgentRow): Tone {
  if (status === "offline") return "idle";
  return status === "busy" ? "accent" : "good";
}

function kindsText({ kinds, role }: AgentRow): string {
  const names = Object.keys(kinds).sort();
  const text =
    names.length > 5 ? `${names.slice(0, 5).join(", ")} and ${names.length - 5} more` : names.join(", ");
  return role === undefined ? text : `${text} · role ${role}`;
}

/** Weighted by attempts; 1 before the first. */
export function observedSuccess({ kinds }: AgentRow): number {
  const all = Object.values(kinds);
  const attempts = all.reduce((sum, kind) => sum + kind.attempts, 0);
  return attempts === 0 ? 1 : all.reduce((sum, kind) => sum + kind.attempts * kind.successRate, 0) / attempts;
}

function meanLatency({ kinds }: AgentRow): number {
  const all = Object.values(kinds);
  const attempts = all.reduce((sum, kind) => sum + kind.attempts, 0);
  return attempts === 0 ? 0 : all.reduce((sum, kind) => sum + kind.attempts * kind.latencyMs, 0) / attempts;
}

function latencyText(agent: AgentRow): string {
  const ms = meanLatency(agent);
  return ms === 0 ? "–" : duration(ms);
}

function successCell(agent: AgentRow): View {
  const hasRun = Object.values(agent.kinds).some(({ attempts }) => attempts > 0);
  const own = agent.reported?.successRate;
  const rate = observedSuccess(agent);
  return html`<div class="stack">
    <span class=${rate < 0.5 ? "bad-text" : ""}>${hasRun ? percent(rate) : "–"}</span>
    ${own !== undefined && html`<span class="muted small">says ${percent(own)}</span>`}
  </div>`;
}

function fits(
  agent: AgentRow,
  { text = "", status = "" }: Readonly<Record<string, string | undefined>>,
): boolean {
  if (status === "draining" ? !agent.isDraining : status !== "" && agent.status !== status) return false;
  const labels = Object.entries(agent.labels).map(([name, value]) => `${name}=${value}`);
  const words = [agent.id, agent.role ?? "", agent.type ?? "", ...Object.keys(agent.kinds), ...labels];
  return words.some((word) => word.toLowerCase().includes(text.toLowerCase()));
}

/** `worker-9` before `worker-10`. */
const byNumber = new Intl.Collator("en", { numeric: true });

/** Online agents first, then by id. Rows stay in place while loads change. */
function byRank(one: AgentRow, other: AgentRow): number {
  const rank = ({ status }: AgentRow) => (status === "offline" ? 1 : 0);
  return rank(one) - rank(other) || byNumber.compare(one.id, other.id);
}
