// `waggle submit`: submits tasks; with --wait or --watch waits for their end. Not here: tasks of flags and files
// (task-source.ts), many tasks at once (submit-many.ts).

import { Command } from "commander";
import type { AskOptions } from "../client/asker.ts";
import type { SubmitOptions, Swarm } from "../client/swarm.ts";
import type { TaskHandle } from "../client/task-handle.ts";
import type { TaskRequest } from "../client/task-request.ts";
import { OutcomeUnknownError } from "../errors.ts";
import { limits } from "../limits.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import type { Output } from "./output.ts";
import { durationBetween } from "./setting-flags.ts";
import { checkFiles } from "./source.ts";
import { printChunks } from "./streamed-text.ts";
import { submitMany } from "./submit-many.ts";
import {
  printAccepted,
  printOutcome,
  printStreamed,
  type SubmitFlags,
  staysUntilTheEnd,
} from "./submitted-text.ts";
import { lineFields, type TaskSource, taskSource } from "./task-source.ts";
import { printUpdate } from "./update-text.ts";
import { UsageError } from "./usage-error.ts";
import { attributeMap, needMap, numberBetween, parseDuration, parseTime, wholeNumber } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { printContinuing, printUnanswered } from "./wait-again.ts";
import { printWaitReason } from "./wait-reason.ts";

export function submitCommand(program: Program): Command {
  return new Command("submit")
    .description(
      "Submits one task of --kind with the payload of --payload, --text, @FILE or - (standard input); several " +
        "@FILEs are several tasks. Without --kind, @FILE or - holds NDJSON: one task per line.",
    )
    .argument("[sources...]", "@FILE or - (standard input)")
    .option("--kind <kind>", "kind of the task; the agent must serve the kind. Required, except with NDJSON")
    .option("--payload <json>", "payload as JSON; @FILE or - reads the JSON from a file or standard input")
    .option("--text <text>", "payload as plain text")
    .option("--project <name>", "project of the task (WAGGLE_PROJECT; default: default)")
    .option("--user <name>", "user who submits (WAGGLE_USER; default: the account's name)")
    .option("--role <role>", "only agents of this role")
    .option(
      "--need <label=value>",
      "only agents with this label; several accepted values separated by commas: region=eu,us; may be repeated",
      needMap,
    )
    .option(
      "--affinity <key>",
      "prefer the agent of the last task with this key while it has free capacity; forgotten after 1 h without use",
    )
    .option(
      "--attribute <name=value>",
      "your own value, stored with the task, to find it in `waggle tasks`; at most 4 KiB in all; may be repeated",
      attributeMap,
    )
    .option(
      "--priority <n>",
      "priority; lower runs first; default 100",
      wholeNumber(-limits.priorityMagnitudeMax, limits.priorityMagnitudeMax),
    )
    .option(
      "--weight <n>",
      "cost of the task for fairness, at least 1; default 1",
      numberBetween(1, limits.taskWeightMax),
    )
    .option(
      "--model <name>",
      "cost by the price class of the model and the length of the payload; excludes --weight",
    )
    .option(
      "--tokens <n>",
      "estimated tokens. Default: the kind's mean so far, or 1,000 before the first attempt",
      wholeNumber(0, limits.tokensPerAttemptMax),
    )
    .option(
      "--id <id>",
      "id of the task; a repeated submit with the same id and content is the same task. Default: a random id",
    )
    .option(
      "--deadline <time>",
      "time at which an unfinished task expires: 2026-11-20T18:00:00Z or +5m. Default: none",
      (text) => parseTime(text),
    )
    .option("--not-before <time>", "earliest start: 2026-11-20T18:00:00Z or +5m. Default: at once", (text) =>
      parseTime(text),
    )
    .option(
      "--max-attempts <n>",
      `maximum number of attempts; default ${limits.maxAttemptsDefault}`,
      wholeNumber(1, limits.maxAttemptsMax),
    )
    .option(
      "--timeout <duration>",
      "maximum time of one attempt: 30s, 5m; default 1h",
      durationBetween(1, limits.attemptTimeoutMsMax),
    )
    .option(
      "--stall <duration>",
      "maximum time of an attempt without a progress report; default: no limit",
      durationBetween(limits.stallMsMin, limits.stallMsMax),
    )
    .option(
      "--ndjson",
      "read the sources as NDJSON although --kind is given; lines without a kind get this kind",
    )
    .option("--fail-fast", "refuse the task if no agent serves the kind, instead of queueing it")
    .option("--wait", "wait for the end and print the result")
    .option(
      "--wait-timeout <duration>",
      "maximum wait: 30s, 5m; then exit code 6; the task continues. Implies --wait. Default: no limit",
      parseDuration,
    )
    .option("--watch", "print each event of the task, then its result")
    .option("--stream", "print the result as the agent produces it. Implies --wait")
    .addHelpText("after", examples)
    .action((sources: string[], flags: SubmitFlags, command: Command) =>
      runVerb(program, command, (context) => submit(context, sources, flags)),
    );
}

const examples = `
Prints the task's id, or with --wait its result. At a terminal, --wait also says why a task does not run yet. Exit codes: 4 the task failed, 5 it was rejected, 6 the wait timed out.

Fields of a line of NDJSON: ${lineFields.join(", ")}. Durations are in ms; times are as for the flags, or in ms since 1970. A field overrides the flag of the same meaning. Any other field is refused.

Examples:
  $ waggle submit --kind count --text 'how many words' --wait
  $ waggle submit --kind count @README.md @CHANGELOG.md
  $ waggle submit --kind write --text 'a story about bees' --stream
  $ waggle submit --kind review --payload '{"pull":42}' --user ann --priority 10 --watch
  $ waggle submit --kind summarise --model gpt-4o @article.txt
  $ waggle submit --kind train --need gpu=a100,h100 --need region=eu --attribute ticket=OPS-17 @job.json
  $ waggle submit --kind chat --text 'and in French?' --affinity session-42 --wait
  $ waggle submit --kind report --not-before +10m --deadline +1h --id report-today
  $ waggle submit @tasks.ndjson --wait          lines like {"kind":"count","payload":"a b c","user":"ann"}
  $ generate-tasks | waggle submit - --json`;

async function submit(
  context: VerbContext,
  sources: readonly string[],
  flags: SubmitFlags,
): Promise<ExitCode> {
  if (flags.watch === true && flags.stream === true)
    throw new UsageError("--watch and --stream exclude each other: both print while the task runs");
  const source = taskSource(flags, sources, context.shell);
  await checkFiles(sources, context.shell);
  if (source.isMany) {
    const sentence = "--watch requires a single task; for many, run waggle events --follow as well";
    if (flags.watch === true) throw new UsageError(sentence);
    if (flags.stream === true) throw new UsageError("--stream requires a single task");
    return await withSwarm(context, (swarm) => submitMany(swarm, source, flags, context));
  }
  const task = await onlyTask(source);
  return await withSwarm(context, (swarm) => submitOne(swarm, task, flags, context));
}

async function submitOne(
  swarm: Swarm,
  task: TaskRequest,
  flags: SubmitFlags,
  context: VerbContext,
): Promise<ExitCode> {
  const { output, signal } = context;
  const isWaiting = staysUntilTheEnd(flags);
  const terms = { failFast: flags.failFast === true, notify: isWaiting };
  const handle = await ask(context, (options) => submitted(swarm, task, { ...terms, ...options }, context));
  printAccepted(handle, task.kind, { output, isWaiting });
  if (!isWaiting) return exitCodes.ok;

  const watching = flags.watch === true ? watch(handle, output) : undefined;
  const ended = new AbortController();
  const streaming = flags.stream === true ? printChunks(handle, output, ended.signal) : undefined;
  streaming?.catch(() => undefined); // `outcome` rejects with the same error
  const explain = (options: AskOptions) => swarm.explain(handle.id, { project: handle.project, ...options });
  void printWaitReason({ explain, output, signal: ended.signal });
  try {
    const { waitTimeout: timeoutMs } = flags;
    const outcome = await handle.outcome({ signal, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    await watching?.ended;
    const printed = await streaming;
    if (printed === undefined || output.json) printOutcome(outcome, output);
    else printStreamed(outcome, printed);
    return exitCodes.ok;
  } catch (error) {
    printContinuing(error, [handle.id], context);
    throw error;
  } finally {
    ended.abort();
    watching?.stop();
  }
}

/** `submitMany` reports the task's id in every case. @throws the error of the refusal */
async function submitted(
  swarm: Swarm,
  task: TaskRequest,
  options: SubmitOptions,
  context: VerbContext,
): Promise<TaskHandle> {
  for await (const one of swarm.submitMany([task], { ...options, retry: false })) {
    if (one.ok) return one.handle;
    if (one.error instanceof OutcomeUnknownError) printUnanswered([one.task.id ?? ""], context);
    else if (context.signal.aborted && !context.output.json) context.output.note("nothing was submitted");
    context.signal.throwIfAborted();
    throw one.error;
  }
  throw new UsageError("nothing to submit");
}

async function onlyTask(source: TaskSource): Promise<TaskRequest> {
  for await (const sourced of source.tasks) {
    if (sourced.ok) return sourced.task;
    throw sourced.error;
  }
  throw new UsageError("nothing to submit");
}

/** Prints the updates of the task. `ended` resolves after the last update. */
function watch(
  handle: TaskHandle,
  output: Output,
): { readonly ended: Promise<void>; readonly stop: () => void } {
  const stopped = new AbortController();
  const ended = new Promise<void>((resolve, reject) => {
    const subscription = handle.events$.subscribe({
      next: (update) => printUpdate(update, output),
      complete: resolve,
      error: reject,
    });
    stopped.signal.addEventListener("abort", () => {
      subscription.unsubscribe();
      resolve();
    });
  });
  ended.catch(() => undefined); // thrown to whoever waits for the ending, if the ending comes at all
  return { ended, stop: () => stopped.abort() };
}
