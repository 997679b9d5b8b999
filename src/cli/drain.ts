// `waggle drain` and `waggle undrain`: whether an agent gets new tasks. Running attempts continue in both cases.

import { Command } from "commander";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function drainCommand(program: Program): Command {
  return verb(program, "drain", {
    description:
      "Stops assigning tasks to an agent. Its running attempts continue. `waggle undrain` ends the drain.",
    outcome: "drains: no new tasks",
  });
}

export function undrainCommand(program: Program): Command {
  return verb(program, "undrain", {
    description: "Assigns tasks to an agent again after `waggle drain`.",
    outcome: "receives tasks again",
  });
}

interface Words {
  readonly description: string;
  readonly outcome: string;
}

function verb(program: Program, name: "drain" | "undrain", words: Words): Command {
  return new Command(name)
    .description(words.description)
    .argument("<agent>", "id of the agent")
    .addHelpText("after", `\nExamples:\n  $ waggle ${name} a1\n  $ waggle ${name} a1 --json`)
    .action((agent: string, _: unknown, command: Command) =>
      runVerb(program, command, (context) => run(context, { name, agent, outcome: words.outcome })),
    );
}

async function run(
  context: VerbContext,
  {
    name,
    agent,
    outcome,
  }: { readonly name: "drain" | "undrain"; readonly agent: string; readonly outcome: string },
): Promise<ExitCode> {
  return await withSwarm(context, async (swarm) => {
    await ask(context, (options) => swarm[name](agent, options));
    context.output.datum({ agent, draining: name === "drain" }, () => `${agent} ${outcome}`);
    return exitCodes.ok;
  });
}
