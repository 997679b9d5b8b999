// `waggle project set|remove|list|show`: a project's share, limits and budget. Not here: what the values may be
// together (core/next-settings.ts).

import { Argument, Command, InvalidArgumentError, Option } from "commander";
import type { ProjectPatch } from "../core/settings-patch.ts";
import { formatCount } from "../count-text.ts";
import { WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { SettingsResponse } from "../protocol/settings-schemas.ts";
import { type Range, type ResultsKept, resultsKept } from "../state/settings.ts";
import type { ExitCode } from "./exit-code.ts";
import {
  addBudgetFlags,
  type BudgetFlags,
  budgetPatch,
  noneAsNull,
  type OrNone,
  openAttempts,
  orNone,
} from "./setting-flags.ts";
import { budgetText, limitText } from "./setting-text.ts";
import {
  listCommand,
  type Removal,
  removeCommand,
  type SettingNoun,
  setNamed,
  showCommand,
} from "./setting-verbs.ts";
import { numberBetween, plainName, subjectToken, wholeNumber } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

type ProjectRow = SettingsResponse["projects"][number];

const projectArgument = () => new Argument("<project>", "name of the project").argParser(subjectToken);

const noun: SettingNoun<"projects"> = {
  word: "project",
  table: "projects",
  key: "project",
  titleOf: (name) => `project ${name}`,
  argument: projectArgument,
  example: "acme",
  listed: "list the projects that have settings",
  aspects: [
    { name: "credit weight", align: "right", text: ({ creditWeight }) => String(creditWeight) },
    { name: "max concurrent", align: "right", text: ({ maxConcurrent }) => limitText(maxConcurrent) },
    { name: "budget", text: ({ budget }) => budgetText(budget) },
    { name: "queue", align: "right", text: ({ queueMax }) => `${formatCount(queueMax)} tasks` },
    { name: "results", text: ({ results = "whole" }) => results },
    {
      name: "priority",
      text: ({ priorityRange }) => rangeText(priorityRange),
      isShown: ({ priorityRange }) => priorityRange !== undefined,
    },
    {
      name: "weight",
      text: ({ weightRange }) => rangeText(weightRange),
      isShown: ({ weightRange }) => weightRange !== undefined,
    },
    { name: "user", text: ({ user = "any" }) => user, isShown: ({ user }) => user !== undefined },
    {
      name: "inbox users",
      text: ({ inboxUsers = [] }) => inboxUsers.join(", ") || "none named",
      isShown: ({ inboxUsers }) => inboxUsers !== undefined,
    },
  ],
  stateOf: (row, { paused, policy }) => stateOf(row, paused, policy.projects === "declared"),
  whenNoneIsSet:
    "no project has settings: each has credit weight 1, no budget, and a limit on its queue alone",
  whenUnset: (project, { policy }) => {
    const remedy =
      policy.projects === "declared"
        ? `\`waggle project set ${project}\` declares it`
        : "a project exists from its first task on";
    const sentence = `there is no project ${project}, with neither tasks nor settings; ${remedy}`;
    return new WaggleError("WAGGLE_UNKNOWN_PROJECT", sentence, { field: "project" });
  },
};

const removal: Removal = {
  description:
    "Removes the settings of a project: the defaults apply again. Where projects must be declared, its tasks are refused " +
    "from then on. Refused while the project has tasks that have not ended. A pause stays.",
  remove: (swarm, project, options) => swarm.removeProject(project, options),
};

interface ProjectFlags extends BudgetFlags {
  readonly creditWeight?: number;
  readonly maxConcurrent?: OrNone<number>;
  readonly queueMax?: OrNone<number>;
  readonly results?: ResultsKept;
  readonly priorityRange?: OrNone<Range>;
  readonly weightRange?: OrNone<Range>;
  readonly onlyUser?: OrNone<string>;
  readonly inboxUser?: OrNone<readonly string[]>;
}

export function projectCommand(program: Program): Command {
  return new Command("project")
    .description(
      "Shares, limits and budgets of projects. Settings are journaled. Settings apply at once, and stay until " +
        "the next change.",
    )
    .addCommand(setCommand(program))
    .addCommand(removeCommand(program, noun, removal))
    .addCommand(listCommand(program, noun))
    .addCommand(showCommand(program, noun))
    .addHelpText("after", examples);
}

const examples = `
Examples:
  $ waggle project set acme --credit-weight 2 --max-concurrent 4
  $ waggle project list
  $ waggle project show acme
  $ waggle project remove acme`;

function setCommand(program: Program): Command {
  const command = new Command("set")
    .summary("change the settings of a project")
    .description(
      "Changes the given settings and keeps the others. Where projects must be declared (`waggle policy set " +
        "--projects declared`), it declares the project. A limit below the present use stops no running attempt.",
    )
    .addArgument(projectArgument())
    .option(
      "--credit-weight <n>",
      "weight of the project while other projects wait too: 2 gets twice the share of 1; default 1",
      numberBetween(limits.settingWeightMin, limits.settingWeightMax),
    )
    .option(
      "--max-concurrent <n>",
      "maximum number of open attempts; none: no limit (default)",
      orNone(openAttempts),
    )
    .option(
      "--queue-max <n>",
      `maximum number of waiting tasks, retries included; none: the highest, ${formatCount(limits.queuedTasksPerProjectMax)} (default)`,
      orNone(wholeNumber(1, limits.queuedTasksPerProjectMax)),
    )
    .addOption(
      new Option(
        "--results <kept>",
        "what the journal keeps of results: whole (default), or hash: SHA-256 and length; only clients awaiting the " +
          "task at its end get the result",
      ).choices(resultsKept),
    )
    .option(
      "--priority-range <min..max>",
      "permitted priorities of submissions, like 50..200; a task without a priority gets the nearest to 100. none: any (default)",
      orNone(rangeIn),
    )
    .option(
      "--weight-range <min..max>",
      "permitted weights of submissions, like 1..10; a task without a weight gets the nearest to 1. none: any (default)",
      orNone(rangeIn),
    )
    .option("--only-user <user>", "the only user of submissions; none: any (default)", orNone(plainName))
    .option(
      "--inbox-user <users>",
      "users with the inboxes _INBOX.USER or _INBOX_USER; with `waggle policy set --security strict`, answers about the " +
        "project go to no other inbox. May be repeated. none: no user (default)",
      inboxUsers,
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
  $ waggle project set acme --budget 100000 --budget-window 1h --budget-mode wait
  $ waggle project set acme --budget none --max-concurrent none
  $ waggle project set acme --results hash   keeps results out of the journal
  $ waggle project set acme --priority-range 50..200 --weight-range 1..10 --only-user acme-ci
  $ waggle project set acme --inbox-user acme-ci
  $ waggle project set acme                  declares it, with the defaults`;

async function set(context: VerbContext, project: string, flags: ProjectFlags): Promise<ExitCode> {
  const patch: ProjectPatch = {
    creditWeight: flags.creditWeight,
    maxConcurrent: noneAsNull(flags.maxConcurrent),
    queueMax: noneAsNull(flags.queueMax),
    results: flags.results,
    priorityRange: noneAsNull(flags.priorityRange),
    weightRange: noneAsNull(flags.weightRange),
    user: noneAsNull(flags.onlyUser) as ProjectPatch["user"],
    inboxUsers: noneAsNull(flags.inboxUser),
    ...budgetPatch(flags),
  };
  return await setNamed(context, noun, project, (swarm, options) =>
    swarm.setProject(project, patch, options),
  );
}

/** `50..200`. */
function rangeIn(text: string): Range {
  const [min = "", max = "", ...more] = text.split("..").map((part) => part.trim());
  const isRight = min !== "" && max !== "" && more.length === 0;
  if (isRight && Number(min) <= Number(max)) return { min: Number(min), max: Number(max) };
  throw new InvalidArgumentError("must be a lowest and a highest number, like 50..200");
}

function rangeText(range: Range | undefined): string {
  return range === undefined ? "any" : `${range.min}..${range.max}`;
}

function inboxUsers(text: string, before?: OrNone<readonly string[]>): OrNone<readonly string[]> {
  if (text === "none") return text;
  const names = text.split(",").map((name) => subjectToken(name.trim()));
  return [...(before === undefined || before === "none" ? [] : before), ...names];
}

function stateOf({ paused, declared }: ProjectRow, isSwarmPaused: boolean, mustBeDeclared: boolean): string {
  if (!declared && mustBeDeclared) return "not declared: its tasks are refused";
  if (paused) return "paused";
  if (isSwarmPaused) return "paused with the swarm";
  return declared ? "open" : "open, by default";
}
