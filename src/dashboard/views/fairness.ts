// The page of fairness: the share of each project against its target, the waits of users, and who went when. The target
// is the project's weight over the weights of all projects that had work in the window.

import { limits } from "../../limits.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import type { SettingsResponse } from "../../protocol/settings-schemas.ts";
import type { ActivityBook } from "../activity-book.ts";
import { quantiles } from "../quantiles.ts";
import type { Fairness, FairnessProject, FairnessUser } from "../wire.ts";

export function fairnessView(
  status: StatusResponse,
  settings: SettingsResponse,
  book: ActivityBook,
): Fairness {
  const { rules, projectTurn, userTurn } = settings.policy;
  return {
    ...{ rules, projectTurn, userTurn },
    windowMs: book.windowMs(status.at),
    projects: projectRows(status, settings, book),
    users: userRows(status),
    past: pastShares(book),
    waterfall: book.assignments.newest(),
  };
}

type Project = StatusResponse["projects"][number];

function projectRows(
  { projects }: StatusResponse,
  settings: SettingsResponse,
  book: ActivityBook,
): Fairness["projects"] {
  const weightByProject = new Map(
    settings.projects.map(({ project, settings: own }) => [project, own.creditWeight]),
  );
  const weightOf = (project: string) =>
    weightByProject.get(project) ?? settings.defaults.project.creditWeight;
  const active = projects.filter((row) => isActive(row, book));
  const weights = active.reduce((sum, { project }) => sum + weightOf(project), 0);
  const cost = book.costByProject.total;
  const rowOf = (row: Project): FairnessProject => {
    const { project, tasks } = row;
    const creditWeight = weightOf(project);
    const target = isActive(row, book) && weights > 0 ? rounded(creditWeight / weights) : 0;
    const share = cost === 0 ? 0 : rounded(book.costByProject.sumOf(project) / cost);
    const [waitP50Ms, waitP95Ms] = quantiles(book.waitsOf(project), [0.5, 0.95]) ?? [];
    return {
      ...{ project, isPaused: row.paused === true, creditWeight, target, share },
      deficit: cost === 0 ? 0 : rounded(target - share),
      assigned: book.assignedByProject.sumOf(project),
      queued: tasks["queued"] ?? 0,
      running: runningOf(tasks),
      ...(waitP50Ms === undefined || waitP95Ms === undefined ? {} : { waitP50Ms, waitP95Ms }),
    };
  };
  return Object.fromEntries(projects.map((row) => [row.project, rowOf(row)]));
}

function isActive({ project, tasks }: Project, book: ActivityBook): boolean {
  return book.assignedByProject.sumOf(project) > 0 || (tasks["queued"] ?? 0) > 0 || runningOf(tasks) > 0;
}

function userRows({ projects }: StatusResponse): Fairness["users"] {
  const rows = projects.flatMap(({ project, users }) =>
    users.map(
      ({ user, tasks, started = 0, waitMsMean, waitMsMax }): FairnessUser => ({
        ...{ project, user, queued: tasks["queued"] ?? 0, running: runningOf(tasks), started },
        ...{ waitMsMean: Math.round(waitMsMean), waitMsMax: Math.round(waitMsMax) },
      }),
    ),
  );
  const shown = rows
    .sort((one, other) => other.waitMsMax - one.waitMsMax)
    .slice(0, limits.dashboardRowsShown);
  return Object.fromEntries(shown.map((row) => [`${row.project}/${row.user}`, row]));
}

/** No name of a project. */
const OTHER = "(other)";

function pastShares(book: ActivityBook): Fairness["past"] {
  const { steps } = book.costByProject;
  const byCost = [...book.costByProject.names].sort(
    (one, other) => book.costByProject.sumOf(other) - book.costByProject.sumOf(one),
  );
  const named = byCost.slice(0, limits.dashboardSharesShown).sort();
  const shareOf = (sumByName: ReadonlyMap<string, number>, names: readonly string[]) => {
    let all = 0;
    for (const sum of sumByName.values()) all += sum;
    return all === 0 ? null : rounded(names.reduce((sum, name) => sum + (sumByName.get(name) ?? 0), 0) / all);
  };
  const rest = byCost.filter((name) => !named.includes(name));
  const lines: [string, readonly string[]][] = named.map((name) => [name, [name]]);
  if (rest.length > 0) lines.push([OTHER, rest]);
  return {
    stepMs: limits.dashboardStepMs,
    times: steps.map(({ beganAt }) => beganAt + limits.dashboardStepMs),
    shares: Object.fromEntries(
      lines.map(([line, names]) => [line, steps.map(({ sumByName }) => shareOf(sumByName, names))]),
    ),
  };
}

function runningOf(tasks: Readonly<Record<string, number>>): number {
  return (tasks["assigned"] ?? 0) + (tasks["running"] ?? 0);
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
