// The ranking of waiting requests for slots: the first is the next grant, and the two terms make up L.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { agentId } from "../../src/ids.ts";
import { rankWaiters, type SlotStanding } from "../../src/scheduling/explain-slots.ts";
import { acquire, release, SlotTurns } from "../support/slots.ts";

function ranked(turns: SlotTurns, resource: string): readonly SlotStanding[] {
  return rankWaiters(turns.state, turns.resource(resource), turns.at).standings;
}

const handles = (standings: readonly SlotStanding[]) => standings.map(({ handle }) => handle);

/** One slot, held by a1; a2 waits with two requests of weight 1, and a3 with one of weight 3. */
function contended(): SlotTurns {
  const turns = SlotTurns.of({ gpu: 1, disk: 1 }, "a1", "a2", "a3", "a4");
  turns.turn(acquire("a1-x", "gpu"));
  turns.turn(acquire("a2-x", "gpu"), acquire("a2-y", "gpu"));
  turns.pass(2_000);
  turns.turn(acquire("a3-x", "gpu", { weightThousandths: 3_000 }));
  return turns;
}

describe("the ranking of waiting requests", () => {
  it("gives L and its two terms as the load function has them", () => {
    const turns = contended();
    const { alpha, maxQueueDepth, maxOldestAge } = rankWaiters(turns.state, turns.resource("gpu"), turns.at);
    expect({ alpha, maxQueueDepth, maxOldestAge }).toEqual({
      alpha: 0.25,
      maxQueueDepth: 3,
      maxOldestAge: 0,
    });
    expect(ranked(turns, "gpu")).toMatchObject([
      {
        place: 1,
        handle: "a3-x",
        by: "load",
        load: 0.25,
        depthTerm: 0.25,
        ageTerm: 0,
        queueDepth: 3,
        waitedMs: 0,
      },
      { place: 2, handle: "a2-x", load: 0.1667, depthTerm: 0.1667, queueDepth: 2, waitedMs: 2_000 },
      { place: 3, handle: "a2-y", load: 0.1667 },
    ]);
  });

  it("puts requests past the starvation limit first, and requests of unresponsive agents last", () => {
    const turns = contended();
    turns.configure({ type: "PolicyChanged", policy: { ...turns.state.policy, starvationLimit: 1 } });
    turns.turn(acquire("a4-x", "disk"));
    for (let n = 0; n < 4; n += 1) turns.turn(acquire(`a4-${n}`, "gpu"));
    turns.turn({
      type: "MarkUnresponsive",
      agent: agentId("a3"),
      incarnation: turns.agent("a3").incarnation,
    });
    for (let n = 0; n < 6; n += 1) {
      const [holder] = turns.holders("gpu");
      if (holder === undefined) break;
      turns.turn(release(holder), acquire("a1-again", "gpu", { handle: `a1-${n}` as never }));
    }
    const standings = ranked(turns, "gpu");
    expect(standings.at(-1)).toMatchObject({ handle: "a3-x", by: "unreachable" });
    expect(new Set(standings.map(({ by }) => by)).size).toBeGreaterThan(1);
  });

  it("names what a set lacks", () => {
    const turns = SlotTurns.of({ gpu: 1, disk: 1 }, "a1", "a2");
    turns.turn(acquire("a1-x", "disk"));
    turns.turn(acquire("a2-x", ["disk", "gpu"]));
    expect(ranked(turns, "gpu")).toMatchObject([
      {
        handle: "a2-x",
        needs: [
          { resource: "disk", wanted: 1, free: 0 },
          { resource: "gpu", wanted: 1, free: 1 },
        ],
      },
    ]);
  });

  it("begins with the next grant, whoever asked and however long", () => {
    const asked = fc.record({
      agent: fc.constantFrom("a1", "a2", "a3", "a4"),
      weight: fc.integer({ min: 1, max: 9 }),
    });
    const rounds = fc.array(fc.array(asked, { maxLength: 3 }), { minLength: 1, maxLength: 12 });
    let grants = 0;
    fc.assert(
      fc.property(rounds, fc.constantFrom(0, 1, 20), (wanted, starvationLimit) => {
        const turns = SlotTurns.of({ gpu: 1 }, "a1", "a2", "a3", "a4");
        turns.turn({ type: "SetPolicy", patch: { starvationLimit } });
        let requests = 0;
        for (const each of wanted) {
          for (const { agent, weight } of each) {
            requests += 1;
            turns.turn(acquire(`${agent}-${requests}`, "gpu", { weightThousandths: weight * 1_000 }));
          }
          const [holder] = turns.holders("gpu");
          if (holder === undefined) continue;
          // The release ages all waiters before the grant.
          const row = turns.resource("gpu");
          row.tick += 1;
          const [next] = ranked(turns, "gpu");
          row.tick -= 1;
          turns.turn(release(holder));
          expect(turns.holders("gpu")[0]).toBe(next?.handle);
          grants += next === undefined ? 0 : 1;
        }
        for (const { load, depthTerm, ageTerm } of ranked(turns, "gpu"))
          expect(depthTerm + ageTerm).toBeCloseTo(load, 3);
      }),
      { numRuns: 300 },
    );
    expect(grants).toBeGreaterThan(100);
  });
});

it("ranks in the order of asking where L is equal", () => {
  const turns = SlotTurns.of({ gpu: 1 }, "a1", "a2", "a3");
  turns.turn(acquire("a1-x", "gpu"), acquire("a3-x", "gpu"), acquire("a2-x", "gpu"));
  expect(handles(ranked(turns, "gpu"))).toEqual(["a3-x", "a2-x"]);
});
