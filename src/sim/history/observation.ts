// A recorded history, as plain JSON: the requests of nodes to a swarm and the answers, one observation per item and
// message. A retry has an observation of its own. So has a copy of a request made by the network, always without an
// answer.
//
// All instants of a history come from the same monotonic clock. `sentMs` is before the request leaves, `heardMs` after
// the answer arrives. A request sent after an answer was heard must reflect the answer.
//
// Not here: the recorder (recording-transport.ts) and the checks (check-history.ts).

import type { JournalPoint } from "../../protocol/journal-point.ts";
import type { Outcome } from "../../protocol/schemas.ts";

interface Observed {
  /** Name of the observing node, for people. */
  readonly node: string;
}

interface Asked extends Observed {
  readonly sentMs: number;
  /** Absent: never answered, so the request may have been carried out, or may be later. */
  readonly heardMs?: number;
  /** The journal's last batch according to the answer. Absent if the answer names none. */
  readonly at?: JournalPoint;
  /** A standby answered. */
  readonly stale?: true;
  /** Code of a refusal. The request had no effect, and the code says nothing about the task. */
  readonly refused?: string;
  /** The network copied the request; the node sent no second request. */
  readonly isCopy?: true;
}

export interface SubmitObserved extends Asked {
  readonly kind: "submit";
  readonly project: string;
  readonly task: string;
  /** The item as sent. */
  readonly content: Readonly<Record<string, unknown>>;
  readonly answer?: "accepted" | "duplicate" | "conflict";
}

export interface CancelObserved extends Asked {
  readonly kind: "cancel";
  readonly project: string;
  readonly task: string;
  /** The round to end. */
  readonly round: number;
  /** `ended`: the round had ended before, not by cancellation. `conflict`: the task was in a different round. */
  readonly answer?: "cancelled" | "ended" | "conflict" | "unknown-task";
}

export interface RetryObserved extends Asked {
  readonly kind: "retry";
  readonly project: string;
  readonly task: string;
  /** The round to open. */
  readonly round: number;
  /** `conflict`: the task had completed, was live, or was in a different round. */
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

/** A leader's notification of the outcome of a task. */
export interface NotifiedObserved extends Observed {
  readonly kind: "notified";
  readonly heardMs: number;
  readonly at: JournalPoint;
  readonly outcome: Outcome;
}

/** An assignment as received by the agent. */
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

/**
 * A program's call to submit a task, over all requests that the client made for the call. `refused` holds the error
 * that the call threw; an unknown outcome is no refusal.
 */
export interface CallObserved extends Asked {
  readonly kind: "call";
  readonly task: string;
}

/**
 * A program's question for the history of a task, over all requests that the client made for it: `Swarm.story`, or
 * `Swarm.explain`. `refused` holds the error that the question ended with.
 */
export interface StoryObserved extends Asked {
  readonly kind: "story";
  readonly task: string;
  /** The question ended because batches seen before are gone from the journal (`LossError`). A batch that no server
   *  finds at present is no loss. */
  readonly saysLoss?: true;
  readonly answer?: {
    /** The batch of the task's status: the history is at least as new. */
    readonly statusIdx: number;
    readonly attempts: readonly {
      readonly attempt: number;
      readonly agent: string;
      readonly assignedIdx: number;
    }[];
    /** The events that name the task, in order. Absent in an explanation. */
    readonly events?: readonly { readonly idx: number; readonly type: string }[];
  };
}

/** A request about a task, with the answer if any. */
export type AskedObservation =
  | SubmitObserved
  | CancelObserved
  | RetryObserved
  | AwaitObserved
  | QueryObserved
  | ResultObserved;

export type Observation =
  | AskedObservation
  | NotifiedObserved
  | AssignedObserved
  | CallObserved
  | StoryObserved;

/** The journal's batch at an index, as a reader or a coordinator holds it. */
export interface Reading {
  readonly reader: string;
  readonly idx: number;
  /** Hash of the batch. */
  readonly hash?: string;
  /** Fingerprint of the state after the batch (`stateFingerprint`). */
  readonly state?: string;
}
