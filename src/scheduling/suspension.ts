// When an agent is suspended for a kind, and when reinstated. A fast-failing agent is always free: without suspensions
// the agent would consume the queue. Pure rules; `decide` makes the events. Not here: the effect of a suspension, and
// its exceptions (eligibility.ts).
//
//    success < limits.suspendShare × the others' success, after limits.suspendAttemptsMin attempts → suspended
//    suspended, back-off over → probed with one task → success: reinstated · failure: suspended, back-off doubled

import type { Instant, Kind } from "../ids.ts";
import { limits } from "../limits.ts";
import type { AgentRow, SuccessRecord, SwarmState } from "../state/state.ts";
import { decayed, othersRate } from "../state/success-rate.ts";
import { isLive, isProbing } from "./eligibility.ts";

/** The terms of an `AgentSuspended` event. */
export interface SuspensionTerms {
  readonly until: Instant;
  readonly step: number;
}

/**
 * The suspension that a failed attempt causes or prolongs; undefined without either.
 *
 * The measure is the success of the *other* agents at the kind, not the swarm's. If an agent makes most of the
 * attempts, the swarm's rate is mostly the agent's own. Failures shared by all agents suspend no agent. The last live,
 * unsuspended agent of a kind is never suspended: a suspension would help no task.
 *
 * @param state after the failure's event was applied: the failure is in the record, its attempt is closed
 * @param agent that failed; only for failures that count against the agent
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
 * Whether a success ends a suspension. A success during the back-off, of an attempt from before the suspension, does
 * not: nearly every bad agent succeeds now and then.
 *
 * @param agent after the success's event was applied
 */
export function isReinstatedBySuccess(agent: AgentRow, kind: Kind, at: Instant): boolean {
  return agent.suspensionByKind.has(kind) && hasAnswered(agent, kind, at);
}

/**
 * Whether a new outcome counts as a probe. True for the probe itself, or, while no probe was sent, for any attempt
 * ended after the back-off.
 */
function hasAnswered(agent: AgentRow, kind: Kind, at: Instant): boolean {
  const suspension = agent.suspensionByKind.get(kind);
  return suspension !== undefined && at >= suspension.until && !isProbing(agent, kind);
}

/**
 * The agent's own success counts as it is, not shrunk towards the swarm's: shrinking would hide the difference. And the
 * difference must be significant: in as many attempts as are remembered of the agent, the others would have succeeded
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
