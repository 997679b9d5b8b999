// What a scenario is: a workload drawn from a seed, the rules that may meet it, and the figures that come out.
// Not here: the list of them (scenarios.ts).

import type { SeededRandom } from "../random.ts";
import type { Timeline } from "./timeline.ts";
import type { TraceRequest } from "./trace-rows.ts";

/** One run: one rule, one seed. */
export interface RunInit {
  readonly rule: string;
  /** α of LOCO's load function, [0, 1]. */
  readonly alpha: number;
  /** Of this scenario and seed; split by purpose. */
  readonly random: SeededRandom;
  /** Whether the timeline is wanted too. */
  readonly wantsTimeline: boolean;
  /** Of the scenario's tasks, (0, 1]: the large scenarios can be run smaller. */
  readonly share: number;
  /** Of the scenario `trace` alone. */
  readonly trace?: readonly TraceRequest[];
}

/** By name, in the order in which they are shown. A figure that a rule cannot have (an unstable queue) is absent. */
export type Metrics = Readonly<Record<string, number>>;

export interface RunResult {
  readonly metrics: Metrics;
  /** Who was served when, for pictures; absent unless it was wanted and the scenario has one. */
  readonly timeline?: Timeline;
}

export interface ChartedFigure {
  readonly title: string;
  /** What its axis counts, with the unit. */
  readonly axis: string;
}

export interface Scenario {
  readonly name: string;
  /** One line: what meets what. */
  readonly summary: string;
  /** What each rule is, by name; the first is the default. */
  readonly rules: Readonly<Record<string, string>>;
  /** What each figure means, with its unit. */
  readonly metrics: Readonly<Record<string, string>>;
  /** Draws nothing: one seed says it all. */
  readonly isDeterministic?: boolean;
  /** Tasks in one run, about: what a run costs. */
  readonly tasks: number;
  readonly needsTrace?: boolean;
  /** Which way each figure is better; the others are neither. */
  readonly better: Readonly<Record<string, "lower" | "higher">>;
  /** Figures that a picture compares across rules, by name. Those without a timeline have them. */
  readonly charted?: Readonly<Record<string, ChartedFigure>>;
  run(init: RunInit): RunResult;
}
