// `waggle project set|list|show`: a project's share, limits and budget. Not here: what the values may be together
// (core/next-settings.ts).

import { Command } from "commander";
import type { ProjectPatch } from "../core/settings-patch.ts";
import { limits } from "../limits.ts";
import type { SettingsResponse } from "../protocol/settings-schemas.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import type { ExitCode } from "./exit-code.ts";
import { formatCount } from "./format.ts";
import {
  addBudgetFlags,
  type BudgetFlags,
  budgetPatch,
  noneAsNull,
  type OrNone,
  openAttempts,
  orNone,
} from "./setting-flags.ts";
import {
  budgetText,
  limitText,
  type SettingLine,
  settingLines,
  tellRows,
  tellSetting,
} from "./setting-text.ts";
import { numberBetween, subjectToken, wholeNumber } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

type ProjectRow = SettingsResponse["projects"][number];

interface ProjectFlags extends BudgetFlags {
  readonly creditWeight?: number;
  readonly maxConcurrent?: OrNone<number>;
  readonly queueMax?: OrNone<number>;
}

export function projectCommand(program: Program): Command {
  return new Command("project")
    .summary("set a project's share, limits and budget")
    .description("What is set for projects. It is journaled, and holds at once and until it is set anew.")
    .addCommand(setCommand(program))
    .addCommand(listCommand(program))
    .addCommand(showCommand(program))
    .addHelpText("after", examples);
}

const examples = `
Examples:
  $ waggle project set acme --credit-weight 2 --max-concurrent 4
  $ waggle project list
  $ waggle project show acme`;

function setCommand(program: Program): Command {
  const command = new Command("set")
    .summary("change what is set for a project")
    .description(
      "Changes what is said, and leaves the rest. Where projects must be declared (`waggle policy set --projects " +
        "declared`), this declares one. A limit below what is in use stops nothing that runs.",
    )
    .argument("<project>", "name of the project", subjectToken)
    .option(
      "--credit-weight <n>",
      "its share when others wait too; at first 1",
      numberBetween(limits.settingWeightMin, limits.settingWeightMax),
    )
    .option("--max-concurrent <n>", "attempts open at once; none: no limit", orNone(openAttempts))
    .option(
      "--queue-max <n>",
      `tasks that may wait; none: the most there may be, ${formatCount(limits.queuedTasksPerProjectMax)}`,
      orNone(wholeNumber(1, limits.queuedTasksPerProjectMax)),
    );
  return addBudgetFlags(command)
    .addHelpText("after", setExamples)
    .action((project: string, flags: ProjectFlags, command: Command) =>
      runVerb(program, command, (context) => set(context, project, flags)),
    );
}

const setExamples = `
Examples:
  $ waggle project set acme --credit-weight 2 --max-concurrent 4
  $ waggle project set acme --budget 100000 --budget-window 1h --budget-mode reject
  $ waggle project set acme --budget none --max-concurrent none
  $ waggle project set acme                  declares it, with what holds by default`;

async function set(
  context: VerbContext,
  project: string,
  flags: ProjectFlags,
): Promise<ExitCode | undefined> {
  const patch: ProjectPatch = {
    creditWeight: flags.creditWeight,
    maxConcurrent: noneAsNull(flags.maxConcurrent),
    queueMax: noneAsNull(flags.queueMax),
    ...budgetPatch(flags),
  };
  return await withSwarm(context, async (swarm) => {
    const setting = await ask(context, (options) => swarm.setProject(project, patch, options));
    const lines = linesOf(setting.settings);
    tellSetting(context, { record: { project }, heading: `project ${project}`, setting, lines });
    return undefined;
  });
}

function listCommand(program: Program): Command {
  return new Command("list")
    .summary("list projects of which something is set")
    .addHelpText("after", "\nExamples:\n  $ waggle project list\n  $ waggle project list --json")
    .action((_: unknown, command: Command) => runVerb(program, command, list));
}

async function list(context: VerbContext): Promise<ExitCode | undefined> {
  return await withSwarm(context, async (swarm) => {
    const { projects, omitted, paused } = await ask(context, (options) => swarm.settings(options));
    tellRows(context, projects, {
      columns: [
        { head: "project" },
        { head: "credit weight", align: "right" },
        { head: "max concurrent", align: "right" },
        { head: "budget" },
        { head: "queue", align: "right" },
        { head: "state" },
      ],
      cells: ({ settings, ...row }) => [
        row.project,
        settings.creditWeight,
        limitText(settings.maxConcurrent),
        budgetText(settings.budget),
        formatCount(settings.queueMax),
        stateOf(row, paused),
      ],
      empty: "nothing is set for any project: each has credit weight 1 and no limits",
      omitted: omitted?.projects ?? 0,
    });
    return undefined;
  });
}

function showCommand(program: Program): Command {
  return new Command("show")
    .summary("show what holds for one project")
    .argument("<project>", "name of the project", subjectToken)
    .addHelpText("after", "\nExamples:\n  $ waggle project show acme\n  $ waggle project show acme --json")
    .action((project: string, _: unknown, command: Command) =>
      runVerb(program, command, (context) => show(context, project)),
    );
}

async function show(context: VerbContext, project: string): Promise<ExitCode | undefined> {
  return await withSwarm(context, async (swarm) => {
    const found = await ask(context, (options) => swarm.settings({ name: project, ...options }));
    const row = found.projects[0] ?? {
      project,
      paused: false,
      declared: false,
      settings: found.defaults.project,
    };
    const isUnknown = !row.declared && found.policy.projects === "declared";
    const state = isUnknown ? "not declared: its tasks are refused" : stateOf(row, found.paused);
    context.output.datum(row, () =>
      settingLines(context, `project ${project}`, [["state", state], ...linesOf(row.settings)]),
    );
    return undefined;
  });
}

function stateOf(
  { paused, declared }: Pick<ProjectRow, "paused" | "declared">,
  isSwarmPaused: boolean,
): string {
  if (paused) return "paused";
  if (isSwarmPaused) return "paused with the swarm";
  return declared ? "open" : "open, by default";
}

function linesOf({ creditWeight, maxConcurrent, budget, queueMax }: ProjectRow["settings"]): SettingLine[] {
  return [
    ["credit weight", String(creditWeight)],
    ["max concurrent", limitText(maxConcurrent)],
    ["budget", budgetText(budget)],
    ["queue", `${formatCount(queueMax)} tasks`],
  ];
}
