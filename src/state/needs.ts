// What a task asks of its agent's labels: for each named label one of the accepted values. Pure. Not here: the check of
// sent needs (protocol/schemas.ts), the choice of an agent (scheduling/eligibility.ts).

import { limits } from "../limits.ts";
import { nearMisses } from "./near-miss.ts";

/** Values by name, of an agent. */
export type Labels = Readonly<Record<string, string>>;

/** Accepted values by label: names and values in order of their characters, no list empty, no value twice. */
export type Needs = Readonly<Record<string, readonly string[]>>;

/** As submitters write needs: one value stands for a list of one. */
export type WrittenNeeds = Readonly<Record<string, string | readonly string[]>>;

/** The one form of equal needs; undefined without any. */
export function needsOf(written: WrittenNeeds | undefined): Needs | undefined {
  const names = Object.keys(written ?? {}).sort();
  if (written === undefined || names.length === 0) return undefined;
  return Object.fromEntries(
    names.map((name) => {
      const values = written[name] ?? [];
      return [name, typeof values === "string" ? [values] : [...new Set(values)].sort()];
    }),
  );
}

/** Whether an agent with the labels may run a task with the needs. */
export function meetsNeeds(labels: Labels, needs: Needs | undefined): boolean {
  if (needs === undefined) return true;
  for (const name in needs) if (!meets(labels, needs, name)) return false;
  return true;
}

function meets(labels: Labels, needs: Needs, name: string): boolean {
  const value = labels[name];
  return value !== undefined && (needs[name]?.includes(value) ?? false);
}

/** `gpu=a100 region=eu,us`: equal for equal needs alone. Other than plain values stand as JSON. */
export function needsText(needs: Needs): string {
  return Object.entries(needs)
    .map(([name, values]) => `${name}=${values.map(valueText).join(",")}`)
    .join(" ");
}

/** `gpu=a100 or gpu=h100, and region=eu`: for sentences. */
export function needsWords(needs: Needs): string {
  return Object.entries(needs)
    .map(([name, values]) => values.map((value) => `${name}=${valueText(value)}`).join(" or "))
    .join(", and ");
}

/** `gpu=a100 region=eu`: one value of each name, as `needsText` writes them. */
export function valuesText(values: Labels): string {
  return needsText(Object.fromEntries(Object.entries(values).map(([name, value]) => [name, [value]])));
}

/** Flags of an agent that meets the needs: `--label gpu=a100 --label region=eu`. */
export function labelFlags(needs: Needs): string {
  return Object.entries(needs)
    .map(([name, [value = ""]]) =>
      isPlain(value) ? `--label ${name}=${value}` : `--label '${name}=${value}'`,
    )
    .join(" ");
}

function valueText(value: string): string {
  return isPlain(value) ? value : JSON.stringify(value);
}

function isPlain(value: string): boolean {
  return /^[A-Za-z0-9_.:/+-]+$/.test(value);
}

export function isSameNeeds(a: Needs | undefined, b: Needs | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && needsText(a) === needsText(b));
}

/** Why no agent meets the needs. */
export interface UnmetNeeds {
  /** The needs that the closest agents do not meet: those with the fewest. */
  readonly unmet: Needs;
  /** Whether no agent at all meets any of the unmet needs. Else other agents meet them, and lack others. */
  readonly isUnmetByAll: boolean;
  /** `gpu=h100`: labels of agents that resemble the unmet needs, at most `limits.labelValuesShownMax` of each. */
  readonly nearMisses: readonly string[];
}

/** Compares needs with the labels of all agents that would serve otherwise; none of them meets the needs. */
export function unmetNeeds(needs: Needs, agents: Iterable<Labels>): UnmetNeeds {
  const names = Object.keys(needs);
  let fewest: readonly string[] = names;
  const valuesByLabel = new Map<string, Set<string>>();
  for (const labels of agents) {
    const missing = names.filter((name) => !meets(labels, needs, name));
    if (missing.length < fewest.length) fewest = missing;
    for (const [name, value] of Object.entries(labels)) {
      const values = valuesByLabel.get(name);
      if (values === undefined) valuesByLabel.set(name, new Set([value]));
      else values.add(value);
    }
  }
  return {
    unmet: Object.fromEntries(fewest.map((name) => [name, needs[name] ?? []])),
    isUnmetByAll: !fewest.some((name) => needs[name]?.some((value) => valuesByLabel.get(name)?.has(value))),
    nearMisses: fewest.flatMap((name) => resembling(name, needs[name] ?? [], valuesByLabel)),
  };
}

/** Other values of the label, the most similar ones if any is similar; or labels with a similar name. */
function resembling(
  name: string,
  wanted: readonly string[],
  valuesByLabel: ReadonlyMap<string, ReadonlySet<string>>,
): string[] {
  const values = valuesByLabel.get(name);
  if (values === undefined) {
    const [label] = nearMisses(name, valuesByLabel.keys());
    return label === undefined ? [] : shownOf(label, [...(valuesByLabel.get(label) ?? [])]);
  }
  // Another agent may have a wanted value, and lack another label.
  const others = [...values].filter((value) => !wanted.includes(value));
  const near = new Set(wanted.flatMap((value) => nearMisses(value, others)));
  return shownOf(name, near.size > 0 ? [...near] : others);
}

function shownOf(label: string, values: readonly string[]): string[] {
  return [...values]
    .sort()
    .slice(0, limits.labelValuesShownMax)
    .map((value) => needsText({ [label]: [value] }));
}
