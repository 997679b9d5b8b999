// The demo's agents and tasks, and the times at which one agent breaks and is repaired. Every agent serves every
// kind, and the swarm is nearly full. So an agent that fails at once is always free, and its share shows what the
// swarm has learnt. After its repair the agent is needed at once.

import { limits } from "../../limits.ts";
import { type DemoKind, demoKinds } from "./work.ts";

export interface DemoAgent {
  readonly id: string;
  readonly maxConcurrent: number;
  /** Duration of an attempt, as a multiple of the common duration: at 1.2 an attempt takes a fifth longer. */
  readonly slowness: number;
}

/** Breaks while tasks are submitted, and is repaired. */
export const troubledAgent = "gale";

export const demoAgents: readonly DemoAgent[] = [
  { id: "amber", maxConcurrent: 4, slowness: 1 },
  { id: "birch", maxConcurrent: 4, slowness: 0.9 },
  { id: "cedar", maxConcurrent: 3, slowness: 1 },
  { id: "dune", maxConcurrent: 4, slowness: 1.1 },
  { id: troubledAgent, maxConcurrent: 4, slowness: 1 },
];

export interface DemoTask {
  readonly id: string;
  readonly kind: DemoKind;
  readonly file: string;
}

/** Every kind of every file once, file by file. `run` makes the ids unique to a run. */
export function demoTasks(files: readonly string[], run: string): readonly DemoTask[] {
  return files.flatMap((file, at) =>
    demoKinds.map((kind) => ({ id: `${kind}-${at + 1}-${run}`, kind, file })),
  );
}

export interface DemoPlan {
  /** Between two tasks, ms. */
  readonly everyMs: number;
  /** Submission ends by then, ms from the first task on. It ends earlier where all tasks are submitted. */
  readonly submitMs: number;
  /** Tasks that may be under way at once. A slow machine gets fewer tasks, not a long queue. */
  readonly openMax: number;
  /** How long an attempt takes on average, ms. */
  readonly attemptMs: number;
  /** When the troubled agent breaks, and the latest instant of its repair, ms from the first task on. Or why no agent
   *  breaks. */
  readonly trouble: { readonly fromMs: number; readonly toMs: number } | Untroubled;
}

/** Why no agent is broken: too few tasks, or too little time after the start. */
export type Untroubled = "few-tasks" | "little-time";

/** @param leftMs until the demo must have ended */
export function planOf(tasks: number, leftMs: number): DemoPlan {
  const openMax = demoAgents.reduce((sum, { maxConcurrent }) => sum + maxConcurrent, 0);
  const submitMs = Math.max(limits.demoSubmitMsMin, Math.min(limits.demoSubmitMs, leftMs - limits.demoEndMs));
  if (tasks < limits.demoTroubleTasksMin) {
    const everyMs = limits.demoFewTasksEveryMs;
    return { everyMs, submitMs, openMax, attemptMs: everyMs, trouble: "few-tasks" };
  }
  const everyMs = (limits.demoSubmitMs * PACE) / tasks;
  const attemptMs = Math.min(limits.demoAttemptMsMax, everyMs * openMax * BUSY_SHARE);
  const trouble =
    submitMs < limits.demoTroubleMsMin
      ? "little-time"
      : { fromMs: submitMs * BREAKS_AT, toMs: submitMs * REPAIRED_AT };
  return { everyMs, submitMs, openMax, attemptMs, trouble };
}

/** Share of the longest time of submission that the submissions take. The rest makes up for the time in which an
 *  agent is broken. */
const PACE = 0.92;
/** Share of all slots that is busy. With a smaller share the other agents do all the work, and a repaired agent is
 *  seldom tried. */
const BUSY_SHARE = 0.9;
/** Parts of the time of submission. */
const BREAKS_AT = 0.2;
const REPAIRED_AT = 0.55;

/** In [0, 1), the same for the same text: chance that can be repeated. FNV-1a with a final mix. */
export function chanceOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
