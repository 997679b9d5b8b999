// `waggle resource set|remove|list|show`: how many slots something shared has, how many requests may
// wait for one, and its α.

import { Argument, Command, InvalidArgumentError, Option } from "commander";
import type { ResourcePatch } from "../core/settings-patch.ts";
import { limits } from "../limits.ts";
import type { PolicySettings } from "../protocol/settings-schemas.ts";
import type { ExitCode } from "./exit-code.ts";
import { formatCount } from "./format.ts";
import { requireSome } from "./setting-flags.ts";
import {
  listCommand,
  type Removal,
  removeCommand,
  type SettingNoun,
  setNamed,
  showCommand,
} from "./setting-verbs.ts";
import { numberBetween, plainName, wholeNumber } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

const resourceArgument = () => new Argument("<resource>", "name of the resource").argParser(plainName);

const noun: SettingNoun<"resources"> = {
  word: "resource",
  table: "resources",
  key: "resource",
  titleOf: (name) => `resource ${name}`,
  argument: resourceArgument,
  example: "gpt-4o",
  listed: "list resources",
  aspects: [
    { name: "slots", align: "right", text: ({ slots }) => formatCount(slots) },
    { name: "max waiters", align: "right", text: ({ maxWaiters }) => formatCount(maxWaiters) },
    { name: "α", text: ({ ownAlpha }, policy) => alphaText(ownAlpha, policy) },
  ],
  whenNoneIsSet: "there are no resources: waggle resource set NAME --slots N makes one",
  whenUnset: (name) => `there is no resource ${name}; waggle resource set ${name} --slots N makes it`,
};

const removal: Removal = {
  description:
    "It exists no longer, and whoever acquires it is refused. While slots of it are held or waited for it stays, and " +
    "this is refused: nothing is taken from anybody.",
  remove: (swarm, name, options) => swarm.removeResource(name, options),
};

export function resourceCommand(program: Program): Command {
  return new Command("resource")
    .summary("set the slots of a resource, and its α")
    .description("Things that agents share, with a number of slots, such as an LLM quota. It is journaled.")
    .addCommand(setCommand(program))
    .addCommand(removeCommand(program, noun, removal))
    .addCommand(listCommand(program, noun))
    .addCommand(showCommand(program, noun))
    .addHelpText("after", examples);
}

const examples = `
Examples:
  $ waggle resource set gpt-4o --slots 8
  $ waggle resource list
  $ waggle resource show gpt-4o
  $ waggle resource remove gpt-4o`;

function setCommand(program: Program): Command {
  return new Command("set")
    .summary("change what is set for a resource")
    .description(
      "Changes what is said, and leaves the rest. With fewer slots than are held, nothing is taken from anybody: " +
        "nothing is granted until it fits.",
    )
    .addArgument(resourceArgument())
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
    .option(
      "--alpha <n>",
      "its own α: 0 serves the agent that waits longest, 1 the agent with most work. policy: back to the policy's α " +
        "and auto-tune. Default policy",
      alphaFlag,
    )
    .addOption(
      new Option("--optimize-for <preset>", "its own α as a preset: 0, 0.25 or 0.5")
        .choices(["latency", "balanced", "throughput"])
        .conflicts("alpha"),
    )
    .option("--auto-tune", "its own α moves by itself, within 0 to 0.5")
    .option("--no-auto-tune", "its own α stays")
    .addHelpText("after", setExamples)
    .action((resource: string, flags: ResourceFlags, command: Command) =>
      runVerb(program, command, (context) => set(context, resource, patchOf(flags))),
    );
}

const setExamples = `
Examples:
  $ waggle resource set gpt-4o --slots 8
  $ waggle resource set gpt-4o --max-waiters 500
  $ waggle resource set gpt-4o --optimize-for latency
  $ waggle resource set gpt-4o --alpha policy`;

type ResourceFlags = Omit<ResourcePatch, "alpha"> & { readonly alpha?: number | "policy" };

function patchOf({ slots, maxWaiters, alpha, optimizeFor, autoTune }: ResourceFlags): ResourcePatch {
  return { slots, maxWaiters, alpha: alpha === "policy" ? null : alpha, optimizeFor, autoTune };
}

const alphaNumber = numberBetween(0, 1);

function alphaFlag(text: string): number | "policy" {
  if (text === "policy") return text;
  try {
    return alphaNumber(text);
  } catch (error) {
    if (error instanceof InvalidArgumentError)
      error.message = `${error.message.replace(/\.$/, "")}, or policy.`;
    throw error;
  }
}

/** `0.4, moving by itself (own)`. Without the policy at hand, its α goes unnamed. */
function alphaText(
  own: { readonly value: number; readonly autoTune: boolean } | undefined,
  policy: PolicySettings | undefined,
): string {
  const inForce = own ?? (policy && { value: policy.alpha, autoTune: policy.autoTune });
  if (inForce === undefined) return "the policy's";
  return `${inForce.value}${inForce.autoTune ? ", moving by itself" : ""} (${own === undefined ? "policy" : "own"})`;
}

async function set(context: VerbContext, resource: string, patch: ResourcePatch): Promise<ExitCode> {
  requireSome(patch, "resource set");
  return await setNamed(context, noun, resource, (swarm, options) =>
    swarm.setResource(resource, patch, options),
  );
}
