// What is done to many tasks: those that are named, or all that a filter takes, once their number was confirmed. The
// tasks are listed first and touched then, so that none is touched twice; run again, it goes on with what is left.

import { createInterface } from "node:readline/promises";
import type { Swarm } from "../client/swarm.ts";
import type { TaskFilterOptions, TaskListOptions } from "../client/task-lists.ts";
import { WaggleError } from "../errors.ts";
import type { ListedTask } from "../protocol/task-list-schemas.ts";
import { ask } from "./ask.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { counted, formatCount } from "./format.ts";
import { printable } from "./output.ts";
import { errorRecord } from "./report-error.ts";
import { UsageError } from "./usage-error.ts";
import type { VerbContext } from "./verb.ts";

export interface BulkVerb {
  /** `retry` */
  readonly name: string;
  /** The states of tasks that it touches, where the filter names none. */
  readonly states: readonly ListedTask["state"][];
  /** Does it to one task. @returns what to tell: `retried, round 2` */
  touch(
    task: Pick<ListedTask, "task"> & Partial<ListedTask>,
  ): Promise<{ readonly text: string; readonly record: object }>;
}

export interface BulkFlags {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** Tasks shown of a dry run, for people. */
const SHOWN_MAX = 20;
/** Between two lines of progress. */
const PROGRESS_TASKS = 500;

/** @throws UsageError where it is not clear what is meant */
export function checkTargets(
  name: string,
  ids: readonly string[],
  filter: TaskFilterOptions,
  flags: BulkFlags,
): void {
  const hasFilter = Object.keys(filter).some((key) => key !== "project" || ids.length === 0);
  if (ids.length > 0 && hasFilter)
    throw new UsageError(
      `name tasks, or filter them, not both: waggle ${name} ID… or waggle ${name} --state …`,
    );
  if (ids.length === 0 && !hasFilter)
    throw new UsageError(`name the tasks, or a filter: waggle ${name} ID… or waggle ${name} --state …`);
  if (ids.length > 0 && flags.dryRun === true)
    throw new UsageError("--dry-run shows what a filter takes; named tasks need none");
}

/** Every task that is named. */
export async function touchNamed(
  context: VerbContext,
  ids: readonly string[],
  verb: BulkVerb,
): Promise<ExitCode> {
  return await touchAll(
    context,
    ids.map((task) => ({ task })),
    verb,
  );
}

/** Every task that the filter takes, once that is confirmed. */
export async function touchFiltered(
  context: VerbContext,
  {
    swarm,
    filter,
    flags,
    verb,
  }: {
    readonly swarm: Swarm;
    readonly filter: TaskFilterOptions;
    readonly flags: BulkFlags;
    readonly verb: BulkVerb;
  },
): Promise<ExitCode> {
  const { output, shell } = context;
  const wanted = { sort: "submitted", ...filter, state: filter.state ?? verb.states } as TaskListOptions;
  const found = await ask(context, async ({ signal }) => {
    const listed: ListedTask[] = [];
    for await (const task of swarm.tasks({ ...wanted, signal })) listed.push(task);
    return listed;
  });
  if (found.length === 0) {
    output.note("no task is like that");
    return exitCodes.ok;
  }
  if (flags.dryRun === true) {
    const shown = output.json ? found : found.slice(0, SHOWN_MAX);
    for (const task of shown)
      output.datum(
        task,
        () => `${printable(task.task)}  ${task.state}  ${printable(task.kind)}  ${task.project}`,
      );
    const rest = found.length - shown.length;
    output.note(
      `would ${verb.name} ${counted(found.length, "task")}${rest === 0 ? "" : `; ${formatCount(rest)} not shown (--json shows all)`}`,
    );
    return exitCodes.ok;
  }
  if (flags.yes !== true) {
    if (shell.stdin.isTTY !== true || !output.isNoteTerminal)
      throw new UsageError(
        `${counted(found.length, "task")} would be touched: look with --dry-run, then add --yes`,
        { field: "--yes" },
      );
    if (!(await isConfirmed(context, found.length, verb.name))) {
      output.note("nothing was done");
      return exitCodes.ok;
    }
  }
  return await touchAll(context, found, verb);
}

async function isConfirmed(
  { shell, output, signal }: VerbContext,
  count: number,
  name: string,
): Promise<boolean> {
  const lines = createInterface({ input: shell.stdin });
  output.note(`${name} ${counted(count, "task")}? Type ${count} to go on, anything else to stop:`);
  try {
    const answer = await new Promise<string>((resolve, reject) => {
      lines.once("line", resolve);
      lines.once("close", () => resolve(""));
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    return answer.replaceAll(",", "").trim() === String(count);
  } finally {
    lines.close();
  }
}

async function touchAll(
  context: VerbContext,
  tasks: readonly (Pick<ListedTask, "task"> & Partial<ListedTask>)[],
  verb: BulkVerb,
): Promise<ExitCode> {
  const { output, signal } = context;
  let code: ExitCode = exitCodes.ok;
  let failed = 0;
  let done = 0;
  const one = async (task: Pick<ListedTask, "task"> & Partial<ListedTask>) => {
    try {
      const { text, record } = await verb.touch(task);
      output.datum(record, () => `${printable(task.task)} ${text}`);
    } catch (error) {
      if (signal.aborted || tasks.length === 1 || !(error instanceof WaggleError)) throw error;
      const record = errorRecord(error);
      code = record.error.exitCode;
      failed += 1;
      if (output.json) output.datum({ taskId: task.task, ...record }, () => "");
      else output.note(`${output.noteColors.red(`error ${record.error.code}:`)} ${record.error.message}`);
    }
    done += 1;
    if (done % PROGRESS_TASKS === 0)
      output.note(`${formatCount(done)} of ${counted(tasks.length, "task")} …`);
  };
  for (let from = 0; from < tasks.length; from += AT_ONCE) {
    signal.throwIfAborted();
    await Promise.all(tasks.slice(from, from + AT_ONCE).map(one));
  }
  if (tasks.length > 1 && failed > 0)
    output.note(
      `${formatCount(done - failed)} of ${counted(tasks.length, "task")} done, ${formatCount(failed)} refused; run it again for those that are left`,
    );
  return code;
}

/** Requests under way at once. */
const AT_ONCE = 32;
