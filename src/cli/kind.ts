// `waggle kind set|list|show`: importance of a kind, and its substitute while a budget is used up.

import { Argument, Command } from "commander";
import type { KindPatch } from "../client/operations.ts";
import { limits } from "../limits.ts";
import type { ExitCode } from "./exit-code.ts";
import { noneAsNull, type OrNone, orNone, requireSome } from "./setting-flags.ts";
import { listCommand, type SettingNoun, setNamed, showCommand } from "./setting-verbs.ts";
import { kindName, numberBetween, plainName } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

const kindArgument = () => new Argument("<kind>", "name of the kind").argParser(kindName);

const noun: SettingNoun<"kinds"> = {
  word: "kind",
  table: "kinds",
  key: "kind",
  titleOf: (name) => `kind ${name}`,
  argument: kindArgument,
  example: "review",
  listed: "list the kinds that have settings",
  aspects: [
    { name: "importance", align: "right", text: ({ importance }) => String(importance) },
    { name: "cheaper", text: ({ cheaper }) => cheaper ?? "none" },
    { name: "cheaper type", text: ({ cheaperType }) => cheaperType ?? "none" },
  ],
  whenNoneIsSet: "no kind has settings: each has importance 1 and no cheaper substitute",
  whenUnset: (kind, { defaults }) => ({ kind, settings: defaults.kind }),
};

interface KindFlags {
  readonly importance?: number;
  readonly cheaper?: OrNone<string>;
  readonly cheaperType?: OrNone<string>;
}

export function kindCommand(program: Program): Command {
  return new Command("kind")
    .description(
      "Importance and cheaper substitutes of kinds. Settings are journaled. Settings apply at once, and stay " +
        "until the next change.",
    )
    .addCommand(setCommand(program))
    .addCommand(listCommand(program, noun))
    .addCommand(showCommand(program, noun))
    .addHelpText("after", examples);
}

const examples = `
Examples:
  $ waggle kind set review --importance 2
  $ waggle kind list
  $ waggle kind show review`;

function setCommand(program: Program): Command {
  return new Command("set")
    .summary("change the settings of a kind")
    .description("Changes the given settings and keeps the others.")
    .addArgument(kindArgument())
    .option(
      "--importance <n>",
      "factor on how fast waiting tasks of this kind rise in the queue; default 1",
      numberBetween(limits.settingWeightMin, limits.settingWeightMax),
    )
    .option(
      "--cheaper <kind>",
      "kind that the tasks become while a budget in mode downgrade is used up, or all agents of the kind are on hold; none: no kind (default)",
      orNone(kindName),
    )
    .option(
      "--cheaper-type <type>",
      "type of agents that run the tasks while a budget in mode downgrade is used up; none: agents of any type (default)",
      orNone(plainName),
    )
    .addHelpText("after", setExamples)
    .action((kind: string, flags: KindFlags, command: Command) =>
      runVerb(program, command, (context) => set(context, kind, flags)),
    );
}

const setExamples = `
Examples:
  $ waggle kind set review --importance 2
  $ waggle kind set opus --cheaper haiku
  $ waggle kind set opus --cheaper none
  $ waggle kind set review --cheaper-type haiku
  $ waggle kind set review --importance 1 --cheaper none --cheaper-type none`;

async function set(context: VerbContext, kind: string, flags: KindFlags): Promise<ExitCode> {
  const patch: KindPatch = {
    importance: flags.importance,
    cheaper: noneAsNull(flags.cheaper),
    cheaperType: noneAsNull(flags.cheaperType),
  };
  requireSome(patch, "kind set");
  return await setNamed(context, noun, kind, (swarm, options) => swarm.setKind(kind, patch, options));
}
