// The parts of a scenario: a workload drawn from a seed, the rules to compare, and the resulting figures.
// scenarios.ts lists the scenarios.

import type { SeededRandom } from "../random.ts";
import type { Timeline } from "./timeline.ts";
import type { TraceRequest } from "./trace-rows.ts";

/** One run: one rule, one seed. */
export interface RunInit {
  readonly rule: string;
  /** α of LOCO's load function, [0, 1]. */
  readonly alpha: number;
  /** Random source of the scenario and seed; split by purpose. */
  readonly random: SeededRandom;
  /** True to record the timeline as well. */
  readonly wantsTimeline: boolean;
  /** Share of the scenario's tasks, (0, 1]: large scenarios can run smaller. */
  readonly share: number;
  /** Only for the scenario `trace`. */
  readonly trace?: readonly TraceRequest[];
}

/** By name, in display order. Figures without a meaning under a rule (an unstable queue) are absent. */
export type Metrics = Readonly<Record<string, number>>;

export interface RunResult {
  readonly metrics: Metrics;
  /** Recorded services, for pictures; absent unless requested and supported by the scenario. */
  readonly timeline?: Timeline;
}

export interface ChartedFigure {
  readonly title: string;
  /** Label of the axis, with the unit. */
  readonly axis: string;
}

export interface Scenario {
  readonly name: string;
  /** The load and the agents of the scenario, in a line. */
  readonly summary: string;
  /** Description of each rule, by name; the first is the default. */
  readonly rules: Readonly<Record<string, string>>;
  /** Description of each figure, with its unit. */
  readonly metrics: Readonly<Record<string, string>>;
  /** Draws nothing, so a single seed is enough. */
  readonly isDeterministic?: boolean;
  /** Approximate number of tasks per run: the cost of a run. */
  readonly tasks: number;
  readonly needsTrace?: boolean;
  /** Direction in which each figure is better; absent figures have none. */
  readonly better: Readonly<Record<string, "lower" | "higher">>;
  /** Figures to compare across rules in a picture, by name, for scenarios without a timeline. */
  readonly charted?: Readonly<Record<string, ChartedFigure>>;
  run(init: RunInit): RunResult;
}
