// `waggle kind set|list|show`: how fast tasks of a kind rise, and what stands in for it when a budget is used up.

import { Command } from "commander";
import type { KindPatch } from "../client/operations.ts";
import { limits } from "../limits.ts";
import type { SettingsResponse } from "../protocol/settings-schemas.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import type { ExitCode } from "./exit-code.ts";
import { noneAsNull, type OrNone, orNone, requireSome } from "./setting-flags.ts";
import { type SettingLine, settingLines, tellRows, tellSetting } from "./setting-text.ts";
import { kindName, numberBetween } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface KindFlags {
  readonly importance?: number;
  readonly cheaper?: OrNone<string>;
}

export function kindCommand(program: Program): Command {
  return new Command("kind")
    .summary("set a kind's importance and what is cheaper")
    .description(
      "What is set for kinds of tasks. It is journaled, and holds at once and until it is set anew.",
    )
    .addCommand(setCommand(program))
    .addCommand(listCommand(program))
    .addCommand(showCommand(program))
    .addHelpText("after", examples);
}

const examples = `
Examples:
  $ waggle kind set review --importance 2
  $ waggle kind list
  $ waggle kind show review`;

function setCommand(program: Program): Command {
  return new Command("set")
    .summary("change what is set for a kind")
    .description("Changes what is said, and leaves the rest.")
    .argument("<kind>", "name of the kind", kindName)
    .option(
      "--importance <n>",
      "how fast its tasks rise; at first 1",
      numberBetween(limits.settingWeightMin, limits.settingWeightMax),
    )
    .option(
      "--cheaper <kind>",
      "kind that runs in its place where a budget in mode downgrade is used up; none: nothing",
      orNone(kindName),
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
  $ waggle kind set opus --cheaper none`;

async function set(context: VerbContext, kind: string, flags: KindFlags): Promise<ExitCode | undefined> {
  const patch: KindPatch = { importance: flags.importance, cheaper: noneAsNull(flags.cheaper) };
  requireSome(patch, "kind set");
  return await withSwarm(context, async (swarm) => {
    const setting = await ask(context, (options) => swarm.setKind(kind, patch, options));
    const lines = linesOf(setting.settings);
    tellSetting(context, { record: { kind }, heading: `kind ${kind}`, setting, lines });
    return undefined;
  });
}

function listCommand(program: Program): Command {
  return new Command("list")
    .summary("list kinds of which something is set")
    .addHelpText("after", "\nExamples:\n  $ waggle kind list\n  $ waggle kind list --json")
    .action((_: unknown, command: Command) => runVerb(program, command, list));
}

async function list(context: VerbContext): Promise<ExitCode | undefined> {
  return await withSwarm(context, async (swarm) => {
    const { kinds, omitted } = await ask(context, (options) => swarm.settings(options));
    tellRows(context, kinds, {
      columns: [{ head: "kind" }, { head: "importance", align: "right" }, { head: "cheaper" }],
      cells: ({ kind, settings }) => [kind, settings.importance, settings.cheaper ?? "none"],
      empty: "nothing is set for any kind: each has importance 1 and no cheaper one",
      omitted: omitted?.kinds ?? 0,
    });
    return undefined;
  });
}

function showCommand(program: Program): Command {
  return new Command("show")
    .summary("show what holds for one kind")
    .argument("<kind>", "name of the kind", kindName)
    .addHelpText("after", "\nExamples:\n  $ waggle kind show review\n  $ waggle kind show review --json")
    .action((kind: string, _: unknown, command: Command) =>
      runVerb(program, command, (context) => show(context, kind)),
    );
}

async function show(context: VerbContext, kind: string): Promise<ExitCode | undefined> {
  return await withSwarm(context, async (swarm) => {
    const found = await ask(context, (options) => swarm.settings({ name: kind, ...options }));
    const row = found.kinds[0] ?? { kind, settings: found.defaults.kind };
    context.output.datum(row, () => settingLines(context, `kind ${kind}`, linesOf(row.settings)));
    return undefined;
  });
}

function linesOf({ importance, cheaper }: SettingsResponse["defaults"]["kind"]): SettingLine[] {
  return [
    ["importance", String(importance)],
    ["cheaper", cheaper ?? "none"],
  ];
}
