// LOCO's contention over one resource against transcripts that were computed elsewhere.

import { describe, expect, it } from "vitest";
import { SharedResource } from "../../src/scheduling/exact/shared-resource.ts";
import type { ContentionOp, ContentionVector } from "../support/contention-vector.ts";
import { readVectors } from "../support/vectors.ts";

/** The transcript with the model's results in place of the expected results. */
function replayed({ capacity, alpha, ops }: ContentionVector): ContentionOp[] {
  const resource = new SharedResource({ capacity, alpha });
  return ops.map((op) => {
    if (op.op === "submit") {
      resource.submit(op.agent, op.weight);
      return op;
    }
    if (op.op === "acquire") return { ...op, granted: resource.acquire(op.agent) };
    const { tick, granted } = resource.release(op.agent);
    return { ...op, tick, granted: granted ?? null };
  });
}

describe("SharedResource", () => {
  const vectors = readVectors<ContentionVector>("contention.jsonl");

  it("has vectors to check, with grants after a wait", () => {
    const ops = vectors.flatMap((vector) => vector.ops);
    expect(ops.some((op) => op.op === "release" && op.granted !== null)).toBe(true);
  });

  it.each(vectors.map((vector, at) => [at, vector] as const))("transcript %i", (_, vector) => {
    expect(replayed(vector)).toEqual(vector.ops);
  });
});
