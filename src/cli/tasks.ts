// `waggle tasks`: lists live tasks, and ended tasks within the horizon.

import { Command, Option } from "commander";
import { duration } from "../audit/describe.ts";
import type { TaskListOptions } from "../client/task-lists.ts";
import { counted, formatCount } from "../count-text.ts";
import { limits } from "../limits.ts";
import { type ListedTask, type TaskSort, taskSorts, taskStates } from "../protocol/task-list-schemas.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { askAbout, onlyProject, typedProject } from "./find-project.ts";
import type { Output } from "./output.ts";
import { type Column, renderTable } from "./table.ts";
import { addFilterFlags, type FilterFlags, filterOf } from "./task-filter.ts";
import { wholeNumber } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface TasksFlags extends FilterFlags {
  readonly limit: number;
  readonly sort: TaskSort;
  readonly after?: string;
}

const LIMIT_DEFAULT = 20;

export function tasksCommand(program: Program): Command {
  const command = new Command("tasks").description(
    "Lists tasks, page by page: live tasks first, running before waiting, then ended tasks, newest first. " +
      "Ended tasks are listed for 24 h by default (`waggle policy set --remember`).",
  );
  return addFilterFlags(command, taskStates)
    .addOption(
      new Option(
        "--sort <order>",
        "newest: live tasks first; oldest; submitted: in order of submission; attempts: most attempts first",
      )
        .choices(taskSorts)
        .default("newest"),
    )
    .option(
      "--limit <n>",
      "maximum number of tasks per page",
      wholeNumber(1, limits.tasksPageMax),
      LIMIT_DEFAULT,
    )
    .option("--after <cursor>", "cursor that the previous page printed; shows the next page")
    .addHelpText("after", examples)
    .action((flags: TasksFlags, command: Command) =>
      runVerb(program, command, (context) => tasks(context, flags, command)),
    );
}

const examples = `
Examples:
  $ waggle tasks
  $ waggle tasks --state dead-lettered,failed --kind summarize
  $ waggle tasks --state running --older-than 10m
  $ waggle tasks --attribute ticket=OPS-17
  $ waggle tasks --json --limit 1000 | jq -r .task`;

async function tasks(context: VerbContext, flags: TasksFlags, command: Command): Promise<ExitCode> {
  const { output } = context;
  const { limit, sort, after } = flags;
  const typed = typedProject(command, context.settings);
  const scope = {
    ...(typed === undefined ? {} : { project: typed }),
    ...(after === undefined ? {} : { after }),
  };
  const options = { ...filterOf(flags, command), ...scope, limit, sort };
  return await withSwarm(context, async (swarm) => {
    const { answer: page, project } = await askAbout(context, options.project, (asked) =>
      swarm.taskPage({ ...options, ...asked } as TaskListOptions),
    );
    if (project !== options.project) output.note(onlyProject(project));
    if (output.json) for (const row of page.tasks) output.datum(row, () => "");
    else if (page.tasks.length > 0) output.datum(page, () => taskTable(page.tasks, output));
    if (page.stale === true) output.note("answered by a standby; the leader may know more");
    if (page.total === 0) output.note(NO_TASK);
    else if (page.next !== undefined)
      output.note(
        `${formatCount(page.more)} more, of ${counted(page.total, "task")}; the next page: add --after ${page.next}`,
      );
    return exitCodes.ok;
  });
}

const columns: readonly Column[] = [
  { head: "task", whenNarrow: "whole" },
  { head: "state", whenNarrow: "whole" },
  { head: "kind" },
  { head: "project", whenNarrow: "drop" },
  { head: "user", whenNarrow: "drop" },
  { head: "agent", whenNarrow: "drop" },
  { head: "tries", align: "right" },
  { head: "round", align: "right", whenNarrow: "drop" },
  { head: "age", align: "right" },
];

export function taskTable(tasks: readonly ListedTask[], output: Pick<Output, "columns" | "colors">): string {
  const rows = tasks.map((row) => [
    row.task,
    row.state,
    row.kind,
    row.project,
    row.user,
    row.agent ?? "",
    row.attempts,
    row.round,
    duration(row.ageMs),
  ]);
  return renderTable(output, columns, rows);
}

/** Text of an empty list. */
export const NO_TASK = "no task matches";
