// How often an agent succeeds at a kind of task, learnt from its own outcomes (docs/scheduling.md, "Who does it").
//
// An agent's estimate is a Beta mean: its own successes and failures, plus `limits.priorAttempts` imagined
// attempts at the swarm's rate for the kind. The swarm's is the same, with imagined attempts at
// `limits.priorSuccessRate`. So nobody starts from 0 or 1, and few outcomes say little.
// What was learnt fades, exponentially: by half with each `limits.forgetHalfLifeAttempts` later attempts of the
// same agent and kind, and by half with each `limits.forgetHalfLifeMs` of journal time. An agent that was
// repaired recovers, and one that nobody tries any more comes back to the prior and is tried again.

import { assert } from "../assert.ts";
import type { SuccessRecord } from "../core/state.ts";
import type { Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import { powerOfHalf } from "./forgetting.ts";

export type Outcome = "success" | "failure";

/** Successes and failures as remembered at some instant: each ≥ 0, not whole. */
export interface Remembered {
  readonly successes: number;
  readonly failures: number;
}

/** What one more attempt leaves of those before it. */
const keptPerAttempt = powerOfHalf(1 / limits.forgetHalfLifeAttempts);

/** The record of whoever has tried nothing yet. */
export function emptyRecord(at: Instant): SuccessRecord {
  return {
    successes: 0,
    failures: 0,
    completed: 0,
    attempts: 0,
    latencyMs: 0,
    updatedAt: at,
    epochAt: epochOf(at),
    epochRate: limits.priorSuccessRate,
    epochLatencyMs: 0,
  };
}

/** The beginning of the step of journal time that an instant is in (`limits.rateEpochMs`). */
export function epochOf(at: Instant): Instant {
  return (at - (at % limits.rateEpochMs)) as Instant;
}

/** What the swarm expects of whoever tries a kind: the same for a whole step of time. */
export interface Expectation {
  /** [0, 1] */
  readonly rate: number;
  /** 0 while nothing of the kind was completed. */
  readonly latencyMs: number;
}

/**
 * What stood in the swarm's record when the step began that `at` is in. So an agent's score changes with its own
 * outcomes and from step to step, not whenever anybody finishes anything.
 *
 * @param at not before the last outcome in the record
 */
export function expectationOf(swarm: SuccessRecord | undefined, at: Instant): Expectation {
  if (swarm === undefined) return { rate: limits.priorSuccessRate, latencyMs: 0 };
  const epochAt = epochOf(at);
  if (swarm.epochAt === epochAt) return { rate: swarm.epochRate, latencyMs: swarm.epochLatencyMs };
  return { rate: swarmRate(swarm, epochAt), latencyMs: swarm.latencyMs };
}

/** What an agent is expected to succeed at, as scores count it. @returns [0, 1] */
export function scoredRate(agent: SuccessRecord | undefined, { rate }: Expectation, at: Instant): number {
  return agent === undefined ? rate : shrunk(decayed(agent, epochOf(at)), rate);
}

/**
 * How an agent's speed at a kind counts: min(1, the swarm's latency / its own)^exponent, at least
 * `limits.speedFactorMin`; 1 where either is not known. Whoever is faster than the swarm is preferred no further:
 * that would make a crowd of it.
 *
 * @param exponent 0, 0.5, 1 or 2
 */
export function speedFactor(
  agent: SuccessRecord | undefined,
  { latencyMs }: Expectation,
  exponent: number,
): number {
  if (exponent === 0 || agent === undefined || agent.latencyMs <= latencyMs || latencyMs === 0) return 1;
  const ratio = latencyMs / agent.latencyMs;
  const factor = exponent === 0.5 ? Math.sqrt(ratio) : exponent === 2 ? ratio * ratio : ratio;
  return Math.max(factor, limits.speedFactorMin);
}

/**
 * Adds an outcome to the agent's record for the kind and to the swarm's. Changes both.
 *
 * The swarm's record is the *sum* of what is remembered of each agent: it fades in time by itself, and in count
 * only as its agents' own records do. So an agent weighs no more in it than the some 72 attempts that are ever
 * remembered of one; a fast-failing agent, the one that is always free, cannot drag down what is expected of
 * the others, and their part is the sum less its own.
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
  // Rounding may leave the sum some last digits below its part.
  swarm.successes = Math.max(0, swarm.successes - agent.successes * (1 - keptPerAttempt));
  swarm.failures = Math.max(0, swarm.failures - agent.failures * (1 - keptPerAttempt));
  agent.successes *= keptPerAttempt;
  agent.failures *= keptPerAttempt;
  count(agent, outcome, latencyMs);
  count(swarm, outcome, latencyMs);
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
  const { rate, latencyMs } = expectationOf(swarm, at);
  swarm.epochAt = epochOf(at);
  swarm.epochRate = rate;
  swarm.epochLatencyMs = latencyMs;
}

function forgetUntil(record: SuccessRecord, at: Instant): void {
  assert(at >= record.updatedAt, "outcomes are recorded in the order of journal time");
  const kept = keptUntil(record, at);
  record.successes *= kept;
  record.failures *= kept;
  record.updatedAt = at;
}

function keptUntil(record: SuccessRecord, at: Instant): number {
  return at <= record.updatedAt ? 1 : powerOfHalf((at - record.updatedAt) / limits.forgetHalfLifeMs);
}

/** The latency is the mean of the successes, weighted as they are remembered. */
function count(record: SuccessRecord, outcome: Outcome, latencyMs: number | undefined): void {
  record.attempts += 1;
  if (outcome === "failure") {
    record.failures += 1;
    return;
  }
  record.successes += 1;
  record.completed += 1;
  if (latencyMs !== undefined) record.latencyMs += (latencyMs - record.latencyMs) / record.successes;
}
