// `waggle resource set|remove|list|show`: slots, waiting requests and α of a shared resource.

import { Argument, Command, Option } from "commander";
import { whyOnHold } from "../audit/describe.ts";
import type { ResourcePatch } from "../core/settings-patch.ts";
import { formatCount } from "../count-text.ts";
import { WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { StatusResponse } from "../protocol/schemas.ts";
import type { PolicySettings } from "../protocol/settings-schemas.ts";
import { nearMisses } from "../state/near-miss.ts";
import type { ExitCode } from "./exit-code.ts";
import type { Output } from "./output.ts";
import { orWord, requireSome } from "./setting-flags.ts";
import {
  listCommand,
  type Removal,
  removeCommand,
  type SettingNoun,
  setNamed,
  showCommand,
} from "./setting-verbs.ts";
import { slotLeasesText } from "./slot-leases-view.ts";
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
  useOf: (name, { resources, holds = [], at }, view) => {
    const row = resources.find(({ resource }) => resource === name);
    if (row === undefined) return undefined;
    const { inUse, waiting, holders, waiters } = row;
    const onHold = holds.find((hold) => hold.on === "resource" && hold.name === name) ?? row.onHold;
    const hold = onHold === undefined ? [] : [holdText(name, onHold, view)];
    const text = [...hold, slotLeasesText(row, at, view)].join("\n\n");
    return {
      record: { inUse, waiting, holders, waiters, ...(onHold === undefined ? {} : { onHold }) },
      text,
    };
  },
  whenNoneIsSet: "no resources: waggle resource set NAME --slots N creates one",
  whenUnset: (name, _, status) => {
    const near = nearMisses(
      name,
      (status?.resources ?? []).map(({ resource }) => resource),
    );
    const hint = near.length === 0 ? "" : `did you mean ${near.join(" or ")}? `;
    const sentence = `there is no resource ${name}; ${hint}\`waggle resource set ${name} --slots N\` creates it`;
    return new WaggleError("WAGGLE_UNKNOWN_RESOURCE", sentence, { field: "resource" });
  },
};

type Hold = NonNullable<StatusResponse["holds"]>[number];

/** `on hold until 2026-05-04T14:30:00.000Z: the quota is used up (429); …`. */
function holdText(
  name: string,
  { until, phase, by, reason }: Pick<Hold, "until" | "phase"> & Partial<Pick<Hold, "by" | "reason">>,
  { asStarted }: Pick<Output, "asStarted">,
): string {
  const why = by === undefined ? "" : `: ${whyOnHold({ by, reason })}`;
  const end = asStarted(`waggle unhold resource ${name}`);
  if (phase === "held")
    return `on hold until ${new Date(until).toISOString()}${why}\nno slot is granted until then; \`${end}\` ends the hold now`;
  const probe = phase === "due" ? "the next grant is the probe" : "its probe is under way";
  return `the hold is over, and ${probe}${why}`;
}

const removal: Removal = {
  description:
    "Removes a resource: requests for its slots are refused from then on. Refused while slots of it are held or requests " +
    "wait: no agent loses a slot.",
  remove: (swarm, name, options) => swarm.removeResource(name, options),
};

export function resourceCommand(program: Program): Command {
  return new Command("resource")
    .description(
      "Resources that agents share, with a number of slots, such as an LLM quota. Settings are journaled. Settings " +
        "apply at once, and stay until the next change. show also lists the holders and the waiting requests.",
    )
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
    .summary("create a resource or change its settings")
    .description(
      "Creates a resource, or changes the given settings and keeps the others. With fewer slots than are held, " +
        "no agent loses a slot: no slot is granted until the number fits.",
    )
    .addArgument(resourceArgument())
    .option(
      "--slots <n>",
      "maximum number of slots that are held at once. Required for a new resource",
      wholeNumber(1, limits.slotsPerResourceMax),
    )
    .option(
      "--max-waiters <n>",
      `maximum number of waiting requests; default ${limits.waitersPerResourceMax}`,
      wholeNumber(0, limits.maxWaitersMax),
    )
    .option(
      "--alpha <n>",
      "α of this resource: 0 serves the agent that waits longest, 1 the agent with the most work. policy: use α and " +
        "auto-tune of the policy (default)",
      orWord("policy", numberBetween(0, 1)),
    )
    .addOption(
      new Option(
        "--optimize-for <preset>",
        "α of this resource as a preset: latency 0, balanced 0.25, throughput 0.5",
      )
        .choices(["latency", "balanced", "throughput"])
        .conflicts("alpha"),
    )
    .option("--auto-tune", "adjust α of this resource automatically, from 0 to 0.5")
    .option("--no-auto-tune", "keep α of this resource as it is")
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

/** `0.4, adjusted automatically (own)`. Without the policy, its α is not shown. */
function alphaText(
  own: { readonly value: number; readonly autoTune: boolean } | undefined,
  policy: PolicySettings | undefined,
): string {
  const inForce = own ?? (policy && { value: policy.alpha, autoTune: policy.autoTune });
  if (inForce === undefined) return "the policy's";
  return `${inForce.value}${inForce.autoTune ? ", adjusted automatically" : ""} (${own === undefined ? "policy" : "own"})`;
}

async function set(context: VerbContext, resource: string, patch: ResourcePatch): Promise<ExitCode> {
  requireSome(patch, "resource set");
  return await setNamed(context, noun, resource, (swarm, options) =>
    swarm.setResource(resource, patch, options),
  );
}
