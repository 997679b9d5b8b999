// `waggle rate set|remove|list|show`: how many tokens agents of one type may use in a window.

import { Argument, Command, Option } from "commander";
import type { RatePatch } from "../core/settings-patch.ts";
import type { ExitCode } from "./exit-code.ts";
import { formatCount } from "./format.ts";
import { requireSome, tokenCount } from "./setting-flags.ts";
import {
  listCommand,
  type Removal,
  removeCommand,
  type SettingNoun,
  setNamed,
  showCommand,
} from "./setting-verbs.ts";
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
    { name: "tokens", align: "right", text: ({ tokensMax }) => formatCount(tokensMax) },
    { name: "window", text: ({ window, sliding }) => `${window}${sliding ? ", sliding" : ""}` },
  ],
  whenNoneIsSet: "no rate is set: agents of all types use as many tokens as they do",
  whenUnset: (type) => `no rate is set for agents of type ${type}: they use as many tokens as they do`,
};

const removal: Removal = {
  description:
    "Agents of the type are limited no longer. What they have used counts on where a rate is set again soon.",
  remove: (swarm, type, options) => swarm.removeRate(type, options),
};

interface RateFlags {
  readonly window?: RatePatch["window"];
  readonly tokens?: number;
  readonly sliding?: boolean;
}

export function rateCommand(program: Program): Command {
  return new Command("rate")
    .summary("limit the tokens of agents of one type")
    .description(
      "Rate limits by the type that agents declare (`waggle agent --type claude`). It is journaled.",
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
  $ waggle rate list
  $ waggle rate remove claude`;

function setCommand(program: Program): Command {
  return new Command("set")
    .summary("set the rate of agents of one type")
    .description(
      "Changes what is said, and leaves the rest. While it is used up, nothing is assigned to them.",
    )
    .addArgument(typeArgument())
    .addOption(
      new Option("--window <window>", "said at first").choices(["per_minute", "per_hour", "per_day"]),
    )
    .option("--tokens <n>", "tokens in a window; said at first", tokenCount)
    .option("--sliding", "the window truly slides")
    .option("--no-sliding", "it starts anew with the first use after it; so at first")
    .addHelpText("after", setExamples)
    .action((type: string, flags: RateFlags, command: Command) =>
      runVerb(program, command, (context) => set(context, type, flags)),
    );
}

const setExamples = `
Examples:
  $ waggle rate set claude --window per_minute --tokens 10000
  $ waggle rate set claude --sliding`;

async function set(
  context: VerbContext,
  type: string,
  { window, tokens, sliding }: RateFlags,
): Promise<ExitCode> {
  const patch: RatePatch = { window, tokensMax: tokens, sliding };
  requireSome(patch, "rate set");
  return await setNamed(context, noun, type, (swarm, options) => swarm.setRate(type, patch, options));
}
