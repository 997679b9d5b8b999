// `waggle grant set|remove|list|show`: what a group of agents may declare, be assigned, hold and charge.

import { Argument, Command } from "commander";
import type { Grant } from "../client/operations.ts";
import { formatCount } from "../count-text.ts";
import { limits } from "../limits.ts";
import type { ExitCode } from "./exit-code.ts";
import {
  listCommand,
  type Removal,
  removeCommand,
  type SettingNoun,
  setNamed,
  showCommand,
} from "./setting-verbs.ts";
import { subjectToken, wholeNumber } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

const groupArgument = () =>
  new Argument("<group>", "group of agents; _ stands for agents without a group").argParser(subjectToken);

const namesText = (names: readonly string[] | undefined) =>
  names === undefined ? "any" : names.length === 0 ? "none" : names.join(", ");
const countText = (count: number | undefined) => (count === undefined ? "any" : formatCount(count));

const noun: SettingNoun<"grants"> = {
  word: "grant",
  table: "grants",
  key: "group",
  titleOf: (group) => `grant of group ${group}`,
  argument: groupArgument,
  example: "gpu",
  listed: "list the groups that have a grant",
  aspects: [
    { name: "kinds", text: ({ kinds }) => namesText(kinds) },
    { name: "roles", text: ({ roles }) => namesText(roles) },
    { name: "types", text: ({ types }) => namesText(types) },
    { name: "labels", text: ({ labels }) => namesText(labels) },
    { name: "projects", text: ({ projects }) => namesText(projects) },
    { name: "resources", text: ({ resources }) => namesText(resources) },
    { name: "max concurrent", align: "right", text: ({ maxConcurrent }) => countText(maxConcurrent) },
    { name: "tokens", align: "right", text: ({ tokens }) => countText(tokens) },
  ],
  whenNoneIsSet: "no group has a grant: `waggle policy show` says whether such agents may join",
  whenUnset: (group, { policy }) =>
    `group ${group} has no grant: its agents ${policy.agents === "declared" ? "may not join" : "are unbounded"}`,
};

const removal: Removal = {
  description:
    "Removes the grant of a group. Its agents are unbounded then. With `waggle policy set --agents declared` they may " +
    "not join, and their sessions end.",
  remove: (swarm, group, options) => swarm.removeGrant(group, options),
};

interface GrantFlags {
  readonly kind?: readonly string[];
  readonly role?: readonly string[];
  readonly type?: readonly string[];
  readonly label?: readonly string[];
  readonly project?: readonly string[];
  readonly resource?: readonly string[];
  readonly maxConcurrent?: number;
  readonly tokens?: number;
}

export function grantCommand(program: Program): Command {
  return new Command("grant")
    .description(
      "Bounds what agents of a group (`waggle agent --group gpu`) may declare, be assigned, hold and charge. " +
        "Agents that share a credential share a group. Settings are journaled.",
    )
    .addCommand(setCommand(program))
    .addCommand(removeCommand(program, noun, removal))
    .addCommand(listCommand(program, noun))
    .addCommand(showCommand(program, noun))
    .addHelpText("after", examples);
}

const examples = `
Examples:
  $ waggle grant set gpu --kind review --project acme --max-concurrent 4
  $ waggle grant list
  $ waggle grant remove gpu`;

function setCommand(program: Program): Command {
  return new Command("set")
    .summary("set the grant of a group")
    .description(
      "Replaces the whole grant of a group: a limit that no flag names is removed. Flags for names may be repeated, or hold " +
        "several separated by commas; `none` permits nothing. Sessions beyond the new grant end at once: their attempts " +
        "and slots are taken back, and the agents may join again with what is permitted.",
    )
    .addArgument(groupArgument())
    .option("--kind <kinds>", "kinds the group's agents may serve", grantNames)
    .option("--role <roles>", "roles the group's agents may have", grantNames)
    .option(
      "--type <types>",
      "types the group's agents may have; an agent without a type is refused",
      grantNames,
    )
    .option(
      "--label <labels>",
      "labels the group's agents may have: gpu=a100, or gpu for any value",
      grantNames,
    )
    .option("--project <projects>", "projects the group's agents may get tasks of", grantNames)
    .option("--resource <resources>", "resources the group's agents may hold slots of", grantNames)
    .option(
      "--max-concurrent <n>",
      "maximum number of tasks per agent at once, prefetched tasks included; 0: no agent may join",
      wholeNumber(0, limits.maxConcurrentMax),
    )
    .option(
      "--tokens <n>",
      "maximum tokens charged per attempt or slot lease; a higher report counts as this number",
      wholeNumber(0, limits.tokensPerAttemptMax),
    )
    .addHelpText("after", setExamples)
    .action((group: string, flags: GrantFlags, command: Command) =>
      runVerb(program, command, (context) => set(context, group, flags)),
    );
}

const setExamples = `
Examples:
  $ waggle grant set gpu --kind review,translate --project acme
  $ waggle grant set gpu --kind review --resource none --max-concurrent 4 --tokens 200000
  $ waggle grant set retired --max-concurrent 0   takes everything back; no agent may join
  $ waggle grant set trusted                      declares the group, without bounds`;

/** Parses a flag that may be repeated, or hold several names separated by commas. `none` stands for an empty list. */
function grantNames(text: string, before: readonly string[] = []): readonly string[] {
  const names = text.split(",").map((name) => name.trim());
  return [...before, ...names.filter((name) => name !== "" && name !== "none")];
}

async function set(context: VerbContext, group: string, flags: GrantFlags): Promise<ExitCode> {
  const grant: Grant = {
    kinds: flags.kind,
    roles: flags.role,
    types: flags.type,
    labels: flags.label,
    projects: flags.project,
    resources: flags.resource,
    maxConcurrent: flags.maxConcurrent,
    tokens: flags.tokens,
  };
  return await setNamed(context, noun, group, (swarm, options) => swarm.setGrant(group, grant, options));
}
