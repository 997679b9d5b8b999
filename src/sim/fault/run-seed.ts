// Runs a seed, from its number to its findings: draws the workload and the faults, runs the world, reports. The run is
// a function from request to report. So it can run here or in a thread, again, and with fewer faults and operations.

import { SeededRandom } from "../random.ts";
import type { Fault, FaultKind, Profile } from "./fault.ts";
import type { Finding, NodeLog } from "./habitat.ts";
import type { Occurrence } from "./occurrences.ts";
import { drawSchedule } from "./schedule.ts";
import { drawWorkload, nodesOf, type Operation, type Workload } from "./workload.ts";
import { World } from "./world.ts";

export interface SeedRequest {
  readonly seed: number;
  /** Virtual time until all faults heal, ms. */
  readonly forMs: number;
  readonly without: readonly FaultKind[];
  /** Default: inside the fault model. */
  readonly profile?: Profile | undefined;
  /** Used instead of the drawn faults; `operations` likewise. */
  readonly schedule?: readonly Fault[];
  readonly operations?: readonly Operation[];
}

export interface SeedReport {
  readonly seed: number;
  /** Empty if the seed passed. */
  readonly findings: readonly Finding[];
  /** Equal for two identical runs. */
  readonly trace: string;
  readonly events: number;
  readonly batches: number;
  readonly tasks: number;
  /** Virtual time until the end of the seed, ms. */
  readonly virtualMs: number;
  /** Time on the real machine, ms. */
  readonly realMs: number;
  readonly faults: number;
  readonly occurrences: Partial<Record<Occurrence, number>>;
}

/** The drawn workload and faults of a seed, or those of the request. */
export function planOf({ seed, forMs, without, profile, schedule, operations }: SeedRequest): {
  readonly workload: Workload;
  readonly schedule: readonly Fault[];
} {
  const random = new SeededRandom(`torture/${seed}`);
  const drawn = drawWorkload(random.split("workload"), forMs);
  const workload = operations === undefined ? drawn : { ...drawn, operations };
  const nodes = nodesOf(workload);
  const faults = drawSchedule(random.split("faults"), {
    nodes,
    untilMs: forMs,
    without: new Set(without),
    profile,
  });
  return { workload, schedule: schedule ?? faults };
}

export interface SeedWatch {
  readonly signal?: AbortSignal | undefined;
  readonly log?: NodeLog | undefined;
}

/** @throws the reason of `signal` */
export async function runSeed(request: SeedRequest, { signal, log }: SeedWatch = {}): Promise<SeedReport> {
  const startedMs = performance.now();
  const { workload, schedule } = planOf(request);
  const { seed, without, profile, forMs: untilMs } = request;
  const world = new World({ seed, workload, schedule, without, profile, untilMs, log });
  const { habitat, truth } = world;
  try {
    await world.run(signal);
  } catch (error) {
    if (signal?.aborted === true) throw error;
    habitat.escaped("an event", error);
  }
  const { trace, events, nowMs } = habitat.engine;
  trace.addText(truth.tail.hash);
  return {
    seed,
    findings: habitat.findings,
    trace: trace.digest(),
    events,
    batches: truth.state.idx,
    tasks: truth.state.submissions,
    virtualMs: nowMs,
    realMs: performance.now() - startedMs,
    faults: schedule.length,
    occurrences: habitat.occurrences.counts(),
  };
}
