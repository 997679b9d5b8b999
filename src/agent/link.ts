// Messages between the session, which talks to the leader, and the agent, which runs handlers. The two may run
// in separate threads, so messages are plain values. protocol/ defines the messages of the wire.

import type { AgentStatus } from "../../machines/agent.ts";
import type { ExceededBudget, WaggleErrorCode } from "../errors.ts";
import type { Assignment, Chunk, HoldClaim } from "../protocol/schemas.ts";
import type { SlotRefusalClaim, SlotUsage } from "../protocol/slot-schemas.ts";

/** Identifies an attempt between session and runner. Unique over all incarnations of an agent. */
export type AttemptKey = string;

/** Identifies a slot lease between session and agent. */
export type SlotKey = string;

/** Slots to acquire. */
export interface AcquireOrder {
  readonly key: SlotKey;
  /** One slot per mention. */
  readonly resources: readonly string[];
  /** ≥ 1 */
  readonly weight?: number;
  readonly holder?: string;
  readonly timeoutMs?: number;
  /** Expected tokens, reserved in budgets and rates. */
  readonly tokens?: number;
  readonly project?: string;
  readonly user?: string;
  readonly label?: string;
  /** Queue of its own within the agent. */
  readonly as?: string;
  readonly idleTimeoutMs?: number;
}

/** A refusal in the form that crosses between threads. */
export interface PlainError {
  readonly code: WaggleErrorCode;
  readonly message: string;
  readonly field?: string;
  readonly retryAfterMs?: number;
  readonly budget?: ExceededBudget;
  readonly hold?: { readonly resource: string; readonly until: number };
}

/** Identity and abilities of an agent, sent when joining. */
export interface AgentProfile {
  readonly id: string;
  /** Absent: no group. */
  readonly group?: string;
  readonly kinds: readonly string[];
  readonly role?: string;
  readonly type?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Maximum number of concurrent handlers, at least 1. */
  readonly maxConcurrent: number;
  /** Number of further attempts to hold ready. */
  readonly prefetch?: number;
}

/** An attempt to run. */
export type AttemptOrder = Omit<Assignment, "number" | "token" | "stallMs"> & { readonly key: AttemptKey };

/** Why an attempt's signal is aborted. */
export type AbortReason =
  /** The leader revoked the attempt: cancelled, expired, timed out, or reassigned. */
  | "revoked"
  /** The lease could not be renewed in time: another agent may have the attempt by now. */
  | "lease"
  /** The leader reassigned all attempts of this agent. */
  | "lapsed"
  /** Another process joined under this agent's id. */
  | "fenced"
  | "stopping";

/** Why slots are lost. `idle`: the slot was not touched within its idle time. */
export type SlotLossReason = AbortReason | "idle";

/** How an attempt ended. */
export interface AttemptEnd {
  readonly key: AttemptKey;
  /** `aborted`: the handler had begun, was asked to end, and did not complete. */
  readonly outcome: "completed" | "failed" | "infrastructure" | "invalid" | "aborted";
  readonly result?: string | undefined;
  readonly encoding?: "base64" | undefined;
  readonly error?: string | undefined;
  /** With `infrastructure`: what refused the work, and for how long. */
  readonly hold?: HoldClaim | undefined;
  readonly tokens?: number | undefined;
  /** Duration of the handler, ms; absent if the handler never started. */
  readonly latencyMs?: number | undefined;
  /** Where the attempt stands in a trace (W3C Trace Context). */
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
}

export interface ProgressReport {
  readonly key: AttemptKey;
  /** In [0, 1]. */
  readonly fraction?: number;
  readonly message?: string;
}

/** Chunks of a result that the attempt emitted. */
export interface EmittedChunks {
  readonly key: AttemptKey;
  /** Number of the first chunk. */
  readonly first: number;
  readonly chunks: readonly Chunk[];
}

/** Text that an attempt wrote to its log. */
export interface WrittenText {
  readonly key: AttemptKey;
  readonly text: string;
  /** Bytes before the text that were dropped, because more came than is kept. */
  readonly droppedBytes?: number;
}

/** From the session to the agent. */
export type SessionNotice =
  | { readonly type: "run"; readonly attempts: readonly AttemptOrder[] }
  | { readonly type: "abort"; readonly keys: readonly AttemptKey[]; readonly reason: AbortReason }
  /** The leader accepted the agent. Sent once per incarnation. */
  | { readonly type: "joined" }
  | { readonly type: "status"; readonly status: AgentStatus; readonly draining: boolean }
  | SlotNotice
  /** The last notice. */
  | {
      readonly type: "closed";
      readonly error?: { readonly code: WaggleErrorCode; readonly message: string; readonly field?: string };
    };

/** A change of a slot lease. */
export type SlotNotice =
  | { readonly type: "slot-granted"; readonly key: SlotKey; readonly handle: string }
  /** The request ended without a slot. */
  | { readonly type: "slot-refused"; readonly key: SlotKey; readonly error: PlainError }
  /** The lease is about to expire, or has expired. */
  | { readonly type: "slot-lost"; readonly key: SlotKey; readonly reason: SlotLossReason }
  | { readonly type: "slot-released"; readonly key: SlotKey; readonly error?: PlainError };

/** What the holder reports of a granted slot lease, which may be lost by now. */
export interface SlotLeaseReport {
  readonly handle: string;
  readonly usage?: SlotUsage;
  readonly refused?: SlotRefusalClaim;
  readonly unanswered?: true;
}

/** From the agent to the session. */
export type SessionOrder =
  | { readonly type: "ended"; readonly ends: readonly AttemptEnd[] }
  | { readonly type: "progress"; readonly reports: readonly ProgressReport[] }
  | ({ readonly type: "chunks" } & EmittedChunks)
  | ({ readonly type: "log" } & WrittenText)
  | { readonly type: "acquire"; readonly slotLease: AcquireOrder }
  /** Release slots, or give up the request. Answered with `slot-released`. */
  | { readonly type: "release"; readonly key: SlotKey; readonly report?: SlotLeaseReport }
  /** Release a handle that this process does not hold, or report what was used under it. */
  | ({ readonly type: "release-handle"; readonly key: SlotKey } & SlotLeaseReport)
  /** Start the idle time of a held slot anew. */
  | { readonly type: "touch"; readonly key: SlotKey }
  /** Accept nothing new, finish, leave. */
  | { readonly type: "drain" }
  /** Abort everything, report, leave. */
  | { readonly type: "stop" };

/** The part of a pino logger that a session needs. A session in a thread passes its lines on. */
export interface SessionLog {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}
