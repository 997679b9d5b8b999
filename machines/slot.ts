// The life cycle of a slot lease as a chart: the law for the events of src/state/event.ts. Signals have the events'
// names. Slot leases are rows and do not run the chart. A test walks the chart's edges against `apply`.
//
//    unrequested ─SLOT_AWAITED→ waiting ─SLOT_WAIT_ENDED→ withdrawn
//         │                        │ SLOT_GRANTED
//         └───SLOT_GRANTED [free]──┴──→ held ─SLOT_RELEASED→ released
//
// A set of resources is one slot lease: waiting as a whole, and held as a whole.

import { type SnapshotFrom, setup } from "xstate";
import type { SlotLeaseRow } from "../src/state/state.ts";

export type SlotSignal =
  /** Other leases go first, or too few slots are free. */
  | { readonly type: "SLOT_AWAITED" }
  /** `atOnce`: without a wait. */
  | { readonly type: "SLOT_GRANTED"; readonly atOnce: boolean }
  /** Given back, or taken back from an agent that is gone or no longer lists the lease. */
  | { readonly type: "SLOT_RELEASED" }
  /** Aborted, timed out, or the agent is gone. */
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
    "A slot lease waits until all of its resources can be granted at once, is held, and ends once.",
  initial: "unrequested",
  states: {
    unrequested: {
      description: "Not requested yet.",
      on: { SLOT_AWAITED: "waiting", SLOT_GRANTED: { guard: "atOnce", target: "held" } },
    },
    waiting: {
      description: "Contends with other leases, and holds no slot.",
      on: { SLOT_GRANTED: { guard: "afterWaiting", target: "held" }, SLOT_WAIT_ENDED: "withdrawn" },
    },
    held: {
      description: "The agent has every requested slot, under a lease that heartbeats renew.",
      on: { SLOT_RELEASED: "released" },
    },
    released: { type: "final", description: "The slots are free again. A second release changes nothing." },
    withdrawn: { type: "final", description: "Ended without a slot." },
  },
});

export type SlotSnapshot = SnapshotFrom<typeof slotMachine>;

/** The state's name in rows; `ended` if only the handle is remembered, undefined before the request. */
export function slotState({ value }: SlotSnapshot): SlotLeaseRow["state"] | "ended" | undefined {
  if (value === "unrequested") return undefined;
  return value === "waiting" || value === "held" ? value : "ended";
}
