// The chart of a slot lease: every edge against a table, and every edge against `apply`. The test tries each event of
// the journal in each state. `apply` gives the same result for allowed events, and throws for the rest.

import { describe, expect, it } from "vitest";
import { getNextSnapshot } from "xstate";
import { type SlotSignal, slotMachine, slotState } from "../../machines/slot.ts";
import { apply } from "../../src/core/apply.ts";
import { InvariantError } from "../../src/errors.ts";
import { agentId, batchIndex, incarnation, instant, resourceName, slotHandle } from "../../src/ids.ts";
import type { Event } from "../../src/state/event.ts";
import { slotLeaseKey } from "../../src/state/slot-key.ts";
import { findSlotLease } from "../../src/state/slot-rows.ts";
import { emptyState, type SwarmState } from "../../src/state/state.ts";
import { snapshotIn, walkEveryEdge } from "./walk.ts";

const now = instant(1_000);
const session = { agent: agentId("a1"), incarnation: incarnation("i1") };
const handle = slotHandle("h1");
const resources = [resourceName("r"), resourceName("s")];
const slotLease = { ...session, handle, resources, weightThousandths: 1_000 };

/** Each signal of the chart with the matching event of the journal. */
const cases = {
  SLOT_AWAITED: {
    signal: { type: "SLOT_AWAITED" },
    event: { type: "SlotAwaited", ...slotLease, deadline: instant(2_000) },
  },
  "SLOT_GRANTED at once": {
    signal: { type: "SLOT_GRANTED", atOnce: true },
    event: { type: "SlotGranted", ...slotLease, receipt: { by: "free", waiting: 0, waitedMs: 0 } },
  },
  SLOT_GRANTED: {
    signal: { type: "SLOT_GRANTED", atOnce: false },
    event: { type: "SlotGranted", ...slotLease, receipt: { by: "load", waiting: 1, waitedMs: 5 } },
  },
  SLOT_RELEASED: {
    signal: { type: "SLOT_RELEASED" },
    event: { type: "SlotReleased", ...session, handle, resources, reason: "released" },
  },
  SLOT_WAIT_ENDED: {
    signal: { type: "SLOT_WAIT_ENDED" },
    event: { type: "SlotWaitEnded", ...session, handles: [handle], reason: "aborted" },
  },
} satisfies Record<string, { signal: SlotSignal; event: Event }>;
type CaseName = keyof typeof cases;

/** A way into each state. */
const ways: Readonly<Record<string, readonly CaseName[]>> = {
  unrequested: [],
  waiting: ["SLOT_AWAITED"],
  held: ["SLOT_AWAITED", "SLOT_GRANTED"],
  released: ["SLOT_GRANTED at once", "SLOT_RELEASED"],
  withdrawn: ["SLOT_AWAITED", "SLOT_WAIT_ENDED"],
};

describe("the slot's chart", () => {
  it("goes where the table says and nowhere else", () => {
    const signals = Object.fromEntries(Object.entries(cases).map(([name, { signal }]) => [name, signal]));
    walkEveryEdge(slotMachine, signals, {
      unrequested: { SLOT_AWAITED: "waiting", "SLOT_GRANTED at once": "held" },
      waiting: { SLOT_GRANTED: "held", SLOT_WAIT_ENDED: "withdrawn" },
      held: { SLOT_RELEASED: "released" },
      released: {},
      withdrawn: {},
    });
  });
});

describe("apply obeys the slot's chart", () => {
  const pairs = Object.keys(ways).flatMap((from) =>
    (Object.keys(cases) as CaseName[]).map((name) => [from, name] as const),
  );

  it.each(pairs)("%s: %s", (from, name) => {
    const state = stateAfter(ways[from] ?? []);
    const before = snapshotIn(slotMachine, from);
    expect(stateOfSlot(state), "the way leads where it should").toBe(slotState(before));
    const after = getNextSnapshot(slotMachine, before, cases[name].signal);
    const run = () => apply(state, cases[name].event, { at: now, idx: batchIndex(9) });
    if (after.value === before.value) {
      expect(run).toThrow(InvariantError);
    } else {
      run();
      expect(stateOfSlot(state)).toBe(slotState(after));
    }
  });
});

function stateAfter(way: readonly CaseName[]): SwarmState {
  const state = emptyState();
  const settings = { slots: 1, maxWaiters: 100 };
  const before: Event[] = [
    { type: "AgentJoined", ...session, kinds: [], maxConcurrent: 1 },
    ...resources.map((resource): Event => ({ type: "ResourceConfigured", resource, settings })),
  ];
  for (const event of [...before, ...way.map((name) => cases[name].event)])
    apply(state, event, { at: now, idx: batchIndex(1) });
  return state;
}

function stateOfSlot(state: SwarmState): string | undefined {
  const isEnded = state.endedSlotByKey.has(slotLeaseKey({ agent: session.agent, handle }));
  return findSlotLease(state, session.agent, handle)?.state ?? (isEnded ? "ended" : undefined);
}
