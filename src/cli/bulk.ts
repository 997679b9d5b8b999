// A verb on many tasks: tasks by id, or all tasks that match a filter, after a confirmation of their number. The verb
// lists the tasks first, so that it handles no task twice. A repeated command handles the remaining tasks.

import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import type { AskOptions } from "../client/asker.ts";
import type { BulkResult, TaskRef } from "../client/bulk.ts";
import type { Swarm } from "../client/swarm.ts";
import type { TaskFilterOptions, TaskListOptions } from "../client/task-lists.ts";
import { counted, formatCount } from "../count-text.ts";
import { WaggleError } from "../errors.ts";
import type { ListedTask } from "../protocol/task-list-schemas.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { findProject, typedProject } from "./find-project.ts";
import { printable } from "./output.ts";
import { errorRecord } from "./report-error.ts";
import { addFilterFlags, type FilterFlags, filterOf } from "./task-filter.ts";
import { NO_TASK, taskTable } from "./tasks.ts";
import { UsageError } from "./usage-error.ts";
import type { VerbContext } from "./verb.ts";

export interface BulkVerb {
  /** `retry` */
  readonly name: string;
  /** States of the tasks that the verb accepts, if the filter names none. */
  readonly states: readonly ListedTask["state"][];
  /** Handles tasks. @returns for each task its outcome, and the text to print: `retried, round 2` */
  touch(
    tasks: readonly TaskRef[],
    options: AskOptions,
  ): Promise<readonly BulkResult<{ readonly taskId: string; readonly text: string }>[]>;
}

export interface BulkFlags extends FilterFlags {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** The command line: ids of tasks, or filters. */
export interface BulkRequest {
  readonly ids: readonly string[];
  readonly flags: BulkFlags;
  readonly command: Command;
}

/** Adds the filters, --dry-run and --yes. @param states the states of the tasks that the verb accepts */
export function addBulkFlags(command: Command, states: BulkVerb["states"]): Command {
  return addFilterFlags(command, states)
    .option("--dry-run", "show which tasks the filters match, and how many; change nothing")
    .option("--yes", "do not ask to confirm");
}

/** Runs a bulk verb on the named tasks, or on the tasks that match the filters. @throws UsageError if ids and filters
 *  are both given, or neither */
export async function touch(
  context: VerbContext,
  { ids, flags, command }: BulkRequest,
  verbOf: (swarm: Swarm) => BulkVerb,
): Promise<ExitCode> {
  const filter = filterOf(flags, command);
  checkTargets(command.name(), ids, filter, flags);
  return await withSwarm(context, async (swarm) => {
    const verb = verbOf(swarm);
    checkStates(flags, verb);
    const project = typedProject(command, context.settings);
    const scope = project === undefined ? {} : { project };
    if (ids.length === 0)
      return await touchFiltered(context, { swarm, filter: { ...filter, ...scope }, flags, verb });
    const placed = await placedTasks(context, swarm, ids, project);
    return await touchTasks(context, placed, verb);
  });
}

/** The named tasks with their projects. An id that several projects have ends the verb before any request. An unknown
 *  task is refused later and does not stop the remaining tasks. */
async function placedTasks(
  context: VerbContext,
  swarm: Swarm,
  ids: readonly string[],
  typed: string | undefined,
): Promise<readonly TaskRef[]> {
  const configured = context.settings.project;
  return await ask(context, async (options) => {
    const placed: TaskRef[] = [];
    for (const task of ids)
      placed.push({
        task,
        project: await findProject(swarm, { id: task, typed, configured }, options).catch(
          (error: unknown) => {
            if (error instanceof WaggleError && error.code === "WAGGLE_UNKNOWN_TASK") return configured;
            throw error;
          },
        ),
      });
    return placed;
  });
}

/** Tasks shown of a dry run, for people. */
const SHOWN_MAX = 20;
/** Tasks per request round; results are printed after each round. */
const LOT_TASKS = 256;

/** @throws UsageError if ids and filters are ambiguous */
function checkTargets(
  name: string,
  ids: readonly string[],
  filter: TaskFilterOptions,
  flags: BulkFlags,
): void {
  const hasFilter = Object.keys(filter).some((key) => key !== "project" || ids.length === 0);
  if (ids.length > 0 && hasFilter)
    throw new UsageError(
      `give task ids or filters, not both: waggle ${name} ID… or waggle ${name} --state …`,
    );
  if (ids.length === 0 && !hasFilter)
    throw new UsageError(`give task ids or filters: waggle ${name} ID… or waggle ${name} --state …`);
  if (ids.length > 0 && flags.dryRun === true)
    throw new UsageError("--dry-run requires filters; leave it out with task ids");
}

/** @throws UsageError for a state that the verb refuses */
function checkStates({ state = [] }: BulkFlags, { name, states }: BulkVerb): void {
  const other = state.find((each) => !states.includes(each));
  if (other === undefined) return;
  throw new UsageError(`${name} takes tasks that are ${states.join(", ")}; not ${other}`, {
    field: "--state",
  });
}

/** All tasks that match the filter, after the confirmation. */
async function touchFiltered(
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
  const wanted = {
    sort: "submitted",
    ...filter,
    state: filter.state ?? verb.states,
    fresh: true,
  } as TaskListOptions;
  const found = await ask(context, async (asked) => {
    const listed: ListedTask[] = [];
    for await (const task of swarm.tasks({ ...wanted, ...asked })) listed.push(task);
    return listed;
  });
  if (found.length === 0) {
    output.note(NO_TASK);
    return exitCodes.ok;
  }
  if (flags.dryRun === true) {
    const shown = output.json ? found : found.slice(0, SHOWN_MAX);
    if (output.json) for (const task of shown) output.datum(task, () => "");
    else output.datum(shown, () => taskTable(shown, output));
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
  return await touchTasks(context, found, verb);
}

async function isConfirmed(
  { shell, output, signal }: VerbContext,
  count: number,
  name: string,
): Promise<boolean> {
  const lines = createInterface({ input: shell.stdin });
  output.note(`${name} ${counted(count, "task")}? Type ${count} to continue, anything else to stop:`);
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

/** Every given task, in lots. A refused task does not stop the others; the exit code is the last refusal's. */
async function touchTasks(
  context: VerbContext,
  tasks: readonly TaskRef[],
  verb: BulkVerb,
): Promise<ExitCode> {
  const { output, signal } = context;
  let code: ExitCode = exitCodes.ok;
  let refused = 0;
  for (let from = 0; from < tasks.length; from += LOT_TASKS) {
    const lot = tasks.slice(from, from + LOT_TASKS);
    const results = await ask(context, (asked) => verb.touch(lot, asked)).catch((error: unknown) => {
      if (signal.aborted) output.note(interruptedText({ done: from, asked: lot.length, of: tasks.length }));
      throw error;
    });
    for (const result of results) {
      if (result.ok) {
        const { ok: _, text, ...record } = result;
        output.datum(record, () => `${printable(result.taskId)} ${text}`);
        continue;
      }
      if (tasks.length === 1) throw result.error;
      const record = errorRecord(result.error);
      code = record.error.exitCode;
      refused += 1;
      if (output.json) output.datum({ taskId: result.taskId, ...record }, () => "");
      else output.note(`${output.noteColors.red(`error ${record.error.code}:`)} ${record.error.message}`);
    }
    const done = from + lot.length;
    if (done === tasks.length) break;
    output.note(`${formatCount(done)} of ${counted(tasks.length, "task")} …`);
    if (signal.aborted) output.note(interruptedText({ done, asked: 0, of: tasks.length }));
    signal.throwIfAborted();
  }
  if (refused > 0)
    output.note(
      `${formatCount(tasks.length - refused)} of ${counted(tasks.length, "task")} done, ${formatCount(refused)} refused`,
    );
  return code;
}

/** Progress at an interrupt. A repeated command handles the remaining tasks. */
function interruptedText({
  done,
  asked,
  of,
}: {
  readonly done: number;
  readonly asked: number;
  readonly of: number;
}): string {
  const doubt = asked === 0 ? "" : `; no answer for the next ${formatCount(asked)}: each may be done or not`;
  return `${formatCount(done)} of ${counted(of, "task")} done${doubt}. Run the command again for the remaining tasks`;
}
