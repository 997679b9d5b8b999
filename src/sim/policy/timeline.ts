// Who was served when, as a picture needs it: one bar an attempt. Made of a log; holds no figures.

import type { Log } from "./run-tasks.ts";

export interface Bar {
  readonly user: string;
  readonly task: number;
  readonly agent: number;
  /** In the scenario's own unit, as are the next two. */
  readonly arrivedAt: number;
  readonly startedAt: number;
  readonly endedAt: number;
}

export interface Timeline {
  /** Of its times: "ticks", "units", "s". */
  readonly unit: string;
  /** When it becomes interesting, where that is not the middle. */
  readonly focusAt?: number;
  /** In order of their beginning. */
  readonly bars: readonly Bar[];
}

/** @param unitMs how long the scenario's unit of time is */
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
