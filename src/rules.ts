// `waggledance/rules`: the rules that the four sources publish, and Waggle's own additions, as pure functions and
// classes. docs/published-rules.md lists the source of each rule.

export { schedule } from "./scheduling/exact/budget-scheduler.ts";
export type {
  AssignAction,
  BudgetSnapshot,
  CountByProject,
  SnapshotAgent,
  SnapshotProject,
  SnapshotTask,
} from "./scheduling/exact/budget-snapshot.ts";
export { BudgetManager } from "./scheduling/exact/fair-share.ts";
export { type LucioPick, LucioScheduler, type LucioTask, priorityScore } from "./scheduling/exact/lucio.ts";
export { RateLimitWindow, type RateLimitWindowOptions } from "./scheduling/exact/rate-limit-window.ts";
export {
  type Released,
  SharedResource,
  type SharedResourceOptions,
} from "./scheduling/exact/shared-resource.ts";
export {
  assignmentScore as vaporaScore,
  assignTaskToBestAgent,
  collectSwarmMetrics,
  currentLoad as vaporaLoad,
  type SwarmMetrics,
  type VaporaAgent,
  type VaporaAssignment,
} from "./scheduling/exact/vapora.ts";
export { loads, type Queue } from "./scheduling/load.ts";
export type { ScoreTerms } from "./scheduling/score.ts";
export { SlidingWindow, type SlidingWindowOptions } from "./scheduling/sliding-window.ts";
export { planSnapshot } from "./sim/policy/snapshot-plan.ts";
export {
  type AlphaChange,
  type AlphaChoice,
  type AlphaPreset,
  alphaByPreset,
  alphaOf,
  nextAlpha,
  type TuningFacts,
} from "./state/alpha.ts";
export { type ModelTiers, weightOf, weightThousandthsOf } from "./state/weight.ts";
