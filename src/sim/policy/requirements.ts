// Requirements on the rules, each a figure with a bound. `npm run simulate:all` checks them on all seeds and
// writes docs/results.md. Tests check them on fewer seeds, each with its slack.

import { defaultPolicy } from "../../state/policy.ts";
import { locoPublished, sustainablePublished } from "./published.ts";
import type { RuleReport } from "./simulate.ts";

export interface Runs {
  readonly scenario: string;
  readonly rule: string;
  /** Default: the policy's. */
  readonly alpha?: number;
}

/** The mean of a figure over the seeds. */
export type MeanOf = (runs: Runs, metric: string) => number;

export interface Requirement {
  readonly sentence: string;
  /** Runs that the figure needs. */
  readonly runs: readonly Runs[];
  readonly figure: (meanOf: MeanOf) => number;
  readonly atLeast?: number;
  readonly atMost?: number;
  /** Permitted miss of the bound by a mean over the few seeds of a test: at least 1.5 times the largest miss in
   *  16 blocks of other seeds. Absent: the scenario draws nothing, or no seed comes near the bound. */
  readonly slack?: number;
}

/** Key of the reports of a set of runs. */
export function runsKey({
  scenario,
  rule,
  alpha,
}: Pick<RuleReport, "scenario" | "rule"> & { readonly alpha?: number | null }): string {
  return `${scenario} ${rule} ${alpha ?? defaultPolicy.alpha}`;
}

export function meansOf(reports: readonly RuleReport[]): MeanOf {
  const byKey = new Map(reports.map((report) => [runsKey(report), report.metrics]));
  return (runs, metric) => byKey.get(runsKey(runs))?.[metric]?.mean ?? Number.NaN;
}

/** @param slack 0 on all seeds */
export function holds({ atLeast, atMost }: Requirement, figure: number, slack: number): boolean {
  const isHighEnough = atLeast === undefined || figure >= atLeast - slack;
  return !Number.isNaN(figure) && isHighEnough && (atMost === undefined || figure <= atMost + slack);
}

interface Claim extends Runs {
  readonly metric: string;
  readonly sentence: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly slack?: number;
}

/** A requirement on a figure of one rule. */
function claim({ metric, sentence, atLeast, atMost, slack, ...runs }: Claim): Requirement {
  return {
    sentence,
    runs: [runs],
    figure: (meanOf) => meanOf(runs, metric),
    ...(atLeast === undefined ? {} : { atLeast }),
    ...(atMost === undefined ? {} : { atMost }),
    ...(slack === undefined ? {} : { slack }),
  };
}

interface Comparison {
  readonly scenario: string;
  readonly metric: string;
  readonly sentence: string;
  /** The figure is the ratio of `of` to `over`. */
  readonly of: string;
  readonly over: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly slack?: number;
}

function ratio({ scenario, metric, sentence, of, over, ...bounds }: Comparison): Requirement {
  const [first, second] = [
    { scenario, rule: of },
    { scenario, rule: over },
  ];
  return {
    sentence,
    runs: [first, second],
    figure: (meanOf) => meanOf(first, metric) / meanOf(second, metric),
    ...bounds,
  };
}

/** Permitted distance from the published figures, which used a different random source. */
const locoTable = locoPublished.flatMap(({ alpha, jain, neverServed, spike }): Requirement[] => {
  const rule = "loco";
  const overload = { scenario: "loco-overload", rule, alpha };
  return [
    claim({
      ...overload,
      metric: "jain",
      sentence: `exact LOCO, α ${alpha}: Jain of completions is ${jain} ± 0.03`,
      atLeast: jain - 0.03,
      atMost: jain + 0.03,
      // Blocks of 8 seeds deviate by 0.009 at most; the bounds are already more than two deviations away.
      slack: 0.01,
    }),
    claim({
      ...overload,
      metric: "neverServed",
      sentence: `exact LOCO, α ${alpha}: ${neverServed} ± 0.8 clients are never served`,
      atLeast: neverServed - 0.8,
      atMost: neverServed + 0.8,
      // A count of clients: blocks of 8 seeds deviate by 0.45 and were outside the bounds by 0.25 at most.
      slack: 0.4,
    }),
    claim({
      scenario: "loco-spike",
      rule,
      alpha,
      metric: "spike",
      sentence: `exact LOCO, α ${alpha}: webhooks are served after ${spike} ticks ± 25 %`,
      atLeast: spike * 0.75,
      atMost: spike * 1.25,
      // Waits of single spikes vary widely at high α: blocks deviate by a tenth, and the worst of 16 was 4 %
      // outside.
      slack: spike * 0.1,
    }),
  ];
});

const sustainable = locoPublished.flatMap(({ alpha }): Requirement[] => {
  const runs = { scenario: "loco-sustainable", rule: "loco", alpha };
  const { jain, waitMean } = sustainablePublished;
  return [
    claim({
      ...runs,
      metric: "jain",
      sentence: `exact LOCO, α ${alpha}, sustainable load: Jain ${jain} ± 0.03`,
      atLeast: jain - 0.03,
      atMost: jain + 0.03,
      // As under overload: the bounds are already two and a half deviations away.
      slack: 0.01,
    }),
    claim({
      ...runs,
      metric: "neverServed",
      sentence: `exact LOCO, α ${alpha}, sustainable load: everybody is served`,
      atMost: 0,
    }),
    claim({
      ...runs,
      metric: "waitMean",
      sentence: `exact LOCO, α ${alpha}, sustainable load: the mean wait is about ${waitMean} ticks`,
      atLeast: waitMean - 0.3,
      atMost: waitMean + 0.3,
      // The arrivals decide the wait, which varies by 0.13 from block to block; none of 16 blocks was outside
      // the bounds.
      slack: 0.1,
    }),
  ];
});

const ours = "waggle";

export const requirements: readonly Requirement[] = [
  ...["loco", ours].map((rule) =>
    claim({
      scenario: "loco-burst",
      rule,
      metric: "ticks",
      sentence: `${rule}: all 36 tasks are served in exactly 36 ticks`,
      atLeast: 36,
      atMost: 36,
    }),
  ),
  ...locoTable,
  ...sustainable,
  claim({
    scenario: "loco-mdash",
    rule: "loco",
    metric: "proversServed",
    sentence: "exact LOCO, α 0.25: all provers are served",
    atLeast: 5,
  }),
  claim({
    scenario: "loco-mdash",
    rule: "loco",
    metric: "slowest",
    sentence: "exact LOCO, α 0.25: the slowest prover is served within 80 ticks",
    atMost: 80,
  }),
  claim({
    scenario: "loco-mdash",
    rule: ours,
    metric: "slowest",
    sentence: "ours: the slowest prover is served within 80 ticks",
    atMost: 80,
  }),
  claim({
    scenario: "loco-overload",
    rule: ours,
    metric: "jain",
    sentence: "ours: Jain of completions is 0.985 or more",
    atLeast: 0.985,
    // The mean of all seeds is 0.987, near the maximum for the arrivals; blocks of 8 deviate by 0.003, the
    // worst had 0.979.
    slack: 0.008,
  }),
  claim({
    scenario: "loco-overload",
    rule: ours,
    metric: "neverServed",
    sentence: "ours: every client is served",
    atMost: 0,
  }),
  ratio({
    scenario: "loco-overload",
    metric: "served",
    sentence: "ours serves as many tasks as LOCO's rule",
    of: ours,
    over: "loco",
    atLeast: 1,
  }),
  claim({
    scenario: "loco-overload",
    rule: "loco-starvation-limit",
    alpha: 0.5,
    metric: "neverServed",
    sentence: "LOCO's rule with our ageing starvation limit alone, α 0.5: every client is served",
    atMost: 0,
  }),
  claim({
    scenario: "loco-spike",
    rule: ours,
    metric: "spike",
    sentence: "ours: webhooks are served within 5 ticks",
    atMost: 5,
  }),
  claim({
    scenario: "newcomer",
    rule: ours,
    metric: "gapUsers",
    sentence: "ours: neither of two users waits more than 2 ticks for its next turn",
    atMost: 2,
  }),
  claim({
    scenario: "newcomer",
    rule: ours,
    metric: "gapProjects",
    sentence: "ours: neither of two projects waits more than 2 ticks for its next turn",
    atMost: 2,
  }),
  claim({
    scenario: "newcomer",
    rule: "window-usage",
    metric: "gapUsers",
    sentence: "a rule by usage in a window fails the same: somebody waits for hundreds of ticks",
    atLeast: 100,
  }),
  claim({
    scenario: "mixed-kinds",
    rule: ours,
    metric: "longestRun",
    sentence: "ours: nobody gets more than 2 turns in a row from a task that nobody serves",
    atMost: 2,
  }),
  claim({
    scenario: "costly-users",
    rule: ours,
    metric: "turnsPerTurn",
    sentence:
      "ours: a user with tasks of cost 1 gets five turns for each turn of a user with tasks of cost 5",
    atLeast: 4.9,
    atMost: 5.1,
  }),
  claim({
    scenario: "costly-users",
    rule: "round-robin",
    metric: "turnsPerTurn",
    sentence: "round robin counts turns: the user with tasks of cost 5 gets five sixths of all cost",
    atMost: 1,
  }),
  claim({
    scenario: "lucio-1",
    rule: ours,
    metric: "lightFirst",
    sentence: "ours: every light user's first task starts within 1 time unit",
    atMost: 1,
  }),
  ratio({
    scenario: "lucio-1",
    metric: "lightWait",
    sentence: "ours: light users' mean wait is 0.35 of FIFO's or less",
    of: ours,
    over: "fifo",
    atMost: 0.35,
  }),
  ratio({
    scenario: "lucio-1",
    metric: "lightWaitMax",
    sentence: "ours: light users' worst wait is 0.55 of FIFO's or less",
    of: ours,
    over: "fifo",
    atMost: 0.55,
  }),
  ratio({
    scenario: "lucio-1",
    metric: "total",
    sentence: "ours: the total time equals FIFO's",
    of: ours,
    over: "fifo",
    atLeast: 1,
    atMost: 1,
  }),
  claim({
    scenario: "lucio-1",
    rule: ours,
    metric: "jain",
    sentence: "ours: Jain of the service is 0.95 or more while contended",
    atLeast: 0.95,
  }),
  ...(
    [
      ["scoreA", 0.68],
      ["scoreB", 0.85],
      ["scoreC", 0.45],
    ] as const
  ).map(([metric, published]) =>
    claim({
      scenario: "vapora-examples",
      rule: "vapora",
      metric,
      sentence: `VAPORA's example: ${metric} is ${published} to two decimals`,
      atLeast: published - 0.005,
      atMost: published + 0.005,
    }),
  ),
  claim({
    scenario: "vapora-examples",
    rule: "vapora",
    metric: "selected",
    sentence: "VAPORA's example: the second agent is selected",
    atLeast: 2,
    atMost: 2,
  }),
  ratio({
    scenario: "skew16",
    metric: "p99At25",
    sentence: "round robin's p99 at 25 % load is 8.6 times ours or more (published for Prequal)",
    of: "round-robin",
    over: ours,
    atLeast: 8.6,
    // Two seeds and 4 % of the tasks: learning takes a larger part of the run, and a p99 of few tasks is
    // coarse. Pairs of seeds had 6.4 to 10.8; the best rule without knowledge of the agents' speeds has 3.8.
    slack: 4,
  }),
  ...(
    [
      ["share30At10", 0.25, "at 10 % load, a quarter of the tasks within 30 s"],
      ["share120At10", 0.4, "at 10 % load, two fifths of the tasks within 2 min"],
      ["share30At30", 0.25, "at 30 % load, a quarter of the tasks within 30 s"],
      ["share120At30", 0.4, "at 30 % load, two fifths of the tasks within 2 min"],
    ] as const
  ).map(([metric, atLeast, sentence]) =>
    claim({
      scenario: "slow-once",
      rule: ours,
      metric,
      sentence: `ours: the agent that was slow once gets, ${sentence}`,
      atLeast,
    }),
  ),
  ...(
    [
      ["inTurn", "one after another, behind 40 tasks of the other agent"],
      ["afterFew", "at 10 % load, behind 40 tasks of the other agent"],
      ["afterMany", "at 10 % load, behind 1,000 tasks of the other agent"],
    ] as const
  ).map(([metric, sentence]) =>
    claim({
      scenario: "joiner",
      rule: ours,
      metric,
      sentence: `ours: an agent that joins gets 30 % of the next 300 tasks, ${sentence}`,
      atLeast: 0.3,
    }),
  ),
  ratio({
    scenario: "flaky",
    metric: "failedAttempts",
    sentence: "ours: a quarter of VAPORA's failed attempts or less",
    of: ours,
    over: "vapora-late",
    atMost: 0.25,
    // Two seeds and 0.4 of the tasks: learning which agents fail costs the same in a shorter run. Pairs had
    // 0.13 to 0.31; rules without learning have more than 1.
    slack: 0.15,
  }),
  {
    sentence: "ours: rates are learnt per kind: the broken agents' share of the other kind does not fall",
    runs: [{ scenario: "flaky", rule: ours }],
    figure: (meanOf) => meanOf({ scenario: "flaky", rule: ours }, "fineShare"),
    atLeast: 0.25,
  },
  claim({
    scenario: "flaky",
    rule: ours,
    metric: "repairedShare",
    sentence: "ours: repaired agents get work again",
    atLeast: 0.12,
    // Two seeds and 0.4 of the tasks: a shorter run leaves little time after the repair to learn anew. Pairs
    // had 0.018 to 0.17; without new tries the repaired agents would have 0.
    slack: 0.11,
  }),
  claim({
    scenario: "herd",
    rule: ours,
    metric: "above",
    sentence: "ours: nothing is assigned above capacity",
    atMost: 0,
  }),
  claim({
    scenario: "herd",
    rule: "four-deciders",
    metric: "above",
    sentence: "four deciders with old reports assign above capacity",
    atLeast: 0.1,
  }),
  claim({
    scenario: "black-hole",
    rule: ours,
    metric: "dead",
    sentence: "ours: no task is dead-lettered",
    atMost: 0,
  }),
  claim({
    scenario: "black-hole",
    rule: "least-in-flight-late",
    metric: "dead",
    sentence: "without filters some 856 of 1,000 are",
    atLeast: 800,
    atMost: 910,
  }),
  claim({
    scenario: "budget-race",
    rule: ours,
    metric: "over",
    sentence: "ours: spent and reserved never exceed the budget at an assignment",
    atMost: 0,
  }),
  claim({
    scenario: "budget-race",
    rule: ours,
    metric: "reservedAtEnd",
    sentence: "ours: every reservation has returned in the end, those of dead agents too",
    atMost: 0,
  }),
  claim({
    scenario: "budget-race",
    rule: "check-then-charge",
    metric: "over",
    sentence: "checking before and charging after exceeds it by about what is in flight",
    atLeast: 20_000,
  }),
];
