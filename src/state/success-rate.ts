// How often an agent succeeds at a kind of task and how quickly, learnt from its own outcomes (docs/scheduling.md,
// "Who does it").
//
// An agent's estimate is a Beta mean: its own successes and failures, plus `limits.priorAttempts` imagined
// attempts at the swarm's rate for the kind. The swarm's is the same, with imagined attempts at
// `limits.priorSuccessRate`. So nobody starts from 0 or 1, and few outcomes say little.
// What was learnt fades, exponentially: by half with each `limits.forgetHalfLifeAttempts` later attempts of the
// same agent and kind, and by half with each `limits.forgetHalfLifeMs` of journal time. An agent that was
// repaired recovers, and one that nobody tries any more comes back to the prior and is tried again.
// Its speed is learnt in the same way, from the logarithms of its latencies. An agent counts as slower than the swarm
// only beyond the error of its own mean, and is probed then: otherwise chance, or one slow attempt, would lock it out,
// for at light load the best score takes every task.

import { assert } from "../assert.ts";
import type { Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import { powerOfHalf } from "./forgetting.ts";
import { logarithm2 } from "./logarithm.ts";
import type { SuccessRecord } from "./state.ts";

export type Outcome = "success" | "failure";

/** Successes and failures as remembered at some instant: each ≥ 0, not whole. */
export interface Remembered {
  readonly successes: number;
  readonly failures: number;
}

/** What one more attempt leaves of those before it. */
const keptPerAttempt = powerOfHalf(1 / limits.forgetHalfLifeAttempts);
/** `probeFrom` of an agent that is slow and whose last attempt was quick. */
const dueAtOnce = 1;

/** The record of an agent that has tried nothing yet. */
export function emptyRecord(at: Instant): SuccessRecord {
  return {
    successes: 0,
    failures: 0,
    completed: 0,
    attempts: 0,
    timed: 0,
    logLatency: 0,
    spread: 0,
    probeStep: 0,
    probeFrom: 0,
    updatedAt: at,
    epochAt: epochOf(at),
    epochRate: limits.priorSuccessRate,
    epochAttempts: 0,
    epochLogLatency: undefined,
  };
}

/** The beginning of the step of journal time that an instant is in (`limits.rateEpochMs`). */
export function epochOf(at: Instant): Instant {
  return (at - (at % limits.rateEpochMs)) as Instant;
}

/** What the swarm expects of an agent that tries a kind: the same for a whole step of time. */
export interface Expectation {
  /** [0, 1] */
  readonly rate: number;
  /** log₂ of the swarm's latency in ms; absent while nothing of the kind was completed. */
  readonly logLatency: number | undefined;
  /** Attempts of the kind that the swarm has made. */
  readonly attempts: number;
}

const nothingKnown: Expectation = { rate: limits.priorSuccessRate, logLatency: undefined, attempts: 0 };

/**
 * What the swarm's record held when the step began that `at` is in. So an agent's score changes with its own
 * outcomes and from step to step, not with the outcomes of other agents.
 *
 * @param at not before the last outcome in the record
 */
export function expectationOf(swarm: SuccessRecord | undefined, at: Instant): Expectation {
  if (swarm === undefined) return nothingKnown;
  const epochAt = epochOf(at);
  if (swarm.epochAt === epochAt)
    return { rate: swarm.epochRate, logLatency: swarm.epochLogLatency, attempts: swarm.epochAttempts };
  return {
    rate: swarmRate(swarm, epochAt),
    logLatency: swarm.timed > 0 ? swarm.logLatency : undefined,
    attempts: swarm.attempts,
  };
}

/** The success rate that is expected of an agent. @returns [0, 1] */
export function successRate(agent: SuccessRecord | undefined, { rate }: Expectation, at: Instant): number {
  return agent === undefined ? rate : shrunk(decayed(agent, epochOf(at)), rate);
}

/** What scores count: the success rate and the factor for speed. */
export interface Quality {
  /** [0, 1] */
  readonly successRate: number;
  /** [`limits.speedFactorMin`, 1] */
  readonly speed: number;
}

/**
 * What a score counts of an agent. Each term falls below the swarm's as far as the agent's outcomes show it, and never
 * rises above it. So equal agents tie exactly, and a tie goes to the agent that was assigned least recently.
 *
 * @param exponent 0, 0.5, 1 or 2
 */
export function qualityOf(
  agent: SuccessRecord | undefined,
  expectation: Expectation,
  exponent: number,
  at: Instant,
): Quality {
  if (agent === undefined) return { successRate: expectation.rate, speed: 1 };
  return {
    successRate: countedRate(agent, expectation, at),
    speed: exponent === 0 ? 1 : speedFactor(agent, expectation, exponent, at),
  };
}

/** The upper confidence bound of the agent's rate, at most the swarm's rate. */
function countedRate(agent: SuccessRecord, { rate }: Expectation, at: Instant): number {
  const remembered = decayed(agent, epochOf(at));
  const attempts = remembered.successes + remembered.failures + limits.priorAttempts;
  const error = Math.sqrt((rate * (1 - rate)) / attempts);
  return Math.min(rate, shrunk(remembered, rate) + limits.successErrorsTolerated * error);
}

/** 1 of an agent that is not slow, or is due for a probe. */
function speedFactor(agent: SuccessRecord, expectation: Expectation, exponent: number, at: Instant): number {
  if (!isSlow(agent) || isProbeDue(agent, expectation, at)) return 1;
  const slower = Math.max(0, slowerBits(agent, expectation, at));
  return Math.max(powerOfHalf(slower * exponent), limits.speedFactorMin);
}

/** Whether the agent's last outcomes made it a slow one. */
export function isSlow(agent: SuccessRecord): boolean {
  return agent.probeFrom > 0;
}

function isProbeDue(agent: SuccessRecord, { attempts }: Expectation, at: Instant): boolean {
  return attempts >= agent.probeFrom || epochOf(at) - agent.updatedAt >= limits.forgetLatencyHalfLifeMs;
}

/**
 * By how many powers of two an agent is slower than the swarm; negative where it is quicker. The mean logarithm of its
 * latencies, shrunk towards the swarm's with the weight of `limits.priorAttempts` attempts. 0 where the agent's
 * latency or the swarm's is not known.
 */
function slowerBits(agent: SuccessRecord, { logLatency }: Expectation, at: Instant): number {
  if (logLatency === undefined || agent.timed === 0) return 0;
  const timed = agent.timed * keptUntil(agent, epochOf(at), limits.forgetLatencyHalfLifeMs);
  return ((agent.logLatency - logLatency) * timed) / (timed + limits.priorAttempts);
}

/**
 * Adds an outcome to the agent's record for the kind and to the swarm's. Changes both.
 *
 * The swarm's successes and failures are the *sum* of what is remembered of each agent: they fade in time by
 * themselves, and in count only as its agents' own records do. So an agent weighs no more in it than the some 72
 * attempts that are ever remembered of one. A fast-failing agent is always free, and yet cannot drag down what is
 * expected of the others: their part is the sum less its own. The swarm's latency is of its last attempts, by
 * whichever agent.
 *
 * @param at not before the last outcome in either record
 * @param latencyMs of a success, ≥ 0; a failure's says nothing about speed and is not used
 */
export function recordOutcome(
  records: { readonly agent: SuccessRecord; readonly swarm: SuccessRecord },
  outcome: Outcome,
  at: Instant,
  latencyMs?: number,
): void {
  const { agent, swarm } = records;
  beginEpoch(swarm, at);
  forgetUntil(agent, at);
  forgetUntil(swarm, at);
  const expectation = expectationOf(swarm, at);
  const observed =
    outcome === "success" && latencyMs !== undefined
      ? observedBits(agent, expectation, latencyMs)
      : undefined;
  const isQuick = observed !== undefined && isAsQuick(observed, expectation);
  agent.timed *= keptPerAttempt;
  swarm.timed *= keptPerAttempt;
  forgetOutcomes(records);
  count(agent, outcome, observed);
  count(swarm, outcome, observed);
  judgeSpeed(records, isQuick, expectation, at);
}

type Records = Parameters<typeof recordOutcome>[0];

/** What one more attempt leaves of the agent's memory, and of its part in the swarm's. Rounding may leave the swarm's
 *  sums some last digits below their parts. */
function forgetOutcomes({ agent, swarm }: Records): void {
  swarm.successes = Math.max(0, swarm.successes - agent.successes * (1 - keptPerAttempt));
  swarm.failures = Math.max(0, swarm.failures - agent.failures * (1 - keptPerAttempt));
  agent.successes *= keptPerAttempt;
  agent.failures *= keptPerAttempt;
}

/** log₂ of a latency, at most `limits.latencyOutlierBits` beyond the means of the swarm and of the agent: one attempt
 *  that hung says little about the next. The first latency of a kind has no bound. Journal time has whole ms. */
function observedBits(agent: SuccessRecord, { logLatency }: Expectation, latencyMs: number): number {
  const bits = logarithm2(Math.max(1, latencyMs));
  if (logLatency === undefined) return bits;
  const own = agent.timed > 0 ? agent.logLatency : logLatency;
  const highest = Math.max(own, logLatency) + limits.latencyOutlierBits;
  const lowest = Math.min(own, logLatency) - limits.latencyOutlierBits;
  return Math.min(highest, Math.max(lowest, bits));
}

function isAsQuick(bits: number, { logLatency }: Expectation): boolean {
  return logLatency === undefined || bits <= logLatency + limits.slownessToleratedBits;
}

function isSlower(agent: SuccessRecord, expectation: Expectation, at: Instant): boolean {
  const tolerated = limits.slownessToleratedBits + limits.slownessErrorsTolerated * latencyError(agent, at);
  return slowerBits(agent, expectation, at) > tolerated;
}

/** The standard error of the agent's mean logarithm. Imagined attempts stand in for the spread of few attempts. */
function latencyError(agent: SuccessRecord, at: Instant): number {
  const timed = agent.timed * keptUntil(agent, epochOf(at), limits.forgetLatencyHalfLifeMs);
  const attempts = timed + limits.priorAttempts;
  const spread = (timed * agent.spread + limits.priorAttempts * limits.priorLatencySpread) / attempts;
  return Math.sqrt(spread / attempts);
}

/**
 * An agent becomes slow with an outcome after which its mean is slower than is tolerated: by
 * `limits.slownessToleratedBits` and `limits.slownessErrorsTolerated` standard errors. It ceases to be slow with a
 * quick attempt after which its mean is tolerated. A slow agent is probed: after the swarm's next
 * `limits.probeAttempts` attempts of the kind, and after twice as many with each slow probe. A quick probe halves that
 * number, and the agent counts as due until an attempt is slow.
 */
function judgeSpeed(
  { agent, swarm }: Records,
  isQuick: boolean,
  expectation: Expectation,
  at: Instant,
): void {
  const wasSlow = isSlow(agent);
  const becomesSlow = !wasSlow && isSlower(agent, expectation, at);
  if (!wasSlow && !becomesSlow) return;
  if (isQuick) {
    agent.probeStep = Math.max(agent.probeStep - 1, 0);
    agent.probeFrom = isSlower(agent, expectation, at) ? dueAtOnce : 0;
    return;
  }
  if (wasSlow && !isProbeDue(agent, expectation, at)) return;
  if (wasSlow) agent.probeStep = Math.min(agent.probeStep + 1, limits.probeStepMax);
  agent.probeFrom = swarm.attempts + limits.probeAttempts * 2 ** agent.probeStep;
}

/** A record as remembered at an instant; as it stands when that is before its last outcome. */
export function decayed(record: SuccessRecord, at: Instant): Remembered {
  const kept = keptUntil(record, at);
  return { successes: record.successes * kept, failures: record.failures * kept };
}

/** What the swarm is expected to succeed at, for the kind of the record. @returns [0, 1] */
export function swarmRate(swarm: SuccessRecord | undefined, at: Instant): number {
  return swarm === undefined ? limits.priorSuccessRate : shrunk(decayed(swarm, at), limits.priorSuccessRate);
}

/**
 * What the swarm without this agent succeeds at. Imagined attempts stand in only for those that the others have
 * not made: where they made enough and all failed, it is 0.
 *
 * @returns [0, 1]
 */
export function othersRate(agent: SuccessRecord, swarm: SuccessRecord | undefined, at: Instant): number {
  if (swarm === undefined) return limits.priorSuccessRate;
  const all = decayed(swarm, at);
  const own = decayed(agent, at);
  const successes = Math.max(0, all.successes - own.successes);
  const attempts = successes + Math.max(0, all.failures - own.failures);
  const imagined = Math.max(0, limits.priorAttempts - attempts);
  return (successes + imagined * limits.priorSuccessRate) / (attempts + imagined);
}

/** The mean of the Beta distribution with the prior's weight in attempts. */
function shrunk({ successes, failures }: Remembered, prior: number): number {
  return (successes + limits.priorAttempts * prior) / (successes + failures + limits.priorAttempts);
}

function beginEpoch(swarm: SuccessRecord, at: Instant): void {
  const { rate, attempts, logLatency } = expectationOf(swarm, at);
  swarm.epochAt = epochOf(at);
  swarm.epochRate = rate;
  swarm.epochAttempts = attempts;
  swarm.epochLogLatency = logLatency;
}

function forgetUntil(record: SuccessRecord, at: Instant): void {
  assert(at >= record.updatedAt, "outcomes are recorded in the order of journal time");
  const kept = keptUntil(record, at);
  record.successes *= kept;
  record.failures *= kept;
  record.timed *= keptUntil(record, at, limits.forgetLatencyHalfLifeMs);
  record.updatedAt = at;
}

function keptUntil(record: SuccessRecord, at: Instant, halfLifeMs: number = limits.forgetHalfLifeMs): number {
  return at <= record.updatedAt ? 1 : powerOfHalf((at - record.updatedAt) / halfLifeMs);
}

function count(record: SuccessRecord, outcome: Outcome, observed: number | undefined): void {
  record.attempts += 1;
  if (outcome === "failure") record.failures += 1;
  else {
    record.successes += 1;
    record.completed += 1;
  }
  if (observed === undefined) return;
  const deviation = observed - record.logLatency;
  record.timed += 1;
  record.logLatency += deviation / record.timed;
  record.spread += (deviation * (observed - record.logLatency) - record.spread) / record.timed;
}

/** The geometric mean of the latencies that are remembered, ms; 0 before the first. */
export function latencyMsOf(record: SuccessRecord | undefined): number {
  return record === undefined || record.timed === 0 ? 0 : 1 / powerOfHalf(record.logLatency);
}
