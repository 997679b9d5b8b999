// An agent's own statistics: plain means at first, then faded like the coordinator's.

import { describe, expect, it } from "vitest";
import type { AttemptEnd } from "../../src/agent/link.ts";
import { OwnRecord } from "../../src/agent/own-record.ts";
import { limits } from "../../src/limits.ts";

function noted(
  outcomes: readonly AttemptEnd["outcome"][],
  { record = new OwnRecord(), nowMs = 0, latencyMs = 10 } = {},
) {
  for (const outcome of outcomes) record.note({ key: "a", outcome, latencyMs }, nowMs);
  return record;
}

const many = (count: number, outcome: AttemptEnd["outcome"]) =>
  Array<AttemptEnd["outcome"]>(count).fill(outcome);

describe("an agent's own record", () => {
  it("says nothing before an attempt that says something about the agent", () => {
    const record = noted(["infrastructure", "invalid", "aborted"]);
    expect([record.successRate, record.latencyMs]).toEqual([undefined, undefined]);
  });

  it("is the plain share of few attempts, in whatever order they ended", () => {
    expect(noted(["failed", ...many(20, "completed")]).successRate).toBeCloseTo(20 / 21, 12);
    expect(noted([...many(20, "completed"), "failed"]).successRate).toBeCloseTo(20 / 21, 12);
  });

  it("halves what was before with each half-life of attempts, once it is full", () => {
    const record = noted(many(1_000, "failed"));
    noted(many(limits.forgetHalfLifeAttempts, "completed"), { record });
    expect(record.successRate).toBeCloseTo(0.5, 6);
  });

  it("halves the weight of what was before with each half-life of time", () => {
    const record = noted(many(4, "failed"));
    noted(["completed"], { record, nowMs: 2 * limits.forgetHalfLifeMs });
    expect(record.successRate).toBeCloseTo(1 / 2, 12);
  });

  it("has the mean latency of completed attempts alone", () => {
    const record = noted(["completed"], { latencyMs: 40 });
    noted(["failed"], { record, latencyMs: 1_000 });
    noted(["completed"], { record, latencyMs: 20 });
    expect(record.latencyMs).toBe(30);
  });
});
