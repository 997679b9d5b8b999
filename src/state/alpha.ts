// α of LOCO's load function: the values an operator may choose, and the rule that tunes α automatically. Presets and
// raw values come from LOCO ("Alpha"). LOCO's "Adaptive Alpha" gives directions only; the figures are ours. Not here:
// the load function (load.ts), and when the rule runs.

import { InvalidValueError } from "../errors.ts";
import { checkAmounts, checkFinite, checkNames, checkObject, checkText, said } from "./argument.ts";

/** LOCO's `optimize_for`: from the longest wait first (0) towards the largest queue first (1). */
export const alphaByPreset = { latency: 0, balanced: 0.25, throughput: 0.5 } as const;
export type AlphaPreset = keyof typeof alphaByPreset;
/** LOCO's default for most workloads. */
export const alphaPresetDefault: AlphaPreset = "balanced";

/** An operator's choice of α: a preset or a number, never both; neither means `balanced`. */
export interface AlphaChoice {
  readonly optimizeFor?: string | undefined;
  /** [0, 1] */
  readonly alpha?: number | undefined;
  /** Whether α is tuned automatically (`nextAlpha`), only within [0, 0.5]. */
  readonly autoTune?: boolean | undefined;
}

/** Upper end of the range for automatic tuning (LOCO: "Clamped to [0.0, 0.5] safe range"). */
const tunedHighest = 0.5;
const tuningStep = 0.01;
/** Waits above this coefficient of variation (standard deviation over mean) count as uneven. */
const unevenVariation = 0.5;
/** A queue that grew by more than this share counts as growing. */
const growingTrend = 0.2;
/** The rule compares a queue with its weight so many ticks ago. */
export const alphaTrendTicks = 10;

/**
 * @returns α, in [0, 1]
 * @throws InvalidValueError when the choice is no object, has an unknown field or an unknown preset, or has both
 *   fields; when α lies outside [0, 1] or is no number; when α is above 0.5 and tuned automatically
 */
export function alphaOf(choice: AlphaChoice): number {
  checkObject(choice, "choice");
  checkNames(choice, choiceNames, "α");
  const { optimizeFor, alpha, autoTune } = choice;
  if (optimizeFor !== undefined && alpha !== undefined) {
    throw new InvalidValueError("alpha and optimizeFor exclude each other", { field: "alpha" });
  }
  const chosen = alpha === undefined ? presetAlpha(optimizeFor) : alpha;
  if (typeof chosen !== "number" || !(chosen >= 0 && chosen <= 1)) {
    throw new InvalidValueError(`α must be a number from 0 to 1, not ${said(chosen)}`, { field: "alpha" });
  }
  if (autoTune === true && chosen > tunedHighest) {
    const sentence = `automatic tuning keeps α within 0 to ${tunedHighest}; α cannot start at ${chosen}`;
    throw new InvalidValueError(sentence, { field: "alpha" });
  }
  return chosen;
}

const choiceNames = ["optimizeFor", "alpha", "autoTune"] satisfies (keyof AlphaChoice)[];

/** Checks an α that is required: an argument, unlike a setting, has no preset as default. @throws InvalidValueError */
export function checkAlpha(alpha: number): void {
  checkFinite(alpha, "alpha");
  alphaOf({ alpha });
}

function presetAlpha(preset: string = alphaPresetDefault): number {
  checkText(preset, "optimizeFor");
  if (isPreset(preset)) return alphaByPreset[preset];
  const known = Object.keys(alphaByPreset).join(", ");
  throw new InvalidValueError(`unknown preset '${preset}'; known presets: ${known}`, {
    field: "optimizeFor",
  });
}

function isPreset(name: string): name is AlphaPreset {
  return Object.hasOwn(alphaByPreset, name);
}

/** Input of the adaptive rule, at one release. */
export interface TuningFacts {
  readonly alpha: number;
  /** D of each competitor: age of its oldest waiting task, ticks. */
  readonly oldestAges: readonly number[];
  /** Sum of all queues' weights after each of the last ticks, oldest first; see `depthsWith`. */
  readonly depths: readonly number[];
}

export interface AlphaChange {
  readonly from: number;
  readonly to: number;
  /** `uneven-waits` lowers α, `growing-queue` raises it. */
  readonly reason: "uneven-waits" | "growing-queue";
  /**
   * The value above its threshold: the coefficient of variation of D, or the queue's growth over 10 ticks. A growth of
   * 1 means twice as deep, or a queue that was empty 10 ticks ago.
   */
  readonly measured: number;
}

/**
 * The adaptive rule, applied once at each release, after the ageing and before the grant. Coefficient of variation of D
 * > 0.5 → α − 0.01, else queue trend over 10 ticks > 20 % → α + 0.01, within [0, 0.5].
 *
 * @returns the change with its reason, or undefined when α stays
 * @throws InvalidValueError when α is above 0.5, or facts are missing or are not numbers ≥ 0
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

/** Keeps steps of 0.01 from drifting: 25 steps take 0.25 to exactly 0. */
function roundedToMillionths(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

/** `depths` with the newest value, cut to the last 11: the rule compares now with 10 ticks ago. */
export function depthsWith(depths: readonly number[], newest: number): number[] {
  return [...depths.slice(-alphaTrendTicks), newest];
}

/** Standard deviation over mean of all competitors; 0 without waiting tasks. */
function variationOf(values: readonly number[]): number {
  const sum = values.reduce((total, value) => total + value, 0);
  if (sum === 0) return 0;
  const mean = sum / values.length;
  const variance = values.reduce((total, value) => total + (value - mean) ** 2, 0) / values.length;
  return Math.sqrt(variance) / mean;
}

/** 0 until 11 depths are known. */
function growthOf(depths: readonly number[]): number {
  const before = depths.at(-1 - alphaTrendTicks);
  const now = depths.at(-1);
  if (before === undefined || now === undefined) return 0;
  if (before === 0) return now > 0 ? 1 : 0;
  return now / before - 1;
}
