// What `explain` answers: where a task stands, and, while it waits, why, as many agents as fit a message.

import { type Instant, instant, type TaskRef } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { ExplainResponse, TaskObstacle } from "../../protocol/explain-schemas.ts";
import { explainWait, type JournalFacts, type Obstacle } from "../../scheduling/explain.ts";
import type { SwarmState } from "../../state/state.ts";
import { rowsWithin } from "./fitting.ts";
import { taskStatusOf } from "./status.ts";

export interface Moment {
  /** For what time alone changes; on a standby its own. */
  readonly now: Instant;
  readonly isStale: boolean;
  /** Of the answer. */
  readonly bytesMax: number;
  /** While the journal has too little room to assign anything. */
  readonly tightJournal?: JournalFacts | undefined;
}

export function explanationOf(
  state: SwarmState,
  ref: TaskRef,
  { now, isStale, bytesMax, tightJournal }: Moment,
): ExplainResponse {
  const status = taskStatusOf(state, ref, isStale);
  const row = state.taskById.get(ref);
  if (!status.ok || row === undefined) return status;
  const { role } = row.spec;
  const head = { ...status, ...(role === undefined ? {} : { role }) };
  if (row.state !== "queued" && row.state !== "delayed") return head;

  const at = instant(Math.max(state.at, now));
  const { obstacles, agents, ...rest } = explainWait(state, row, { at, tightJournal });
  const { rows } = rowsWithin(agents, Math.min(limits.explainedAgentsBytesMax, bytesMax / 2));
  const omitted = agents.length - rows.length;
  return {
    ...head,
    at,
    waiting: { ...rest, obstacles: obstacles.map(asSent), agents: rows },
    ...(omitted === 0 ? {} : { omitted: { agents: omitted } }),
  };
}

/** The wire's lists are not readonly. */
function asSent(obstacle: Obstacle): TaskObstacle {
  return "nearMisses" in obstacle ? { ...obstacle, nearMisses: [...obstacle.nearMisses] } : obstacle;
}
