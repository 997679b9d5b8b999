// The ranking at a past grant agrees with the receipt, in any history of slots, and disagrees with a forged receipt.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GrantReplay } from "../../src/audit/grant-replay.ts";
import { type Batch, decodeRecord } from "../../src/journal/records.ts";
import type { Event } from "../../src/state/event.ts";
import { SlotModel, slotHistory } from "../support/random-slots.ts";
import { acquire, release, SlotTurns } from "../support/slots.ts";

const batchesOf = ({ records }: SlotTurns) => records.map(({ bytes }) => decodeRecord(bytes) as Batch);

function lastGrant(batches: readonly Batch[], sought: { agent: string; handle?: string; resource: string }) {
  const replay = new GrantReplay({ handle: undefined, ...sought });
  return batches.flatMap((batch) => replay.take(batch) ?? []).at(-1);
}

function contended(): SlotTurns {
  const turns = SlotTurns.of({ gpu: 1 }, "a1", "a2", "a3");
  turns.turn(acquire("a1-x", "gpu"));
  turns.turn(acquire("a2-x", "gpu"), acquire("a3-x", "gpu", { weightThousandths: 3_000 }));
  turns.pass(500);
  turns.turn(release("a1-x"));
  return turns;
}

describe("a past grant", () => {
  it("shows the requests that competed, with their terms", () => {
    expect(lastGrant(batchesOf(contended()), { agent: "a3", resource: "gpu" })).toMatchObject({
      handle: "a3-x",
      agrees: true,
      alpha: 0.25,
      maxQueueDepth: 3,
      maxOldestAge: 1,
      standings: [
        { handle: "a3-x", load: 1, depthTerm: 0.25, ageTerm: 0.75 },
        { handle: "a2-x", load: 0.8333, depthTerm: 0.0833, ageTerm: 0.75 },
      ],
    });
  });

  it("had no competitors where a slot was free", () => {
    const found = lastGrant(batchesOf(contended()), { agent: "a1", resource: "gpu" });
    expect(found).toMatchObject({ agrees: true, standings: [], receipt: { by: "free" } });
    expect(found?.resource).toBeUndefined();
  });

  it("disagrees with a forged receipt", () => {
    const forged = batchesOf(contended()).map((batch) => ({
      ...batch,
      events: batch.events.map(
        (event): Event =>
          event.type === "SlotGranted" && event.agent === "a3"
            ? { ...event, receipt: { ...event.receipt, load: 0.9 } }
            : event,
      ),
    }));
    expect(lastGrant(forged, { agent: "a3", resource: "gpu" })?.agrees).toBe(false);
  });

  it("agrees with its receipt in any history", () => {
    let byLoad = 0;
    fc.assert(
      fc.property(slotHistory, (wanted) => {
        const model = new SlotModel();
        for (const each of wanted) model.run(each);
        const batches = batchesOf(model.turns);
        for (const { agent, handle, receipt } of model.turns.all("SlotGranted")) {
          if (receipt.resource === undefined) continue;
          byLoad += 1;
          expect(lastGrant(batches, { agent, handle, resource: receipt.resource })).toMatchObject({
            agrees: true,
          });
        }
      }),
      { numRuns: 400 },
    );
    expect(byLoad).toBeGreaterThan(50);
  }, 60_000);
});
