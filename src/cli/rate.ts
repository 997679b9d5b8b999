// `waggle rate set|remove|list`: how many tokens agents of one type may use in a window.

import { Argument, Command, Option } from "commander";
import type { RatePatch } from "../core/settings-patch.ts";
import type { SettingsResponse } from "../protocol/settings-schemas.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import type { ExitCode } from "./exit-code.ts";
import { formatCount } from "./format.ts";
import { requireSome, tokenCount } from "./setting-flags.ts";
import { type SettingLine, tellRows, tellSetting } from "./setting-text.ts";
import { plainName } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

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
    .addCommand(removeCommand(program))
    .addCommand(listCommand(program))
    .addHelpText("after", examples);
}

const examples = `
Examples:
  $ waggle rate set claude --window per_minute --tokens 10000
  $ waggle rate list
  $ waggle rate remove claude`;

const typeArgument = () => new Argument("<type>", "type of agents").argParser(plainName);

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
): Promise<ExitCode | undefined> {
  const patch: RatePatch = { window, tokensMax: tokens, sliding };
  requireSome(patch, "rate set");
  return await withSwarm(context, async (swarm) => {
    const setting = await ask(context, (options) => swarm.setRate(type, patch, options));
    const lines = linesOf(setting.settings);
    tellSetting(context, { record: { type }, heading: `rate of type ${type}`, setting, lines });
    return undefined;
  });
}

function removeCommand(program: Program): Command {
  return new Command("remove")
    .summary("limit agents of one type no longer")
    .addArgument(typeArgument())
    .addHelpText("after", "\nExamples:\n  $ waggle rate remove claude")
    .action((type: string, _: unknown, command: Command) =>
      runVerb(program, command, (context) => remove(context, type)),
    );
}

async function remove(context: VerbContext, type: string): Promise<ExitCode | undefined> {
  return await withSwarm(context, async (swarm) => {
    const { changed, term, idx } = await ask(context, (options) => swarm.removeRate(type, options));
    const sentence = changed ? "limited no longer" : "not limited before either";
    context.output.datum({ type, changed, term, idx }, () => `agents of type ${type}: ${sentence}`);
    return undefined;
  });
}

function listCommand(program: Program): Command {
  return new Command("list")
    .summary("list the rates that are set")
    .addHelpText("after", "\nExamples:\n  $ waggle rate list\n  $ waggle rate list --json")
    .action((_: unknown, command: Command) => runVerb(program, command, list));
}

async function list(context: VerbContext): Promise<ExitCode | undefined> {
  return await withSwarm(context, async (swarm) => {
    const { rates, omitted } = await ask(context, (options) => swarm.settings(options));
    tellRows(context, rates, {
      columns: [{ head: "type" }, { head: "tokens", align: "right" }, { head: "window" }],
      cells: ({ type, settings }) => [type, formatCount(settings.tokensMax), windowText(settings)],
      empty: "no rate is set: agents of all types use as many tokens as they do",
      omitted: omitted?.rates ?? 0,
    });
    return undefined;
  });
}

type RateSettings = SettingsResponse["rates"][number]["settings"];

function windowText({ window, sliding }: RateSettings): string {
  return `${window}${sliding ? ", sliding" : ""}`;
}

function linesOf(settings: RateSettings): SettingLine[] {
  return [
    ["tokens", formatCount(settings.tokensMax)],
    ["window", windowText(settings)],
  ];
}
