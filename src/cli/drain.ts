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
    told: "drains: no new tasks",
  });
}

export function undrainCommand(program: Program): Command {
  return verb(program, "undrain", {
    description: "Assigns tasks to an agent again after `waggle drain`.",
    told: "receives tasks again",
  });
}

interface Words {
  readonly description: string;
  readonly told: string;
}

function verb(program: Program, name: "drain" | "undrain", words: Words): Command {
  return new Command(name)
    .description(words.description)
    .argument("<agent>", "id of the agent")
    .addHelpText("after", `\nExamples:\n  $ waggle ${name} a1\n  $ waggle ${name} a1 --json`)
    .action((agent: string, _: unknown, command: Command) =>
      runVerb(program, command, (context) => run(context, { name, agent, told: words.told })),
    );
}

async function run(
  context: VerbContext,
  {
    name,
    agent,
    told,
  }: { readonly name: "drain" | "undrain"; readonly agent: string; readonly told: string },
): Promise<ExitCode> {
  return await withSwarm(context, async (swarm) => {
    await ask(context, (options) => swarm[name](agent, options));
    context.output.datum({ agent, draining: name === "drain" }, () => `${agent} ${told}`);
    return exitCodes.ok;
  });
}
