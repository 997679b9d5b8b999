// `waggle rate set|remove|list|show`: how many tokens agents of one type may use in a window.

import { Argument, Command, Option } from "commander";
import { rateWindows } from "../core/settings.ts";
import type { RatePatch } from "../core/settings-patch.ts";
import type { ExitCode } from "./exit-code.ts";
import { formatCount } from "./format.ts";
import { tokenCount } from "./setting-flags.ts";
import {
  listCommand,
  type Removal,
  removeCommand,
  type SettingNoun,
  setNamed,
  showCommand,
} from "./setting-verbs.ts";
import { UsageError } from "./usage-error.ts";
import { plainName } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

const typeArgument = () => new Argument("<type>", "type of agents").argParser(plainName);

const noun: SettingNoun<"rates"> = {
  word: "rate",
  table: "rates",
  key: "type",
  titleOf: (type) => `rate of type ${type}`,
  argument: typeArgument,
  example: "claude",
  listed: "list the rates that are set",
  aspects: [
    { name: "window", text: ({ window, sliding }) => `${window}${sliding ? ", sliding" : ""}` },
    { name: "tokens", align: "right", text: ({ tokensMax }) => formatCount(tokensMax) },
  ],
  whenNoneIsSet: "no rate is set: no type of agents is limited",
  whenUnset: (type) => `no rate is set for agents of type ${type}: they are not limited`,
};

interface RemoveFlags {
  readonly window?: RatePatch["window"];
}

const removal: Removal<RemoveFlags> = {
  description:
    "Agents of the type are no longer limited in the window given, or in any. The use so far is remembered while it " +
    "counts: a rate that is set again goes on from it.",
  options: [windowOption("remove only the rate of this window. Default all")],
  titleOf: (type, { window }) => `rate of type ${type}${window === undefined ? "" : ` ${window}`}`,
  remove: (swarm, type, options, { window }) =>
    swarm.removeRate(type, { ...options, ...(window === undefined ? {} : { window }) }),
};

function windowOption(description: string): Option {
  return new Option("--window <window>", description).choices(rateWindows);
}

interface RateFlags {
  readonly window: RatePatch["window"];
  readonly tokens?: number;
  readonly sliding?: boolean;
}

export function rateCommand(program: Program): Command {
  return new Command("rate")
    .summary("limit the tokens of agents of one type")
    .description(
      "Rate limits by the type that agents declare (`waggle agent --type claude`). A type may have one for each window: " +
        "per_minute, per_hour, per_day. All of them hold. Journaled.",
    )
    .addCommand(setCommand(program))
    .addCommand(removeCommand(program, noun, removal))
    .addCommand(listCommand(program, noun))
    .addCommand(showCommand(program, noun))
    .addHelpText("after", examples);
}

const examples = `
Examples:
  $ waggle rate set claude --window per_minute --tokens 10000
  $ waggle rate set claude --window per_day --tokens 2000000
  $ waggle rate show claude
  $ waggle rate remove claude --window per_day`;

function setCommand(program: Program): Command {
  return new Command("set")
    .summary("set the rate of agents of one type in one window")
    .description(
      "Other windows of the type stay as they are. While any of its rates is used up, agents of the type are assigned nothing.",
    )
    .addArgument(typeArgument())
    .addOption(windowOption("which rate of the type to set. Required").makeOptionMandatory())
    .option("--tokens <n>", "tokens in a window. Required when the window has no rate yet", tokenCount)
    .option("--sliding", "window that truly slides")
    .option("--no-sliding", "fixed window that restarts with the first use after it ended (default)")
    .addHelpText("after", setExamples)
    .action((type: string, flags: RateFlags, command: Command) =>
      runVerb(program, command, (context) => set(context, type, flags)),
    );
}

const setExamples = `
Examples:
  $ waggle rate set claude --window per_minute --tokens 10000
  $ waggle rate set claude --window per_minute --sliding`;

async function set(
  context: VerbContext,
  type: string,
  { window, tokens, sliding }: RateFlags,
): Promise<ExitCode> {
  const patch: RatePatch = { window, tokensMax: tokens, sliding };
  if (tokens === undefined && sliding === undefined)
    throw new UsageError("--tokens: say how many tokens a window has, or with --sliding how it moves");
  return await setNamed(context, noun, type, (swarm, options) => swarm.setRate(type, patch, options));
}
