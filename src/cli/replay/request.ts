// The flags of `waggle replay`, as values. Each error lists the valid values.

import { InvalidArgumentError } from "commander";
import { nextPolicy } from "../../core/next-settings.ts";
import type { PolicyPatch } from "../../core/settings-patch.ts";
import { kind } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { replayRuleNames, rulesPatch, type Variation } from "../../sim/replay/variation.ts";
import { nearMisses } from "../../state/near-miss.ts";
import { defaultPolicy } from "../../state/policy.ts";
import { UsageError } from "../usage-error.ts";

export interface ReplayFlags {
  readonly rules?: readonly string[];
  readonly alpha?: number;
  readonly lambda?: number;
  readonly topn?: number | null;
  readonly capacity?: ReadonlyMap<string, number>;
  readonly agents?: number;
  readonly from?: number | Date | "start";
  readonly chart?: string;
}

/** A replay to run, and its name in tables and pictures. */
export interface NamedVariation {
  readonly name: string;
  readonly variation: Variation;
}

/** `4` or `none`. @throws InvalidArgumentError */
export function topnFlag(text: string): number | null {
  if (text === "none") return null;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= limits.openAttemptsMax) return value;
  throw new InvalidArgumentError(`must be none, or a whole number from 1 to ${limits.openAttemptsMax}`);
}

/** `+2`. @throws InvalidArgumentError */
export function agentsFlag(text: string): number {
  const value = Number(text);
  if (/^\+\d+$/.test(text) && value >= 1 && value <= limits.agentsMax) return value;
  throw new InvalidArgumentError(`must be a number of agents to add, from +1 to +${limits.agentsMax}`);
}

/** `render=4`, several separated by commas. @throws InvalidArgumentError */
export function capacityFlag(
  text: string,
  before: ReadonlyMap<string, number> | undefined,
): ReadonlyMap<string, number> {
  const capacities = new Map(before);
  for (const part of text.split(",")) {
    const at = part.lastIndexOf("=");
    const [name, count] = [part.slice(0, at).trim(), part.slice(at + 1).trim()];
    const value = Number(count);
    if (at < 1 || !/^\d+$/.test(count) || value < 1 || value > limits.maxConcurrentMax)
      throw new InvalidArgumentError(
        `must be KIND=N with N from 1 to ${limits.maxConcurrentMax}, like render=4`,
      );
    capacities.set(name, value);
  }
  return capacities;
}

/** Whether anything is to be changed against the record. */
export function isChanged({ rules, alpha, lambda, topn, capacity, agents }: ReplayFlags): boolean {
  return [rules, alpha, lambda, topn, capacity, agents].some((flag) => flag !== undefined);
}

/** One variation per rule set, or one for changes without a rule set.
 *  @throws UsageError for an unknown rule set; InvalidValueError for settings that do not fit together */
export function variationsOf({
  rules,
  alpha,
  lambda,
  topn,
  capacity,
  agents,
}: ReplayFlags): NamedVariation[] {
  const settings: PolicyPatch = {
    ...(alpha === undefined ? {} : { alpha }),
    ...(lambda === undefined ? {} : { lambda }),
    ...(topn === undefined ? {} : { topN: topn }),
  };
  const others: Variation = {
    ...(capacity === undefined ? {} : { capacityByKind: capacity }),
    ...(agents === undefined ? {} : { agentsAdded: agents }),
  };
  const names = rules === undefined ? [undefined] : [...new Set(rules)];
  return names.map((name) => {
    const policy = { ...(name === undefined ? {} : rulesOf(name)), ...settings };
    nextPolicy(defaultPolicy, policy);
    const hasPolicy = Object.keys(policy).length > 0;
    return { name: name ?? "changed", variation: { ...others, ...(hasPolicy ? { policy } : {}) } };
  });
}

/** The changes of every variation, in words; empty if only the rules change. */
export function changesText({ alpha, lambda, topn, capacity, agents }: ReplayFlags): string {
  return [
    ...(alpha === undefined ? [] : [`α ${alpha}`]),
    ...(lambda === undefined ? [] : [`λ ${lambda}`]),
    ...(topn === undefined ? [] : [topn === null ? "no TopN" : `TopN ${topn}`]),
    ...[...(capacity ?? [])].map(([name, count]) => `capacity ${count} of each agent that serves ${name}`),
    ...(agents === undefined ? [] : [`${agents} more ${agents === 1 ? "agent" : "agents"}`]),
  ].join(", ");
}

/** @throws UsageError if no recorded agent serves a kind */
export function requireKinds({ capacity }: ReplayFlags, kinds: readonly string[]): void {
  for (const name of capacity?.keys() ?? []) {
    if (kinds.includes(name)) continue;
    const hint =
      hintOf(name, kinds) ?? (kinds.length === 0 ? "it has no agents" : `its kinds: ${kinds.join(", ")}`);
    throw new UsageError(`no agent of the journal serves the kind '${name}'; ${hint}`, { field: "capacity" });
  }
}

function rulesOf(name: string): PolicyPatch {
  const patch = rulesPatch(name);
  if (patch !== undefined) return patch;
  const hint = hintOf(name, replayRuleNames) ?? `there are ${replayRuleNames.join(", ")}`;
  throw new UsageError(`no rules are called '${name}'; ${hint}`, { field: "rules" });
}

function hintOf(name: string, known: readonly string[]): string | undefined {
  const near = nearMisses(kind(name), known.map(kind));
  return near.length === 0 ? undefined : `did you mean ${near.join(", or ")}?`;
}
