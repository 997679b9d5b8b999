// Who takes part in the demo: six agents, three users, and which user asks for what and when.
// The one thing to know: the agents that outline do nothing else and have room to spare, so that the choice
// between them shows what the swarm has learnt; the others have a queue from the first moment on.

import { limits } from "../../limits.ts";
import { type DemoKind, demoKinds } from "./work.ts";

export interface DemoAgent {
  readonly id: string;
  readonly kinds: readonly DemoKind[];
  readonly maxConcurrent: number;
  /** Times the common pace: 1.2 takes a fifth longer. */
  readonly slowness: number;
  /** Share of attempts at outlines that fail on purpose. */
  readonly failShare?: number;
}

/** Fails three of ten outlines on purpose, and should lose share of them. */
export const troubledAgent = "gale";

export const demoAgents: readonly DemoAgent[] = [
  { id: "amber", kinds: ["count"], maxConcurrent: 4, slowness: 1 },
  { id: "birch", kinds: ["count", "digest"], maxConcurrent: 3, slowness: 0.8 },
  { id: "cedar", kinds: ["digest"], maxConcurrent: 2, slowness: 0.9 },
  { id: "dune", kinds: ["outline"], maxConcurrent: 4, slowness: 0.8 },
  { id: "fern", kinds: ["outline"], maxConcurrent: 3, slowness: 0.9 },
  { id: troubledAgent, kinds: ["outline"], maxConcurrent: 4, slowness: 0.8, failShare: 0.3 },
];

export interface DemoTask {
  readonly id: string;
  readonly kind: DemoKind;
  readonly file: string;
  readonly user: string;
}

export interface DemoUser {
  readonly user: string;
  readonly tasks: readonly DemoTask[];
  /** When the first tasks are submitted, from the start. */
  readonly startsAfterMs: number;
  /** Tasks in one go, and the pause between two. */
  readonly atOnce: number;
  readonly pauseMs: number;
}

/** One of so many files is the third user's. */
const THIRD_USER_EVERY = 10;
/** Goes in which a user submits who submits a few at a time, unless that were too many at once. */
const GOES = 80;
const TASKS_AT_ONCE_MAX = 5;
/** Of the whole time, how much of it the others go on submitting. */
const SUBMITTING_SHARE = 0.7;

/** Every kind of every file once. `run` makes the ids of this run its own. */
export function demoUsers(files: readonly string[], run: string): readonly DemoUser[] {
  const task = (user: string, kind: DemoKind, at: number): DemoTask => ({
    id: `${kind}-${at + 1}-${run}`,
    kind,
    file: files[at] ?? "",
    user,
  });
  const ann: DemoTask[] = [];
  const ben: DemoTask[] = [];
  const cleo: DemoTask[] = [];
  for (const at of files.keys()) {
    if (at % THIRD_USER_EVERY === THIRD_USER_EVERY - 1)
      cleo.push(...demoKinds.map((kind) => task("cleo", kind, at)));
    else {
      ann.push(task("ann", "count", at), task("ann", "digest", at));
      ben.push(task("ben", "outline", at));
    }
  }
  return [
    { user: "ann", tasks: ann, startsAfterMs: 0, atOnce: Math.max(1, ann.length), pauseMs: 0 },
    { user: "ben", tasks: ben, startsAfterMs: limits.demoUserDelayMs, ...aFewAtATime(ben.length) },
    { user: "cleo", tasks: cleo, startsAfterMs: limits.demoUserDelayMs * 2, ...aFewAtATime(cleo.length) },
  ];
}

function aFewAtATime(tasks: number): Pick<DemoUser, "atOnce" | "pauseMs"> {
  const atOnce = Math.max(1, Math.min(TASKS_AT_ONCE_MAX, Math.ceil(tasks / GOES)));
  const goes = Math.max(GOES, Math.ceil(tasks / atOnce));
  return { atOnce, pauseMs: (limits.demoPaceMs * SUBMITTING_SHARE) / goes };
}

/** How long an attempt takes on average, so that so many files keep the swarm busy for the demo's time. */
export function paceMs(files: number): number {
  const slotsForCountAndDigest = 9;
  const tasksEach = 2 * Math.max(1, files);
  return Math.min(
    limits.demoAttemptMsMax,
    (limits.demoPaceMs * SUBMITTING_SHARE * slotsForCountAndDigest) / tasksEach,
  );
}

/** In [0, 1), the same for the same text: chance that can be repeated. FNV-1a with a final mix. */
export function chanceOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
