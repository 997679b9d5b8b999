// The life cycle of a task as a chart: the law for the events of src/state/event.ts. Signals have the events' names.
// Tasks are rows and do not run the chart. A test walks the chart's edges against `apply`: `apply` accepts every legal
// event, and stops the process at every illegal event.
//
//                    TASK_SUBMITTED [later]
//    unsubmitted ───────────────────────────→ delayed
//         │ TASK_SUBMITTED       TASK_RELEASED │  ↑
//         └──────────────→ queued ←────────────┘  │ ATTEMPT_FAILED [later]
//                 TASK_ASSIGNED ↓ ↑ ATTEMPT_FAILED │
//                           assigned ──────────────┤
//           ASSIGNMENTS_CONFIRMED ↓                │
//                            running ──────────────┘
//    assigned, running: TASK_COMPLETED → completed, TASK_FAILED → failed, TASK_DEAD_LETTERED → deadLettered
//    queued, delayed:   TASK_RESCHEDULED → queued, [later] delayed
//    any live state:    TASK_CANCELLED → cancelled, TASK_EXPIRED → expired
//    any terminal state but completed: TASK_RETRIED → queued, in the next round
//
// A revoked attempt may outlive its task: AttemptReleased concerns the agent's capacity alone.

import { type SnapshotFrom, setup } from "xstate";
import type { TaskState } from "../src/state/state.ts";

export type TaskSignal =
  /** `startsLater`: the task has a not-before in the future. */
  | { readonly type: "TASK_SUBMITTED"; readonly startsLater: boolean }
  /** The next round begins. */
  | { readonly type: "TASK_RETRIED" }
  | { readonly type: "TASK_RELEASED" }
  /** `startsLater`: the new not-before is in the future. */
  | { readonly type: "TASK_RESCHEDULED"; readonly startsLater: boolean }
  | { readonly type: "TASK_ASSIGNED" }
  /** The agent has the assignment. */
  | { readonly type: "ASSIGNMENTS_CONFIRMED" }
  | { readonly type: "TASK_COMPLETED" }
  /** `startsLater`: the retry waits for a back-off. */
  | { readonly type: "ATTEMPT_FAILED"; readonly startsLater: boolean }
  | { readonly type: "TASK_FAILED" }
  | { readonly type: "TASK_DEAD_LETTERED" }
  | { readonly type: "TASK_CANCELLED" }
  | { readonly type: "TASK_EXPIRED" };

const attemptEnds = {
  TASK_COMPLETED: "completed",
  ATTEMPT_FAILED: [{ guard: "startsLater", target: "delayed" }, { target: "queued" }],
  TASK_FAILED: "failed",
  TASK_DEAD_LETTERED: "deadLettered",
} as const;

const endsFromOutside = {
  TASK_CANCELLED: "cancelled",
  TASK_EXPIRED: "expired",
} as const;

const rescheduled = {
  TASK_RESCHEDULED: [{ guard: "startsLater", target: "delayed" }, { target: "queued" }],
} as const;

const retry = { TASK_RETRIED: "queued" } as const;

export const taskMachine = setup({
  types: { events: {} as TaskSignal },
  guards: { startsLater: ({ event }) => "startsLater" in event && event.startsLater },
}).createMachine({
  id: "task",
  description:
    "A task is live until it reaches exactly one of five terminal states. Only a retry, for the next round, leaves such a state.",
  initial: "unsubmitted",
  states: {
    unsubmitted: {
      description: "Not submitted yet.",
      on: { TASK_SUBMITTED: [{ guard: "startsLater", target: "delayed" }, { target: "queued" }] },
    },
    queued: {
      description: "Waits for a turn and an agent.",
      on: { TASK_ASSIGNED: "assigned", ...rescheduled, ...endsFromOutside },
    },
    delayed: {
      description: "Waits for an instant: the not-before, or the end of a back-off.",
      on: { TASK_RELEASED: "queued", ...rescheduled, ...endsFromOutside },
    },
    assigned: {
      description: "Assigned to an agent; the arrival of the assignment is not confirmed yet.",
      on: { ASSIGNMENTS_CONFIRMED: "running", ...attemptEnds, ...endsFromOutside },
    },
    running: {
      description: "An agent has the attempt.",
      on: { ...attemptEnds, ...endsFromOutside },
    },
    completed: { type: "final", description: "An attempt succeeded." },
    failed: { description: "The input is invalid: a further attempt would not help.", on: retry },
    cancelled: { description: "Cancelled by a client.", on: retry },
    expired: { description: "The deadline passed before an end.", on: retry },
    deadLettered: { description: "No attempt is left.", on: retry },
  },
});

export type TaskSnapshot = SnapshotFrom<typeof taskMachine>;

/** The state's name in rows, journal and wire; undefined before the submission. */
export function taskState(snapshot: TaskSnapshot): TaskState | undefined {
  const { value } = snapshot;
  if (value === "unsubmitted") return undefined;
  return value === "deadLettered" ? "dead-lettered" : value;
}
