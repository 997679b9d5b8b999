// The life of a slot lease of slots as a chart: the law for the events of src/state/event.ts, whose names the
// signals bear. No slot lease runs it. Slot leases are rows that `apply` changes, and a test walks this chart's
// edges against `apply`.
//
//    unrequested ─SLOT_AWAITED→ waiting ─SLOT_WAIT_ENDED→ withdrawn
//         │                        │ SLOT_GRANTED
//         └───SLOT_GRANTED [free]──┴──→ held ─SLOT_RELEASED→ released
//
// A set of resources is one slot lease: it waits whole, and is held whole.

import { type SnapshotFrom, setup } from "xstate";
import type { SlotLeaseRow } from "../src/state/state.ts";

export type SlotSignal =
  /** It is not its turn, or too little is free. */
  | { readonly type: "SLOT_AWAITED" }
  /** `atOnce`: it did not have to wait. */
  | { readonly type: "SLOT_GRANTED"; readonly atOnce: boolean }
  /** Given back, or taken back from an agent that is gone or no longer lists it. */
  | { readonly type: "SLOT_RELEASED" }
  /** Aborted, timed out, or its agent is gone. */
  | { readonly type: "SLOT_WAIT_ENDED" };

export const slotMachine = setup({
  types: { events: {} as SlotSignal },
  guards: {
    atOnce: ({ event }) => "atOnce" in event && event.atOnce,
    afterWaiting: ({ event }) => "atOnce" in event && !event.atOnce,
  },
}).createMachine({
  id: "slot",
  description:
    "A slot lease of slots waits until all of its resources can be granted at once, is held, and ends once.",
  initial: "unrequested",
  states: {
    unrequested: {
      description: "Nobody asked under this handle yet.",
      on: { SLOT_AWAITED: "waiting", SLOT_GRANTED: { guard: "atOnce", target: "held" } },
    },
    waiting: {
      description: "Contends with others; holds nothing, also of what is free.",
      on: { SLOT_GRANTED: { guard: "afterWaiting", target: "held" }, SLOT_WAIT_ENDED: "withdrawn" },
    },
    held: {
      description: "Its agent has every slot it asked for, under a lease that heartbeats renew.",
      on: { SLOT_RELEASED: "released" },
    },
    released: { type: "final", description: "Its slots are others'. Releasing again changes nothing." },
    withdrawn: { type: "final", description: "It ended without a slot." },
  },
});

export type SlotSnapshot = SnapshotFrom<typeof slotMachine>;

/** The state as rows spell it; `ended` when only the handle is remembered, undefined before it was asked for. */
export function slotState({ value }: SlotSnapshot): SlotLeaseRow["state"] | "ended" | undefined {
  if (value === "unrequested") return undefined;
  return value === "waiting" || value === "held" ? value : "ended";
}
