// What happened, in the past tense: the only thing the journal holds and the only thing that changes state.
// Each event closes what it speaks of in one go (a completion closes its attempt and ends its task), so that
// between two events every invariant holds.

import type {
  AgentId,
  AssignmentNumber,
  AttemptNumber,
  BatchIndex,
  GroupId,
  Incarnation,
  Instant,
  Kind,
  ProjectId,
  ResourceName,
  SlotHandle,
  TaskId,
  TaskRef,
  Term,
  Token,
  UserId,
} from "../ids.ts";
import type { AlphaChange } from "./alpha.ts";
import type { Policy } from "./policy.ts";
import type { Receipt, SlotReceipt } from "./receipt.ts";
import type {
  BudgetSettings,
  KindSettings,
  ProjectSettings,
  RateSettings,
  RateWindow,
  ResourceSettings,
} from "./settings.ts";

/** How `payload` and `result` are to be read; absent means text. */
export type Encoding = "base64";

/** What a submitter asked for, complete with defaults. Immutable. */
export interface TaskSpec {
  readonly id: TaskId;
  readonly kind: Kind;
  /** Only agents of this role may run it; absent means any. */
  readonly role?: string;
  readonly project: ProjectId;
  readonly user: UserId;
  /** Cost in the submitter's own unit, ≥ 1; what a grant charges is whole thousandths of it (`TaskRow.cost`). */
  readonly weight: number;
  /** Lower goes first; default 100. */
  readonly priority: number;
  readonly payload: string;
  readonly encoding?: Encoding;
  /** The submitter's estimate of tokens, if any. */
  readonly tokens?: number;
  /** Ends `expired` when it has not ended by then. */
  readonly deadline?: Instant;
  readonly notBefore?: Instant;
  readonly maxAttempts: number;
  /** Longest one attempt may run, ms. */
  readonly timeoutMs: number;
  /** Longest an attempt may go without a progress report, ms; absent means no such limit. */
  readonly stallMs?: number;
}

/** Why an attempt did not complete. `failed` counts against the agent; `infrastructure` does not and costs no
 *  attempt; `aborted` was begun and given up by its agent, and costs one; `invalid` is the task's own fault and is not
 *  retried; the others are the coordinator's verdict. */
export type FailureClass =
  | "failed"
  | "infrastructure"
  | "aborted"
  | "invalid"
  | "lost"
  | "timed-out"
  | "stalled";

export type DeadLetterReason = "attempts-exhausted" | "infrastructure-exhausted";
export type CancelReason = "requested";
export type LeaveReason = "left" | "lapsed" | "fenced";
/** How the slot of a revoked attempt became free again. */
export type ReleaseReason = "confirmed" | "agent-gone";

/** `lost`: the agent's heartbeat no longer listed it · `agent-gone`: its agent left, fell silent or was replaced. */
export type SlotReleaseReason = "released" | "lost" | "agent-gone";
/** `above-capacity`: an operator left fewer slots than it waits for. */
export type SlotWaitEndReason = "aborted" | "timed-out" | "lost" | "agent-gone" | "above-capacity";

export interface AttemptFailure {
  readonly class: FailureClass;
  /** For people; at most `limits.errorCharactersMax` characters. */
  readonly error: string;
}

/** Slots that an agent asks for under a handle of its own. */
export interface SlotLease {
  readonly agent: AgentId;
  readonly incarnation: Incarnation;
  readonly handle: SlotHandle;
  /** One slot for each mention, in name order. */
  readonly resources: readonly ResourceName[];
  readonly weightThousandths: number;
  /** The line of work within the agent that acquires; absent when the agent as a whole does. */
  readonly holder?: string;
}

export type Event =
  // leadership
  | {
      readonly type: "TermStarted";
      readonly term: Term;
      readonly leader: string;
      /** Hash of the record that opened the term's first segment: after a loss two terms may have one number, and never
       *  one hash. */
      readonly opened: string;
      /** T: whoever stands by waits for at least so much silence before it campaigns, ms. */
      readonly timeoutMs: number;
    }
  | { readonly type: "TermRenewed" }
  // tasks
  | { readonly type: "TaskSubmitted"; readonly task: TaskSpec; readonly hash: string }
  /** A task that had ended, but not completed, lives again: its next round begins. */
  | {
      readonly type: "TaskRetried";
      /** As it was submitted, payload included, but for its times: what the journal is purged of is not missed. */
      readonly task: TaskSpec;
      /** Of the content as it was submitted first. */
      readonly hash: string;
      /** The one that begins, from 2. */
      readonly round: number;
    }
  | ({ readonly type: "TaskReleased" } & TaskRef)
  | {
      readonly type: "TaskAssigned";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly attempt: AttemptNumber;
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly number: AssignmentNumber;
      readonly token: Token;
      /** The cheaper kind that it runs as, where a budget in mode `downgrade` is used up. */
      readonly runsAs?: Kind;
      /** The type named as cheaper, whose agents alone might have it there. */
      readonly cheaperType?: string;
      /** The estimate, held back from the budgets until the attempt's end. Absent where no budget was asked: then
       *  it is what the state says at that moment. */
      readonly tokensReserved?: number;
      readonly receipt: Receipt;
    }
  | {
      readonly type: "TaskCompleted";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly attempt: AttemptNumber;
      readonly agent: AgentId;
      readonly result: string;
      readonly encoding?: Encoding;
      readonly latencyMs: number;
      readonly tokens?: number;
    }
  /** The attempt ended without success; the task lives on: queued, or delayed until `retryAt`. */
  | {
      readonly type: "AttemptFailed";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly attempt: AttemptNumber;
      readonly agent: AgentId;
      readonly failure: AttemptFailure;
      readonly latencyMs: number;
      /** As reported; a revoked attempt's come with its release. */
      readonly tokens?: number;
      readonly retryAt?: Instant;
      /** The agent was told to stop and keeps the place until it confirms (`AttemptReleased`). */
      readonly revoked?: true;
    }
  /** Ended by the handler's own verdict: the input is invalid. */
  | {
      readonly type: "TaskFailed";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly attempt: AttemptNumber;
      readonly agent: AgentId;
      readonly failure: AttemptFailure;
      readonly latencyMs: number;
      readonly tokens?: number;
    }
  /** Ended because no attempt is left; closes the last attempt. */
  | {
      readonly type: "TaskDeadLettered";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly attempt: AttemptNumber;
      readonly agent: AgentId;
      readonly reason: DeadLetterReason;
      readonly failure: AttemptFailure;
      readonly latencyMs: number;
      readonly tokens?: number;
      readonly revoked?: true;
    }
  /** Ended by request or by its deadline; an open attempt is revoked and keeps its place until released. */
  | ({ readonly type: "TaskCancelled"; readonly reason: CancelReason } & TaskRef)
  | ({ readonly type: "TaskExpired" } & TaskRef)
  /** A revoked attempt holds its agent's place no longer. */
  | {
      readonly type: "AttemptReleased";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly attempt: AttemptNumber;
      readonly agent: AgentId;
      readonly reason: ReleaseReason;
      readonly tokens?: number;
    }
  // budgets
  /** A lost attempt's report came after all: what it used is charged, once. */
  | {
      readonly type: "TokensCharged";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly attempt: AttemptNumber;
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly token: Token;
      readonly tokens: number;
    }
  /** More is spent and reserved than the budget holds; said at most once a window. */
  | {
      readonly type: "BudgetExceeded";
      /** Absent: the swarm's. */
      readonly project?: ProjectId;
      readonly spent: number;
      readonly reserved: number;
      readonly budget: BudgetSettings;
    }
  // agents
  | {
      readonly type: "AgentJoined";
      readonly agent: AgentId;
      /** Absent: none. */
      readonly group?: GroupId;
      readonly incarnation: Incarnation;
      readonly kinds: readonly Kind[];
      readonly role?: string;
      readonly agentType?: string;
      readonly labels?: Readonly<Record<string, string>>;
      readonly maxConcurrent: number;
      readonly prefetch?: number;
    }
  /** Every assignment up to `upTo` has reached the agent: its attempts are running. */
  | { readonly type: "AssignmentsConfirmed"; readonly agent: AgentId; readonly upTo: AssignmentNumber }
  /** It has seen assignments up to `upTo` of which the journal knows nothing: the journal has lost its end. Their
   *  numbers are passed over. */
  | { readonly type: "AgentFoundAhead"; readonly agent: AgentId; readonly upTo: AssignmentNumber }
  /** Follows the closing of all its attempts. `fenced`: a later join of the same id took its place. */
  | {
      readonly type: "AgentLeft";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly reason: LeaveReason;
    }
  | { readonly type: "AgentDrained"; readonly agent: AgentId }
  | { readonly type: "AgentUndrained"; readonly agent: AgentId }
  /** Assignments sent to it do not arrive though it is alive: nothing new goes to it. */
  | { readonly type: "AgentUnresponsive"; readonly agent: AgentId }
  | { readonly type: "AgentResponsive"; readonly agent: AgentId }
  /** Success under a quarter of the swarm's for this kind; probed with one task from `until` on. */
  | {
      readonly type: "AgentSuspended";
      readonly agent: AgentId;
      readonly kind: Kind;
      readonly until: Instant;
      readonly step: number;
    }
  | { readonly type: "AgentReinstated"; readonly agent: AgentId; readonly kind: Kind }
  | { readonly type: "AgentForgotten"; readonly agent: AgentId }
  // what operators set, each whole: it replaces what was set before
  /** `alphaSaid`: where α had moved by itself, it begins anew from the policy's, but where the resource has its own. */
  | { readonly type: "PolicyChanged"; readonly policy: Policy; readonly alphaSaid?: true }
  | { readonly type: "ProjectConfigured"; readonly project: ProjectId; readonly settings: ProjectSettings }
  /** Nothing is set for it any more; it had no tasks. Where projects must be declared it exists no longer. */
  | { readonly type: "ProjectRemoved"; readonly project: ProjectId }
  | { readonly type: "KindConfigured"; readonly kind: Kind; readonly settings: KindSettings }
  | {
      readonly type: "ResourceConfigured";
      readonly resource: ResourceName;
      readonly settings: ResourceSettings;
      /** Where α had moved by itself, it begins anew from what is set. */
      readonly alphaSaid?: true;
    }
  /** Nobody held a slot of it, or waited for one. */
  | { readonly type: "ResourceRemoved"; readonly resource: ResourceName }
  /** For one pair of type and window: other windows of the type stay. */
  | { readonly type: "RateConfigured"; readonly agentType: string; readonly settings: RateSettings }
  /** Agents of this type are no longer limited in this window. */
  | { readonly type: "RateRemoved"; readonly agentType: string; readonly window: RateWindow }
  /** Nothing of the project is assigned until it is resumed; what runs goes on. */
  | { readonly type: "ProjectPaused"; readonly project: ProjectId }
  | { readonly type: "ProjectResumed"; readonly project: ProjectId }
  | { readonly type: "SwarmPaused" }
  | { readonly type: "SwarmResumed" }
  // slots of resources
  /** Not enough slots are free, or somebody comes first: it waits until all of its slots are granted at once. */
  | ({ readonly type: "SlotAwaited"; readonly deadline?: Instant } & SlotLease)
  | ({ readonly type: "SlotGranted"; readonly receipt: SlotReceipt } & SlotLease)
  /** Frees all slots of one slot lease: a tick for each of its resources. */
  | {
      readonly type: "SlotReleased";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly handle: SlotHandle;
      readonly resources: readonly ResourceName[];
      readonly reason: SlotReleaseReason;
    }
  /** These slot leases of one agent end without a slot. */
  | {
      readonly type: "SlotWaitEnded";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly handles: readonly SlotHandle[];
      readonly reason: SlotWaitEndReason;
    }
  /** α of one resource moved by itself, at the release before. */
  | ({ readonly type: "AlphaTuned"; readonly resource: ResourceName; readonly tick: number } & AlphaChange)
  // admission
  /** One summary a second of what was refused, so that refusals are on the record without filling it. */
  | {
      readonly type: "TasksRefused";
      readonly project: ProjectId;
      readonly reason: RefusalReason;
      readonly count: number;
    }
  // the journal itself
  /** Batches before `firstIdx` are no longer to be had: they are removed once this is committed, or are lost. */
  | { readonly type: "AuditTrimmed"; readonly firstIdx: BatchIndex; readonly reason: TrimReason };

/** `retention`: as old or as much as was to be kept · `storage-short`: there was no room for as much · `gap`: the
 *  journal lost records within · `tail-lost`: the journal lost its end, and nobody held it any more · `lost`: the
 *  journal lost batches or whole segments. */
export type TrimReason = "retention" | "storage-short" | "gap" | "tail-lost" | "lost";

/** The bounds on what waits. */
export type QueueBound =
  | "project-queue-full"
  | "swarm-queue-full"
  | "too-many-projects"
  | "too-many-users"
  | "user-queue-full";
/** A budget in mode `reject` had too little left. */
export type BudgetBound = "project-budget-used-up" | "swarm-budget-used-up";
export type RefusalReason = QueueBound | BudgetBound | "inbox-full" | "journal-full";

export type EventType = Event["type"];

/** One event of one type: `EventOf<"TaskAssigned">`. */
export type EventOf<Type extends EventType> = Extract<Event, { type: Type }>;
