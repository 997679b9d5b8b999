// What happened, in the past tense. The journal holds nothing but events, and nothing else changes state. Each event
// makes its whole change at once (a completion closes its attempt and ends its task), so every invariant holds between
// two events.

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
import type { Grant } from "./grant.ts";
import type { HoldBasis, HoldScope, Refusal, SlotRefusal } from "./hold.ts";
import type { Labels, Needs } from "./needs.ts";
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

/** How to read `payload` and `result`; absent means text. */
export type Encoding = "base64";

/** What the journal keeps of a result whose project journals results as hash. */
export interface ResultDigest {
  /** SHA-256 of the result's bytes, 64 hexadecimal digits. */
  readonly sha256: string;
  /** Length of the result, bytes. */
  readonly bytes: number;
}

/** Values by name: at most `limits.attributesBytesMax` bytes as JSON, in order of names. */
export type Attributes = Readonly<Record<string, string>>;

/** A submitted task, complete with defaults. Immutable. */
export interface TaskSpec {
  readonly id: TaskId;
  readonly kind: Kind;
  /** Only agents of this role may run the task; absent means any. */
  readonly role?: string;
  /** Only agents with these labels may run the task; absent means any. */
  readonly needs?: Needs;
  /** The agent that ran the last task with this key in the project is preferred (affinity-rows.ts). */
  readonly affinity?: string;
  readonly project: ProjectId;
  readonly user: UserId;
  /** Cost in the submitter's own unit, ≥ 1; a grant charges whole thousandths of the weight (`TaskRow.cost`). */
  readonly weight: number;
  /** Lower goes first; default 100. */
  readonly priority: number;
  readonly payload: string;
  readonly encoding?: Encoding;
  /** The submitter's estimate of tokens, if any. */
  readonly tokens?: number;
  /** A task that has not ended by this instant ends `expired`. */
  readonly deadline?: Instant;
  readonly notBefore?: Instant;
  readonly maxAttempts: number;
  /** Longest one attempt may run, ms. */
  readonly timeoutMs: number;
  /** Longest an attempt may go without a progress report, ms; absent means no such limit. */
  readonly stallMs?: number;
  /** The agent sends chunks of the result while it runs. Not part of the content that makes a task the same. */
  readonly stream?: true;
  /** The submitter's own, by name: never read here, except by searches for equal values. Not empty. */
  readonly attributes?: Attributes;
  /** Where the submitter stands in a trace (W3C Trace Context). Not part of the content that makes a task the same. */
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/**
 * Why an attempt did not complete.
 *
 * - `failed` counts against the agent.
 * - `infrastructure` counts neither against the agent nor against `maxAttempts`.
 * - `refused`: as `infrastructure`, and the agent, its type or a resource is on hold since. Counts towards no limit.
 * - `aborted`: the agent began the attempt and gave up. Counts against `maxAttempts`.
 * - `invalid` is the task's own fault and is not retried.
 * - `lost`, `timed-out` and `stalled` are the coordinator's verdict.
 * - `revoked`: an operator took the attempt from its agent. Counts against `maxAttempts`, not against the agent.
 */
export type FailureClass =
  | "failed"
  | "infrastructure"
  | "refused"
  | "aborted"
  | "invalid"
  | "lost"
  | "timed-out"
  | "stalled"
  | "revoked";

export type DeadLetterReason = "attempts-exhausted" | "infrastructure-exhausted";
export type CancelReason = "requested";
/**
 * `probed`: the probe ended, not refused · `trusted`: the probe has run for `limits.probeTrustedMs`, not refused ·
 * `operator`: an operator ended the hold · `displaced`: another hold needed the room.
 */
export type HoldEndReason = "probed" | "trusted" | "operator" | "displaced";
/** `forbidden`: a changed grant no longer permits the session. */
export type LeaveReason = "left" | "lapsed" | "fenced" | "forbidden";
/** How the capacity of a revoked attempt became free again. */
export type ReleaseReason = "confirmed" | "agent-gone";

/**
 * `lost`: the agent's heartbeat no longer listed the slot lease · `agent-gone`: its agent left, fell silent or was
 * replaced · `idle`: the lease was not touched within its idle time.
 */
export type SlotReleaseReason = "released" | "lost" | "agent-gone" | "idle";
/**
 * - `above-capacity`: an operator left fewer slots than the request needs.
 * - `on-hold`: a resource is on hold for longer than the request may wait.
 */
export type SlotWaitEndReason =
  | "aborted"
  | "timed-out"
  | "lost"
  | "agent-gone"
  | "above-capacity"
  | "on-hold";

export interface AttemptFailure {
  readonly class: FailureClass;
  /** For people; at most `limits.errorCharactersMax` characters. */
  readonly error: string;
}

/** Slots that an agent requests under a handle of its own. */
export interface SlotLease {
  readonly agent: AgentId;
  readonly incarnation: Incarnation;
  readonly handle: SlotHandle;
  /** One slot per mention, in name order. */
  readonly resources: readonly ResourceName[];
  readonly weightThousandths: number;
  /** The line of work within the agent that acquires; absent when the agent as a whole does. */
  readonly holder?: string;
  /** Queue of its own within the agent, for L; absent: the agent's. */
  readonly as?: string;
  /** What for, for people; at most `limits.slotLabelCharactersMax` characters. */
  readonly label?: string;
  /** Whose budget is charged, beside the swarm's. */
  readonly project?: ProjectId;
  readonly user?: UserId;
  /** Expected tokens, reserved from the grant to the release; absent: none. */
  readonly tokens?: number;
  /** Longest time without a touch, from the grant on, ms; absent: no such limit. */
  readonly idleTimeoutMs?: number;
}

/** The optional terms of a request for slots. */
export type SlotTerms = Pick<
  SlotLease,
  "holder" | "as" | "label" | "project" | "user" | "tokens" | "idleTimeoutMs"
>;

/** Tokens that a holder reports. */
export interface SlotUse {
  readonly tokens: number;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** The work was cut off: more may have been used. */
  readonly partial?: true;
}

export type Event =
  // leadership
  | {
      readonly type: "TermStarted";
      readonly term: Term;
      readonly leader: string;
      /**
       * Hash of the record that opened the term's first segment. After a loss two terms may share a number, but never a
       * hash.
       */
      readonly opened: string;
      /** T: a standby campaigns only after at least so much silence, ms. */
      readonly timeoutMs: number;
    }
  | { readonly type: "TermRenewed" }
  // tasks
  | { readonly type: "TaskSubmitted"; readonly task: TaskSpec; readonly hash: string }
  /** A task that had ended without completing is live again: its next round begins. */
  | {
      readonly type: "TaskRetried";
      /** As submitted, payload included, without its times: nothing depends on trimmed batches. */
      readonly task: TaskSpec;
      /** Hash of the content as first submitted. */
      readonly hash: string;
      /** The round that begins, from 2. */
      readonly round: number;
    }
  | ({ readonly type: "TaskReleased" } & TaskRef)
  /** A waiting task may not start before `notBefore`, whatever it waited for until now; a past instant: it is due. */
  | ({ readonly type: "TaskRescheduled"; readonly notBefore: Instant } & TaskRef)
  | {
      readonly type: "TaskAssigned";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly attempt: AttemptNumber;
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly number: AssignmentNumber;
      readonly token: Token;
      /** The cheaper kind that the task runs as, where a budget in mode `downgrade` is used up. */
      readonly runsAs?: Kind;
      /** The cheaper agent type: only agents of this type were eligible. */
      readonly cheaperType?: string;
      /**
       * The estimate, reserved in the budgets until the attempt's end. Absent where no budget was checked: then the
       * state's estimate at that moment holds.
       */
      readonly tokensReserved?: number;
      readonly receipt: Receipt;
    }
  | {
      readonly type: "TaskCompleted";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly attempt: AttemptNumber;
      readonly agent: AgentId;
      /** Absent where the project journals results as hash. */
      readonly result?: string;
      /** Present if and only if `result` is absent. */
      readonly resultDigest?: ResultDigest;
      readonly encoding?: Encoding;
      readonly latencyMs: number;
      readonly tokens?: number;
    }
  /** The attempt ended without success; the task stays live: queued, or delayed until `retryAt`. */
  | {
      readonly type: "AttemptFailed";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly attempt: AttemptNumber;
      readonly agent: AgentId;
      readonly failure: AttemptFailure;
      readonly latencyMs: number;
      /** As reported; a revoked attempt's tokens come with its release. */
      readonly tokens?: number;
      readonly retryAt?: Instant;
      /** The refusal that the agent reported; with the classes `infrastructure` and `refused` only. */
      readonly refusal?: Refusal;
      /** The agent was asked to stop and its capacity stays occupied until it confirms (`AttemptReleased`). */
      readonly revoked?: true;
    }
  /** Ended by the handler's verdict: the input is invalid. */
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
      readonly refusal?: Refusal;
      readonly revoked?: true;
    }
  /** Ended by request or by its deadline; an open attempt is revoked and occupies capacity until released. */
  | ({ readonly type: "TaskCancelled"; readonly reason: CancelReason } & TaskRef)
  | ({ readonly type: "TaskExpired" } & TaskRef)
  /** A revoked attempt no longer occupies its agent's capacity. */
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
  /** A lost attempt's report came after all: its tokens are charged, once. */
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
  /** More is spent and reserved than the budget holds; recorded at most once per window. */
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
      readonly labels?: Labels;
      readonly maxConcurrent: number;
      readonly prefetch?: number;
    }
  /** Every assignment up to `upTo` has reached the agent: its attempts are running. */
  | { readonly type: "AssignmentsConfirmed"; readonly agent: AgentId; readonly upTo: AssignmentNumber }
  /**
   * The agent has seen assignments up to `upTo` that the journal does not hold: the journal has lost its end. Their
   * numbers are skipped.
   */
  | { readonly type: "AgentFoundAhead"; readonly agent: AgentId; readonly upTo: AssignmentNumber }
  /** Follows the closing of all the agent's attempts. `fenced`: a later join of the same id replaced the session. */
  | {
      readonly type: "AgentLeft";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly reason: LeaveReason;
    }
  | { readonly type: "AgentDrained"; readonly agent: AgentId }
  | { readonly type: "AgentUndrained"; readonly agent: AgentId }
  /** Assignments to the agent do not arrive though the agent is alive: it gets nothing new. */
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
  // holds
  /**
   * An agent, all agents of a type, or a resource is on hold: no assignment and no grant of slots until `until`. Also
   * renews or changes a hold.
   */
  | {
      readonly type: "HoldPlaced";
      readonly on: HoldScope;
      /** Name of the agent, the type or the resource. */
      readonly name: string;
      readonly until: Instant;
      readonly by: HoldBasis;
      /** Successive holds whose time is a guess, from 1; absent where a time was given. */
      readonly step?: number;
      /** The agent whose report placed the hold. */
      readonly reportedBy?: AgentId;
      /** For people: the error of the refused attempt. */
      readonly reason?: string;
      /** The slot lease whose refusal was reported after its end. Absent: an event that follows reports the refusal. */
      readonly handle?: SlotHandle;
    }
  /** The hold's time is over: one probe may run. */
  | { readonly type: "HoldElapsed"; readonly on: HoldScope; readonly name: string }
  | {
      readonly type: "HoldEnded";
      readonly on: HoldScope;
      readonly name: string;
      readonly reason: HoldEndReason;
    }
  // operators' settings, always complete: an event replaces the settings before
  /** `alphaSaid`: tuned values of α restart from the policy's, except at resources with an α of their own. */
  | { readonly type: "PolicyChanged"; readonly policy: Policy; readonly alphaSaid?: true }
  | { readonly type: "ProjectConfigured"; readonly project: ProjectId; readonly settings: ProjectSettings }
  /** The project has no settings any more; it had no tasks. Where projects must be declared, it no longer exists. */
  | { readonly type: "ProjectRemoved"; readonly project: ProjectId }
  | { readonly type: "KindConfigured"; readonly kind: Kind; readonly settings: KindSettings }
  | {
      readonly type: "ResourceConfigured";
      readonly resource: ResourceName;
      readonly settings: ResourceSettings;
      /** A tuned α restarts from the configured value. */
      readonly alphaSaid?: true;
    }
  /** The resource had no holders and no waiters. */
  | { readonly type: "ResourceRemoved"; readonly resource: ResourceName }
  /** For one pair of type and window: other windows of the type stay. */
  | { readonly type: "RateConfigured"; readonly agentType: string; readonly settings: RateSettings }
  | { readonly type: "RateRemoved"; readonly agentType: string; readonly window: RateWindow }
  /** Sessions of the group beyond the grant end after this event. */
  | { readonly type: "GrantConfigured"; readonly group: GroupId; readonly grant: Grant }
  | { readonly type: "GrantRemoved"; readonly group: GroupId }
  /** No task of the project is assigned until it is resumed; running attempts continue. */
  | { readonly type: "ProjectPaused"; readonly project: ProjectId }
  | { readonly type: "ProjectResumed"; readonly project: ProjectId }
  | { readonly type: "SwarmPaused" }
  | { readonly type: "SwarmResumed" }
  // slots of resources
  /**
   * Not enough slots are free, or another request comes first: the request waits until all its slots are granted at
   * once.
   */
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
      readonly project?: ProjectId;
      /** Tokens charged to the budgets and rates; absent: none. */
      readonly tokens?: number;
      /** As the holder reported. */
      readonly usage?: SlotUse;
      /** The work was refused, as the holder reported. The holds that follow are placed before, in the same batch. */
      readonly refusal?: SlotRefusal;
      /** The work was cut off before the provider answered: nothing is known about a refusal. */
      readonly unanswered?: true;
    }
  /** The idle time of a held slot lease starts anew. */
  | {
      readonly type: "SlotTouched";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly handle: SlotHandle;
    }
  /** The refusal of slots, without a time, was reported after their end, and placed no hold. */
  | {
      readonly type: "SlotRefused";
      readonly agent: AgentId;
      readonly handle: SlotHandle;
      readonly resource: ResourceName;
      /** For people: the provider's words. */
      readonly reason?: string;
    }
  /** The report of a lost slot lease came after all: the tokens not charged before are charged, once. */
  | {
      readonly type: "SlotCharged";
      readonly agent: AgentId;
      readonly handle: SlotHandle;
      readonly project?: ProjectId;
      readonly tokens: number;
      readonly usage?: SlotUse;
    }
  | {
      readonly type: "SlotWaitEnded";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly handles: readonly SlotHandle[];
      readonly reason: SlotWaitEndReason;
    }
  /** α of one resource was tuned automatically, at the release before. */
  | ({ readonly type: "AlphaTuned"; readonly resource: ResourceName; readonly tick: number } & AlphaChange)
  // admission
  /** One summary of refusals per second, so that refusals are recorded without filling the journal. */
  | {
      readonly type: "TasksRefused";
      readonly project: ProjectId;
      readonly reason: RefusalReason;
      readonly count: number;
    }
  // the journal itself
  /** Batches before `firstIdx` can no longer be read: they are deleted once this event is committed, or are lost. */
  | {
      readonly type: "AuditTrimmed";
      readonly firstIdx: BatchIndex;
      readonly reason: TrimReason;
      /** Batches of earlier terms that an operator gave up: the log continues before them. */
      readonly givenUp?: GivenUpBatches;
    };

/** The first and the last of adjacent batches; `to` is undefined if no readable record names a later batch. */
export interface GivenUpBatches {
  readonly from: BatchIndex;
  readonly to?: BatchIndex;
}

/**
 * Why batches can no longer be read.
 *
 * - `retention`: beyond the age or size to keep.
 * - `storage-short`: too little storage to keep as much.
 * - `gap`: the journal lost records within.
 * - `tail-lost`: the journal lost its end, and no coordinator held the end any more.
 * - `lost`: the journal lost batches or whole segments.
 */
export type TrimReason = "retention" | "storage-short" | "gap" | "tail-lost" | "lost";

/** The bounds on waiting tasks. */
export type QueueBound =
  | "project-queue-full"
  | "swarm-queue-full"
  | "too-many-projects"
  | "too-many-users"
  | "too-many-needs"
  | "user-queue-full";
/** A budget in mode `reject` had too little left. */
export type BudgetBound = "project-budget-used-up" | "swarm-budget-used-up";
export type RefusalReason = QueueBound | BudgetBound | "inbox-full" | "journal-full";

export type EventType = Event["type"];

/** The event of one type: `EventOf<"TaskAssigned">`. */
export type EventOf<Type extends EventType> = Extract<Event, { type: Type }>;

/** A task as submitted, whose payload may be left out. */
export type BareTaskSpec = Omit<TaskSpec, "payload"> & { readonly payload?: string };

type WithTask = "TaskSubmitted" | "TaskRetried";

/**
 * An event whose payload and result may be left out: what a stream of events gives unless `contents` is asked for.
 * Every `Event` is one.
 */
export type BareEvent =
  | Exclude<Event, { readonly type: WithTask }>
  | (Omit<EventOf<"TaskSubmitted">, "task"> & { readonly task: BareTaskSpec })
  | (Omit<EventOf<"TaskRetried">, "task"> & { readonly task: BareTaskSpec });
