// The list of tasks: a page of the swarm's own list, or a search through several pages of it.

import type { Swarm } from "../../client/swarm.ts";
import type { TaskListOptions } from "../../client/task-lists.ts";
import { defined, type Widened } from "../../defined.ts";
import { InvalidMessageError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import type { ListedTask, TasksResponse } from "../../protocol/task-list-schemas.ts";
import { filterCommand } from "../command-text.ts";
import type { TaskCounts, TaskPage, TaskQuery, TaskRow } from "../wire.ts";

export async function tasksView(
  swarm: Pick<Swarm, "taskPage">,
  query: Widened<TaskQuery>,
): Promise<TaskPage> {
  const { text, sort, limit, after, attribute, ...rest } = query;
  const filter = { ...rest, ...attributesIn(attribute) };
  if (text !== undefined) return await searched(swarm, query, text.toLowerCase());
  const page = await swarm.taskPage({
    ...optionsOf(query),
    ...defined({ after }),
    limit: limit ?? limits.tasksPageDefault,
  });
  const more = [
    ...(sort === undefined ? [] : ["--sort", sort]),
    ...(limit === undefined ? [] : ["--limit", String(limit)]),
  ];
  return {
    ...headOf(page),
    rows: page.tasks.map(taskRow),
    total: page.total,
    ...defined({ next: page.next }),
    command: filterCommand("tasks", filter, ...more),
  };
}

/** Looks through pages until enough tasks match. The cursor holds the list's cursor and the rows already seen. */
async function searched(
  swarm: Pick<Swarm, "taskPage">,
  query: Widened<TaskQuery>,
  text: string,
): Promise<TaskPage> {
  const { limit = limits.tasksPageDefault } = query;
  let { skip, after } = placeIn(query.after);
  const rows: TaskRow[] = [];
  let scanned = 0;
  for (let pages = 1; ; pages += 1) {
    const page = await swarm.taskPage({
      ...optionsOf(query),
      ...defined({ after }),
      limit: limits.tasksPageMax,
    });
    for (const [at, task] of page.tasks.entries()) {
      if (at < skip) continue;
      scanned += 1;
      if (!hasText(task, text)) continue;
      rows.push(taskRow(task));
      if (rows.length === limit) return { ...headOf(page), rows, scanned, next: `${at + 1}.${after ?? ""}` };
    }
    if (page.next === undefined) return { ...headOf(page), rows, scanned };
    skip = 0;
    after = page.next;
    if (pages === limits.dashboardSearchPagesMax)
      return { ...headOf(page), rows, scanned, next: `0.${after}` };
  }
}

/** The filter that the address names: `ticket=OPS-17`. */
function attributesIn(attribute: string | undefined) {
  if (attribute === undefined) return {};
  const at = attribute.indexOf("=");
  return { attributes: { [attribute.slice(0, at)]: attribute.slice(at + 1) } };
}

function placeIn(cursor: string | undefined): { skip: number; after: string | undefined } {
  if (cursor === undefined) return { skip: 0, after: undefined };
  const [, skip, after] = /^(\d{1,4})\.(.*)$/s.exec(cursor) ?? [];
  if (skip === undefined || after === undefined)
    throw new InvalidMessageError("after: is no place in a search; give `next` of the page before", {
      field: "after",
    });
  return { skip: Number(skip), after: after === "" ? undefined : after };
}

function hasText({ task, kind, user, project, agent = "" }: ListedTask, text: string): boolean {
  return [task, kind, user, project, agent].some((field) => field.toLowerCase().includes(text));
}

function optionsOf({
  state,
  kind,
  project,
  user,
  agent,
  attribute,
  olderThanMs,
  sort,
}: Widened<TaskQuery>): TaskListOptions {
  return {
    ...attributesIn(attribute),
    ...defined({ state, kind, project, user, agent, olderThanMs, sort }),
    timeoutMs: limits.dashboardActionMs,
  };
}

function headOf({ idx, at, stale }: TasksResponse) {
  return { idx, at, isStale: stale === true };
}

export function taskRow(listed: ListedTask): TaskRow {
  const { task, project, user, kind, state, round, attempts, agent, since, ageMs } = listed;
  const name = { task, project, user, kind, state, round, attempts };
  return { ...name, ...defined({ agent }), sinceAt: since, ageMs: Math.round(ageMs) };
}

export function taskCountsView({ tasks, queues, agents, projects }: StatusResponse): TaskCounts {
  const kinds = [
    ...queues.map(({ kind }) => kind),
    ...agents.flatMap((row) => row.kinds.map(({ kind }) => kind)),
  ];
  return {
    tasks,
    kinds: menuOf(kinds),
    projects: menuOf(projects.map(({ project }) => project)),
    users: menuOf(projects.flatMap(({ users }) => users.map(({ user }) => user))),
    agents: menuOf(agents.map(({ id }) => id)),
  };
}

function menuOf(names: readonly string[]): readonly string[] {
  return [...new Set(names)].sort().slice(0, limits.dashboardRowsShown);
}
