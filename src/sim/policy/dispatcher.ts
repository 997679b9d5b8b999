// The two sides of a simulated swarm: tasks that arrive, and a dispatcher that says which agent gets which. The
// production planner is one dispatcher (production.ts), every rival another; what they meet is the same.
// Times are whole milliseconds of virtual time.

/** What is submitted. Immutable: a rule keeps its own books. */
export interface SimTask {
  /** Order of arrival, from 0. */
  readonly index: number;
  readonly arrivesAt: number;
  readonly user: string;
  readonly project: string;
  readonly kind: string;
  /** Cost for fairness, ≥ 1. */
  readonly weight: number;
  /** Its own draw, that a scenario turns into a service time: the same under every rule. */
  readonly size: number;
  /** The submitter's estimate, where tokens matter. */
  readonly tokens?: number;
}

export interface SimAgent {
  readonly index: number;
  /** Attempts it runs at once. */
  readonly maxConcurrent: number;
  readonly kinds: readonly string[];
  /** When it joins, ms; absent: before the first task. */
  readonly joinsAt?: number;
}

export interface Assignment {
  readonly task: SimTask;
  readonly agent: SimAgent;
}

/** An attempt that ended. */
export interface AttemptEnd extends Assignment {
  readonly succeeds: boolean;
  /** Used, where tokens matter. */
  readonly tokens?: number;
}

/** Decides whose turn it is and who does it. At one instant it hears of ends, then of deaths, then of joins, then of
 *  arrivals, then plans once. */
export interface Dispatcher {
  ended(end: AttemptEnd, at: number): void;
  /** An agent died with all that it ran; it does not come back. Only where the workload kills. */
  died?(agent: SimAgent, at: number): void;
  /** An agent with a `joinsAt` joined. Only where the workload has one. */
  joined?(agent: SimAgent, at: number): void;
  submitted(task: SimTask, at: number): void;
  /** More than an agent has places waits in that agent's own queue. */
  plan(at: number): readonly Assignment[];
  /** When it must plan although nothing ended or arrived; undefined when it waits for nothing but those. */
  dueAt(): number | undefined;
}
