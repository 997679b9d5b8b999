// LOCO's load function against vectors that were computed elsewhere.

import { describe, expect, it } from "vitest";
import { loads } from "../../src/scheduling/load.ts";
import { readVectors } from "../support/vectors.ts";

interface Vector {
  readonly alpha: number;
  readonly queueDepth: readonly number[];
  readonly oldestAge: readonly number[];
  readonly load: readonly number[];
}

describe("L(i)", () => {
  const vectors = readVectors<Vector>("load-function.jsonl");

  it("has vectors to check", () => expect(vectors.length).toBeGreaterThan(0));

  it.each(vectors)("is that of the vectors: $queueDepth / $oldestAge", (vector) => {
    const queues = vector.queueDepth.map((queueDepth, at) => ({
      queueDepth,
      oldestAge: vector.oldestAge[at] as number,
    }));
    const computed = loads(queues, vector.alpha);
    expect(computed).toHaveLength(vector.load.length);
    for (const [at, expected] of vector.load.entries()) {
      expect(Math.abs((computed[at] as number) - expected)).toBeLessThanOrEqual(1e-12);
    }
  });
});
