// The life of a task as a chart: the law for the events of src/state/event.ts, whose names the signals bear.
// No task runs it. Tasks are rows that `apply` changes, and a test walks this chart's edges against `apply`:
// what is legal here is accepted there, what is not legal here stops the process there.
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
//    any live state:    TASK_CANCELLED → cancelled, TASK_EXPIRED → expired
//    any terminal state but completed: TASK_RETRIED → queued, in the next round
//
// A revoked attempt outlives its task's interest in it: AttemptReleased concerns the agent's place alone.

import { type SnapshotFrom, setup } from "xstate";
import type { TaskState } from "../src/state/state.ts";

export type TaskSignal =
  /** `startsLater`: it has a not-before that lies ahead. */
  | { readonly type: "TASK_SUBMITTED"; readonly startsLater: boolean }
  /** Its next round begins. */
  | { readonly type: "TASK_RETRIED" }
  | { readonly type: "TASK_RELEASED" }
  | { readonly type: "TASK_ASSIGNED" }
  /** The agent has the assignment. */
  | { readonly type: "ASSIGNMENTS_CONFIRMED" }
  | { readonly type: "TASK_COMPLETED" }
  /** `startsLater`: it is tried again after a back-off, not at once. */
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

const retry = { TASK_RETRIED: "queued" } as const;

export const taskMachine = setup({
  types: { events: {} as TaskSignal },
  guards: { startsLater: ({ event }) => "startsLater" in event && event.startsLater },
}).createMachine({
  id: "task",
  description:
    "A task is live until it reaches exactly one of five terminal states, and leaves that only for its next round.",
  initial: "unsubmitted",
  states: {
    unsubmitted: {
      description: "Nobody asked for it yet.",
      on: { TASK_SUBMITTED: [{ guard: "startsLater", target: "delayed" }, { target: "queued" }] },
    },
    queued: {
      description: "Waits for its turn and an agent.",
      on: { TASK_ASSIGNED: "assigned", ...endsFromOutside },
    },
    delayed: {
      description: "Waits for an instant: its not-before, or the end of a back-off.",
      on: { TASK_RELEASED: "queued", ...endsFromOutside },
    },
    assigned: {
      description: "An agent is to run it; whether the assignment arrived is not known yet.",
      on: { ASSIGNMENTS_CONFIRMED: "running", ...attemptEnds, ...endsFromOutside },
    },
    running: {
      description: "An agent has it.",
      on: { ...attemptEnds, ...endsFromOutside },
    },
    completed: { type: "final", description: "An attempt succeeded." },
    failed: { description: "Its input is invalid: another attempt is no use.", on: retry },
    cancelled: { description: "A client cancelled it.", on: retry },
    expired: { description: "It had not ended by its deadline.", on: retry },
    deadLettered: { description: "No attempt is left.", on: retry },
  },
});

export type TaskSnapshot = SnapshotFrom<typeof taskMachine>;

/** The state as rows, journal and wire spell it; undefined before the submission. */
export function taskState(snapshot: TaskSnapshot): TaskState | undefined {
  const { value } = snapshot;
  if (value === "unsubmitted") return undefined;
  return value === "deadLettered" ? "dead-lettered" : value;
}
