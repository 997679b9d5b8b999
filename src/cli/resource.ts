// `waggle resource set|list|show`: how many slots something shared has, and how many requests may wait for one.

import { Command } from "commander";
import type { ResourcePatch } from "../core/settings-patch.ts";
import { limits } from "../limits.ts";
import type { SettingsResponse } from "../protocol/settings-schemas.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { formatCount } from "./format.ts";
import { requireSome } from "./setting-flags.ts";
import { type SettingLine, settingLines, tellRows, tellSetting } from "./setting-text.ts";
import { plainName, wholeNumber } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function resourceCommand(program: Program): Command {
  return new Command("resource")
    .summary("set how many slots a resource has")
    .description("Things that agents share, with a number of slots, such as an LLM quota. It is journaled.")
    .addCommand(setCommand(program))
    .addCommand(listCommand(program))
    .addCommand(showCommand(program))
    .addHelpText("after", examples);
}

const examples = `
Examples:
  $ waggle resource set gpt-4o --slots 8
  $ waggle resource list
  $ waggle resource show gpt-4o`;

function setCommand(program: Program): Command {
  return new Command("set")
    .summary("change what is set for a resource")
    .description(
      "Changes what is said, and leaves the rest. With fewer slots than are held, nothing is taken from anybody: " +
        "nothing is granted until it fits.",
    )
    .argument("<resource>", "name of the resource", plainName)
    .option(
      "--slots <n>",
      "how many may hold it at once; said at first",
      wholeNumber(1, limits.slotsPerResourceMax),
    )
    .option(
      "--max-waiters <n>",
      `requests that may wait; at first ${limits.waitersPerResourceMax}`,
      wholeNumber(0, limits.maxWaitersMax),
    )
    .addHelpText("after", setExamples)
    .action((resource: string, { slots, maxWaiters }: ResourcePatch, command: Command) =>
      runVerb(program, command, (context) => set(context, resource, { slots, maxWaiters })),
    );
}

const setExamples = `
Examples:
  $ waggle resource set gpt-4o --slots 8
  $ waggle resource set gpt-4o --max-waiters 500`;

async function set(
  context: VerbContext,
  resource: string,
  patch: ResourcePatch,
): Promise<ExitCode | undefined> {
  requireSome(patch, "resource set");
  return await withSwarm(context, async (swarm) => {
    const setting = await ask(context, (options) => swarm.setResource(resource, patch, options));
    const lines = linesOf(setting.settings);
    tellSetting(context, { record: { resource }, heading: `resource ${resource}`, setting, lines });
    return undefined;
  });
}

function listCommand(program: Program): Command {
  return new Command("list")
    .summary("list resources")
    .addHelpText("after", "\nExamples:\n  $ waggle resource list\n  $ waggle resource list --json")
    .action((_: unknown, command: Command) => runVerb(program, command, list));
}

async function list(context: VerbContext): Promise<ExitCode | undefined> {
  return await withSwarm(context, async (swarm) => {
    const { resources, omitted } = await ask(context, (options) => swarm.settings(options));
    tellRows(context, resources, {
      columns: [
        { head: "resource" },
        { head: "slots", align: "right" },
        { head: "max waiters", align: "right" },
      ],
      cells: ({ resource, settings }) => [
        resource,
        formatCount(settings.slots),
        formatCount(settings.maxWaiters),
      ],
      empty: "there are no resources: waggle resource set NAME --slots N makes one",
      omitted: omitted?.resources ?? 0,
    });
    return undefined;
  });
}

function showCommand(program: Program): Command {
  return new Command("show")
    .summary("show one resource")
    .argument("<resource>", "name of the resource", plainName)
    .addHelpText("after", "\nExamples:\n  $ waggle resource show gpt-4o")
    .action((resource: string, _: unknown, command: Command) =>
      runVerb(program, command, (context) => show(context, resource)),
    );
}

async function show(context: VerbContext, resource: string): Promise<ExitCode> {
  return await withSwarm(context, async (swarm) => {
    const { resources } = await ask(context, (options) => swarm.settings({ name: resource, ...options }));
    const [row] = resources;
    if (row === undefined) {
      context.output.note(
        `there is no resource ${resource}; waggle resource set ${resource} --slots N makes it`,
      );
      return exitCodes.rejected;
    }
    context.output.datum(row, () => settingLines(context, `resource ${resource}`, linesOf(row.settings)));
    return exitCodes.ok;
  });
}

function linesOf({ slots, maxWaiters }: SettingsResponse["resources"][number]["settings"]): SettingLine[] {
  return [
    ["slots", formatCount(slots)],
    ["max waiters", formatCount(maxWaiters)],
  ];
}
