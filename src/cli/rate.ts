// `waggle rate set|remove|list|show`: the maximum number of tokens per window for agents of one type.

import { Argument, Command, Option } from "commander";
import type { RatePatch } from "../core/settings-patch.ts";
import { formatCount } from "../count-text.ts";
import { rateWindows } from "../state/settings.ts";
import type { ExitCode } from "./exit-code.ts";
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
  whenUnset: (type) => `no rate is set for agents of type ${type}: no limit`,
};

interface RemoveFlags {
  readonly window?: RatePatch["window"];
}

const removal: Removal<RemoveFlags> = {
  description:
    "Removes the rate of the given window, or all rates of the type. The use so far still counts until its window ends, " +
    "if the rate is set again.",
  options: [windowOption("remove only the rate of this window. Default: all windows")],
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
    .description(
      "Limits the tokens that agents of one type (`waggle agent --type claude`) use in a window: per_minute, " +
        "per_hour or per_day. A type may have one rate per window, and all rates apply. Settings are journaled.",
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
    .summary("set the rate of an agent type in a window")
    .description(
      "Sets one rate of a type; rates of other windows stay. While any rate of a type is used up, its " +
        "agents get no tasks.",
    )
    .addArgument(typeArgument())
    .addOption(windowOption("window of the rate. Required").makeOptionMandatory())
    .option(
      "--tokens <n>",
      "maximum number of tokens per window. Required if the window has no rate yet",
      tokenCount,
    )
    .option("--sliding", "sliding window: counts the tokens used in the last minute, hour or day")
    .option("--no-sliding", "fixed window that restarts with the first use after it ends (default)")
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
    throw new UsageError("--tokens is required for a new rate: the maximum number of tokens per window");
  return await setNamed(context, noun, type, (swarm, options) => swarm.setRate(type, patch, options));
}
