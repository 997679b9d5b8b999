// `waggle task ID`: the history of one task, from the journal. Not here: the view (task-view.ts).

import { Command } from "commander";
import type { Swarm } from "../client/swarm.ts";
import { changedBatchesOf, type TaskStory } from "../client/task-stories.ts";
import type { TaskWait } from "../protocol/explain-schemas.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { findProject, typedProject } from "./find-project.ts";
import { firstKeptIdx, noteChanged } from "./kept-record.ts";
import { renderStory } from "./task-view.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function taskCommand(program: Program): Command {
  return new Command("task")
    .description(
      "Shows a task's history from the journal: the request, the waits, each attempt with its receipt (the reason " +
        "for the agent), and the end. Prints the first lines of the result; --json has the whole result. Of the " +
        "newest three attempts it shows the last lines of stderr (--exec) or of context.log, while their agent " +
        "lives. For a waiting task it gives the reason; `waggle explain` has more.",
    )
    .argument("<id>", "id of the task")
    .option("--project <name>", "project of the task. Default: the only project that has a task of this id")
    .addHelpText("after", examples)
    .action((id: string, _: unknown, command: Command) =>
      runVerb(program, command, (context) => task(context, id, typedProject(command, context.settings))),
    );
}

const examples = `
Examples:
  $ waggle task t1
  $ waggle task t1 --json | jq '.attempts[].receipt'
  $ waggle task t1 --json | jq -r '.logs[-1].text'
  $ waggle task t1 --json | jq -r '.events[].event | select(.type == "TaskCompleted") | .result'`;

async function task(context: VerbContext, id: string, typed: string | undefined): Promise<ExitCode> {
  const { output } = context;
  return await withSwarm(context, async (swarm) => {
    const { project: configured } = context.settings;
    const project = await ask(context, (options) => findProject(swarm, { id, typed, configured }, options));
    const story = await ask(context, (options) => swarm.story(id, { project, ...options }));
    const wait = output.json || !isWaiting(story) ? undefined : await waitOf(story, swarm, context);
    const logs = await swarm.log(story, { signal: context.signal });
    const isCut = story.submittedAt === undefined;
    const firstIdx = output.json || !isCut ? 1 : await firstKeptIdx(context, swarm, project);
    output.datum({ taskId: id, ...story, logs }, () =>
      renderStory(id, { story, wait, logs, firstIdx }, output),
    );
    noteChanged(context, changedBatchesOf(story));
    return exitCodes.ok;
  });
}

function isWaiting({ status: { state } }: TaskStory): boolean {
  return state === "queued" || state === "delayed";
}

/** Undefined if the task got an agent meanwhile. */
async function waitOf(
  { status: { task, project } }: TaskStory,
  swarm: Swarm,
  context: VerbContext,
): Promise<TaskWait | undefined> {
  return (await ask(context, (options) => swarm.explain(task, { project, ...options }))).waiting;
}
