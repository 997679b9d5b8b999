// The words of holds. A hold keeps work from an agent, from all agents of a type, or from a resource, until an instant
// that a provider, an operator or a guess named. Not here: rows (hold-rows.ts), the rules (scheduling/hold.ts).

import type { AgentId, AssignmentNumber, Instant, ResourceName, SlotHandle } from "../ids.ts";

export const holdScopes = ["agent", "type", "resource"] as const;
/** What a hold stops: one agent, all agents of a type, or grants of a resource. */
export type HoldScope = (typeof holdScopes)[number];

/** One hold at most exists per target. */
export interface HoldTarget {
  readonly on: HoldScope;
  /** Id of the agent, or name of the type or the resource. */
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
 * What probes whether a hold may end: an attempt, or a slot lease of the resource. An attempt is judged by its end
 * (`number`), with the lease that it acquired (`handle`). Every other lease is judged by its release. A probe that is
 * not refused for long enough lets the rest run before its end.
 */
export interface HoldProbe {
  readonly agent: AgentId;
  readonly number?: AssignmentNumber;
  readonly handle?: SlotHandle;
  /** When the hold ends, if not refused. Absent: the attempt has not begun, or may use a resource without a slot. */
  readonly trustedAt?: Instant;
}

/** A refusal without a time. An attempt and the slot that it held may both report one refusal. */
export interface CountedRefusal {
  readonly agent: AgentId;
  /** The refused attempt (`attemptHolder`), or the holder of the refused slots. */
  readonly holder?: string;
  /** The refused slot lease; absent: the attempt reported the refusal. */
  readonly handle?: SlotHandle;
}

/** Refusals in a row, oldest first: the newest, one less than place a hold. */
export type RefusalRow = readonly CountedRefusal[];
