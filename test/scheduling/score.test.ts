// VAPORA's formula to the bit, and ours beside it.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { score, vaporaLoad, vaporaScore } from "../../src/scheduling/score.ts";

/** The worked examples of ADR-018. */
const examples = [
  { agent: "A", terms: { successRate: 0.95, inFlight: 2, maxConcurrent: 5 }, load: 0.4, published: 0.68 },
  { agent: "B", terms: { successRate: 0.85, inFlight: 0, maxConcurrent: 5 }, load: 0, published: 0.85 },
  { agent: "C", terms: { successRate: 0.9, inFlight: 5, maxConcurrent: 5 }, load: 1, published: 0.45 },
];

const terms = fc.record({
  successRate: fc.double({ min: 0, max: 1, noNaN: true }),
  inFlight: fc.nat(2000),
  maxConcurrent: fc.integer({ min: 1, max: 1024 }),
});
const cost = fc.double({ min: 0, max: 1, noNaN: true });

describe("the score", () => {
  it.each(examples)("is the published one for agent $agent", ({ terms: of, load, published }) => {
    expect(vaporaLoad(of)).toBe(load);
    expect(Number(vaporaScore(of).toFixed(2))).toBe(published);
    expect(score(of, 1, 0)).toBe(vaporaScore(of));
  });

  it("selects B, as the document does", () => {
    const [best] = [...examples].sort((x, y) => vaporaScore(y.terms) - vaporaScore(x.terms));
    expect(best?.agent).toBe("B");
  });

  it("is VAPORA's to the bit without a backlog, and lower with one", () => {
    fc.assert(
      fc.property(terms, cost, (of, backlogCost) => {
        expect(score(of, 1, 0)).toBe(of.successRate / (1 + of.inFlight / of.maxConcurrent));
        expect(score(of, 1, backlogCost)).toBeLessThanOrEqual(score(of, 1, 0));
      }),
    );
    expect(score({ successRate: 0.9, inFlight: 4, maxConcurrent: 4 }, 1, 0.25)).toBe(0.9 / 2.25);
  });

  it("never rises when one more attempt is in flight: outdated scores are never too low", () => {
    fc.assert(
      fc.property(terms, cost, (of, backlogCost) => {
        const busier = { ...of, inFlight: of.inFlight + 1 };
        expect(score(busier, 1, backlogCost)).toBeLessThanOrEqual(score(of, 1, backlogCost));
      }),
    );
  });
});
