// α of LOCO's load function: what an operator may choose, and the rule that moves it by itself. Presets and raw
// values come from LOCO ("Alpha"); its "Adaptive Alpha" names directions only, the figures are ours.
// Not here: the load function (load.ts), whose queues are watched and when.

import { InvalidValueError } from "../errors.ts";
import { checkAmounts, checkFinite, checkNames, checkObject, checkText, said } from "./argument.ts";

/** LOCO's `optimize_for`: whom to serve first, from who waits longest (0) towards who has most (1). */
export const alphaByPreset = { latency: 0, balanced: 0.25, throughput: 0.5 } as const;
export type AlphaPreset = keyof typeof alphaByPreset;
/** LOCO's default for most workloads. */
export const alphaPresetDefault: AlphaPreset = "balanced";

/** What an operator may say of α: a preset or a number, never both; neither means `balanced`. */
export interface AlphaChoice {
  readonly optimizeFor?: string | undefined;
  /** [0, 1] */
  readonly alpha?: number | undefined;
  /** Whether α is to move by itself (`nextAlpha`), which it does within [0, 0.5] only. */
  readonly autoTune?: boolean | undefined;
}

/** The range in which α moves by itself (LOCO: "Clamped to [0.0, 0.5] safe range"). */
const tunedHighest = 0.5;
const tuningStep = 0.01;
/** Above it, waits count as uneven: standard deviation over mean. */
const unevenVariation = 0.5;
/** Above it, a queue counts as growing. */
const growingTrend = 0.2;
/** How many ticks back a queue is compared with. */
export const alphaTrendTicks = 10;

/**
 * @returns α, in [0, 1]
 * @throws InvalidValueError when the choice is no object or says what nobody knows, both are given, the preset is
 *   unknown, α lies outside [0, 1] or is no number, or is above 0.5 and to move by itself
 */
export function alphaOf(choice: AlphaChoice): number {
  checkObject(choice, "choice");
  checkNames(choice, choiceNames, "α");
  const { optimizeFor, alpha, autoTune } = choice;
  if (optimizeFor !== undefined && alpha !== undefined) {
    throw new InvalidValueError("say either an α or what to optimize for, not both", { field: "alpha" });
  }
  const chosen = alpha === undefined ? presetAlpha(optimizeFor) : alpha;
  if (typeof chosen !== "number" || !(chosen >= 0 && chosen <= 1)) {
    throw new InvalidValueError(`α must be a number from 0 to 1, not ${said(chosen)}`, { field: "alpha" });
  }
  if (autoTune === true && chosen > tunedHighest) {
    const sentence = `α moves by itself within 0 to ${tunedHighest}; start it there, not at ${chosen}`;
    throw new InvalidValueError(sentence, { field: "alpha" });
  }
  return chosen;
}

const choiceNames = ["optimizeFor", "alpha", "autoTune"] satisfies (keyof AlphaChoice)[];

/** One that was said: unlike a setting, an argument has no preset to fall back to. @throws InvalidValueError */
export function checkAlpha(alpha: number): void {
  checkFinite(alpha, "alpha");
  alphaOf({ alpha });
}

function presetAlpha(preset: string = alphaPresetDefault): number {
  checkText(preset, "optimizeFor");
  if (isPreset(preset)) return alphaByPreset[preset];
  const known = Object.keys(alphaByPreset).join(", ");
  throw new InvalidValueError(`there is no preset '${preset}'; there are ${known}`, { field: "optimizeFor" });
}

function isPreset(name: string): name is AlphaPreset {
  return Object.hasOwn(alphaByPreset, name);
}

/** What the adaptive rule looks at, at one release. */
export interface TuningFacts {
  readonly alpha: number;
  /** D of each that competes: age of its oldest waiting task, ticks. */
  readonly oldestAges: readonly number[];
  /** Sum of all queues' weights after each of the last ticks, oldest first; see `depthsWith`. */
  readonly depths: readonly number[];
}

export interface AlphaChange {
  readonly from: number;
  readonly to: number;
  /** `uneven-waits` lowers α, `growing-queue` raises it. */
  readonly reason: "uneven-waits" | "growing-queue";
  /** What was above its threshold: the coefficient of variation of D, or the queue's growth over 10 ticks
   *  (1 is twice as deep; 1 also for a queue that was empty then). */
  readonly measured: number;
}

/**
 * The adaptive rule, asked once at each release, after the ageing and before the grant: coefficient of variation
 * of D > 0.5 → α − 0.01, else queue trend over 10 ticks > 20 % → α + 0.01, within [0, 0.5].
 *
 * @returns the change with its reason, or undefined when α stays
 * @throws InvalidValueError when α is above 0.5, or facts are missing or no numbers from 0
 */
export function nextAlpha(facts: TuningFacts): AlphaChange | undefined {
  checkObject(facts, "facts");
  checkAlpha(facts.alpha);
  checkAmounts(facts.oldestAges, "oldestAges");
  checkAmounts(facts.depths, "depths");
  const from = alphaOf({ alpha: facts.alpha, autoTune: true });
  const variation = variationOf(facts.oldestAges);
  if (variation > unevenVariation) return change(from, from - tuningStep, "uneven-waits", variation);
  const growth = growthOf(facts.depths);
  if (growth > growingTrend) return change(from, from + tuningStep, "growing-queue", growth);
  return undefined;
}

function change(
  from: number,
  wanted: number,
  reason: AlphaChange["reason"],
  measured: number,
): AlphaChange | undefined {
  const to = Math.min(tunedHighest, Math.max(0, roundedToMillionths(wanted)));
  return to === from ? undefined : { from, to, reason, measured };
}

/** Steps of 0.01 must not drift: after 25 of them, 0.25 is 0. */
function roundedToMillionths(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

/** `depths` with the newest one, no longer than the rule needs: 10 ticks ago, and since. */
export function depthsWith(depths: readonly number[], newest: number): number[] {
  return [...depths.slice(-alphaTrendTicks), newest];
}

/** Standard deviation over mean, of all that compete; 0 where nobody or nothing waits. */
function variationOf(values: readonly number[]): number {
  const sum = values.reduce((total, value) => total + value, 0);
  if (sum === 0) return 0;
  const mean = sum / values.length;
  const variance = values.reduce((total, value) => total + (value - mean) ** 2, 0) / values.length;
  return Math.sqrt(variance) / mean;
}

/** 0 until as many ticks are known. */
function growthOf(depths: readonly number[]): number {
  const before = depths.at(-1 - alphaTrendTicks);
  const now = depths.at(-1);
  if (before === undefined || now === undefined) return 0;
  if (before === 0) return now > 0 ? 1 : 0;
  return now / before - 1;
}
