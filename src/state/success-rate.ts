// An agent's success rate and speed for a kind of task, learned from the agent's own outcomes (docs/scheduling.md, "Who
// does it").
//
// An agent's estimate is a Beta mean: its own successes and failures, plus `limits.priorAttempts` imagined attempts at
// the swarm's rate for the kind. The swarm's estimate is the same, with imagined attempts at `limits.priorSuccessRate`.
// So no estimate starts from 0 or 1, and few outcomes change little.
//
// Outcomes fade exponentially. They halve with each `limits.forgetHalfLifeAttempts` later attempts of the same agent
// and kind. They also halve with each `limits.forgetHalfLifeMs` of journal time. A repaired agent recovers. An agent
// without attempts returns to the prior and is tried again.
//
// Speed is learned in the same way, from the logarithms of latencies. An agent counts as slower than the swarm only
// beyond the error of its own mean, and is probed then. Otherwise chance, or one slow attempt, would lock the agent
// out: at light load the best score takes every task.

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

/** The share of older outcomes that remains after one more attempt. */
const keptPerAttempt = powerOfHalf(1 / limits.forgetHalfLifeAttempts);
/** `probeFrom` of a slow agent whose last attempt was quick. */
const dueAtOnce = 1;

/** The record of an agent without attempts. */
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

/** The start of the step of journal time that contains an instant (`limits.rateEpochMs`). */
export function epochOf(at: Instant): Instant {
  return (at - (at % limits.rateEpochMs)) as Instant;
}

/** The swarm's expectation of any agent for a kind: constant within a step of time. */
export interface Expectation {
  /** [0, 1] */
  readonly rate: number;
  /** log₂ of the swarm's latency in ms; absent until an attempt of the kind completed. */
  readonly logLatency: number | undefined;
  /** The swarm's attempts of the kind so far. */
  readonly attempts: number;
}

const nothingKnown: Expectation = { rate: limits.priorSuccessRate, logLatency: undefined, attempts: 0 };

/**
 * The swarm's record at the start of the step that contains `at`. So an agent's score changes with its own outcomes and
 * from step to step, not with the outcomes of other agents.
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

/** The expected success rate of an agent. @returns [0, 1] */
export function successRate(agent: SuccessRecord | undefined, { rate }: Expectation, at: Instant): number {
  return agent === undefined ? rate : shrunk(decayed(agent, epochOf(at)), rate);
}

/** The inputs of a score: the success rate and the factor for speed. */
export interface Quality {
  /** [0, 1] */
  readonly successRate: number;
  /** [`limits.speedFactorMin`, 1] */
  readonly speed: number;
}

/**
 * The terms of an agent's score. Each term falls below the swarm's only as far as the agent's outcomes show, and never
 * rises above. So equal agents tie exactly, and a tie goes to the agent with the least recent assignment.
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

/** 1 for an agent that is not slow, or is due for a probe. */
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
 * By how many powers of two an agent is slower than the swarm; negative when quicker. The mean logarithm of the agent's
 * latencies, shrunk towards the swarm's with the weight of `limits.priorAttempts` attempts. 0 while the agent's latency
 * or the swarm's is unknown.
 */
function slowerBits(agent: SuccessRecord, { logLatency }: Expectation, at: Instant): number {
  if (logLatency === undefined || agent.timed === 0) return 0;
  const timed = agent.timed * keptUntil(agent, epochOf(at), limits.forgetLatencyHalfLifeMs);
  return ((agent.logLatency - logLatency) * timed) / (timed + limits.priorAttempts);
}

/**
 * Adds an outcome to the agent's record for the kind and to the swarm's. Changes both.
 *
 * The swarm's successes and failures are the *sum* of the agents' remembered outcomes. The sum fades in time by itself,
 * and in count only with the agents' own records. So an agent's weight in the sum is at most some 72 attempts, the most
 * that one record remembers. A fast-failing agent is always free, and still cannot lower the expectation of the other
 * agents: their part is the sum less its own. The swarm's latency averages its last attempts, regardless of agent.
 *
 * @param at not before the last outcome in either record
 * @param latencyMs duration of a successful attempt, ≥ 0; a failure's latency says nothing about speed and is ignored
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

/**
 * Fades the agent's outcomes by one attempt, and the agent's part of the swarm's sums. Rounding may leave the swarm's
 * sums some last digits below their parts.
 */
function forgetOutcomes({ agent, swarm }: Records): void {
  swarm.successes = Math.max(0, swarm.successes - agent.successes * (1 - keptPerAttempt));
  swarm.failures = Math.max(0, swarm.failures - agent.failures * (1 - keptPerAttempt));
  agent.successes *= keptPerAttempt;
  agent.failures *= keptPerAttempt;
}

/**
 * log₂ of a latency, at most `limits.latencyOutlierBits` beyond the means of the swarm and of the agent: one attempt
 * that hung says little about the next. The first latency of a kind has no bound. Journal time has whole ms.
 */
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

/** The standard error of the agent's mean logarithm. Imagined attempts supply the spread while attempts are few. */
function latencyError(agent: SuccessRecord, at: Instant): number {
  const timed = agent.timed * keptUntil(agent, epochOf(at), limits.forgetLatencyHalfLifeMs);
  const attempts = timed + limits.priorAttempts;
  const spread = (timed * agent.spread + limits.priorAttempts * limits.priorLatencySpread) / attempts;
  return Math.sqrt(spread / attempts);
}

/**
 * Updates whether an agent is slow, and when a slow agent is probed next.
 *
 * An agent becomes slow with an outcome after which its mean exceeds the tolerance. The tolerance is
 * `limits.slownessToleratedBits` plus `limits.slownessErrorsTolerated` standard errors. The agent stops being slow with
 * a quick attempt after which its mean is within the tolerance.
 *
 * A slow agent is probed after the swarm's next `limits.probeAttempts` attempts of the kind. Each slow probe doubles
 * the number. A quick probe halves the number, and the agent counts as due until an attempt is slow.
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

/** A record as remembered at an instant; unchanged for an instant before its last outcome. */
export function decayed(record: SuccessRecord, at: Instant): Remembered {
  const kept = keptUntil(record, at);
  return { successes: record.successes * kept, failures: record.failures * kept };
}

/** The swarm's expected success rate for the record's kind. @returns [0, 1] */
export function swarmRate(swarm: SuccessRecord | undefined, at: Instant): number {
  return swarm === undefined ? limits.priorSuccessRate : shrunk(decayed(swarm, at), limits.priorSuccessRate);
}

/**
 * The success rate of the swarm without this agent. Imagined attempts fill up only to `limits.priorAttempts`: where the
 * other agents made enough attempts and all failed, the rate is 0.
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

/** The geometric mean of the remembered latencies, ms; 0 before the first. */
export function latencyMsOf(record: SuccessRecord | undefined): number {
  return record === undefined || record.timed === 0 ? 0 : 1 / powerOfHalf(record.logLatency);
}
