// Random histories of slots: acquire, release, abort, time-out, loss of agents, lost messages and operators' changes,
// in any order. After every turn the invariants hold (Turns checks them): slots are conserved, held once, by online
// agents, and none is idle beside a waiter that could use it. Replaying the batches gives the same state.

import fc from "fast-check";
import { expect, it } from "vitest";
import { fingerprint } from "../support/fingerprint.ts";
import { SlotModel, slotHistory } from "../support/random-slots.ts";

it("slots are conserved under any interleaving, and every history replays to the same state", () => {
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(slotHistory, (wanted) => {
      const model = new SlotModel();
      for (const each of wanted) model.run(each);
      const { turns } = model;
      // The remaining agents let everything go: nothing is in use, nothing waits, and nothing is reserved.
      for (const agent of turns.state.agentById.values())
        if (agent.online) turns.turn({ type: "LapseAgent", agent: agent.id, incarnation: agent.incarnation });
      for (const row of turns.state.resourceByName.values())
        expect([row.inUse, row.holdings.size, row.waiting.size]).toEqual([0, 0, 0]);
      const { ledger, reservedByType, waitsWithTokens } = turns.state;
      expect([ledger.reserved, reservedByType.size, waitsWithTokens]).toEqual([0, 0, 0]);
      expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
      for (const event of turns.events) {
        const what = "reason" in event ? `${event.type} ${event.reason}` : event.type;
        seen.set(what, (seen.get(what) ?? 0) + 1);
        if (event.type !== "SlotGranted") continue;
        const isLate = event.tokens !== undefined && event.receipt.by !== "free";
        for (const how of [event.receipt.by, ...(isLate ? ["tokens, after a wait"] : [])])
          seen.set(how, (seen.get(how) ?? 0) + 1);
      }
    }),
    { numRuns: 2_000 },
  );
  // The histories covered enough.
  for (const what of [
    ...["free", "load", "starvation-limit", "tokens, after a wait"],
    "ResourceRemoved",
    ...["SlotTouched", "SlotCharged", "SlotRefused 429", "HoldPlaced", "HoldElapsed", "HoldEnded probed"],
    ...["released", "lost", "agent-gone", "idle"].map((reason) => `SlotReleased ${reason}`),
    ...["aborted", "timed-out", "lost", "agent-gone", "above-capacity"].map(
      (reason) => `SlotWaitEnded ${reason}`,
    ),
  ])
    expect(seen.get(what) ?? 0, what).toBeGreaterThan(5);
});
