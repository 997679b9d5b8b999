// What is learnt of an agent, and how it fades.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SuccessRecord } from "../../src/core/state.ts";
import { type Instant, instant } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import {
  decayed,
  emptyRecord,
  epochOf,
  type Outcome,
  othersRate,
  recordOutcome,
  scoredRate,
  speedFactor,
  swarmRate,
} from "../../src/scheduling/success-rate.ts";

const start = instant(0);

/** Some agents that serve one kind, and the swarm's record of it. */
class Learning {
  readonly swarm = emptyRecord(start);
  readonly agents: SuccessRecord[];
  at: Instant = start;

  constructor(agents = 2) {
    this.agents = Array.from({ length: agents }, () => emptyRecord(start));
  }

  of(n: number): SuccessRecord {
    return this.agents[n] as SuccessRecord;
  }

  learn(n: number, outcome: Outcome, { times = 1, latencyMs = 10, everyMs = 0 } = {}): this {
    for (let time = 0; time < times; time += 1) {
      this.at = instant(this.at + everyMs);
      recordOutcome({ agent: this.of(n), swarm: this.swarm }, outcome, this.at, latencyMs);
    }
    return this;
  }

  rate(n: number): number {
    return successRate(this.of(n), this.swarm, this.at);
  }
}

const steps = fc.array(
  fc.record({
    agent: fc.nat(3),
    outcome: fc.constantFrom<Outcome>("success", "failure"),
    everyMs: fc.oneof(fc.constant(0), fc.nat(1000), fc.nat(30 * 60_000)),
    latencyMs: fc.nat(10_000),
    times: fc.integer({ min: 1, max: 40 }),
  }),
  { maxLength: 60 },
);

/** Of an agent, with the swarm's rate of the same instant as its prior. */
function successRate(
  agent: SuccessRecord | undefined,
  swarm: SuccessRecord | undefined,
  at: Instant,
): number {
  return scoredRate(agent, { rate: swarmRate(swarm, at), latencyMs: 0 }, at);
}

describe("the success rate", () => {
  it("is the prior's while nobody tried", () => {
    expect(successRate(undefined, undefined, start)).toBe(limits.priorSuccessRate);
    expect(successRate(emptyRecord(start), emptyRecord(start), start)).toBeCloseTo(
      limits.priorSuccessRate,
      15,
    );
  });

  it("is the swarm's for an agent that has tried nothing", () => {
    const learning = new Learning().learn(0, "failure", { times: 40 });
    expect(learning.rate(1)).toBe(swarmRate(learning.swarm, learning.at));
    expect(learning.rate(1)).toBeLessThan(limits.priorSuccessRate);
  });

  it("moves from the swarm's rate to the agent's own as attempts come in", () => {
    const learning = new Learning();
    const rates = [1, 4, 16, 64].map((times) => learning.learn(0, "failure", { times }).rate(0));
    expect(rates).toEqual([...rates].sort((a, b) => b - a));
    expect(rates[0]).toBeGreaterThan(0.7);
    expect(rates[3]).toBeLessThan(0.05);
  });

  it("weighs one attempt less with each later one: half after the half-life", () => {
    const learning = new Learning()
      .learn(0, "failure")
      .learn(0, "success", { times: limits.forgetHalfLifeAttempts });
    expect(decayed(learning.of(0), learning.at).failures).toBeCloseTo(0.5, 12);
  });

  it("forgets in journal time, the agent's record and the swarm's alike", () => {
    const learning = new Learning().learn(0, "success", { times: 20 });
    const before = decayed(learning.of(0), learning.at);
    const later = instant(learning.at + limits.forgetHalfLifeMs);
    expect(decayed(learning.of(0), later).successes).toBeCloseTo(before.successes / 2, 12);
    expect(decayed(learning.swarm, later).successes).toBeCloseTo(before.successes / 2, 12);
    expect(decayed(learning.of(0), instant(learning.at - 5))).toEqual(before);
  });

  it("lets a repaired agent recover, by attempts or by time alone", () => {
    const broken = new Learning().learn(1, "success", { times: 100 }).learn(0, "failure", { times: 100 });
    const low = broken.rate(0);
    expect(low).toBeLessThan(0.1);
    const idle = successRate(broken.of(0), broken.swarm, instant(broken.at + 6 * limits.forgetHalfLifeMs));
    expect(idle).toBeGreaterThan(0.75);
    expect(broken.learn(0, "success", { times: 150 }).rate(0)).toBeGreaterThan(0.85);
  });

  it("does not let a fast-failing agent drag down what is expected of the others", () => {
    const learning = new Learning()
      .learn(0, "success", { times: 100 })
      .learn(1, "failure", { times: 10_000 });
    expect(swarmRate(learning.swarm, learning.at)).toBeGreaterThan(0.45);
    expect(othersRate(learning.of(1), learning.swarm, learning.at)).toBeGreaterThan(0.95);
    expect(othersRate(learning.of(0), learning.swarm, learning.at)).toBeLessThan(0.15);
  });

  it("keeps the swarm's record the sum of its agents'", () => {
    fc.assert(
      fc.property(steps, (all) => {
        const learning = new Learning(4);
        for (const { agent, outcome, ...rest } of all) learning.learn(agent, outcome, rest);
        const sum = learning.agents
          .map((record) => decayed(record, learning.at))
          .reduce((a, b) => ({ successes: a.successes + b.successes, failures: a.failures + b.failures }), {
            successes: 0,
            failures: 0,
          });
        expect(learning.swarm.successes).toBeCloseTo(sum.successes, 9);
        expect(learning.swarm.failures).toBeCloseTo(sum.failures, 9);
        expect(learning.swarm.attempts).toBe(learning.agents.reduce((n, { attempts }) => n + attempts, 0));
      }),
    );
  });

  it("lies in [0, 1] whatever happened and whenever it is asked", () => {
    fc.assert(
      fc.property(steps, fc.nat(1e12), (all, waitedMs) => {
        const learning = new Learning(4);
        for (const { agent, outcome, ...rest } of all) learning.learn(agent, outcome, rest);
        const later = instant(learning.at + waitedMs);
        for (const record of learning.agents) {
          for (const at of [learning.at, later]) {
            const rates = [successRate(record, learning.swarm, at), othersRate(record, learning.swarm, at)];
            for (const rate of rates) expect(rate >= 0 && rate <= 1).toBe(true);
          }
          expect(record.successes >= 0 && record.failures >= 0).toBe(true);
        }
      }),
    );
  });

  it("averages the latency of successes alone, as they are remembered", () => {
    const learning = new Learning().learn(0, "success", { latencyMs: 100 });
    expect(learning.of(0).latencyMs).toBe(100);
    learning.learn(0, "failure", { latencyMs: 9_999 });
    expect(learning.of(0).latencyMs).toBe(100);
    learning.learn(0, "success", { latencyMs: 200 });
    expect(learning.of(0).latencyMs).toBeGreaterThan(150);
    learning.learn(0, "success", { latencyMs: 40, times: 400 });
    expect(learning.of(0).latencyMs).toBeCloseTo(40, 0);
  });

  it("refuses to learn backwards", () => {
    const learning = new Learning().learn(0, "success", { everyMs: 5 });
    const records = { agent: learning.of(0), swarm: learning.swarm };
    expect(() => recordOutcome(records, "success", start)).toThrow(/order of journal time/);
  });
});

describe("a score's terms", () => {
  const { rateEpochMs } = limits;

  it("change with time from step to step, and stay within one", () => {
    const learning = new Learning().learn(0, "failure", { times: 20 });
    const expectation = { rate: 0.9, latencyMs: 0 };
    const rateAt = (ms: number) => scoredRate(learning.of(0), expectation, instant(ms));
    const [first, last, next] = [10, 11, 20].map((steps) => steps * rateEpochMs);
    expect(rateAt((last ?? 0) - 1)).toBe(rateAt(first ?? 0));
    expect(rateAt(last ?? 0)).toBeGreaterThan(rateAt(first ?? 0));
    expect(rateAt(next ?? 0)).toBeGreaterThan(rateAt(last ?? 0));
    expect([0, 1, rateEpochMs - 1, rateEpochMs].map((ms) => epochOf(instant(ms)))).toEqual([
      0,
      0,
      0,
      rateEpochMs,
    ]);
  });

  it.each([
    [0, 400, 1],
    [0.5, 400, 0.5],
    [1, 400, 0.25],
    [2, 200, 0.25],
    [2, 1_000_000, limits.speedFactorMin],
    [1, 100, 1],
    [1, 50, 1],
  ])(
    "speed to the power of %d, of an agent that takes %d ms where the swarm takes 100, is %d",
    (exponent, latencyMs, factor) => {
      const record = { ...emptyRecord(start), latencyMs };
      expect(speedFactor(record, { rate: 1, latencyMs: 100 }, exponent)).toBe(factor);
    },
  );

  it("speed is 1 where an agent or its kind is not known", () => {
    const slow = { ...emptyRecord(start), latencyMs: 400 };
    expect(speedFactor(undefined, { rate: 1, latencyMs: 100 }, 2)).toBe(1);
    expect(speedFactor(slow, { rate: 1, latencyMs: 0 }, 2)).toBe(1);
  });
});
