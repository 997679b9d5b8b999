// Receipts keep within their bytes, and lose as little as possible.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { agentId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { fittedReceipt, jsonBytes } from "../../src/scheduling/fitted-receipt.ts";
import { ineligibleReasons, type Receipt } from "../../src/state/receipt.ts";

const share = fc.integer({ min: 0, max: 10_000 }).map((n) => n / 10_000);
const agentName = fc.string({ unit: fc.constantFrom(..."aZ9_-"), minLength: 1, maxLength: 64 });
const kindName = fc.string({
  unit: fc.constantFrom("a", "é", "蜂", "🐝", '"', "\\", "/"),
  minLength: 1,
  maxLength: 300,
});
const candidate = fc.record(
  {
    agent: agentName.map(agentId),
    score: share,
    successRate: share,
    load: fc.oneof(
      share,
      fc.integer({ min: 0, max: 10_240_000 }).map((n) => n / 10_000),
    ),
    backlog: share,
    speed: share,
  },
  { requiredKeys: ["agent", "score", "successRate", "load"] },
);
const counts = fc
  .tuple(...ineligibleReasons.map(() => fc.option(fc.nat(limits.agentsMax))))
  .map((numbers) =>
    Object.fromEntries(ineligibleReasons.flatMap((reason, n) => (numbers[n] ? [[reason, numbers[n]]] : []))),
  );
const basis = fc.constantFrom("starvation-limit" as const, "guarantee" as const, "rule" as const);
const mode = fc.constantFrom("alert" as const, "downgrade" as const);
const always = ["feasible", "candidates", "ineligible", "decidedBy", "queue", "waiting", "waitedMs"] as const;
const terms = {
  feasible: fc.integer({ min: 1, max: limits.agentsMax }),
  candidates: fc.array(candidate, { minLength: 1, maxLength: 3 }),
  ineligible: counts,
  decidedBy: fc.constantFrom("only", "score", "in-flight", "longest-idle", "id", "probe"),
  queue: kindName,
  waiting: fc.integer({ min: 1, max: limits.queuedTasksMax }),
  waitedMs: fc.nat(1e13),
  turn: fc.record({ project: basis, user: basis }),
  budget: fc.record({ project: mode, global: mode }, { requiredKeys: [] }),
};
const receipt: fc.Arbitrary<Receipt> = fc.record(terms, { requiredKeys: [...always] });

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function fitted(of: Receipt): Receipt {
  return fittedReceipt(of, jsonBytes(of.queue));
}

const worst: Receipt = {
  feasible: 9_999,
  candidates: ["a", "b", "c"].map((letter) => ({
    agent: agentId(letter.repeat(64)),
    score: 0.1234,
    successRate: 0.5678,
    load: 1023.1234,
    backlog: 0.4321,
  })),
  ineligible: Object.fromEntries(ineligibleReasons.map((reason) => [reason, 9_999])),
  decidedBy: "longest-idle",
  queue: "🐝".repeat(128),
  waiting: limits.queuedTasksMax,
  waitedMs: 10 ** 12,
};

describe("a receipt", () => {
  it("fits its bytes with any content, and keeps the winner, and all counts or none", () => {
    fc.assert(
      fc.property(receipt, (of) => {
        const result = fitted(of);
        expect(bytesOf(result)).toBeLessThanOrEqual(limits.receiptBytesMax);
        expect(result.candidates).toEqual(of.candidates.slice(0, result.candidates.length));
        expect(result.candidates.length).toBeGreaterThan(0);
        const isBare = result.candidates.length === 1 && Object.keys(result.ineligible).length === 0;
        const ineligible = isBare ? {} : of.ineligible;
        expect({ ...result, candidates: [], queue: "" }).toEqual({
          ...of,
          ineligible,
          candidates: [],
          queue: "",
        });
        const kept = result.queue.replace(/…$/u, "");
        expect(of.queue.startsWith(kept)).toBe(true);
        expect(result.queue).not.toMatch(/\p{Surrogate}/u);
      }),
      { numRuns: 2000 },
    );
  });

  it("is unchanged where it fits", () => {
    fc.assert(
      fc.property(receipt, (of) => {
        if (bytesOf(of) <= limits.receiptBytesMax) expect(fitted(of)).toEqual(of);
      }),
      { numRuns: 2000 },
    );
  });

  it("loses the end of the queue's name first", () => {
    const long = { ...worst, ineligible: { full: 3 }, candidates: worst.candidates.slice(0, 2) };
    const result = fitted(long);
    expect(result.candidates).toHaveLength(2);
    expect(result.queue).toMatch(/^(🐝)+…$/u);
    expect(bytesOf(result)).toBeGreaterThan(limits.receiptBytesMax - 4);
  });

  it("then loses the last candidates", () => {
    expect(fitted(worst).candidates.map(({ agent }) => agent[0])).toEqual(["a"]);
    expect(fitted({ ...worst, queue: "k" }).candidates).toHaveLength(1);
    expect(fitted({ ...worst, ineligible: {} }).candidates).toHaveLength(2);
  });

  it("loses the counts where the winner does not fit beside them", () => {
    const full: Receipt = {
      ...worst,
      candidates: worst.candidates.map((each) => ({ ...each, speed: 0.1234 })),
      turn: { project: "guarantee", user: "guarantee" },
      budget: { project: "downgrade", global: "downgrade" },
    };
    expect(fitted(full)).toMatchObject({ ineligible: {}, candidates: [{ agent: "a".repeat(64) }] });
    expect(bytesOf(fitted(full))).toBeLessThanOrEqual(limits.receiptBytesMax);
    expect(fitted({ ...full, budget: { project: "alert" }, ineligible: { full: 3 } }).ineligible).toEqual({
      full: 3,
    });
  });

  it("knows the bytes of a name as JSON writes it", () => {
    fc.assert(
      fc.property(kindName, (name) => {
        expect(jsonBytes(name)).toBe(bytesOf(name) - 2);
      }),
    );
  });
});
