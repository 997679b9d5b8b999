// `waggle pause` and `waggle resume`: whether tasks of one project, or of the whole swarm, are assigned. Running
// attempts continue, and tasks are still accepted.

import { Command } from "commander";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { noteWarnings } from "./setting-text.ts";
import { UsageError } from "./usage-error.ts";
import { subjectToken } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface ProjectFlag {
  readonly project?: string;
}

export function pauseCommand(program: Program): Command {
  return new Command("pause")
    .description(
      "Stops assigning tasks of one project, or, without a name, of the whole swarm, until `waggle resume`. " +
        "Running attempts continue. Tasks are still accepted.",
    )
    .argument("[project]", "name of the project; without it the whole swarm", subjectToken)
    .option("--project <name>", "the same as the argument", subjectToken)
    .addHelpText("after", "\nExamples:\n  $ waggle pause acme\n  $ waggle pause            the whole swarm")
    .action((project: string | undefined, flags: ProjectFlag, command: Command) =>
      runVerb(program, command, async (context) => pause(context, projectOf(project, flags))),
    );
}

export function resumeCommand(program: Program): Command {
  return new Command("resume")
    .description(
      "Ends the pause of one project, or, without a name, of the whole swarm. Projects that were paused by name " +
        "stay paused.",
    )
    .argument("[project]", "name of the project; without it the whole swarm", subjectToken)
    .option("--project <name>", "the same as the argument", subjectToken)
    .addHelpText("after", "\nExamples:\n  $ waggle resume acme\n  $ waggle resume           the whole swarm")
    .action((project: string | undefined, flags: ProjectFlag, command: Command) =>
      runVerb(program, command, async (context) => resume(context, projectOf(project, flags))),
    );
}

/** @throws UsageError for two different names */
function projectOf(argument: string | undefined, { project }: ProjectFlag): string | undefined {
  if (argument !== undefined && project !== undefined && argument !== project)
    throw new UsageError(`give one project: ${argument} or --project ${project}`);
  return argument ?? project;
}

async function pause(context: VerbContext, project: string | undefined): Promise<ExitCode> {
  return await withSwarm(context, async (swarm) => {
    const setting = await ask(context, (options) => swarm.pause(project, options));
    const { changed, term, idx, settings, warnings } = setting;
    const isSo = changed ? "is paused" : "was paused before";
    const again = context.output.asStarted(
      project === undefined ? "waggle resume" : `waggle resume ${project}`,
    );
    context.output.datum({ ...settings, changed, term, idx, warnings }, () =>
      project === undefined
        ? `the whole swarm ${isSo}: nothing is assigned until \`${again}\`; running attempts continue`
        : `project ${project} ${isSo}: none of its tasks is assigned until \`${again}\`; running attempts continue`,
    );
    noteWarnings(context, setting);
    return exitCodes.ok;
  });
}

async function resume(context: VerbContext, project: string | undefined): Promise<ExitCode> {
  return await withSwarm(context, async (swarm) => {
    const setting = await ask(context, (options) => swarm.resume(project, options));
    const { changed, term, idx, settings, warnings } = setting;
    const isSo = changed ? "resumed" : "was not paused";
    context.output.datum({ ...settings, changed, term, idx, warnings }, () =>
      project === undefined ? `the swarm ${isSo}` : `project ${project} ${isSo}`,
    );
    noteWarnings(context, setting);
    const scope = project === undefined ? {} : { project }; // its owner may ask about nothing else
    const held = await ask(context, (options) => swarm.settings({ ...scope, ...options }));
    if (project !== undefined && held.paused)
      context.output.note("the whole swarm is still paused: `waggle resume` without a name resumes it");
    const paused = held.projects.filter((row) => row.paused).map((row) => row.project);
    if (project === undefined && paused.length > 0)
      context.output.note(`still paused by name: ${paused.join(", ")}`);
    return exitCodes.ok;
  });
}
