// `waggle explain TASK`: why a task waits, or the reason for the chosen agent. Not here: the view (explain-view.ts).

import { Command } from "commander";
import type { ReplayedAssignment } from "../audit/assignment-replay.ts";
import type { Swarm } from "../client/swarm.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { renderExplanation, renderReplayed } from "./explain-view.ts";
import { aboutTask, findProject, typedProject } from "./find-project.ts";
import { formatCount } from "./format.ts";
import { firstKeptIdx, noteChanged } from "./kept-record.ts";
import { showProgress } from "./progress-bar.ts";
import { wholeNumber } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface ExplainFlags {
  readonly full?: boolean;
  readonly attempt?: number;
}

export function explainCommand(program: Program): Command {
  return new Command("explain")
    .summary("show why a task waits, or why it got its agent")
    .description(
      "Shows why a task waits: the reason and what would change it, each agent with its score or the reason why " +
        "it is not eligible, and when the task's turn comes. For a task that was assigned: the candidates and " +
        "what decided. A receipt holds the three best candidates; --attempt and --full show every agent, by " +
        "replaying the journal up to that assignment.",
    )
    .argument("<id>", "id of the task")
    .option("--project <name>", "project of the task. Default: the only project that has a task of this id")
    .option(
      "--attempt <n>",
      "show every agent at the moment of the n-th assignment",
      wholeNumber(1, Number.MAX_SAFE_INTEGER),
    )
    .option("--full", "show every agent: as of now if the task waits, else as of its last assignment")
    .addHelpText("after", examples)
    .action((id: string, flags: ExplainFlags, command: Command) =>
      runVerb(program, command, (context) =>
        explain(context, id, { ...flags, typed: typedProject(command) }),
      ),
    );
}

const examples = `
Examples:
  $ waggle explain t1
  $ waggle explain t1 --attempt 1        every agent at the first assignment
  $ waggle explain t1 --json | jq '.waiting.obstacles[0]'
  $ waggle explain t1 --full --json | jq '.agents[] | {agent, standing}'`;

async function explain(
  context: VerbContext,
  id: string,
  { typed, ...flags }: ExplainFlags & { readonly typed: string | undefined },
): Promise<ExitCode> {
  const { output } = context;
  return await withSwarm(context, async (swarm) => {
    const { project: configured } = context.settings;
    if (flags.attempt !== undefined) {
      const { attempt } = flags;
      const project = await ask(context, (options) => findProject(swarm, { id, typed, configured }, options));
      return await replay(context, swarm, { id, project, attempt });
    }
    const explanation = await ask(context, (options) =>
      aboutTask({ typed, configured }, (project) => swarm.explain(id, { ...project, ...options })),
    );
    const { project, waiting, attempts, attemptCount, endedIdx, omitted } = explanation;
    if (flags.full === true && waiting === undefined && attempts.length > 0)
      return await replay(context, swarm, { id, project, attempt: attemptCount });
    const hasRecord = attemptCount > 0 || endedIdx !== undefined;
    const firstIdx = hasRecord && !output.json ? await firstKeptIdx(context, swarm, project) : 1;
    const told = { explanation, showsAll: flags.full === true, firstIdx };
    output.datum({ taskId: id, ...explanation }, () => output.asStarted(renderExplanation(told, output)));
    noteChanged(context, explanation.changedBatches);
    if (omitted !== undefined)
      output.note(
        `${formatCount(omitted.agents)} more agents do not fit the answer; waggle status counts them`,
      );
    return exitCodes.ok;
  });
}

interface Sought {
  readonly id: string;
  readonly project: string;
  readonly attempt: number;
}

async function replay(context: VerbContext, swarm: Swarm, sought: Sought): Promise<ExitCode> {
  const { output } = context;
  const replayed = await replayedAssignment(context, swarm, sought);
  output.datum(replayed, () => renderReplayed(replayed, output));
  return exitCodes.ok;
}

async function replayedAssignment(
  { output, signal }: VerbContext,
  swarm: Swarm,
  { id, project, attempt }: Sought,
): Promise<ReplayedAssignment> {
  const progress = showProgress(output, { name: "replaying the journal", unit: "batches" });
  try {
    return await swarm.replayAssignment(id, {
      project,
      attempt,
      onProgress: ({ idx, lastIdx }) => progress.at(idx, lastIdx),
      signal,
    });
  } finally {
    progress.stop();
  }
}
