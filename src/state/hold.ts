// The words of holds. A hold keeps work from an agent, from all agents of a type, or from a resource, until an instant
// that a provider, an operator or a guess named. Not here: rows (hold-rows.ts), the rules (scheduling/hold.ts).

import type { AgentId, AssignmentNumber, Instant, ResourceName, SlotHandle } from "../ids.ts";

export const holdScopes = ["agent", "type", "resource"] as const;
/** What a hold stops: one agent, all agents of a type, or grants of a resource. */
export type HoldScope = (typeof holdScopes)[number];

/** One hold at most exists per target. */
export interface HoldTarget {
  readonly on: HoldScope;
  /** Of the agent, the type or the resource. */
  readonly name: string;
}

/** `agent`: a report named the time · `refusals`: refusals in a row, so the time is a guess · `operator`. */
export type HoldBasis = "agent" | "refusals" | "operator";

/**
 * - `held`: nothing runs until the hold's time is over.
 * - `due`: the next assignment or grant is the probe.
 * - `probing`: the probe is under way, and nothing else runs.
 */
export type HoldPhase = "held" | "due" | "probing";

/** A report that what the agent uses refused the work, as the journal keeps it. */
export interface Refusal {
  /** What the report asks to hold. Absent: not named. */
  readonly on?: "agent" | "type" | { readonly resource: ResourceName };
  /** Absent: no time was named. */
  readonly until?: Instant;
}

/** A report at the release of slots that the provider refused the work under them, as the journal keeps it. */
export interface SlotRefusal {
  /** Absent: all resources of the slot lease. */
  readonly resource?: ResourceName;
  /** Absent: no time was named. */
  readonly until?: Instant;
  /** For people: the provider's words. */
  readonly reason?: string;
}

/**
 * What probes whether a hold may end: an attempt, or a slot lease of the resource. A lease that an attempt acquired is
 * judged by the attempt's end (`number`), every other lease by its release.
 */
export interface HoldProbe {
  readonly agent: AgentId;
  readonly number?: AssignmentNumber;
  readonly handle?: SlotHandle;
}

/** Refusals without a time, in a row, of the agents of one type. */
export interface RefusalStreak {
  readonly count: number;
  /** The agent of all of them; absent when they came from several agents. */
  readonly agent?: AgentId;
}
