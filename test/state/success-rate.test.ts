// Learned success rates and speeds, and how they fade.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Instant, instant } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import type { SuccessRecord } from "../../src/state/state.ts";
import {
  decayed,
  emptyRecord,
  epochOf,
  expectationOf,
  isSlow,
  latencyMsOf,
  type Outcome,
  othersRate,
  qualityOf,
  successRate as rateOf,
  recordOutcome,
  swarmRate,
} from "../../src/state/success-rate.ts";

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
  return rateOf(agent, { rate: swarmRate(swarm, at), logLatency: undefined, attempts: 0 }, at);
}

describe("the success rate", () => {
  it("is the prior's while no agent tried", () => {
    expect(successRate(undefined, undefined, start)).toBe(limits.priorSuccessRate);
    expect(successRate(emptyRecord(start), emptyRecord(start), start)).toBeCloseTo(
      limits.priorSuccessRate,
      15,
    );
  });

  it("is the swarm's for an agent without attempts", () => {
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

  it("weighs an attempt less with each later attempt: half after the half-life", () => {
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

  it("keeps the swarm's record equal to the sum of its agents' records", () => {
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

  it("lies in [0, 1] after any history and at any instant", () => {
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

  it("averages the logarithm of the latencies of successes alone, as they are remembered", () => {
    const learning = new Learning().learn(0, "success", { latencyMs: 100 });
    expect(latencyMsOf(learning.of(0))).toBeCloseTo(100, 9);
    learning.learn(0, "failure", { latencyMs: 9_999 });
    expect(latencyMsOf(learning.of(0))).toBeCloseTo(100, 9);
    learning.learn(0, "success", { latencyMs: 400 });
    expect(latencyMsOf(learning.of(0))).toBeGreaterThan(190);
    learning.learn(0, "success", { latencyMs: 40, times: 400 });
    expect(latencyMsOf(learning.of(0))).toBeCloseTo(40, 0);
  });

  it("counts one latency as at most 4 times the mean, and at least a quarter of it", () => {
    const bits = (latencyMs: number) => {
      const learning = new Learning();
      learning.learn(0, "success", { latencyMs: 64, times: 20, everyMs: limits.rateEpochMs });
      const { timed, logLatency } = learning.of(0);
      learning.learn(0, "success", { latencyMs });
      const kept = timed * 2 ** (-1 / limits.forgetHalfLifeAttempts);
      return learning.of(0).logLatency * (kept + 1) - logLatency * kept;
    };
    for (const latencyMs of [300, 1e9]) expect(bits(latencyMs)).toBeCloseTo(8, 9);
    for (const latencyMs of [0, 10]) expect(bits(latencyMs)).toBeCloseTo(4, 9);
    expect(bits(128)).toBeCloseTo(7, 9);
  });

  it("refuses outcomes that go back in time", () => {
    const learning = new Learning().learn(0, "success", { everyMs: 5 });
    const records = { agent: learning.of(0), swarm: learning.swarm };
    expect(() => recordOutcome(records, "success", start)).toThrow(/order of journal time/);
  });
});

describe("a score's terms", () => {
  const { rateEpochMs } = limits;

  it("change with time from step to step, and are constant within a step", () => {
    const learning = new Learning().learn(0, "failure", { times: 20 });
    const expectation = { rate: 0.9, logLatency: undefined, attempts: 0 };
    const rateAt = (ms: number) => rateOf(learning.of(0), expectation, instant(ms));
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
});

describe("the terms of a score", () => {
  /** Two agents with 40 attempts of 20 ms each, ten a second. */
  const equal = () => {
    const learning = new Learning();
    for (let n = 0; n < 40; n += 1) for (const agent of [0, 1]) learning.learn(agent, "success", quick);
    return learning;
  };
  const quick = { latencyMs: 20, everyMs: 100 };
  const qualities = ({ agents, swarm, at }: Learning, exponent = 1) =>
    agents.map((agent) => qualityOf(agent, expectationOf(swarm, at), exponent, at));

  it("is the same to the bit for an agent with one slow attempt among quick ones", () => {
    const learning = equal().learn(0, "success", { latencyMs: 4_000 });
    learning.learn(1, "success", { ...quick, times: 50 });
    const [first, second] = qualities(learning);
    expect(first).toEqual(second);
  });

  it("is the same to the bit for an agent with one failure among successes, and for an agent without attempts", () => {
    const learning = equal()
      .learn(0, "failure")
      .learn(1, "success", { ...quick, times: 50 });
    const [first, second] = qualities(learning);
    expect(first?.successRate).toBe(second?.successRate);
    const joiner = qualityOf(undefined, expectationOf(learning.swarm, learning.at), 1, learning.at);
    expect(joiner).toEqual(second);
  });

  it("falls while an agent stays slow, down to a bound, and not with exponent 0", () => {
    const learning = equal();
    for (let n = 0; n < 40; n += 1) {
      learning.learn(0, "success", { latencyMs: 20_000, everyMs: 10 });
      learning.learn(1, "success", { latencyMs: 20, everyMs: 10, times: 20 });
    }
    // Within the step of time: no probe is due.
    const speeds = [0.5, 1, 2].map((exponent) => speedWithoutProbe(learning, exponent));
    expect(speeds).toEqual([...speeds].sort((a, b) => b - a));
    expect(speeds[1]).toBeLessThan(0.5);
    expect(speeds[2]).toBeGreaterThanOrEqual(limits.speedFactorMin);
    expect(speedWithoutProbe(learning, 0)).toBe(1);
  });

  const speedWithoutProbe = ({ swarm, at, agents: [agent] }: Learning, exponent: number) =>
    qualityOf(agent, { ...expectationOf(swarm, at), attempts: 0 }, exponent, at).speed;

  it("fades with journal time alone, and is probed after a time without outcomes", () => {
    const learning = equal();
    for (let n = 0; n < 20; n += 1) learning.learn(0, "success", { latencyMs: 200, everyMs: 10 });
    learning.learn(1, "success", { ...quick, times: 200 });
    expect(isSlow(learning.of(0))).toBe(true);
    const speedAt = (ms: number) =>
      qualityOf(
        learning.of(0),
        { ...expectationOf(learning.swarm, learning.at), attempts: 0 },
        1,
        instant(learning.at + ms),
      ).speed;
    const [now, later] = [speedAt(0), speedAt(limits.forgetLatencyHalfLifeMs / 2)];
    expect(now).toBeLessThan(0.9);
    expect(later).toBeGreaterThan(now as number);
    expect(speedAt(limits.forgetLatencyHalfLifeMs)).toBe(1);
  });

  it("is the swarm's for a slow agent after some more attempts of the swarm, twice as many after a slow probe", () => {
    const learning = equal();
    for (let n = 0; n < 20; n += 1) learning.learn(0, "success", { latencyMs: 200, everyMs: 10 });
    const dueAfter = () => learning.of(0).probeFrom - learning.swarm.attempts;
    expect(isSlow(learning.of(0))).toBe(true);
    learning.learn(1, "success", { ...quick, times: limits.probeAttempts + 60 });
    expect(qualities(learning)[0]?.speed).toBe(1);
    const step = learning.of(0).probeStep;
    learning.learn(0, "success", { latencyMs: 200, everyMs: 100 });
    expect(learning.of(0).probeStep).toBe(step + 1);
    expect(dueAfter()).toBe(limits.probeAttempts * 2 ** (step + 1));
    expect(qualities(learning)[0]?.speed).toBeLessThan(1);
  });

  it("stays the swarm's after a quick probe, until an attempt is slow again", () => {
    const learning = equal();
    for (let n = 0; n < 20; n += 1) learning.learn(0, "success", { latencyMs: 200, everyMs: 10 });
    learning.learn(1, "success", { ...quick, times: limits.probeAttempts + 60 });
    const step = learning.of(0).probeStep;
    learning.learn(0, "success", { ...quick, times: 3 });
    expect(isSlow(learning.of(0))).toBe(true);
    expect(learning.of(0).probeStep).toBe(Math.max(0, step - 3));
    expect(qualities(learning)[0]?.speed).toBe(1);
    learning.learn(0, "success", { latencyMs: 200, everyMs: 100 });
    expect(qualities(learning)[0]?.speed).toBeLessThan(1);
  });

  it("lies within its bounds after any history and at any instant", () => {
    fc.assert(
      fc.property(steps, fc.nat(1e12), (all, waitedMs) => {
        const learning = new Learning(4);
        for (const { agent, outcome, ...rest } of all) learning.learn(agent, outcome, rest);
        for (const at of [learning.at, instant(learning.at + waitedMs)]) {
          const expectation = expectationOf(learning.swarm, at);
          for (const record of learning.agents) {
            const { successRate: rate, speed } = qualityOf(record, expectation, 2, at);
            expect(rate >= 0 && rate <= expectation.rate).toBe(true);
            expect(speed >= limits.speedFactorMin && speed <= 1).toBe(true);
          }
        }
      }),
    );
  });
});
