// What the edge of the coordinator (requests.ts) asks of whoever leads behind it: to take what is to be decided, to
// send and to count (request-desk.ts); to hear agents (agent-desk.ts); to tell clients how tasks end (await-desk.ts);
// to retry tasks (retry-desk.ts).

import type { AgentId, Incarnation, Instant, ProjectId, TaskId, TaskRef } from "../../ids.ts";
import type { CodedError, Heartbeat, Progress } from "../../protocol/schemas.ts";
import type { RefusalReason } from "../../state/event.ts";
import type { AgentName, MessageSort } from "./agent-gate.ts";
import type { InboxEntry } from "./inbox.ts";

/** What the edge hands to the leader. */
export interface RequestTarget {
  readonly agents: AgentTarget;
  readonly awaited: AwaitTarget;
  readonly retries: RetryTarget;
  /** @returns false when the inbox is full */
  enqueue(entry: InboxEntry): boolean;
  send(subject: string, message: Uint8Array): void;
  count(what: DropReason | "invalid" | "refused" | "unanswered"): void;
  /** Refusals for want of room are summarised in the journal. */
  refused(project: ProjectId, reason: RefusalReason, count: number): void;
  /** Whether a refusal for want of room may be said at all; otherwise the asker hears nothing and asks again. */
  mayRefuse(): boolean;
  /** Why nothing can be decided or answered now, if so: a sentence without its full stop. */
  stuckReason(): string | undefined;
  /** Why no task is accepted now, if so. */
  closedReason(): "journal-full" | undefined;
  /** Lets another coordinator lead. @returns false when the inbox is full */
  transfer(request: TransferRequest): boolean;
}

/** What agents say beside what is decided. */
export interface AgentTarget {
  /** Whether one more message of an agent is listened to: asked before it is read. */
  hears(name: AgentName, sort: MessageSort): boolean;
  /** Whether no agent of this id is online in another group. */
  isOf(name: AgentName): boolean;
  /** Any valid message shows that its sender lives. */
  heard(agent: AgentId, incarnation: Incarnation): void;
  /** @param reply where the heartbeat is answered, if its sender waits for that */
  heartbeat(name: AgentName, beat: Heartbeat, reply: string | undefined): void;
  /** @returns false when the agent does not run the attempt */
  progress(agent: AgentId, report: Progress): boolean;
}

/** For whom it is to be told how tasks end. */
export interface AwaitTarget {
  /** Asks for outcomes of tasks: those that ended and those that live. @returns false when the inbox is full */
  ask(request: AwaitRequest): boolean;
  /** The outcome of a task that lives is told when it ends, as far as there is room to note for whom. */
  note(task: TaskRef, inbox: string): void;
}

export interface AwaitRequest {
  readonly tasks: readonly (TaskId | CodedError)[];
  /** The client's inbox: outcomes that come later go to `<notify>.done`. */
  readonly notify: string;
  readonly project: ProjectId;
  readonly reply: string;
}

/** Opens the next rounds of ended tasks. */
export interface RetryTarget {
  /** @returns false when as many requests wait as may */
  ask(request: RetryRequest): boolean;
}

export interface RetryItem {
  readonly task: TaskId;
  /** The round to be opened. */
  readonly round: number;
}

export interface RetryRequest {
  readonly items: readonly (RetryItem | CodedError)[];
  readonly deadline: Instant | undefined;
  readonly project: ProjectId;
  readonly reply: string;
}

/** Why a message was dropped without an answer. */
export type DropReason =
  | "reply-not-an-inbox"
  | "no-reply"
  | "unknown-subject"
  | "invalid-publish"
  | "too-much-progress"
  | `too-many-${Exclude<MessageSort, "progress">}`;

export interface TransferRequest {
  /** The term that is to end. */
  readonly of: number;
  /** Who is to lead; undefined: any that stands by. */
  readonly to: string | undefined;
  /** Called once, if at all, when the term has ended, or with why it does not. */
  answer(message: object): void;
}
