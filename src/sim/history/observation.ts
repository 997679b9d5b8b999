// A recorded history, as plain JSON: what nodes asked of a swarm and what they were told, one observation an item
// and a message. A retry is an observation of its own, and so is a copy of a request that the network makes: without
// an answer, whatever became of it.
//
// The one thing to know: all instants of one history are of one monotonic clock, and `sentMs` is before the request
// left, `heardMs` after the answer came. What was sent after something was heard must know of it.
// Not here: who records (recording-transport.ts), what must hold (check-history.ts).

import type { JournalPoint } from "../../protocol/journal-point.ts";
import type { Outcome } from "../../protocol/schemas.ts";

interface Observed {
  /** Who observed it, for people. */
  readonly node: string;
}

interface Asked extends Observed {
  readonly sentMs: number;
  /** Absent: never answered, so it may have been done, and may yet be. */
  readonly heardMs?: number;
  /** Up to where the journal stood, as the answer says. Absent where it does not. */
  readonly at?: JournalPoint;
  /** Answered by a standby. */
  readonly stale?: true;
  /** Code of a refusal that says nothing of the task: nothing was done by this request. */
  readonly refused?: string;
  /** The network made it: nobody asked a second time. */
  readonly isCopy?: true;
}

export interface SubmitObserved extends Asked {
  readonly kind: "submit";
  readonly project: string;
  readonly task: string;
  /** The item as it was sent. */
  readonly content: Readonly<Record<string, unknown>>;
  readonly answer?: "accepted" | "duplicate" | "conflict";
}

export interface CancelObserved extends Asked {
  readonly kind: "cancel";
  readonly project: string;
  readonly task: string;
  /** The one to be ended. */
  readonly round: number;
  /** `ended`: otherwise than by cancellation, before. `conflict`: it was in another round. */
  readonly answer?: "cancelled" | "ended" | "conflict" | "unknown-task";
}

export interface RetryObserved extends Asked {
  readonly kind: "retry";
  readonly project: string;
  readonly task: string;
  /** The one to be opened. */
  readonly round: number;
  /** `conflict`: it had completed, lived, or was in another round. */
  readonly answer?: "retried" | "conflict" | "unknown-task";
}

export interface AwaitObserved extends Asked {
  readonly kind: "await";
  readonly project: string;
  readonly task: string;
  readonly answer?: "live" | "unknown-task" | Outcome;
}

export interface QueryObserved extends Asked {
  readonly kind: "query";
  readonly task: string;
  readonly answer?:
    | "unknown-task"
    | {
        readonly state: string;
        readonly round: number;
        readonly attempts: number;
        readonly submittedIdx: number;
        readonly endedIdx?: number;
        readonly agent?: string;
      };
}

export interface ResultObserved extends Asked {
  readonly kind: "result";
  readonly agent: string;
  readonly incarnation: string;
  readonly task: string;
  readonly attempt: number;
  readonly token: string;
  readonly outcome: "completed" | "failed" | "infrastructure" | "invalid" | "revoked";
  readonly result?: string;
  readonly answer?: "ok" | "stale" | "gone" | "stale-token";
}

/** A leader's word that came unasked: how a task ended. */
export interface ToldObserved extends Observed {
  readonly kind: "told";
  readonly heardMs: number;
  readonly at: JournalPoint;
  readonly outcome: Outcome;
}

/** An assignment as its agent got it. */
export interface AssignedObserved extends Observed {
  readonly kind: "assigned";
  readonly heardMs: number;
  readonly term: number;
  readonly agent: string;
  readonly incarnation: string;
  readonly task: string;
  readonly attempt: number;
  readonly number: number;
  readonly token: string;
}

/** A program's call to submit a task, however many requests the client made of it, and what the call threw: that it
 *  does not know is no refusal. */
export interface CallObserved extends Asked {
  readonly kind: "call";
  readonly task: string;
}

/** What was asked about one task, with whatever came of it. */
export type AskedObservation =
  | SubmitObserved
  | CancelObserved
  | RetryObserved
  | AwaitObserved
  | QueryObserved
  | ResultObserved;

export type Observation = AskedObservation | ToldObserved | AssignedObserved | CallObserved;

/** What one reader of the journal, or one coordinator, holds for a place of it. */
export interface Reading {
  readonly reader: string;
  readonly idx: number;
  /** Of the batch there. */
  readonly hash?: string;
  /** Fingerprint of the state after that batch (`stateFingerprint`). */
  readonly state?: string;
}
