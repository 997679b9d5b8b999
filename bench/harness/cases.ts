// The cases of the comparison: the load of a window, the load before it, and the plan of a run's time.

import type { Order } from "../peers/peer.ts";

/** Names of the windows of the case `sustained`, by the number of tasks that ended before. */
export const sustainedPlaces = {
  first: "the first 10⁵",
  warming: "10⁵ to 5 · 10⁵ ended tasks",
  before: "5 · 10⁵ to 10⁶ ended tasks",
  past: "past 10⁶ ended tasks",
} as const;

export const mainCases = ["c1024", "c64", "c1", "burst", "open", "open2k"] as const;
export const growthCases = [
  "durability",
  "agents",
  "users",
  "waiting",
  "followers",
  "idle",
  "acquire",
  "base",
  "sustained",
] as const;
export const caseNames: readonly (MainCase | GrowthCase)[] = [...mainCases, ...growthCases];

export type MainCase = (typeof mainCases)[number];
export type GrowthCase = (typeof growthCases)[number];
export type CaseName = MainCase | GrowthCase;

export interface Windows {
  readonly c1024Ms: number;
  readonly c64Ms: number;
  readonly c1Ms: number;
  readonly openMs: number;
  /** At full load, before the first window. A young swarm of Waggle makes its first base after some 80,000 tasks, and
   *  verifies its journal 10 s after its start. The full time leaves both behind. */
  readonly warmMs: number;
  /** The same for each form of a growth case. Less is enough: such a form makes a base early. */
  readonly growthWarmMs: number;
  /** The load of the window runs for this time before the window. After a pause, the first seconds of load take more
   *  CPU time per task than steady load. With many tasks in flight the difference is largest, and the time longest. */
  readonly rampMs: Readonly<Record<MainCase, number>>;
  readonly burstTasks: number;
}

export const fullWindows: Windows = {
  c1024Ms: 2_000,
  c64Ms: 1_500,
  c1Ms: 1_000,
  openMs: 2_500,
  warmMs: 14_000,
  growthWarmMs: 5_000,
  rampMs: { c1024: 7_000, c64: 3_000, c1: 700, burst: 700, open: 4_000, open2k: 1_500 },
  burstTasks: 20_000,
};

export const quickWindows: Windows = {
  c1024Ms: 1_000,
  c64Ms: 800,
  c1Ms: 600,
  openMs: 1_500,
  warmMs: 3_000,
  growthWarmMs: 2_500,
  rampMs: { c1024: 500, c64: 500, c1: 500, burst: 500, open: 500, open2k: 500 },
  burstTasks: 20_000,
};

export const titles: Readonly<Record<CaseName, string>> = {
  c1024: "1,024 tasks in flight",
  c64: "64 tasks in flight",
  c1: "one task at a time",
  burst: "20,000 tasks at once",
  open: "open loop at half of one's own maximum",
  open2k: "open loop at 2,000 tasks/s",
  durability: "forms of durability, 1,024 tasks in flight",
  agents: "number of agents, 1,024 tasks in flight",
  users: "number of users, 1,024 tasks in flight",
  waiting: "number of waiting tasks, 1,024 tasks in flight",
  followers: "number of followers of all events, open loop at 2,000 tasks/s",
  idle: "an idle swarm of 100 agents, per second",
  acquire: "first slot lease of a fresh connection",
  base: "while a base of the journal is written: both cores full, and half load",
  sustained: "full load for 90 s, 1,024 tasks in flight",
};

/** @param maxPerSecond the system's rate with 1,024 tasks in flight; for `open`
 *  @returns undefined if the system has no such case */
export function orderOf(
  name: MainCase,
  {
    ms,
    system,
    maxPerSecond,
  }: { readonly ms: Windows; readonly system: string; readonly maxPerSecond?: number },
): Order | undefined {
  if (system === "append" && name !== "c1") return undefined; // has one writer
  switch (name) {
    case "c1":
      return { op: "closed", concurrency: 1, ms: ms.c1Ms };
    case "c1024":
      return { op: "closed", concurrency: 1024, ms: ms.c1024Ms };
    case "c64":
      return { op: "closed", concurrency: 64, ms: ms.c64Ms };
    case "burst":
      return { op: "burst", tasks: ms.burstTasks };
    case "open":
      return maxPerSecond === undefined
        ? undefined
        : { op: "open", ratePerSecond: Math.round(maxPerSecond / 2), ms: ms.openMs };
    case "open2k":
      return { op: "open", ratePerSecond: 2_000, ms: ms.openMs };
  }
}

/** The load before a window: the load of the window itself, or 1,024 tasks in flight before a burst. */
export function rampOf(name: MainCase, order: Order | undefined, { rampMs }: Windows): Order | undefined {
  const ms = rampMs[name];
  switch (order?.op) {
    case "closed":
    case "open":
      return { ...order, ms };
    case "burst":
      return { op: "closed", concurrency: 1024, ms };
    default:
      return undefined;
  }
}

/** The steps of a run before its first case. */
export const firstSteps = ["start", "warm-up"] as const;

/** Expected seconds of the steps of a run, on two cores. */
export function planOf({
  cases,
  systems,
  rounds,
  quick,
}: {
  readonly cases: readonly CaseName[];
  readonly systems: readonly string[];
  readonly rounds: number;
  readonly quick: boolean;
}): readonly { readonly name: string; readonly seconds: number }[] {
  const ms = quick ? quickWindows : fullWindows;
  const windowSeconds: Readonly<Record<MainCase, number>> = {
    c1024: ms.c1024Ms / 1000,
    c64: ms.c64Ms / 1000,
    c1: ms.c1Ms / 1000,
    burst: BURST_SECONDS,
    open: ms.openMs / 1000,
    open2k: ms.openMs / 1000,
  };
  const ofMain = (name: MainCase) => {
    const measured = systems.filter((system) => orderOf(name, { ms, system, maxPerSecond: 1 }) !== undefined);
    return measured.length * rounds * (ms.rampMs[name] / 1000 + windowSeconds[name] + BETWEEN_SECONDS);
  };
  const ofGrowth = (name: GrowthCase) => {
    const { forms, seconds, preparing } = growthPlans[name];
    return (
      forms * START_SECONDS +
      (quick ? preparing / 10 : preparing) +
      rounds * forms * (seconds + BETWEEN_SECONDS)
    );
  };
  const main = mainCasesFor(cases);
  const growth = growthCases.filter((name) => cases.includes(name));
  const first = [START_SECONDS, ms.warmMs / 1000 + BETWEEN_SECONDS].map((each) => systems.length * each);
  return [
    ...(main.length === 0 ? [] : firstSteps.map((name, at) => ({ name, seconds: first[at] ?? 0 }))),
    ...main.map((name) => ({ name, seconds: ofMain(name) })),
    ...growth.map((name) => ({ name, seconds: ofGrowth(name) })),
  ];
}

/** The time of a run, waits for calm included: 30 minutes for the main cases, and as much for the cases of growth. A
 *  shorter plan has less time for waits, and a longer plan some. */
export function limitMsOf(plan: ReturnType<typeof planOf>): number {
  const plannedMs = plan.reduce((ms, { seconds }) => ms + seconds * 1000, 0);
  const has = (names: readonly string[]) => plan.some(({ name }) => names.includes(name));
  const parts = Number(has(mainCases)) + Number(has(growthCases));
  return Math.max(Math.min(parts * PART_MS, plannedMs * 1.5), plannedMs * 1.1);
}

const PART_MS = 30 * 60_000;

/** `open` needs the maxima of `c1024`. */
export function mainCasesFor(cases: readonly CaseName[]): readonly MainCase[] {
  return mainCases.filter((name) => cases.includes(name) || (name === "c1024" && cases.includes("open")));
}

/** From one window to the next: looks at the machine, the last tasks. */
const BETWEEN_SECONDS = 0.8;
/** Processes of a system. */
const START_SECONDS = 3;
const BURST_SECONDS = 1.7;
/** An idle swarm, before its first window. */
export const IDLE_SETTLE_SECONDS = 12;

/** Number of forms; mean seconds of a window with its ramp and its check; seconds between the start and the first
 *  window. */
const growthPlans: Readonly<
  Record<GrowthCase, { readonly forms: number; readonly seconds: number; readonly preparing: number }>
> = {
  durability: { forms: 4, seconds: 5, preparing: 25 },
  agents: { forms: 3, seconds: 5, preparing: 27 },
  users: { forms: 3, seconds: 5, preparing: 17 },
  waiting: { forms: 4, seconds: 5, preparing: 80 },
  followers: { forms: 3, seconds: 28, preparing: 22 },
  idle: { forms: 1, seconds: 10, preparing: IDLE_SETTLE_SECONDS },
  acquire: { forms: 1, seconds: 2, preparing: 0 },
  base: { forms: 4, seconds: 7, preparing: 35 },
  sustained: { forms: 1, seconds: 0, preparing: 132 },
};
