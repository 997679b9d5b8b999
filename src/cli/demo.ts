// `waggle demo`: a whole swarm at work on a folder, from nothing, within 45 s. Not here: which agents take part
// (demo/scenario.ts), the run itself (demo/run.ts).

import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { Command } from "commander";
import { counted, formatCount } from "../count-text.ts";
import { type FoundFiles, findTextFiles } from "./demo/files.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { labelled } from "./format.ts";
import { UsageError } from "./usage-error.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function demoCommand(program: Program): Command {
  return new Command("demo")
    .description(
      "Starts a coordinator and five agents in separate processes. The agents count, digest and outline the text " +
        "files of a folder. One agent breaks on the way and is repaired: the picture shows how the work is routed. " +
        "Ends within 45 s and stops all processes of the demo. It uses a swarm and a data folder of its own, " +
        "<data folder>/demo/swarm. Results: <data folder>/demo/results.ndjson.",
    )
    .argument("[folder]", "folder to work on; default: the current folder")
    .addHelpText(
      "after",
      "\nExits with 0 only if every submitted task succeeded.\n\nExamples:\n  $ waggle demo\n  $ waggle demo ~/src/project",
    )
    .action((folder: string | undefined, _: unknown, command: Command) =>
      runVerb(program, command, (context) => demo(context, folder ?? ".")),
    );
}

async function demo(context: VerbContext, argument: string): Promise<ExitCode> {
  const { output, shell, flags, signal } = context;
  if (flags.nats !== undefined || flags.natsContext !== undefined)
    throw new UsageError("the demo starts a broker of its own: leave out --nats and --nats-context");
  const folder = resolve(shell.cwd, argument);
  output.note(labelled("demo", `a swarm at work on ${folder}; Ctrl-C stops the demo`, output.noteColumns));
  const found = await filesOf(folder, signal);
  output.note(labelled("files", foundText(found), output.noteColumns));
  // Loaded after the first lines, so that the lines appear at once.
  const { runDemo } = await import("./demo/run.ts");
  const { renderSummary } = await import("./demo/report.ts");
  const { summary, next } = await runDemo(context, { folder, files: found.files });
  output.datum({ type: "summary", ...summary }, () => `\n${renderSummary(summary, output)}`);
  output.note(`\nStart your own swarm, with each command in its own terminal:\n${list(next.own)}`);
  if (next.look.length > 0)
    output.note(
      `See what the demo decided about one task, with each command in its own terminal:\n${list(next.look)}`,
    );
  return summary.completed === summary.tasks ? exitCodes.ok : exitCodes.taskFailed;
}

function list(commands: readonly string[]): string {
  return commands.map((command) => `  ${command}`).join("\n");
}

/** @throws WaggleError WAGGLE_USAGE without text files */
async function filesOf(folder: string, signal: AbortSignal): Promise<FoundFiles> {
  const isFolder = await stat(folder).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  if (!isFolder) throw new UsageError(`${folder} is no folder`);
  const found = await findTextFiles(folder, signal);
  if (found.files.length > 0) return found;
  throw new UsageError(`${folder} holds no text files: name another folder`);
}

function foundText({ files, skipped, listedBy }: FoundFiles): string {
  const left = Object.entries(skipped).map(([reason, count]) => `${formatCount(count)} ${reason}`);
  const how = listedBy === "git" ? ", as git lists them" : "";
  return `${counted(files.length, "text file")}${how}${left.length === 0 ? "" : ` (left out: ${left.join(", ")})`}`;
}
