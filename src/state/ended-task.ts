// What is remembered of a task that has ended. Not here: how the records of a million tasks are kept
// (ended-tasks.ts).

import type { AgentId, BatchIndex, Instant, Kind, ProjectId, TaskId, UserId } from "../ids.ts";

export type EndedTaskState = "completed" | "failed" | "cancelled" | "expired" | "dead-lettered";

/**
 * The record of an ended task within the horizon of idempotency. The result stands in batch `endedIdx`, the payload in
 * batch `roundIdx`.
 */
export interface EndedTask {
  readonly id: TaskId;
  readonly project: ProjectId;
  readonly user: UserId;
  readonly kind: Kind;
  /** Hash of the submitted content, as in the live task. */
  readonly hash: string;
  readonly state: EndedTaskState;
  readonly sequence: number;
  /** The round that ended. */
  readonly round: number;
  /** The last attempt, of all rounds; 0 when the task never had an attempt. */
  readonly attempts: number;
  /** The agent of the last attempt; undefined when the task never had an attempt. */
  readonly agent: AgentId | undefined;
  readonly submittedIdx: BatchIndex;
  readonly roundIdx: BatchIndex;
  readonly endedAt: Instant;
  readonly endedIdx: BatchIndex;
  /** The task's attributes as JSON; undefined without any, and once they were dropped for newer ones. */
  readonly attributes?: string | undefined;
}
