// Services over time, as a picture needs them: one bar per attempt. Made of a log; holds no figures.

import type { Log } from "./run-tasks.ts";

export interface Bar {
  readonly user: string;
  readonly task: number;
  readonly agent: number;
  /** In the scenario's own unit, like the next two fields. */
  readonly arrivedAt: number;
  readonly startedAt: number;
  readonly endedAt: number;
}

export interface Timeline {
  /** Unit of the times: "ticks", "units", "s". */
  readonly unit: string;
  /** Start of the interesting part; default: the middle. */
  readonly focusAt?: number;
  /** In order of their beginning. */
  readonly bars: readonly Bar[];
}

/** @param unitMs length of the scenario's unit of time */
export function timelineOf(log: Log, unit: string, unitMs: number, focusAt?: number): Timeline {
  const bars = log.attempts.map(({ task, agent, startedAt, endsAt }) => ({
    user: task.user,
    task: task.index,
    agent: agent.index,
    arrivedAt: task.arrivesAt / unitMs,
    startedAt: startedAt / unitMs,
    endedAt: endsAt / unitMs,
  }));
  return { unit, bars, ...(focusAt === undefined ? {} : { focusAt }) };
}
