// What crosses between the session, which talks to the leader, and the agent, which runs handlers. The two
// may live in two threads, so all of it is plain values. Not the wire: those messages are in protocol/.

import type { AgentStatus } from "../../machines/agent.ts";
import type { WaggleErrorCode } from "../errors.ts";
import type { Assignment } from "../protocol/schemas.ts";

/** Names an attempt between session and runner: unique over all lives of an agent. */
export type AttemptKey = string;

/** Names a slot lease of slots between session and agent. */
export type SlotKey = string;

/** Slots to acquire. */
export interface AcquireOrder {
  readonly key: SlotKey;
  /** One slot for each mention. */
  readonly resources: readonly string[];
  /** ≥ 1 */
  readonly weight?: number;
  readonly holder?: string;
  readonly timeoutMs?: number;
}

/** A refusal as it crosses between threads. */
export interface PlainError {
  readonly code: WaggleErrorCode;
  readonly message: string;
  readonly field?: string;
  readonly retryAfterMs?: number;
}

/** Who an agent is and what it takes: what it says when it joins. */
export interface AgentProfile {
  readonly id: string;
  /** Absent: none. */
  readonly group?: string;
  readonly kinds: readonly string[];
  readonly role?: string;
  readonly type?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Handlers that run at once, at least 1. */
  readonly maxConcurrent: number;
  /** Attempts it takes beyond that, to have the next at hand. */
  readonly prefetch?: number;
}

/** An attempt to run. */
export type AttemptOrder = Omit<Assignment, "number" | "token" | "stallMs"> & { readonly key: AttemptKey };

/** Why an attempt's signal is aborted. */
export type AbortReason =
  /** The leader said so: cancelled, expired, timed out, given to another. */
  | "revoked"
  /** Its lease could not be renewed in time: by now another agent may have it. */
  | "lease"
  /** The leader gave all attempts of this agent away. */
  | "lapsed"
  /** Another process joined under this agent's id. */
  | "fenced"
  | "stopping";

/** How an attempt ended. */
export interface AttemptEnd {
  readonly key: AttemptKey;
  /** `aborted`: its handler had begun, was told to end, and did not complete. */
  readonly outcome: "completed" | "failed" | "infrastructure" | "invalid" | "aborted";
  readonly result?: string;
  readonly encoding?: "base64";
  readonly error?: string;
  readonly tokens?: number;
  /** From the handler's start to its end, ms; absent when it never started. */
  readonly latencyMs?: number;
}

export interface ProgressReport {
  readonly key: AttemptKey;
  /** In [0, 1]. */
  readonly fraction?: number;
  readonly message?: string;
}

/** What an attempt wrote to its log. */
export interface WrittenText {
  readonly key: AttemptKey;
  readonly text: string;
  /** Written before it and left out, for more came than is kept. */
  readonly droppedBytes?: number;
}

/** From the session to the agent. */
export type SessionNotice =
  | { readonly type: "run"; readonly attempts: readonly AttemptOrder[] }
  | { readonly type: "abort"; readonly keys: readonly AttemptKey[]; readonly reason: AbortReason }
  /** The leader accepted the agent; once for each life. */
  | { readonly type: "joined" }
  | { readonly type: "status"; readonly status: AgentStatus; readonly draining: boolean }
  | SlotNotice
  /** Nothing follows. */
  | {
      readonly type: "closed";
      readonly error?: { readonly code: WaggleErrorCode; readonly message: string };
    };

/** What became of a slot lease. */
export type SlotNotice =
  | { readonly type: "slot-granted"; readonly key: SlotKey; readonly handle: string }
  /** It ended without a slot. */
  | { readonly type: "slot-refused"; readonly key: SlotKey; readonly error: PlainError }
  /** It is about to be somebody else's, or already is. */
  | { readonly type: "slot-lost"; readonly key: SlotKey; readonly reason: AbortReason }
  | { readonly type: "slot-released"; readonly key: SlotKey; readonly error?: PlainError };

/** From the agent to the session. */
export type SessionOrder =
  | { readonly type: "ended"; readonly ends: readonly AttemptEnd[] }
  | { readonly type: "progress"; readonly reports: readonly ProgressReport[] }
  | ({ readonly type: "log" } & WrittenText)
  | { readonly type: "acquire"; readonly slotLease: AcquireOrder }
  /** Give slots back, or up. Answered with `slot-released`. */
  | { readonly type: "release"; readonly key: SlotKey }
  /** The same for a handle that is not of this process's present slot leases. */
  | { readonly type: "release-handle"; readonly key: SlotKey; readonly handle: string }
  /** Take nothing new, finish, leave. */
  | { readonly type: "drain" }
  /** Abort everything, say so, leave. */
  | { readonly type: "stop" };

/** The agent's end of the link. What the session says arrives at the listener that the link was made with. */
export interface SessionLink {
  tell(order: SessionOrder): void;
}

/** The part of a pino logger that a session needs; the one in a thread passes lines on. */
export interface SessionLog {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}
