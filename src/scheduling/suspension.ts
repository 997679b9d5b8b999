// When an agent is suspended for a kind and when it is taken back. A fast-failing agent is
// the one that is always free: without this rule it eats the queue. Pure rules; `decide` makes events of them.
// What a suspension excludes, and when it gives way, is eligibility.ts.
//
//   success < limits.suspendShare × the others' success, after limits.suspendAttemptsMin attempts → suspended
//   suspended, back-off over → probed with one task → success: reinstated · failure: suspended, back-off doubled

import type { Instant, Kind } from "../ids.ts";
import { limits } from "../limits.ts";
import type { AgentRow, SuccessRecord, SwarmState } from "../state/state.ts";
import { decayed, othersRate } from "../state/success-rate.ts";
import { isLive, isProbing } from "./eligibility.ts";

/** What an `AgentSuspended` event says besides whom and for what. */
export interface SuspensionTerms {
  readonly until: Instant;
  readonly step: number;
}

/**
 * Whether a failed attempt leads to a suspension, or prolongs one. Undefined: to neither.
 *
 * The measure is the success of the *others* at the kind, not the swarm's: where one agent makes most of the
 * attempts, the swarm's rate is its own. Failures that all have in common suspend nobody.
 *
 * Whoever is the last live, unsuspended agent of a kind is not suspended: nobody would gain by it.
 *
 * @param state after the failure's event was applied: the failure is in the record, its attempt is closed
 * @param agent who failed; only for failures that count against it
 */
export function suspensionOnFailure(
  state: SwarmState,
  agent: AgentRow,
  kind: Kind,
  at: Instant,
): SuspensionTerms | undefined {
  const current = agent.suspensionByKind.get(kind);
  if (current !== undefined) {
    return hasAnswered(agent, kind, at) ? suspendedFrom(at, current.step + 1) : undefined;
  }
  const record = agent.recordByKind.get(kind);
  if (record === undefined || record.attempts < limits.suspendAttemptsMin) return undefined;
  if (!isFarBelow(record, state.recordByKind.get(kind), at)) return undefined;
  return hasReplacement(state, agent, kind) ? suspendedFrom(at, 1) : undefined;
}

/**
 * Whether a success ends a suspension. One that was under way when the suspension began and ends during the
 * back-off does not: nearly every bad agent succeeds now and then.
 *
 * @param agent after the success's event was applied
 */
export function isReinstatedBySuccess(agent: AgentRow, kind: Kind, at: Instant): boolean {
  return agent.suspensionByKind.has(kind) && hasAnswered(agent, kind, at);
}

/** Whether an outcome that arrived just now says what a probe would: the probe itself, or, when none was sent
 *  yet, another attempt that ended after the back-off. */
function hasAnswered(agent: AgentRow, kind: Kind, at: Instant): boolean {
  const suspension = agent.suspensionByKind.get(kind);
  return suspension !== undefined && at >= suspension.until && !isProbing(agent, kind);
}

/**
 * Its own success is taken as it is, not shrunk towards the swarm's: that would hide what is looked for. And the
 * difference must mean something: in as many attempts as are remembered of it, the others would have succeeded
 * five times. Ten failures of last week and one of today do not suspend, nor does a kind that fails for all.
 */
function isFarBelow(record: SuccessRecord, swarm: SuccessRecord | undefined, at: Instant): boolean {
  const { successes, failures } = decayed(record, at);
  const attempts = successes + failures;
  const others = othersRate(record, swarm, at);
  if (attempts * others < limits.suspendAttemptsMin / 2) return false;
  return successes < limits.suspendShare * others * attempts;
}

function hasReplacement(state: SwarmState, agent: AgentRow, kind: Kind): boolean {
  for (const other of state.onlineByKind.get(kind)?.values() ?? []) {
    if (other !== agent && isLive(other) && !other.suspensionByKind.has(kind)) return true;
  }
  return false;
}

function suspendedFrom(at: Instant, step: number): SuspensionTerms {
  let backoffMs: number = limits.suspendMs;
  for (let doubled = 1; doubled < step && backoffMs < limits.suspendMsMax; doubled += 1) backoffMs *= 2;
  return { until: (at + Math.min(backoffMs, limits.suspendMsMax)) as Instant, step };
}
