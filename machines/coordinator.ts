// The life of a coordinator's process as a chart. Who leads is settled by the leadership chart; this one says
// what the process serves: a standby answers queries, a leader decides, one that hands over finishes what it
// has promised and takes nothing new.
//
//   starting ─READY→ standingBy ←─ELECTED, DEPOSED─→ leading
//      │ STOP           │ STOP                          │ STOP
//      └────────────────┴──→ stopped ←─HANDED_OVER── handingOver
//   any: HALT → halted

import { type SnapshotFrom, setup } from "xstate";

export type CoordinatorSignal =
  /** The journal is open and replayed to where it ended. */
  | { readonly type: "READY" }
  /** The leadership chart leads. */
  | { readonly type: "ELECTED" }
  /** The leadership chart no longer leads. */
  | { readonly type: "DEPOSED" }
  /** Somebody asked for the process to end; a second time it ends without finishing. */
  | { readonly type: "STOP" }
  /** Every batch in flight is settled and its answers left. */
  | { readonly type: "HANDED_OVER" }
  /** The journal is damaged, or an invariant broke. */
  | { readonly type: "HALT" };

const halts = { HALT: "halted" } as const;

export const coordinatorMachine = setup({ types: { events: {} as CoordinatorSignal } }).createMachine({
  id: "coordinator",
  description: "A coordinator stands by until it is elected, and hands over before it stops.",
  initial: "starting",
  states: {
    starting: {
      description: "Opens the journal and replays it; answers nothing.",
      on: { READY: "standingBy", STOP: "stopped", ...halts },
    },
    standingBy: {
      description: "Follows the journal and answers queries, marked as stale.",
      on: { ELECTED: "leading", STOP: "stopped", ...halts },
    },
    leading: {
      description: "Takes requests and decides.",
      on: { DEPOSED: "standingBy", STOP: "handingOver", ...halts },
    },
    handingOver: {
      description: "Takes no more requests; settles the batches in flight and sends their answers.",
      on: { HANDED_OVER: "stopped", DEPOSED: "stopped", STOP: "stopped", ...halts },
    },
    stopped: { type: "final", description: "Ended as asked." },
    halted: { type: "final", description: "Ended because going on could do harm." },
  },
});

export type CoordinatorSnapshot = SnapshotFrom<typeof coordinatorMachine>;
