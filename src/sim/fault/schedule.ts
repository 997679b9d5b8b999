// Draws the faults of a seed. Each seed leaves out about half of the kinds, so that kinds also run alone: a fault
// always masked by another finds no bug.

import { limits } from "../../limits.ts";
import type { SeededRandom } from "../random.ts";
import {
  BUSY,
  type Fault,
  type FaultKind,
  FRESH_MS,
  faultKinds,
  journalOf,
  LEADER,
  losses,
  type Profile,
  STALE_MS_MAX,
  STANDBY,
} from "./fault.ts";

/** The nodes available as targets of faults. */
export interface Nodes {
  readonly coordinators: readonly string[];
  readonly agents: readonly string[];
  readonly clients: readonly string[];
}

/** Mean time between two faults, ms: at times several are active at once, at times none. */
const GAP_MS = 2_500;
/** Mean time between staggered clogs of many links, ms… */
const STAGGERED_CLOG_MS = 60_000;
/** …node after node within this time. */
const STAGGERED_CLOG_BEGINS_MS = 2_000;
/** Mean time between periods in which clients receive nothing, ms. */
const LOST_ANSWERS_MS = 20_000;
/** …and how long the journal then accepts no tasks, ms. */
const LOST_ANSWERS_SHORT_MS = 5_000;
/** Mean time between two losses outside the fault model, ms. */
const LOSS_MS = 20_000;
/** Time before the first fault, ms: the swarm needs it to start. */
const QUIET_MS = 1_000;
/**
 * Faults drawn separately, with the mean time between two of a kind, ms: random targets and times would rarely cause
 * them. A deposed leader that cannot know of its deposition is the hardest case for a swarm.
 */
const besides = {
  isolated: 25_000,
  "out-of-touch": 30_000,
  "twin-after-restart": 40_000,
  blackout: 60_000,
  "fail-over": 20_000,
  "agents-silent": 45_000,
} as const;
type BesideFault = keyof typeof besides;
/** The share of seeds with a given kind of fault… */
const MET_SHARE = 0.5;
/** …and with a kind that suppresses most other activity. */
const RARE_SHARE = 0.2;
const rare: ReadonlySet<FaultKind> = new Set<FaultKind>(["answers-lost"]);
/** A leader is isolated for longer than T, so that a successor leads and the old leader does not know… */
const ISOLATED_MS_MIN = 2_000;
/** …for a share of times so long that the successor purges the old leader's last records… */
const LONG_ISOLATED_SHARE = 0.25;
const LONG_ISOLATED_MS = 15_000;
/** …but overlapping faults together at most so long, so that one isolation does not fill a whole run. */
export const ISOLATED_MS_MAX = 50_000;
/** Length of the stale answers before and after a fail-over, ms: together at most `STALE_MS_MAX`. */
const FAIL_OVER_STALE_MS = STALE_MS_MAX / 2;
/** Faults after which answers lack records. */
const understating: ReadonlySet<FaultKind> = new Set<FaultKind>(["stale-read", "not-found", "fail-over"]);

/** Ordered by begin; every fault ends by `untilMs`. */
export function drawSchedule(
  random: SeededRandom,
  {
    nodes,
    untilMs,
    without,
    profile = "inside",
  }: { nodes: Nodes; untilMs: number; without: ReadonlySet<FaultKind>; profile?: Profile | undefined },
): Fault[] {
  const isMet = (kind: FaultKind) =>
    random.split(`kind/${streamOf(kind)}`).chance(rare.has(kind) ? RARE_SHARE : MET_SHARE) &&
    !without.has(kind);
  const kinds = (Object.keys(faultKinds) as FaultKind[]).filter(
    (kind): kind is AnyonesFault => !isBeside(kind) && !isApart(kind) && isMet(kind),
  );
  const schedule = (Object.keys(besides) as BesideFault[])
    .filter(isMet)
    .flatMap((kind) => drawBeside(random.split(streamOf(kind)), kind, { nodes, untilMs }));
  if (isMet("skew")) schedule.push({ kind: "skew", atMs: 0, forMs: 0 });
  if (profile === "outside")
    schedule.push(...drawOutside(random.split("outside"), { nodes, untilMs, without }));
  if (isMet("answers-lost"))
    schedule.push(...drawLostAnswers(random.split(streamOf("answers-lost")), { nodes, untilMs }));
  if (isMet("staggered-clog"))
    schedule.push(...drawStaggeredClogs(random.split(streamOf("staggered-clog")), { nodes, untilMs }));
  if (kinds.length === 0) return spaced(schedule);
  const gapMs = GAP_MS * (0.5 + 2 * random.fraction());
  for (let atMs = QUIET_MS + random.exponential(gapMs); atMs < untilMs; atMs += random.exponential(gapMs)) {
    const fault = drawFault(random, random.pick(kinds), nodes);
    schedule.push({
      ...fault,
      atMs: Math.round(atMs),
      forMs: Math.round(Math.min(fault.forMs, untilMs - atMs)),
    });
  }
  return spaced(schedule);
}

/**
 * Keeps the order. Drops understating faults too soon after the last, before answers were true for long enough. Drops
 * `isolated` faults that would add up to more than the longest allowed.
 */
function spaced(schedule: readonly Fault[]): Fault[] {
  let freshFromMs = 0;
  let isolated = { fromMs: 0, untilMs: Number.NEGATIVE_INFINITY };
  return schedule
    .toSorted((a, b) => a.atMs - b.atMs)
    .filter(({ kind, atMs, forMs }) => {
      if (kind === "isolated") {
        const fromMs = atMs <= isolated.untilMs + ISOLATED_MS_MIN ? isolated.fromMs : atMs;
        if (atMs + forMs - fromMs > ISOLATED_MS_MAX) return false;
        isolated = { fromMs, untilMs: Math.max(isolated.untilMs, atMs + forMs) };
      }
      if (!understating.has(kind)) return true;
      if (atMs < freshFromMs) return false;
      freshFromMs = atMs + forMs + FRESH_MS;
      return true;
    });
}

function drawBeside(
  random: SeededRandom,
  kind: BesideFault,
  { nodes, untilMs }: { nodes: Nodes; untilMs: number },
): Fault[] {
  const schedule: Fault[] = [];
  for (let atMs = QUIET_MS; ; ) {
    atMs += random.exponential(besides[kind]);
    if (atMs >= untilMs) return schedule;
    const fault = drawFaultBeside(random, kind, nodes);
    const forMs = Math.min(fault.forMs, untilMs - atMs);
    schedule.push({ ...fault, atMs: Math.round(atMs), forMs: Math.floor(forMs) });
  }
}

/** Many links clog node after node, and are freed in a different order. */
function drawStaggeredClogs(
  random: SeededRandom,
  { nodes, untilMs }: { nodes: Nodes; untilMs: number },
): Fault[] {
  const schedule: Fault[] = [];
  for (
    let atMs = QUIET_MS + random.exponential(STAGGERED_CLOG_MS);
    ;
    atMs += random.exponential(STAGGERED_CLOG_MS)
  ) {
    const fromMs = atMs + STAGGERED_CLOG_BEGINS_MS;
    const untilMsOfAll = fromMs + 500 + random.exponential(4_000);
    if (untilMsOfAll >= untilMs) return schedule;
    for (const of of allLinks(nodes).filter(() => random.chance(0.5))) {
      const beginMs = Math.round(atMs + (fromMs - atMs) * random.fraction());
      const endMs = Math.round(fromMs + (untilMsOfAll - fromMs) * random.fraction());
      schedule.push({ kind: "staggered-clog", atMs: beginMs, forMs: endMs - beginMs, of });
    }
  }
}

/** The answers to some clients are lost, and then the journal has no room for repeated requests. */
function drawLostAnswers(
  random: SeededRandom,
  { nodes, untilMs }: { nodes: Nodes; untilMs: number },
): Fault[] {
  const schedule: Fault[] = [];
  for (
    let atMs = QUIET_MS + random.exponential(LOST_ANSWERS_MS);
    ;
    atMs += random.exponential(LOST_ANSWERS_MS)
  ) {
    const isolationMs = limits.journalUsageMs + random.exponential(4_000);
    const untilMsOfAll = atMs + isolationMs + LOST_ANSWERS_SHORT_MS;
    if (untilMsOfAll >= untilMs) return schedule;
    const fault = { kind: "answers-lost", atMs: Math.round(atMs) } as const;
    for (const of of someOf(random, nodes.clients, 0.7))
      schedule.push({ ...fault, forMs: Math.round(isolationMs), of, direction: "down" });
    schedule.push({ ...fault, forMs: Math.round(untilMsOfAll - atMs) });
  }
}

/** Losses during a crash, a pause or an isolation of every coordinator, or of the leader. */
function drawOutside(
  random: SeededRandom,
  { nodes, untilMs, without }: { nodes: Nodes; untilMs: number; without: ReadonlySet<FaultKind> },
): Fault[] {
  const schedule: Fault[] = [];
  for (
    let atMs = QUIET_MS + random.exponential(LOSS_MS);
    atMs < untilMs;
    atMs += random.exponential(LOSS_MS)
  ) {
    const kind = random.pick(losses);
    const overlapping = random.pick(["blackout", "crash", "pause", "isolated"] as const);
    const forMs = Math.min(untilMs - atMs, 500 + random.exponential(3_000));
    const of = overlapping === "blackout" ? random.pick(nodes.coordinators) : LEADER;
    const others: Fault[] = [
      { kind: overlapping, atMs, forMs, of, ...(overlapping === "blackout" ? { ms: 0 } : {}) },
      { kind, atMs: atMs + 1 + random.below(100), forMs: 0, count: 1 + random.below(12) },
    ];
    schedule.push(...others.filter((fault) => !without.has(fault.kind)));
  }
  return schedule.map((fault) => ({
    ...fault,
    atMs: Math.round(fault.atMs),
    forMs: Math.floor(fault.forMs),
  }));
}

function allLinks({ coordinators, agents, clients }: Nodes): string[] {
  return [...coordinators, ...coordinators.map(journalOf), ...agents, ...clients];
}

function drawFaultBeside(random: SeededRandom, kind: BesideFault, { agents, coordinators }: Nodes): Undated {
  switch (kind) {
    case "isolated":
      return {
        kind,
        forMs: Math.min(
          ISOLATED_MS_MAX,
          random.chance(LONG_ISOLATED_SHARE)
            ? LONG_ISOLATED_MS + random.exponential(LONG_ISOLATED_MS)
            : ISOLATED_MS_MIN + random.exponential(6_000),
        ),
        of: LEADER,
        // The leader's appends are stored, but it receives no answer.
        ...(random.chance(0.5) ? { direction: "down" } : {}),
      };
    case "out-of-touch":
      return {
        kind,
        forMs: limits.agentLostMs + 2_000 + random.exponential(6_000),
        of: random.chance(0.7) ? BUSY : random.pick(agents),
      };
    case "twin-after-restart":
      return { kind, forMs: 1_000 + 6_000 * random.fraction(), of: random.pick(agents) };
    case "blackout": {
      const of = random.pick(coordinators);
      return { kind, forMs: 100 + random.exponential(2_000), of, ms: aJump(random) };
    }
    case "agents-silent":
      return {
        kind,
        forMs: limits.agentLostMs + 3_000,
        nodes: someOf(random, agents, 0.7),
        ms: limits.agentLostMs * (0.6 + 0.4 * random.fraction()),
      };
    case "fail-over":
      return {
        kind,
        forMs: 2 * FAIL_OVER_STALE_MS + 500 + random.exponential(8_000),
        ms: FAIL_OVER_STALE_MS,
        ...(random.chance(0.5) ? { of: STANDBY } : {}),
      };
  }
}

function isBeside(kind: FaultKind): kind is BesideFault {
  return Object.hasOwn(besides, kind);
}

/** The random stream of a fault kind, where stream and kind have different names. A renamed stream would draw other
 *  faults for the same seed. */
const streams: Partial<Record<FaultKind, string>> = {
  isolated: "alone",
  "agents-silent": "unheard",
  "answers-lost": "untold",
  "staggered-clog": "swizzle",
  "twin-after-restart": "usurped",
  "other-branch": "other-line",
};

function streamOf(kind: FaultKind): string {
  return streams[kind] ?? kind;
}

/** Kinds with a drawing function of their own. */
type ApartFault = "skew" | "staggered-clog" | "answers-lost";
const apart: ReadonlySet<FaultKind> = new Set<ApartFault>(["skew", "staggered-clog", "answers-lost"]);

function isApart(kind: FaultKind): kind is ApartFault {
  return apart.has(kind);
}

/** Kinds that may strike any node at any time. */
type AnyonesFault = Exclude<FaultKind, BesideFault | ApartFault>;
type Undated = Omit<Fault, "atMs">;

function drawFault(random: SeededRandom, kind: AnyonesFault, nodes: Nodes): Undated {
  const forMs = 200 + random.exponential(4_000);
  switch (kind) {
    case "delay":
      return {
        kind,
        forMs,
        of: anyLink(random, nodes),
        share: aShare(random),
        ms: 20 + random.exponential(800),
      };
    case "loss":
    case "duplicate":
    case "reorder":
      return { kind, forMs, of: anyLink(random, nodes), share: aShare(random) };
    case "cut":
      return { kind, forMs, of: anyLink(random, nodes), direction: random.chance(0.5) ? "up" : "down" };
    case "clog":
    case "disconnect":
      return { kind, forMs, of: anyLink(random, nodes) };
    case "server-restart":
      return { kind, forMs: 300 + random.exponential(3_000) };
    case "crash":
      return { kind, forMs: 100 + random.exponential(5_000), of: anyNode(random, nodes) };
    case "pause":
      return { kind, forMs: 300 + random.exponential(5_000), of: anyNode(random, nodes) };
    case "slow":
      return { kind, forMs, of: anyNode(random, nodes), ms: 0.5 + random.exponential(8) };
    case "clock-jump":
      return { kind, forMs: 0, of: anyNode(random, nodes), ms: aJump(random) };
    case "partition":
      return { kind, forMs: 1_000 + random.exponential(8_000), nodes: aSide(random, nodes) };
    case "twin":
      return { kind, forMs: 0, of: random.pick(nodes.agents) };
    case "dead-reader":
      return { kind, forMs: 0, of: STANDBY };
    case "transfer":
      return {
        kind,
        forMs: 100 + random.exponential(2_000),
        of: random.chance(0.7) ? LEADER : random.pick(nodes.coordinators),
      };
    case "ack-lost":
    case "append-dropped":
    case "false-refusal":
    case "false-duplicate":
      return { kind, forMs, share: aShare(random) };
    case "stale-read":
    case "not-found":
      return { kind, forMs: Math.min(forMs, STALE_MS_MAX), share: aShare(random) };
    case "append-late":
      return { kind, forMs, share: aShare(random), ms: 200 + random.exponential(4_000) };
    case "full":
    case "journal-off":
    case "no-responders":
      return { kind, forMs };
    case "foreign":
      return random.chance(0.5)
        ? { kind, forMs: 0 }
        : { kind, forMs: 2_000 + random.exponential(8_000), ms: 10 + random.exponential(400) };
    case "other-branch":
    case "segment-lost":
    case "bit-flip":
      return { kind, forMs: 0 };
    case "gap":
    case "tail-cut":
      return { kind, forMs: 0, count: 1 + random.below(12) };
  }
}

/**
 * Coordinators are few and matter most, so faults hit them as often as all agents together, and leaders most of all.
 */
function anyNode(random: SeededRandom, { coordinators, agents, clients }: Nodes): string {
  const roll = random.fraction();
  if (roll < 0.25) return LEADER;
  if (roll < 0.45) return random.pick(coordinators);
  return random.pick(roll < 0.85 ? agents : clients);
}

function anyLink(random: SeededRandom, nodes: Nodes): string {
  const node = anyNode(random, nodes);
  const isJournal = (node === LEADER || nodes.coordinators.includes(node)) && random.chance(0.5);
  return isJournal ? journalOf(node) : node;
}

/** Some coordinators, agents and clients. */
function aSide(random: SeededRandom, { coordinators, agents, clients }: Nodes): string[] {
  return someOf(random, [...coordinators, ...agents, ...clients], 0.4);
}

/** At least one of the nodes. */
function someOf(random: SeededRandom, nodes: readonly string[], share: number): string[] {
  const some = nodes.filter(() => random.chance(share));
  return some.length > 0 ? some : [random.pick(nodes)];
}

function aShare(random: SeededRandom): number {
  return random.chance(0.3) ? 1 : 0.05 + 0.9 * random.fraction();
}

const HOUR_MS = 3_600_000;
const jumps = [HOUR_MS, 23 * HOUR_MS, 49 * HOUR_MS, 7_000].flatMap((ms) => [ms, -ms]);

function aJump(random: SeededRandom): number {
  return random.pick(jumps);
}
