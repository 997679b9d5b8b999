// `waggle policy set|show`: the rules of the swarm, their constants, and the limits of the whole swarm.

import { Command, Option } from "commander";
import type { PolicyPatch } from "../core/settings-patch.ts";
import { formatCount } from "../count-text.ts";
import { limits } from "../limits.ts";
import type { PolicySettings } from "../protocol/settings-schemas.ts";
import { projectTurnRules, userTurnRules } from "../state/policy.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import type { ExitCode } from "./exit-code.ts";
import {
  addBudgetFlags,
  type BudgetFlags,
  budgetPatch,
  durationBetween,
  noneAsNull,
  type OrNone,
  openAttempts,
  orNone,
  plainDuration,
  requireSome,
} from "./setting-flags.ts";
import { budgetText, limitText, printSetting, type SettingLine, settingLines } from "./setting-text.ts";
import { numberBetween, wholeNumber } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

type PolicyFlags = Omit<PolicyPatch, "budget" | "guaranteeMs" | "rememberMs" | "speedExponent" | "topN"> &
  BudgetFlags & {
    readonly guarantee?: number;
    readonly remember?: number;
    readonly speedExponent?: string;
    readonly topN?: OrNone<number>;
  };

export function policyCommand(program: Program): Command {
  return new Command("policy")
    .description(
      "Rules and limits of the swarm as a whole. Settings are journaled. They apply from the next decision on.",
    )
    .addCommand(setCommand(program))
    .addCommand(showCommand(program))
    .addHelpText("after", examples);
}

const examples = `
Examples:
  $ waggle policy set --rules waggle
  $ waggle policy show`;

function setCommand(program: Program): Command {
  const command = new Command("set")
    .summary("change the policy")
    .description(
      "Changes the given settings and keeps the others. Running attempts continue. Defaults are those of --rules waggle.",
    )
    .addOption(
      new Option(
        "--rules <set>",
        "set of rules; other flags override single rules. lucio requires --top-n. Default: waggle",
      ).choices(["waggle", "budget", "loco", "vapora", "lucio"]),
    )
    .addOption(
      new Option(
        "--project-turn <rule>",
        "rule for the turn among projects; none: projects have no turns. Default: clock",
      ).choices(projectTurnRules),
    )
    .addOption(
      new Option(
        "--user-turn <rule>",
        "rule for the turn among the users of a project; clock requires a --project-turn other than none. Default: clock",
      ).choices(userTurnRules),
    )
    .addOption(
      new Option(
        "--agent-rule <rule>",
        "agent that gets the task: the best score (default), or the first idle agent",
      ).choices(["score", "first-idle"]),
    )
    .option(
      "--lambda <n>",
      "weight by which an agent's own backlog lowers its score, from 0 to 100; default 0.25",
      numberBetween(0, limits.lambdaMax),
    )
    .addOption(
      new Option(
        "--speed-exponent <n>",
        "exponent of an agent's speed in its score; 0 disables it; default 1",
      ).choices(["0", "0.5", "1", "2"]),
    )
    .addOption(
      new Option("--optimize-for <preset>", "preset of α: latency 0, balanced 0.25 (default), throughput 0.5")
        .choices(["latency", "balanced", "throughput"])
        .conflicts("alpha"),
    )
    .option(
      "--alpha <n>",
      "α of the load function, from 0 (longest wait first) to 1 (largest load first); default 0.25",
      numberBetween(0, 1),
    )
    .option("--auto-tune", "adjust α automatically, from 0 to 0.5")
    .option("--no-auto-tune", "keep α as it is (default)")
    .option(
      "--starvation-limit <ticks>",
      "maximum wait before a task jumps the queue, in ticks per competing waiter; 0 disables it; default 20",
      wholeNumber(0, limits.starvationLimitTicksMax),
    )
    .option(
      "--guarantee <duration>",
      "time after which a project without an assignment goes first, once; default 1h",
      durationBetween(limits.guaranteeMsMin, limits.guaranteeMsMax),
    )
    .option(
      "--top-n <n>",
      "maximum number of open attempts in the swarm; none: no limit (default)",
      orNone(openAttempts),
    )
    .option(
      "--tokens-default <n>",
      "estimated tokens of an attempt whose kind has no reports yet; default 1,000",
      wholeNumber(1, limits.tokensPerAttemptMax),
    )
    .option(
      "--remember <duration>",
      "time for which ended tasks are remembered, so that a repeated submit runs nothing twice; default 1d",
      durationBetween(limits.rememberMsMin, limits.rememberMsMax),
    )
    .option(
      "--remembered-tasks <n>",
      "maximum number of ended tasks that are remembered; default 1,000,000",
      wholeNumber(limits.rememberedTasksMin, limits.rememberedTasksMax),
    )
    .addOption(
      new Option(
        "--projects <which>",
        "open: a project exists from its first task on (default). declared: only projects that were set exist",
      ).choices(["open", "declared"]),
    )
    .addOption(
      new Option(
        "--resources <which>",
        "open: the first request for slots of an unknown resource makes it. declared: the request is refused (default)",
      ).choices(["open", "declared"]),
    )
    .option(
      "--slots-default <n>",
      `slots of a resource that a request makes; default ${limits.slotsDefault}`,
      wholeNumber(1, limits.slotsPerResourceMax),
    )
    .addOption(
      new Option(
        "--agents <which>",
        "open: agents of any group may join (default). declared: only of groups with a grant",
      ).choices(["open", "declared"]),
    )
    .addOption(
      new Option(
        "--security <level>",
        "strict: answers go only to inboxes _INBOX.GROUP of the agent's group, and _INBOX.USER of the users set for the project. Default: open",
      ).choices(["open", "strict"]),
    );
  return addBudgetFlags(command)
    .addHelpText("after", setExamples)
    .action((flags: PolicyFlags, command: Command) =>
      runVerb(program, command, (context) => set(context, flags)),
    );
}

const setExamples = `
Examples:
  $ waggle policy set --rules loco --optimize-for latency
  $ waggle policy set --rules waggle --user-turn fifo
  $ waggle policy set --top-n 200 --budget 5000000 --budget-window 1d
  $ waggle policy set --top-n none --budget none
  $ waggle policy set --projects declared
  $ waggle policy set --resources open --slots-default 8
  $ waggle policy set --agents declared --security strict`;

function patchOf(flags: PolicyFlags): PolicyPatch {
  const { rules, projectTurn, userTurn, agentRule, lambda, alpha, optimizeFor, autoTune } = flags;
  const { starvationLimit, guarantee, topN, tokensDefault, projects, speedExponent } = flags;
  const { remember, rememberedTasks, resources, slotsDefault, agents, security } = flags;
  return {
    rules,
    projectTurn,
    userTurn,
    agentRule,
    lambda,
    ...(speedExponent === undefined ? {} : { speedExponent: Number(speedExponent) }),
    alpha,
    optimizeFor,
    autoTune,
    starvationLimit,
    guaranteeMs: guarantee,
    topN: noneAsNull(topN),
    tokensDefault,
    rememberMs: remember,
    rememberedTasks,
    projects,
    resources,
    slotsDefault,
    agents,
    security,
    ...budgetPatch(flags),
  };
}

async function set(context: VerbContext, flags: PolicyFlags): Promise<ExitCode | undefined> {
  const patch = patchOf(flags);
  requireSome(patch, "policy set");
  return await withSwarm(context, async (swarm) => {
    const setting = await ask(context, (options) => swarm.setPolicy(patch, options));
    printSetting(context, { record: {}, heading: "policy", setting, lines: linesOf(setting.settings) });
    return undefined;
  });
}

function showCommand(program: Program): Command {
  return new Command("show")
    .summary("show the policy")
    .addHelpText("after", "\nExamples:\n  $ waggle policy show\n  $ waggle policy show --json")
    .action((_: unknown, command: Command) => runVerb(program, command, show));
}

async function show(context: VerbContext): Promise<ExitCode | undefined> {
  return await withSwarm(context, async (swarm) => {
    const { project, projectOnly } = context.settings;
    const about = projectOnly ? { project } : {}; // the policy is part of every answer
    const { policy, paused } = await ask(context, (options) => swarm.settings({ ...about, ...options }));
    const state: SettingLine = ["state", paused ? "paused: nothing is assigned" : "open"];
    context.output.datum({ paused, ...policy }, () =>
      settingLines(context, "policy", [state, ...linesOf(policy)]),
    );
    return undefined;
  });
}

function linesOf(policy: PolicySettings): SettingLine[] {
  return [
    ["rules", policy.rules],
    ["project turn", policy.projectTurn],
    ["user turn", policy.userTurn],
    ["agent rule", policy.agentRule],
    ["λ", String(policy.lambda)],
    ["speed exponent", String(policy.speedExponent)],
    ["α", `${policy.alpha}${policy.autoTune ? ", adjusted automatically" : ""}`],
    [
      "starvation limit",
      policy.starvationLimit === 0
        ? "off"
        : `${formatCount(policy.starvationLimit)} ticks per competing waiter`,
    ],
    ["guarantee", plainDuration(policy.guaranteeMs)],
    ["top N", limitText(policy.topN)],
    ["budget", budgetText(policy.budget)],
    ["tokens default", formatCount(policy.tokensDefault)],
    ...rememberedLines(policy),
    ["projects", policy.projects],
    ...resourceLines(policy),
    ...securityLines(policy),
  ];
}

function resourceLines({ resources, slotsDefault }: PolicySettings): SettingLine[] {
  if (resources === undefined || slotsDefault === undefined) return []; // an older coordinator
  const made = `open: made at first use, with ${formatCount(slotsDefault)} slots`;
  return [["resources", resources === "open" ? made : resources]];
}

function securityLines({ agents, security }: PolicySettings): SettingLine[] {
  if (agents === undefined || security === undefined) return []; // an older coordinator
  return [
    ["agents", agents],
    ["security", security],
  ];
}

function rememberedLines({ rememberMs, rememberedTasks }: PolicySettings): SettingLine[] {
  if (rememberMs === undefined || rememberedTasks === undefined) return []; // an older coordinator
  return [["remembers", `${formatCount(rememberedTasks)} ended tasks for ${plainDuration(rememberMs)}`]];
}
