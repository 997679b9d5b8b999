// When an agent is suspended for a kind, and when it is reinstated.

import { describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { isReinstatedBySuccess, suspensionOnFailure } from "../../src/scheduling/suspension.ts";
import type { AgentRow, SuccessRecord } from "../../src/state/state.ts";
import { decayed, othersRate } from "../../src/state/success-rate.ts";
import { aKind, SwarmFixture } from "./swarm-fixture.ts";

const { suspendAttemptsMin, suspendMs, suspendMsMax, forgetHalfLifeMs } = limits;

/** An agent `good` that succeeds and an agent `bad` without attempts. */
function aSwarm({ goodSuccesses = 20 } = {}) {
  const swarm = new SwarmFixture();
  swarm.join("good", { maxConcurrent: 8 });
  swarm.join("bad", { maxConcurrent: 8 });
  swarm.teach("good", { successes: goodSuccesses });
  return swarm;
}

function verdict(swarm: SwarmFixture, id = "bad") {
  return suspensionOnFailure(swarm.state, swarm.agent(id), aKind, swarm.at);
}

describe("suspension", () => {
  it("comes with the tenth failure of ten, not before", () => {
    const swarm = aSwarm();
    swarm.teach("bad", { failures: suspendAttemptsMin - 1 });
    expect(verdict(swarm)).toBeUndefined();
    swarm.teach("bad", { failures: 1 });
    expect(verdict(swarm)).toEqual({ until: swarm.at + suspendMs, step: 1 });
  });

  it("comes under a quarter of the others' success, not at a third", () => {
    const third = aSwarm();
    third.teach("bad", { successes: 10, failures: 20 });
    expect(verdict(third)).toBeUndefined();
    const fifth = aSwarm();
    fifth.teach("bad", { successes: 6, failures: 24 });
    expect(verdict(fifth)).toBeDefined();
  });

  it("is not prevented by the agent's own failures in the swarm's record", () => {
    const swarm = aSwarm();
    swarm.teach("bad", { failures: 2000 });
    expect(verdict(swarm)).toBeDefined();
  });

  it("measures against the prior where the others made no attempts", () => {
    const swarm = aSwarm({ goodSuccesses: 0 });
    swarm.teach("bad", { failures: suspendAttemptsMin });
    expect(verdict(swarm)).toBeDefined();
  });

  it("spares all when all fail alike", () => {
    const swarm = aSwarm({ goodSuccesses: 0 });
    for (let n = 0; n < 60; n += 1) {
      swarm.teach("good", { failures: 1 });
      swarm.teach("bad", { failures: 1 });
      if (n >= suspendAttemptsMin) {
        expect([verdict(swarm), verdict(swarm, "good")]).toEqual([undefined, undefined]);
      }
    }
  });

  it("needs evidence that is still remembered", () => {
    const swarm = aSwarm();
    swarm.teach("bad", { failures: suspendAttemptsMin - 1 });
    swarm.pass(10 * forgetHalfLifeMs);
    swarm.teach("bad", { failures: 1 });
    expect(verdict(swarm)).toBeUndefined();
    swarm.teach("bad", { failures: 5 });
    expect(verdict(swarm)).toBeDefined();
  });

  it("needs enough attempts for five successes of the others", () => {
    const swarm = aSwarm({ goodSuccesses: 0 });
    for (let n = 0; n < 10; n += 1) swarm.teach("good", { successes: 3, failures: 7 });
    const expected: number[] = [];
    for (let n = 0; n < 30; n += 1) {
      swarm.teach("bad", { failures: 1 });
      const record = swarm.agent("bad").recordByKind.get(aKind) as SuccessRecord;
      const { failures } = decayed(record, swarm.at);
      const wouldSucceed = failures * othersRate(record, swarm.state.recordByKind.get(aKind), swarm.at);
      if (n + 1 < suspendAttemptsMin) continue;
      expected.push(wouldSucceed);
      expect(verdict(swarm) !== undefined).toBe(wouldSucceed >= 5);
    }
    // Both cases occurred, and a third less was too little.
    expect(expected.some((times) => times > 3.4 && times < 5)).toBe(true);
    expect(expected.at(-1)).toBeGreaterThan(5);
  });

  it.each<[string, (swarm: SwarmFixture, good: AgentRow) => void]>([
    ["left", (swarm) => swarm.leave("good")],
    ["is drained", (swarm) => swarm.drain("good")],
    ["is itself suspended", (swarm) => swarm.suspend("good")],
  ])("spares the last agent of the kind: the other %s", (_, lose) => {
    const swarm = aSwarm();
    swarm.teach("bad", { failures: suspendAttemptsMin });
    expect(verdict(swarm)).toBeDefined();
    lose(swarm, swarm.agent("good"));
    expect(verdict(swarm)).toBeUndefined();
  });

  it("spares all when a kind begins to fail for all", () => {
    const swarm = aSwarm({ goodSuccesses: 100 });
    swarm.teach("bad", { successes: 100 });
    for (let n = 0; n < 300; n += 1) {
      swarm.teach("good", { failures: 1 });
      swarm.teach("bad", { failures: 1 });
      expect([verdict(swarm), verdict(swarm, "good")]).toEqual([undefined, undefined]);
    }
  });

  it("is for the kind alone", () => {
    const swarm = new SwarmFixture();
    for (const id of ["good", "bad"]) swarm.join(id, { kinds: ["k", "other"] });
    swarm.teach("bad", { kind: "other", failures: 50 });
    expect(verdict(swarm)).toBeUndefined();
  });

  it("doubles the back-off with each failed probe, up to the longest", () => {
    const swarm = aSwarm();
    swarm.teach("bad", { failures: suspendAttemptsMin });
    const backoffs: number[] = [];
    for (let probe = 0; probe < 10; probe += 1) {
      const terms = verdict(swarm);
      if (terms === undefined) throw new Error("not suspended");
      expect(terms.step).toBe(probe + 1);
      backoffs.push(terms.until - swarm.at);
      swarm.suspend("bad", terms);
      swarm.pass(terms.until - swarm.at);
      swarm.teach("bad", { failures: 1 });
    }
    expect(backoffs.slice(0, 4)).toEqual([1, 2, 4, 8].map((times) => times * suspendMs));
    expect(backoffs.at(-1)).toBe(suspendMsMax);
  });

  it("is neither prolonged nor ended by attempts that were under way when it began", () => {
    const swarm = aSwarm();
    for (const id of ["t1", "t2"]) {
      swarm.submit(id);
      swarm.assign(id, "bad");
    }
    swarm.suspend("bad", { until: swarm.at + suspendMs });
    swarm.fail("t1");
    expect(verdict(swarm)).toBeUndefined();
    swarm.complete("t2");
    expect(isReinstatedBySuccess(swarm.agent("bad"), aKind, swarm.at)).toBe(false);
  });

  it("is left to the probe to decide while one is under way", () => {
    const swarm = aSwarm();
    for (const id of ["old-1", "old-2", "probe"]) swarm.submit(id);
    swarm.assign("old-1", "bad");
    swarm.assign("old-2", "bad");
    swarm.suspend("bad", { until: swarm.at + suspendMs });
    swarm.pass(suspendMs);
    swarm.assign("probe", "bad");
    swarm.fail("old-1");
    expect(verdict(swarm)).toBeUndefined();
    swarm.complete("old-2");
    expect(isReinstatedBySuccess(swarm.agent("bad"), aKind, swarm.at)).toBe(false);
    swarm.complete("probe");
    expect(isReinstatedBySuccess(swarm.agent("bad"), aKind, swarm.at)).toBe(true);
  });

  it("is prolonged by a probe that timed out, though it still occupies capacity", () => {
    const swarm = aSwarm();
    swarm.suspend("bad", { until: swarm.at, step: 3 });
    swarm.submit("probe");
    swarm.assign("probe", "bad");
    swarm.fail("probe", { failureClass: "timed-out", revoked: true });
    expect(verdict(swarm)).toEqual({ until: swarm.at + 8 * suspendMs, step: 4 });
  });

  it("does not end for an agent that was not suspended", () => {
    const swarm = aSwarm();
    expect(isReinstatedBySuccess(swarm.agent("good"), aKind, swarm.at)).toBe(false);
  });
});
