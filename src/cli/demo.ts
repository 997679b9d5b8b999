// `waggle demo`: a whole swarm at work on a folder, from nothing, in under a minute. Not here: who takes part
// (demo/scenario.ts), the run itself (demo/run.ts).

import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { Command } from "commander";
import { type FoundFiles, findTextFiles } from "./demo/files.ts";
import { renderSummary } from "./demo/report.ts";
import { runDemo } from "./demo/run.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { counted, labelled } from "./format.ts";
import { UsageError } from "./usage-error.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function demoCommand(program: Program): Command {
  return new Command("demo")
    .summary("see a swarm at work on a folder")
    .description(
      "Starts a coordinator and six agents in processes of their own and has them count, digest and outline every text " +
        "file of a folder, for three users. Stops again what it started. Results: <data folder>/demo/results.ndjson.",
    )
    .argument("[folder]", "folder to work on; default: this one")
    .addHelpText(
      "after",
      "\nExits with 0 only if every task succeeded.\n\nExamples:\n  $ waggle demo\n  $ waggle demo ~/src/project",
    )
    .action((folder: string | undefined, _: unknown, command: Command) =>
      runVerb(program, command, (context) => demo(context, folder ?? ".")),
    );
}

async function demo(context: VerbContext, argument: string): Promise<ExitCode> {
  const { output, shell } = context;
  const folder = resolve(shell.cwd, argument);
  const found = await filesOf(folder);
  output.note(labelled("files", foundText(found, folder), output.noteColumns));
  const { summary, nextCommands } = await runDemo(context, { folder, files: found.files });
  output.datum({ type: "summary", ...summary }, () => `\n${renderSummary(summary, output)}`);
  output.note(
    `\nTry next, each in a terminal of its own:\n${nextCommands.map((command) => `  ${command}`).join("\n")}`,
  );
  return summary.completed === summary.tasks ? exitCodes.ok : exitCodes.taskFailed;
}

/** @throws WaggleError WAGGLE_USAGE when there is nothing to work on */
async function filesOf(folder: string): Promise<FoundFiles> {
  const isFolder = await stat(folder).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  if (!isFolder) throw new UsageError(`${folder} is no folder`);
  const found = await findTextFiles(folder);
  if (found.files.length > 0) return found;
  throw new UsageError(`${folder} holds no text files: name another folder`);
}

function foundText({ files, skipped, listedBy }: FoundFiles, folder: string): string {
  const left = Object.entries(skipped).map(([reason, count]) => `${count} ${reason}`);
  const how = listedBy === "git" ? ", as git lists them" : "";
  return `${counted(files.length, "text file")} in ${folder}${how}${left.length === 0 ? "" : ` (left out: ${left.join(", ")})`}`;
}
