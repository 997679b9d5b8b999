// What the comparison has to show: ratios within a run, so that the machine's speed matters little.

import { sustainedPlaces } from "./cases.ts";
import type { Figures } from "./record.ts";
import { ratiosByRound, type Spread, spreadOf } from "./statistics.ts";

export interface Requirement {
  readonly what: string;
  /** Undefined if the run lacks a case or a system. */
  readonly value: Spread | undefined;
  readonly bound: { readonly atLeast: number } | { readonly atMost: number };
  readonly stretch: number;
}

/** All requirements, measured or not. @param nodeMajor CPU time depends on the version of Node */
export function requirementsOf(figures: Figures, nodeMajor: number): readonly Requirement[] {
  const bulk = (other: string) => figures.ratio("c1024", "waggle", other);
  const newNode = nodeMajor >= 24;
  return [
    {
      what: "CPU µs per task of all processes, C = 1024",
      value: figures.usOfAll("c1024", "waggle"),
      bound: { atMost: newNode ? 40 : 50 },
      stretch: newNode ? 30 : 36,
    },
    { what: "C = 1024 ÷ BullMQ", value: bulk("bullmq"), bound: { atLeast: 4.5 }, stretch: 10 },
    { what: "C = 1024 ÷ RabbitMQ", value: bulk("rabbitmq"), bound: { atLeast: 2 }, stretch: 4 },
    { what: "C = 1024 ÷ graphile-worker", value: bulk("graphile"), bound: { atLeast: 1.8 }, stretch: 3.5 },
    { what: "C = 1024 ÷ JetStream queue", value: bulk("js-queue"), bound: { atLeast: 1.8 }, stretch: 3 },
    {
      what: "C = 1024 ÷ request/reply at its best concurrency",
      value: smaller(throughputOverBare(figures), ofBestBare(figures)),
      bound: { atLeast: 1.2 },
      stretch: 2,
    },
    { what: "C = 1024 ÷ Moleculer", value: bulk("moleculer"), bound: { atLeast: 0.45 }, stretch: 1 },
    {
      what: "C = 64 ÷ request/reply",
      value: figures.ratio("c64", "waggle", "bare"),
      bound: { atLeast: 0.6 },
      stretch: 0.8,
    },
    {
      what: "C = 1: p50 ÷ (2 appends + 2 round trips)",
      value: latencyOverPath(figures),
      bound: { atMost: 1.5 },
      stretch: 1.1,
    },
    {
      what: "2,000 tasks/s: CPU per task ÷ request/reply",
      value: figures.ratio("open2k", "waggle", "bare", "us"),
      bound: { atMost: 1.5 },
      stretch: 1,
    },
    {
      what: "half of the maximum: p99 ÷ request/reply",
      value: figures.ratio("open", "waggle", "bare", "p99"),
      bound: { atMost: 1 },
      stretch: 0.5,
    },
    {
      what: "fsync on every append ÷ without",
      value: figures.ratio("durability", "waggle-always", "waggle"),
      bound: { atLeast: 0.8 },
      stretch: 0.9,
    },
    {
      what: "three servers ÷ one",
      value: figures.ratio("durability", "waggle-r3", "waggle"),
      bound: { atLeast: 0.7 },
      stretch: 0.9,
    },
    {
      what: "development broker ÷ JetStream",
      value: figures.ratio("durability", "waggle-dev", "waggle"),
      bound: { atLeast: 0.8 },
      stretch: 0.9,
    },
    {
      what: "500 agents ÷ 2 agents",
      value: figures.ratio("agents", "500 agents", "2 agents"),
      bound: { atLeast: 0.8 },
      stretch: 0.95,
    },
    {
      what: "10,000 users ÷ 1 user",
      value: figures.ratio("users", "10,000 users", "1 user"),
      bound: { atLeast: 0.9 },
      stretch: 1,
    },
    {
      what: "990,000 waiting tasks ÷ none",
      value: figures.ratio("waiting", "990,000 waiting", "0 waiting"),
      bound: { atLeast: 0.9 },
      stretch: 1,
    },
    {
      what: "10⁶ ended tasks remembered ÷ 5 · 10⁵ to 10⁶",
      value: overMedian(
        figures.spread("sustained", sustainedPlaces.past, "ratePerSecond"),
        figures.spread("sustained", sustainedPlaces.before, "ratePerSecond"),
      ),
      bound: { atLeast: 0.95 },
      stretch: 1,
    },
    {
      what: "p99 past 10⁶ ended tasks, ms",
      value: figures.spread("sustained", sustainedPlaces.past, "p99"),
      bound: { atMost: 80 },
      stretch: 80,
    },
    {
      what: "resident memory past 10⁶ ended tasks, MiB",
      value: figures.spread("sustained", sustainedPlaces.past, "coordinatorMiB"),
      bound: { atMost: 477 },
      stretch: 477,
    },
    {
      what: "while a base is written, both cores full ÷ without",
      value: figures.ratio("base", "full load, base", "full load"),
      bound: { atLeast: 0.75 },
      stretch: 0.75,
    },
    {
      what: "while a base is written, half load ÷ without",
      value: figures.ratio("base", "half load, base", "half load"),
      bound: { atLeast: 0.95 },
      stretch: 0.95,
    },
    {
      what: "idle swarm of 100 agents: coordinator, % of a core",
      value: scaled(figures.spreadOfRole("idle", "100 agents", "coordinator"), 1 / 10_000),
      bound: { atMost: 1 },
      stretch: 1,
    },
    {
      what: "first slot lease of a fresh connection, ms",
      value: figures.spread("acquire", "waggle", "p50"),
      bound: { atMost: 60 },
      stretch: 60,
    },
  ];
}

export function isMet({ value, bound }: Requirement): boolean | undefined {
  if (value === undefined) return undefined;
  return "atLeast" in bound ? value.median >= bound.atLeast : value.median <= bound.atMost;
}

/** Request/reply may be faster at 64 than at 1,024. */
function ofBestBare(figures: Figures): Spread | undefined {
  return overMedian(
    figures.spread("c1024", "waggle", "ratePerSecond"),
    figures.spread("c64", "bare", "ratePerSecond"),
  );
}

/** For rounds that are no pairs. */
function overMedian(ours: Spread | undefined, theirs: Spread | undefined): Spread | undefined {
  return theirs === undefined ? undefined : scaled(ours, 1 / theirs.median);
}

export function throughputOverBare(figures: Figures): Spread | undefined {
  return figures.ratio("c1024", "waggle", "bare");
}

/** The path of a task: two appends and two round trips. Over the rounds that count for all three; without one, over
 *  all rounds. */
export function latencyOverPath(figures: Figures): Spread | undefined {
  const ratios = (which: "counted" | "of") => {
    const p50 = (system: string) => figures.byRound("c1", system, "p50", which);
    const roundTrip = p50("bare");
    const path = new Map(
      [...p50("append")].map(([round, ms]) => [round, 2 * ms + 2 * (roundTrip.get(round) ?? Number.NaN)]),
    );
    return ratiosByRound(p50("waggle"), path).filter((ratio) => !Number.isNaN(ratio));
  };
  const counted = ratios("counted");
  return spreadOf(counted.length > 0 ? counted : ratios("of"));
}

function smaller(a: Spread | undefined, b: Spread | undefined): Spread | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a.median < b.median ? a : b;
}

function scaled(spread: Spread | undefined, by: number): Spread | undefined {
  if (spread === undefined) return undefined;
  return { median: spread.median * by, least: spread.least * by, most: spread.most * by };
}
