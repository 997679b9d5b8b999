// Who takes part in the demo, how much work there is, and when one agent breaks and is repaired.
// The one thing to know: every agent serves every kind and the swarm has room to spare, so that the choice between the
// agents shows what the swarm has learnt.

import { limits } from "../../limits.ts";
import { type DemoKind, demoKinds } from "./work.ts";

export interface DemoAgent {
  readonly id: string;
  readonly maxConcurrent: number;
  /** Times the common duration of an attempt: 1.2 takes a fifth longer. */
  readonly slowness: number;
}

/** Breaks in the middle of the demo and is repaired. */
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

/** Every kind of every file once, file by file. `run` makes the ids of this run its own. */
export function demoTasks(files: readonly string[], run: string): readonly DemoTask[] {
  return files.flatMap((file, at) =>
    demoKinds.map((kind) => ({ id: `${kind}-${at + 1}-${run}`, kind, file })),
  );
}

export interface DemoPlan {
  /** Over how long the tasks are submitted, evenly, ms. */
  readonly submitMs: number;
  /** How long an attempt takes on average, ms. */
  readonly attemptMs: number;
  /** When the troubled agent breaks and is repaired at the latest, from the first task on. Undefined where the work is
   *  too little to show it. */
  readonly trouble: { readonly fromMs: number; readonly toMs: number } | undefined;
}

/** @param leftMs until the demo must have ended */
export function planOf(tasks: number, leftMs: number): DemoPlan {
  const slots = demoAgents.reduce((sum, { maxConcurrent }) => sum + maxConcurrent, 0);
  if (tasks < limits.demoTroubleTasksMin) {
    const submitMs = tasks * limits.demoFewTasksEveryMs;
    return { submitMs, attemptMs: limits.demoFewTasksEveryMs, trouble: undefined };
  }
  const submitMs = Math.max(limits.demoSubmitMsMin, Math.min(limits.demoSubmitMs, leftMs - limits.demoEndMs));
  const attemptMs = Math.min(limits.demoAttemptMsMax, (submitMs / tasks) * slots * BUSY_SHARE);
  return { submitMs, attemptMs, trouble: { fromMs: submitMs * BREAKS_AT, toMs: submitMs * REPAIRED_AT } };
}

/** Of all slots. More would leave no choice between agents. */
const BUSY_SHARE = 0.3;
/** Parts of the time of submission. A repaired agent needs most of it: it is tried now and then, and learnt anew. */
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
