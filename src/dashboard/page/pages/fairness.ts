// Fairness: share against target by project, now and in the past, and waits of users. The waterfall shows the newest
// assignments, a line per task, coloured by user.

import { h } from "preact";
import type { Fairness, FairnessProject, FairnessUser } from "../../wire.ts";
import { useDashboard } from "../context.ts";
import { counted, duration, percent, whole } from "../format.ts";
import { PauseButton } from "../pause-button.ts";
import { href } from "../router.ts";
import { html, type View } from "../ui/html.ts";
import { LineChart } from "../ui/line-chart.ts";
import { empty, head, loading, refusedView, section } from "../ui/states.ts";
import { Table } from "../ui/table.ts";
import { plainBadge } from "../ui/tone.ts";
import { useLive } from "../use-live.ts";
import { MomentPicker, PastFairnessPage } from "./fairness-past.ts";
import { shareView, WaterfallSection, workColumns } from "./waterfall-section.ts";

/** Filters that name a moment of the past. */
const momentFilters = ["idx", "task", "project", "attempt", "at"] as const;

export function FairnessPage(): View {
  const { router } = useDashboard();
  const { filters } = router.route.value;
  const moment = Object.fromEntries(momentFilters.map((name) => [name, filters[name]]));
  const isPast = [moment["idx"], moment["task"], moment["at"]].some(Boolean);
  return isPast ? h(PastFairnessPage, { moment, key: JSON.stringify(moment) }) : h(PresentFairnessPage, {});
}

function PresentFairnessPage(): View {
  const { data, refused } = useLive("fairness");
  if (refused.value !== undefined) return refusedView("Fairness", refused.value.message);
  const fairness = data.value;
  if (fairness === undefined)
    return html`${head({ title: "Fairness", note: "…" })}<div class="card">${loading("Loading shares")}</div>`;
  const projects = Object.values(fairness.projects);
  return html`
    ${head({ title: "Fairness", note: noteOf(fairness), side: h(MomentPicker, {}) })}
    ${projects.length === 0 ? nothing() : h(ProjectTable, { projects, windowMs: fairness.windowMs })}
    ${past(fairness)}
    ${h(WaterfallSection, { rows: fairness.waterfall, note: "the newest " })}
    ${section({ title: "Users", note: "waits since the swarm began, the longest first" }, users(Object.values(fairness.users)))}
  `;
}

function noteOf({ rules, projectTurn, userTurn, windowMs }: Fairness): string {
  const turn =
    projectTurn === "none" ? `users by ${userTurn}` : `projects by ${projectTurn}, users by ${userTurn}`;
  return `Rules ${rules}: turns of ${turn}. Shares of the last ${duration(windowMs)}`;
}

function nothing(): View {
  return html`<div class="card">
    ${empty({ title: "No project had work", text: "Shares appear with the first assignment. A project gets its weight's part while other projects wait." })}
  </div>`;
}

interface ProjectTableProps {
  readonly projects: readonly FairnessProject[];
  readonly windowMs: number;
}

function ProjectTable({ projects }: ProjectTableProps): View {
  const rows = [...projects].sort(
    (one, other) => other.target - one.target || one.project.localeCompare(other.project),
  );
  return h(Table<FairnessProject>, {
    ...{ label: "Share by project", rows, id: ({ project }: FairnessProject) => project },
    link: ({ project }) => href(["tasks"], { project }),
    columns: [
      {
        title: "Project",
        by: ({ project }) => project,
        cell: ({ project, creditWeight, isPaused }) => html`<div class="stack">
          <a class="strong break" href=${href(["tasks"], { project })}>${project}</a>
          <span class="muted small">weight ${creditWeight} ${isPaused && plainBadge("paused", "warn")}</span>
        </div>`,
      },
      { title: "Share against target", cell: shareView, by: ({ share }) => share },
      {
        title: "Deficit",
        numeric: true,
        rank: "mid",
        cell: ({ deficit }) => deficitText(deficit),
        by: ({ deficit }) => deficit,
      },
      ...workColumns,
      {
        title: "Wait p50",
        numeric: true,
        rank: "wide",
        cell: ({ waitP50Ms }) => optional(waitP50Ms),
        by: ({ waitP50Ms = -1 }) => waitP50Ms,
      },
      {
        title: "Wait p95",
        numeric: true,
        rank: "mid",
        cell: ({ waitP95Ms }) => optional(waitP95Ms),
        by: ({ waitP95Ms = -1 }) => waitP95Ms,
      },
      {
        title: "Assignments",
        rank: "wide",
        numeric: true,
        cell: ({ project, isPaused }) => h(PauseButton, { project, isPaused }),
      },
    ],
  });
}

function optional(ms: number | undefined): string {
  return ms === undefined ? "–" : duration(ms);
}

function deficitText(deficit: number): string {
  const points = Math.round(deficit * 100);
  if (points === 0) return "even";
  return points > 0 ? `${counted(points, "point")} short` : `${counted(-points, "point")} over`;
}

function past({ past: { times, shares } }: Fairness): View {
  const names = Object.keys(shares);
  if (times.length < 2 || names.length === 0) return null;
  return section(
    { title: "Shares over time" },
    h(LineChart, {
      // A new set of projects needs a new chart.
      ...{ key: names.join(" "), title: "Share of assignments", text: percent, top: 1 },
      lines: names.map((label, at) => ({ label, colour: (at % 8) + 1 })),
      columns: [times.map((at) => at / 1_000), ...names.map((name) => shares[name] ?? [])],
    }),
  );
}

function users(rows: readonly FairnessUser[]): View {
  if (rows.length === 0)
    return html`<div class="card">${empty({ title: "No user has submitted a task" })}</div>`;
  return h(Table<FairnessUser>, {
    ...{ label: "Waits by user", id: ({ project, user }: FairnessUser) => `${project}/${user}` },
    rows: [...rows].sort((one, other) => other.waitMsMax - one.waitMsMax),
    link: ({ project, user }) => href(["tasks"], { project, user }),
    columns: [
      {
        title: "User",
        by: ({ user }) => user,
        cell: ({ project, user }) => html`<div class="stack">
          <a class="strong break" href=${href(["tasks"], { project, user })}>${user}</a><span class="muted small">${project}</span>
        </div>`,
      },
      ...workColumns,
      {
        title: "Started",
        numeric: true,
        rank: "mid",
        cell: ({ started }) => whole(started),
        by: ({ started }) => started,
      },
      {
        title: "Mean wait",
        numeric: true,
        cell: ({ waitMsMean }) => duration(waitMsMean),
        by: ({ waitMsMean }) => waitMsMean,
      },
      {
        title: "Longest",
        numeric: true,
        cell: ({ waitMsMax }) => duration(waitMsMax),
        by: ({ waitMsMax }) => waitMsMax,
      },
    ],
  });
}
