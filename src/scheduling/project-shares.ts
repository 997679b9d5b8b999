// Share and target of each project at one instant, as the rule set `budget` compares them. The share is the project's
// part of all tokens of the guarantee's window. The target is the part of its credit weight among the waiting projects.

import type { Instant } from "../ids.ts";
import { totalAt } from "../state/rolling-window.ts";
import { type ProjectRow, projectSettingsOf, type SwarmState } from "../state/state.ts";
import { projectGate } from "./gates.ts";

export interface ProjectShare {
  readonly row: ProjectRow;
  /** [0, 1] */
  readonly share: number;
  /** (0, 1]; undefined for a project without waiting tasks that may run. */
  readonly target: number | undefined;
}

export function projectSharesOf(state: SwarmState, now: Instant): readonly ProjectShare[] {
  const at = Math.max(now, state.at) as Instant;
  const waiting = waitingProjects(state);
  const weights = sumOf(waiting, (row) => projectSettingsOf(row).creditWeight);
  const tokens = sumOf(state.projectById.values(), ({ ledger }) => totalAt(ledger.usage, at));
  return [...state.projectById.values()].map((row) => ({
    row,
    share: tokens === 0 ? 0 : totalAt(row.ledger.usage, at) / tokens,
    target: waiting.has(row) ? projectSettingsOf(row).creditWeight / weights : undefined,
  }));
}

/** Projects with queued tasks whose gates are open. */
function waitingProjects(state: SwarmState): ReadonlySet<ProjectRow> {
  const rows = new Set<ProjectRow>();
  for (const { memberByProject } of state.queueByKey.values())
    for (const { row } of memberByProject.values()) if (projectGate(row) === undefined) rows.add(row);
  return rows;
}

function sumOf<Row>(rows: Iterable<Row>, of: (row: Row) => number): number {
  let sum = 0;
  for (const row of rows) sum += of(row);
  return sum;
}
