// The life of a coordinator's process as a chart, and what each state does: the actors that it invokes are provided by
// src/coordinator/coordinator.ts. Leaving a state stops its actor, and what that one says afterwards is dropped.
//
//   restoring ─→ following ←─────────────── another leads ──┐
//       │            │ SILENT                               │
//       └────────────┴──→ takingLead ─ opened its segment → leading.deciding ─ DEPOSED → restoring
//                                                              │ STOP       └─ HANDED_OVER → following
//                                                           leading.handingOver ─ ENDED → stopped
//   before it leads: STOP → stopped · any: HALT → halted

import { assign, fromCallback, fromPromise, type SnapshotFrom, sendTo, setup } from "xstate";

export type CoordinatorSignal =
  /** The leader is silent, or closed its segment for another to lead. */
  | { readonly type: "SILENT" }
  /** Another coordinator leads. What was decided and not committed is void; what was acknowledged is kept. */
  | { readonly type: "DEPOSED" }
  /** It closed its segment for another to lead, and goes on as a standby. */
  | { readonly type: "HANDED_OVER" }
  /** It closed its segment, or gave it up. */
  | { readonly type: "ENDED" }
  /** The process is asked to end; a second time it ends without finishing. */
  | { readonly type: "STOP" }
  /** The journal is damaged, or an invariant broke. */
  | { readonly type: "HALT"; readonly error: unknown };

/** Asks the actor of `leading` to end the term. */
export interface EndTerm {
  readonly type: "END_TERM";
}

function unprovided(): never {
  throw new Error("src/coordinator/coordinator.ts provides what this state does");
}

export const coordinatorMachine = setup({
  types: { context: {} as { readonly error: unknown }, events: {} as CoordinatorSignal },
  actors: {
    /** Reads the log. Resolves with whether no other coordinator is there, so that silence need not be waited for. */
    restore: fromPromise<"alone" | "accompanied">(unprovided),
    follow: fromCallback<CoordinatorSignal>(unprovided),
    takeLead: fromPromise<"won" | "stands-by">(unprovided),
    lead: fromCallback<EndTerm>(unprovided),
  },
  delays: { handOver: 0 },
}).createMachine({
  id: "coordinator",
  description:
    "A coordinator follows the journal until its leader is silent, takes the lead by opening a segment of its own, and closes that before it stops.",
  context: { error: undefined },
  initial: "restoring",
  on: {
    HALT: { target: ".halted", actions: assign({ error: ({ event }) => event.error }) },
  },
  states: {
    restoring: {
      description: "Reads the journal; answers nothing.",
      invoke: {
        src: "restore",
        onDone: [
          { guard: ({ event }) => event.output === "alone", target: "takingLead" },
          { target: "following" },
        ],
        onError: { target: "halted", actions: assign({ error: ({ event }) => event.error }) },
      },
      on: { STOP: "stopped" },
    },
    following: {
      description: "Reads on as another coordinator writes, and answers queries, marked as stale.",
      invoke: { src: "follow" },
      on: { SILENT: "takingLead", STOP: "stopped" },
    },
    takingLead: {
      description: "Closes the live segment, compares what it holds, and opens the next one.",
      invoke: {
        src: "takeLead",
        onDone: [
          { guard: ({ event }) => event.output === "won", target: "leading" },
          { target: "following" },
        ],
        onError: { target: "halted", actions: assign({ error: ({ event }) => event.error }) },
      },
      on: { STOP: "stopped" },
    },
    leading: {
      description: "Takes requests and decides.",
      invoke: { id: "lead", src: "lead" },
      initial: "deciding",
      on: { DEPOSED: "restoring", HANDED_OVER: "following", ENDED: "stopped" },
      states: {
        deciding: {
          description: "Appends, and only then answers.",
          on: { STOP: "handingOver" },
        },
        handingOver: {
          description: "Takes no more requests, settles the batches in flight, and closes its segment.",
          entry: sendTo("lead", { type: "END_TERM" }),
          after: { handOver: "#coordinator.stopped" },
          on: {
            DEPOSED: "#coordinator.stopped",
            HANDED_OVER: "#coordinator.stopped",
            STOP: "#coordinator.stopped",
          },
        },
      },
    },
    stopped: { type: "final", description: "Ended as asked." },
    halted: { type: "final", description: "Ended because going on could do harm." },
  },
});

export type CoordinatorSnapshot = SnapshotFrom<typeof coordinatorMachine>;
