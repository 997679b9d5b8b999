// `waggle wait`: waits for submitted tasks and prints their outcomes.

import { Command } from "commander";
import type { AskOptions } from "../client/asker.ts";
import type { Swarm } from "../client/swarm.ts";
import { limits } from "../limits.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodeOf, exitCodes, worstOf } from "./exit-code.ts";
import { askAbout, findProject, typedProject } from "./find-project.ts";
import { errorRecord } from "./report-error.ts";
import { errorOfOutcome, outcomeLine, outcomeRecord, printOutcome } from "./submitted-text.ts";
import { parseDuration, plainNames } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { printContinuing } from "./wait-again.ts";
import { printWaitReason } from "./wait-reason.ts";

interface WaitFlags {
  readonly timeout?: number;
  /** `--project` */
  readonly typed?: string | undefined;
}

export function waitCommand(program: Program): Command {
  return new Command("wait")
    .description(
      "Waits until each task has ended. For one task: prints the result alone, like `submit --wait`. For " +
        "several tasks: prints one line per task with id, state and result, in the order of their ends. A " +
        "task that has already ended is printed at once.",
    )
    .argument("<ids...>", "ids of tasks", plainNames)
    .option(
      "--timeout <duration>",
      "maximum wait: 30s, 5m; then exit code 6; the tasks continue. Default: no limit",
      parseDuration,
    )
    .option(
      "--project <name>",
      "project of the tasks. Default: for each task the only project that has a task of its id",
    )
    .addHelpText("after", examples)
    .action((ids: string[], flags: WaitFlags, command: Command) =>
      runVerb(program, command, (context) =>
        waitForTasks(context, [...new Set(ids)], {
          ...flags,
          typed: typedProject(command, context.settings),
        }),
      ),
    );
}

const examples = `
Exit codes: 0 all completed, 4 a task failed, expired or was cancelled, 5 an id is unknown, 6 the wait timed out. If
several apply, 5 goes before 4, and 4 before 6.

Examples:
  $ waggle wait t1
  $ waggle wait t1 --timeout 30s
  $ waggle wait t1 t2 t3 --json | jq -r 'select(.state == "completed") | .taskId'`;

async function waitForTasks(
  context: VerbContext,
  ids: readonly string[],
  flags: WaitFlags,
): Promise<ExitCode> {
  return await withSwarm(context, async (swarm) => {
    await askAbout(context, flags.typed, (options) => swarm.status(options)); // fails soon without a leader
    const open = new Set(ids);
    try {
      const [only] = ids;
      if (ids.length === 1 && only !== undefined) return await waitForOne(context, swarm, only, flags);
      return await waitForMany(context, swarm, open, flags);
    } catch (error) {
      printContinuing(error, open, context);
      throw error;
    }
  });
}

async function waitForOne(
  context: VerbContext,
  swarm: Swarm,
  id: string,
  { timeout, typed }: WaitFlags,
): Promise<ExitCode> {
  const { output, signal } = context;
  const { project: configured } = context.settings;
  const project = await ask(context, (options) => findProject(swarm, { id, typed, configured }, options));
  const ended = new AbortController();
  const explain = (options: AskOptions) => swarm.explain(id, { project, ...options });
  void printWaitReason({ explain, output, signal: ended.signal });
  try {
    const timeoutMs = timeout === undefined ? {} : { timeoutMs: timeout };
    printOutcome(await swarm.task(id, { project }).outcome({ signal, ...timeoutMs }), output);
    return exitCodes.ok;
  } finally {
    ended.abort();
  }
}

/** @param open ids of live tasks; the function removes ended tasks */
async function waitForMany(
  context: VerbContext,
  swarm: Swarm,
  open: Set<string>,
  { timeout, typed }: WaitFlags,
): Promise<ExitCode> {
  const { output, signal } = context;
  const codes = new Set<ExitCode>();
  let timedOut: unknown;
  const waitFor = async (id: string) => {
    try {
      const timeoutMs = timeout === undefined ? {} : { timeoutMs: timeout };
      const sought = { id, typed, configured: context.settings.project };
      const project = await findProject(swarm, sought, { signal, timeoutMs: limits.verbAskTimeoutMs });
      const outcome = await swarm.task(id, { project }).outcome({ signal, ...timeoutMs });
      const error = errorOfOutcome(outcome);
      if (error !== undefined) codes.add(exitCodeOf(error));
      output.datum(outcomeRecord(outcome), () => outcomeLine(outcome));
      open.delete(id);
    } catch (error) {
      if (signal.aborted) return;
      const code = exitCodeOf(error);
      codes.add(code);
      if (code === exitCodes.waitTimedOut) timedOut = error;
      else {
        open.delete(id);
        const record = errorRecord(error);
        if (output.json) output.datum({ type: "error", taskId: id, ...record }, () => "");
        else output.note(`${output.noteColors.red(`error ${record.error.code}:`)} ${record.error.message}`);
      }
    }
  };
  await Promise.all([...open].map(waitFor));
  signal.throwIfAborted();
  if (timedOut !== undefined) printContinuing(timedOut, open, context);
  return worstOf(codes);
}
