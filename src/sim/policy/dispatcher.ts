// The two sides of a simulated swarm: arriving tasks, and a dispatcher that assigns them to agents. The
// production planner is a dispatcher (production.ts), and so is every rival; all meet the same tasks. Times are
// whole ms of virtual time.

/** A submitted task. Immutable: a rule keeps its own state. */
export interface SimTask {
  /** Order of arrival, from 0. */
  readonly index: number;
  readonly arrivesAt: number;
  readonly user: string;
  readonly project: string;
  readonly kind: string;
  /** Cost for fairness, ≥ 1. */
  readonly weight: number;
  /** The task's own draw, which a scenario turns into a service time: the same under every rule. */
  readonly size: number;
  /** The submitter's estimate, in scenarios with tokens. */
  readonly tokens?: number;
}

export interface SimAgent {
  readonly index: number;
  /** Maximum number of concurrent attempts. */
  readonly maxConcurrent: number;
  readonly kinds: readonly string[];
  /** Time of joining, ms; absent: before the first task. */
  readonly joinsAt?: number;
}

export interface Assignment {
  readonly task: SimTask;
  readonly agent: SimAgent;
}

/** An attempt that ended. */
export interface AttemptEnd extends Assignment {
  readonly succeeds: boolean;
  /** Tokens used, in scenarios with tokens. */
  readonly tokens?: number;
}

/** Decides the order of tasks and their agents. At one instant the calls come in order: ends, deaths, joins,
 *  arrivals, then one plan. */
export interface Dispatcher {
  ended(end: AttemptEnd, at: number): void;
  /** An agent died with all its running attempts and does not return. Only in workloads with deaths. */
  died?(agent: SimAgent, at: number): void;
  /** An agent with a `joinsAt` joined. Only in workloads with late agents. */
  joined?(agent: SimAgent, at: number): void;
  submitted(task: SimTask, at: number): void;
  /** Assignments above an agent's capacity wait in the agent's own queue. */
  plan(at: number): readonly Assignment[];
  /** When to plan although nothing ended or arrived; undefined for no such time. */
  dueAt(): number | undefined;
}
