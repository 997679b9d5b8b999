// The coordinator as a chart: the process runs the chart, and src/coordinator/coordinator.ts provides the actors. The
// work of a state is an invoked actor. The actor starts and stops with the state, and the chart drops later signals of
// the actor.
//
//   restoring ─→ following ←─── another coordinator leads ──┐
//       │            │ the leader is silent                 │
//       └────────────┴──→ takingLead ─ won ─────────→ leading.deciding ─ DEPOSED → restoring
//                                                       │ STEP_DOWN → leading.steppingDown ─ HANDED_OVER → following
//                                                       │ STOP
//                                                     leading.handingOver ─ ENDED → stopped
//   before it leads: STOP → stopped · leading: HALT → halted · any: an actor fails → halted

import { assign, fromCallback, fromPromise, type SnapshotFrom, sendTo, setup } from "xstate";
import { limits } from "../src/limits.ts";

export type CoordinatorSignal =
  /** Another coordinator leads. Decided batches without a commit are void; committed batches stay. */
  | { readonly type: "DEPOSED" }
  /** The leader gives up the lead, and stays: an operator asked for a transfer, or no agent or client reaches it. */
  | { readonly type: "STEP_DOWN" }
  /** The leader closed its segment for a standby, and becomes a standby. */
  | { readonly type: "HANDED_OVER" }
  /** The leader closed its segment, or could not close the segment. */
  | { readonly type: "ENDED" }
  /** The process is asked to end. The second signal ends the process without finishing. */
  | { readonly type: "STOP" }
  /** The journal is damaged, or an invariant is broken. */
  | { readonly type: "HALT"; readonly error: unknown };

/** Asks the actor of `leading` to end the term. */
export interface EndTerm {
  readonly type: "END_TERM";
}

function unprovided(): never {
  throw new Error("src/coordinator/coordinator.ts provides the actors");
}

/** An actor failed, or the leader halts. */
const halt = {
  target: "#coordinator.halted",
  actions: { type: "keepError", params: ({ event }: { event: { error: unknown } }) => event },
} as const;

export const coordinatorMachine = setup({
  types: {
    /** `error`: why the coordinator halted. */
    context: {} as { readonly error: unknown },
    events: {} as CoordinatorSignal,
  },
  actors: {
    /** Reads the log. `alone`: no other coordinator runs, so waiting for a leader's silence is pointless. */
    restore: fromPromise<"alone" | "accompanied">(unprovided),
    /** Reads on in the log until the leader is silent, or closed its segment to hand over. */
    follow: fromPromise<void>(unprovided),
    /** Opens the next segment, unless a rival goes first. */
    takeLead: fromPromise<"won" | "stands-by">(unprovided),
    /** Leads: STEP_DOWN, DEPOSED, HANDED_OVER, ENDED or HALT. */
    lead: fromCallback<EndTerm>(unprovided),
  },
  actions: {
    keepError: assign({ error: (_, params: { readonly error: unknown }) => params.error }),
    endTerm: sendTo("lead", { type: "END_TERM" } satisfies EndTerm),
  },
  guards: {
    isAlone: (_, found: "alone" | "accompanied") => found === "alone",
    hasWon: (_, result: "won" | "stands-by") => result === "won",
  },
  delays: { handOver: limits.handOverMs },
}).createMachine({
  id: "coordinator",
  description:
    "A coordinator follows the journal until the leader is silent, takes the lead by opening a segment, and closes the segment before it stops.",
  context: { error: undefined },
  initial: "restoring",
  states: {
    restoring: {
      description: "Reads the journal; answers nothing.",
      invoke: {
        src: "restore",
        onDone: [
          { guard: { type: "isAlone", params: ({ event }) => event.output }, target: "takingLead" },
          { target: "following" },
        ],
        onError: halt,
      },
      on: { STOP: "stopped" },
    },
    following: {
      description: "Reads batches as the leader writes them, and answers queries, marked as stale.",
      invoke: { src: "follow", onDone: "takingLead", onError: halt },
      on: { STOP: "stopped" },
    },
    takingLead: {
      description:
        "Closes the live segment, compares its end with the log in memory, and opens the next segment.",
      invoke: {
        src: "takeLead",
        onDone: [
          { guard: { type: "hasWon", params: ({ event }) => event.output }, target: "leading" },
          { target: "following" },
        ],
        onError: halt,
      },
      on: { STOP: "stopped" },
    },
    leading: {
      description: "Takes requests and decides.",
      invoke: { id: "lead", src: "lead", onError: halt },
      initial: "deciding",
      on: { DEPOSED: "restoring", HANDED_OVER: "following", ENDED: "stopped", HALT: halt },
      states: {
        deciding: {
          description: "Appends, and only then answers.",
          on: { STOP: "handingOver", STEP_DOWN: "steppingDown" },
        },
        steppingDown: {
          description:
            "Takes no new requests, settles the batches in flight, closes the segment, and then stands by.",
          entry: "endTerm",
          on: { STOP: "handingOver" },
        },
        handingOver: {
          description:
            "Takes no new requests, settles the batches in flight, closes the segment, and then ends.",
          entry: "endTerm",
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
    halted: { type: "final", description: "Ended because continuing could do harm." },
  },
});

export type CoordinatorSnapshot = SnapshotFrom<typeof coordinatorMachine>;
