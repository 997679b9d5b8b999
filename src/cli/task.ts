// `waggle task ID`: one task's whole story, from the journal. Not here: how it looks (task-view.ts).

import { Command } from "commander";
import type { Swarm, TaskStory } from "../client/swarm.ts";
import type { StatusResponse } from "../protocol/schemas.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { renderStory } from "./task-view.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function taskCommand(program: Program): Command {
  return new Command("task")
    .summary("tell a task's whole story, with the reason of every assignment")
    .description(
      "Tells a task's story from the journal: what was asked, each attempt with the receipt that says why it " +
        "went to that agent, each wait, how it ended, and the beginning of its result (--json has it whole). For a task that waits: its " +
        "place, and what keeps each agent of its kind from it.",
    )
    .argument("<id>", "id of the task")
    .addHelpText("after", examples)
    .action((id: string, _: unknown, command: Command) =>
      runVerb(program, command, (context) => task(context, id)),
    );
}

const examples = `
Examples:
  $ waggle task t1
  $ waggle task t1 --json | jq '.attempts[].receipt'
  $ waggle task t1 --json | jq -r '.events[].event | select(.type == "TaskCompleted") | .result'`;

async function task(context: VerbContext, id: string): Promise<ExitCode> {
  const { output } = context;
  return await withSwarm(context, async (swarm) => {
    const story = await ask(context, (options) => swarm.story(id, options));
    const agents = output.json ? [] : await agentsFor(story, swarm, context);
    output.datum({ taskId: id, ...story }, () => renderStory(id, { story, agents }, output));
    return exitCodes.ok;
  });
}

/** Who serves which kinds: what a waiting task is told against. */
async function agentsFor(
  { status }: TaskStory,
  swarm: Swarm,
  context: VerbContext,
): Promise<StatusResponse["agents"]> {
  if (status.position === undefined) return [];
  return (await ask(context, (options) => swarm.status(options))).agents;
}
