// Requests to the coordinator, stamped with all inputs outside the state (ids, jitter). Commands come from the wire
// (already checked by protocol/), from operators, and from the shell's own timers. `decide` turns each into events and
// a reply; commands are never journaled.

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
  Term,
  Token,
  UserId,
} from "../ids.ts";
import type { EndedTaskState } from "../state/ended-task.ts";
import type { EstimateSource } from "../state/estimate.ts";
import type {
  BudgetBound,
  Encoding,
  GivenUpBatches,
  QueueBound,
  RefusalReason,
  ResultDigest,
  SlotReleaseReason,
  SlotTerms,
  SlotUse,
  SlotWaitEndReason,
  TaskSpec,
  TrimReason,
} from "../state/event.ts";
import type { Grant, GrantField } from "../state/grant.ts";
import type { HoldTarget, Refusal, SlotRefusal } from "../state/hold.ts";
import type { BudgetSettings, RateWindow } from "../state/settings.ts";
import type { TaskState } from "../state/state.ts";
import type { KindPatch, PolicyPatch, ProjectPatch, RatePatch, ResourcePatch } from "./settings-patch.ts";

export interface HeldAttempt {
  readonly project: ProjectId;
  readonly task: TaskId;
  readonly attempt: AttemptNumber;
}

/** The slot leases that an agent's heartbeat lists. */
export interface ListedSlots {
  readonly held: readonly SlotHandle[];
  readonly waiting: readonly SlotHandle[];
}

export interface CompletedOutcome {
  readonly kind: "completed";
  readonly result: string;
  /** Required where the project journals results as hash; ignored elsewhere. */
  readonly digest?: ResultDigest;
  readonly encoding?: Encoding;
  readonly tokens?: number;
}

/** A refusal as an agent reports it: for a time from now, until an instant, or without a time. */
export interface ReportedRefusal extends Refusal {
  /** ms; takes precedence over `until`. */
  readonly forMs?: number;
}

/** A refusal as the holder of slots reports it: for a time from now, until an instant, or without a time. */
export interface ReportedSlotRefusal extends SlotRefusal {
  readonly forMs?: number;
}

/** An agent's report of an attempt's end. */
export type ReportedOutcome =
  | CompletedOutcome
  | { readonly kind: "failed" | "invalid"; readonly error: string; readonly tokens?: number }
  | {
      readonly kind: "infrastructure";
      readonly error: string;
      readonly tokens?: number;
      /** Absent: the report says nothing about what the agent uses. */
      readonly refusal?: ReportedRefusal;
    }
  /** The attempt was stopped before its end: on the leader's order, or of the agent's own accord. */
  | { readonly kind: "revoked"; readonly tokens?: number };

export type Command =
  | {
      readonly type: "StartTerm";
      readonly term: Term;
      readonly leader: string;
      /** Hash of the record that opened the term's first segment. */
      readonly opened: string;
      /** T of this term, ms, positive. */
      readonly timeoutMs: number;
    }
  | { readonly type: "RenewTerm" }
  | {
      readonly type: "SubmitTask";
      readonly task: TaskSpec;
      readonly hash: string;
      readonly failFast?: boolean;
    }
  /** Idempotent: ends only `round`. A later round, opened by a retry meanwhile, continues. */
  | {
      readonly type: "CancelTask";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly round: number;
    }
  /** Idempotent: opens `round`, once. */
  | {
      readonly type: "RetryTask";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly round: number;
      /** The task to run: the journal's version with its new times. */
      readonly spec: TaskSpec;
    }
  /** Idempotent: frees only `attempt`. A later attempt continues. */
  | {
      readonly type: "RevokeAttempt";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly attempt: AttemptNumber;
    }
  /** Idempotent while the task waits or has started because of it. */
  | {
      readonly type: "RescheduleTask";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly round: number;
      readonly notBefore: Instant;
    }
  | {
      readonly type: "JoinAgent";
      readonly agent: AgentId;
      /** Absent: none. */
      readonly group?: GroupId;
      readonly incarnation: Incarnation;
      /** The agent's newest session before, as far as the agent knows. */
      readonly after?: Incarnation;
      readonly kinds: readonly Kind[];
      readonly role?: string;
      readonly agentType?: string;
      readonly labels?: Readonly<Record<string, string>>;
      readonly maxConcurrent: number;
      readonly prefetch?: number;
      readonly held: readonly HeldAttempt[];
      /** Highest assignment number with none missing; 0 when none arrived. */
      readonly seen: AssignmentNumber;
    }
  | { readonly type: "LeaveAgent"; readonly agent: AgentId; readonly incarnation: Incarnation }
  /** A heartbeat that differs from the state; no other heartbeats reach `decide`. */
  | {
      readonly type: "ReconcileAgent";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly held: readonly HeldAttempt[];
      readonly seen: AssignmentNumber;
      /** The agent accepts no new tasks, by its own decision. */
      readonly draining?: boolean;
      /** New maximum of concurrent attempts; absent: unchanged. */
      readonly maxConcurrent?: number;
      /** Absent means none. */
      readonly slots?: ListedSlots;
    }
  | {
      readonly type: "ReportResult";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly attempt: AttemptNumber;
      readonly token: Token;
      readonly outcome: ReportedOutcome;
      /** [0, 1), spreads the retry's back-off. */
      readonly jitter: number;
    }
  | ({
      readonly type: "AcquireSlots";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly handle: SlotHandle;
      /** One slot per mention, in any order; 1 to `limits.slotsPerLeaseMax`. */
      readonly resources: readonly ResourceName[];
      /** ≥ 1,000 */
      readonly weightThousandths: number;
      /** Maximum wait, ≥ 0, from the first decision on; absent means for ever. */
      readonly timeoutMs?: number;
    } & SlotTerms)
  /** Releases slots, or ends the wait for them. Charges the usage, also where the slots were lost before. */
  | {
      readonly type: "ReleaseSlots";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly handle: SlotHandle;
      readonly usage?: SlotUse;
      /** The work under the slots was refused: the resources go on hold before the slots are free. */
      readonly refusal?: ReportedSlotRefusal;
      /** Without a refusal: the provider has not answered, so the release is no success of the resources. */
      readonly unanswered?: true;
    }
  /** Starts the idle time of held slots anew. */
  | {
      readonly type: "TouchSlots";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly handle: SlotHandle;
    }
  | { readonly type: "DrainAgent"; readonly agent: AgentId }
  | { readonly type: "UndrainAgent"; readonly agent: AgentId }
  /** The shell heard nothing from this incarnation for H. */
  | { readonly type: "LapseAgent"; readonly agent: AgentId; readonly incarnation: Incarnation }
  | { readonly type: "MarkUnresponsive"; readonly agent: AgentId; readonly incarnation: Incarnation }
  /** The shell saw no progress from this attempt for its stall limit. */
  | {
      readonly type: "StallAttempt";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly attempt: AttemptNumber;
      readonly jitter: number;
    }
  /** All work due at this instant: releases, deadlines, time-outs, agents to forget. */
  | { readonly type: "Tick"; readonly jitter: number }
  | {
      readonly type: "SummarizeRefusals";
      readonly project: ProjectId;
      readonly reason: RefusalReason;
      readonly count: number;
    }
  /** The audit's beginning never moves back. Idempotent without `givenUp`. */
  | {
      readonly type: "TrimAudit";
      readonly firstIdx: BatchIndex;
      readonly reason: TrimReason;
      readonly givenUp?: GivenUpBatches;
    }
  | SettingsCommand;

/** An operator's settings. */
export type SettingsCommand =
  | { readonly type: "SetPolicy"; readonly patch: PolicyPatch }
  | {
      readonly type: "SetProject";
      readonly project: ProjectId;
      readonly patch: ProjectPatch;
      /** Asked for by the project's owner, who may not declare a project. */
      readonly byOwner?: true;
    }
  | { readonly type: "RemoveProject"; readonly project: ProjectId }
  | { readonly type: "SetKind"; readonly kind: Kind; readonly patch: KindPatch }
  | { readonly type: "SetResource"; readonly resource: ResourceName; readonly patch: ResourcePatch }
  | { readonly type: "RemoveResource"; readonly resource: ResourceName }
  | { readonly type: "SetRate"; readonly agentType: string; readonly patch: RatePatch }
  /** The rate of one window; absent: the rates of all windows. */
  | { readonly type: "RemoveRate"; readonly agentType: string; readonly window?: RateWindow }
  /** Replaces the grant of a group. Sessions of the group beyond the grant end. */
  | { readonly type: "SetGrant"; readonly group: GroupId; readonly grant: Grant }
  | { readonly type: "RemoveGrant"; readonly group: GroupId }
  /** Stops or resumes assignments, of one project or of all; running attempts continue. */
  | { readonly type: "Pause" | "Resume"; readonly project?: ProjectId }
  /** Places a hold, or changes its end: for a time from now, or until an instant; one of the two. */
  | ({
      readonly type: "PlaceHold";
      readonly forMs?: number;
      readonly until?: Instant;
      /** Keeps a hold in force that ends later. */
      readonly lengthen?: boolean;
    } & HoldTarget)
  | ({ readonly type: "EndHold" } & HoldTarget);

/** The command of one type: `CommandOf<"SetPolicy">`. */
export type CommandOf<Type extends Command["type"]> = Extract<Command, { type: Type }>;

/** Replies of `decide`, one member per type of request; `none` for the shell's own commands. */
export type Reply =
  | { readonly kind: "none" }
  | {
      readonly kind: "accepted";
      readonly task: TaskId;
      readonly duplicate: boolean;
      readonly warnings: readonly SubmitWarning[];
    }
  | QueueRefusal
  | BudgetRefusal
  /** The task could never be assigned: its estimate is above a hard budget. */
  | {
      readonly kind: "over-budget";
      readonly reason: "project-budget" | "global-budget";
      readonly tokens: number;
      readonly source: EstimateSource;
      readonly tokensMax: number;
    }
  /** The slots could never be granted: their tokens are above a rate. */
  | {
      readonly kind: "over-rate";
      readonly agentType: string;
      readonly window: RateWindow;
      readonly tokens: number;
      readonly tokensMax: number;
    }
  /** The project does not permit its submitters this user, priority or weight. */
  | {
      readonly kind: "beyond-project";
      readonly project: ProjectId;
      readonly field: "user" | "priority" | "weight";
      /** What the project permits. */
      readonly permitted: string;
    }
  | ({ readonly kind: "no-capable-agent" } & Omit<SubmitWarning, "code">)
  | { readonly kind: "conflict"; readonly task: TaskId }
  | { readonly kind: "unknown-task"; readonly task: TaskId }
  /** The state in which the round ended, now or before. */
  | { readonly kind: "cancelled"; readonly task: TaskId; readonly state: EndedTaskState }
  /** The task is in another round than requested: nothing was changed. */
  | { readonly kind: "other-round"; readonly task: TaskId; readonly round: number; readonly wanted: number }
  /** The round was opened, now or before. */
  | { readonly kind: "retried"; readonly task: TaskId; readonly round: number }
  /** The task has completed, is live, or is not in the round before: nothing was changed. */
  | {
      readonly kind: "not-retried";
      readonly task: TaskId;
      readonly state: TaskState;
      readonly round: number;
      readonly wanted: number;
    }
  /** The attempt is closed: revoked now, or ended before by any means. `state` is the task's state afterwards. */
  | {
      readonly kind: "revoked";
      readonly task: TaskId;
      readonly attempt: AttemptNumber;
      readonly isRevoked: boolean;
      readonly state: TaskState;
    }
  /** The task has had fewer attempts than the named one. */
  | {
      readonly kind: "no-such-attempt";
      readonly task: TaskId;
      readonly attempts: number;
      readonly wanted: AttemptNumber;
    }
  | {
      readonly kind: "rescheduled";
      readonly task: TaskId;
      readonly round: number;
      readonly notBefore: Instant;
      readonly state: TaskState;
    }
  /** Only a waiting task can be rescheduled: nothing was changed. */
  | { readonly kind: "not-waiting"; readonly task: TaskId; readonly state: TaskState }
  /** The task would expire before it may start: nothing was changed. */
  | {
      readonly kind: "after-deadline";
      readonly task: TaskId;
      readonly notBefore: Instant;
      readonly deadline: Instant;
    }
  | { readonly kind: "joined"; readonly unknownAttempts: readonly HeldAttempt[]; readonly resumed: boolean }
  /** Attempts that the agent wrongly holds: the reply asks the agent to stop them. */
  | {
      readonly kind: "reconciled";
      readonly unknown: readonly HeldAttempt[];
      readonly slots?: SlotCorrections;
    }
  /** Carried out in part: the shell decides the same command again, in the next batch. */
  | { readonly kind: "again" }
  | { readonly kind: "ok" }
  /** The attempt was closed before, by other means: the agent forgets the attempt. Final. */
  | { readonly kind: "stale" }
  /** The attempt is unknown, or its task was forgotten. Final. */
  | { readonly kind: "gone" }
  | { readonly kind: "stale-token" }
  | { readonly kind: "agent-not-online"; readonly agent: AgentId }
  /** No agent has this id. */
  | { readonly kind: "unknown-agent"; readonly agent: string; readonly nearMisses: readonly string[] }
  /** The session of a request for slots left, lapsed or was fenced. */
  | { readonly kind: "session-over"; readonly agent: AgentId }
  /** The join does not name the agent's newest session. */
  | { readonly kind: "not-newest"; readonly agent: AgentId; readonly newest: Incarnation }
  /** A later start under the same id has ended this session. */
  | { readonly kind: "fenced"; readonly agent: AgentId }
  /** An agent of this id is online in another group. */
  | { readonly kind: "other-group"; readonly agent: AgentId }
  /** The join, or the request for slots, exceeds the grant of the agent's group. */
  | {
      readonly kind: "beyond-grant";
      readonly group: GroupId;
      readonly field: GrantField;
      /** Absent: the group has no grant, or the agent has no type. */
      readonly value?: string;
    }
  | { readonly kind: "too-many-agents"; readonly retryAfterMs: number }
  /** The complete settings after the change; null when none remain. */
  | {
      readonly kind: "set";
      readonly settings: object | null;
      readonly changed: boolean;
      /** Effects that an operator may wrongly expect; absent without warnings. */
      readonly warnings?: readonly string[];
    }
  /** The project is not removed: `live` tasks have not ended. */
  | { readonly kind: "project-in-use"; readonly project: ProjectId; readonly live: number }
  /** The resource is not removed: `inUse` slots are held, and `waiting` requests wait. */
  | {
      readonly kind: "resource-in-use";
      readonly resource: ResourceName;
      readonly inUse: number;
      readonly waiting: number;
    }
  | { readonly kind: "invalid-setting"; readonly field: string; readonly sentence: string }
  /** Projects must be declared, and this project is not. */
  | { readonly kind: "unknown-project"; readonly project: ProjectId }
  // slot leases
  | { readonly kind: "slot-granted" | "slot-awaited"; readonly handle: SlotHandle }
  /** The slot lease ended before; further requests and releases do not change the ending. */
  | {
      readonly kind: "slot-ended";
      readonly handle: SlotHandle;
      readonly reason: SlotReleaseReason | SlotWaitEndReason;
    }
  /** The resource is on hold for longer than the request may wait. */
  | { readonly kind: "slot-on-hold"; readonly resource: ResourceName; readonly until: Instant }
  /** Released now (`held`), or the wait ended now (`waiting`). */
  | { readonly kind: "slot-released"; readonly handle: SlotHandle; readonly was: "held" | "waiting" }
  | { readonly kind: "unknown-handle"; readonly handle: SlotHandle }
  /** The handle stands for another request: other resources, weight, holder or terms. */
  | { readonly kind: "handle-in-use"; readonly handle: SlotHandle }
  | {
      readonly kind: "unknown-resource";
      readonly resource: ResourceName;
      readonly nearMisses: readonly string[];
    }
  | {
      readonly kind: "above-capacity";
      readonly resource: ResourceName;
      readonly wanted: number;
      readonly slots: number;
    }
  /**
   * The holder has slots of `held`, which is later in name order, or is the same resource where a second wait is
   * forbidden.
   */
  | { readonly kind: "out-of-order"; readonly resource: ResourceName; readonly held: ResourceName }
  | {
      readonly kind: "too-many-waiters";
      readonly resource: ResourceName;
      readonly maxWaiters: number;
      readonly retryAfterMs: number;
    }
  | { readonly kind: "too-many-slot-leases"; readonly retryAfterMs: number }
  /** No further resource or project can be made: nothing was changed. */
  | {
      readonly kind: "table-full";
      readonly of: "resources" | "projects";
      readonly name: string;
      readonly max: number;
    };

/** A bound on waiting tasks leaves no room for one more task. */
export type QueueRefusal = {
  readonly kind: "refused";
  readonly reason: QueueBound;
  readonly project: ProjectId;
  readonly user: UserId;
  /**
   * Waiting tasks of the swarm, the project, or the user in the project. For `too-many-users`: users of the project
   * with live tasks. For `too-many-projects`: projects that cannot be evicted. For `too-many-needs`: sets
   * of kind, role and needs of live tasks.
   */
  readonly has: number;
  /** The present maximum of `has`. */
  readonly max: number;
  readonly retryAfterMs: number;
};

/** A budget in mode `reject` has too little left for the task. */
export interface BudgetRefusal {
  readonly kind: "budget-exceeded";
  readonly reason: BudgetBound;
  /** Project of the task, or of the request for slots, if it names one. */
  readonly project: ProjectId | undefined;
  readonly budget: BudgetSettings;
  /** Tokens in the budget's window. */
  readonly spent: number;
  /** Reserved by open attempts. */
  readonly reserved: number;
  /** Estimate of the task. */
  readonly tokens: number;
  readonly source: EstimateSource;
  /**
   * Time until enough tokens have left the window, if nothing else is spent. Where open attempts reserve the rest, only
   * their ends make room: then `limits.budgetRetryMs`, and `isHeld`.
   */
  readonly retryAfterMs: number;
  readonly isHeld: boolean;
}

/** Corrections of an agent's false beliefs about its slot leases. */
export interface SlotCorrections {
  /** The agent waits for these, and they were granted. */
  readonly granted: readonly SlotHandle[];
  /** The agent waits for these, and the wait has ended, or is unknown to the journal (`unknown`). */
  readonly ended: readonly {
    readonly handle: SlotHandle;
    readonly reason: SlotReleaseReason | SlotWaitEndReason | "unknown";
  }[];
  /** The agent holds these wrongly. */
  readonly revoked: readonly SlotHandle[];
}

/** No agent serves the kind; or agents do, and none of them has the labels. */
export interface SubmitWarning {
  readonly code: "no-agent-serves-kind" | "no-agent-has-labels";
  readonly taskKind: Kind;
  /** Similar kinds, or similar labels as `gpu=h100`. */
  readonly nearMisses: readonly string[];
  /** With `no-agent-has-labels`: the needs that no agent meets, alone or together. */
  readonly needs?: string;
}
