// What is asked of the coordinator, stamped with everything that is not in the state (ids, jitter).
// Commands come from the wire (already checked by protocol/), from operators, and from the shell's own
// timers. `decide` answers each with events and a reply; commands are never journaled.

import type {
  AgentId,
  AssignmentNumber,
  AttemptNumber,
  BatchIndex,
  GroupId,
  Incarnation,
  Kind,
  ProjectId,
  ResourceName,
  SlotHandle,
  TaskId,
  Term,
  Token,
  UserId,
} from "../ids.ts";
import type { EstimateSource } from "../state/estimate.ts";
import type {
  BudgetBound,
  Encoding,
  QueueBound,
  RefusalReason,
  SlotReleaseReason,
  SlotWaitEndReason,
  TaskSpec,
  TrimReason,
} from "../state/event.ts";
import type { BudgetSettings, RateWindow } from "../state/settings.ts";
import type { EndedTaskState, TaskState } from "../state/state.ts";
import type { KindPatch, PolicyPatch, ProjectPatch, RatePatch, ResourcePatch } from "./settings-patch.ts";

/** One attempt as an agent names it. */
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

/** What an agent reports of an attempt's end. */
export type ReportedOutcome =
  | {
      readonly kind: "completed";
      readonly result: string;
      readonly encoding?: Encoding;
      readonly tokens?: number;
    }
  | {
      readonly kind: "failed" | "infrastructure" | "invalid";
      readonly error: string;
      readonly tokens?: number;
    }
  /** It was stopped before it ended: by the leader's order, or else of the agent's own accord. */
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
  /** Idempotent: only `round` is ended. A later round, which a retry opened meanwhile, goes on. */
  | {
      readonly type: "CancelTask";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly round: number;
    }
  /** Idempotent: `round` is the one to be opened, and is opened once. */
  | {
      readonly type: "RetryTask";
      readonly project: ProjectId;
      readonly task: TaskId;
      readonly round: number;
      /** As it is to run: what the journal has of it, with its new times. */
      readonly spec: TaskSpec;
    }
  | {
      readonly type: "JoinAgent";
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
      readonly held: readonly HeldAttempt[];
      /** Highest assignment number with none missing; 0 when none arrived. */
      readonly seen: AssignmentNumber;
    }
  | { readonly type: "LeaveAgent"; readonly agent: AgentId; readonly incarnation: Incarnation }
  /** A heartbeat that differs from what the state says: only these reach `decide`. */
  | {
      readonly type: "ReconcileAgent";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly held: readonly HeldAttempt[];
      readonly seen: AssignmentNumber;
      /** The agent accepts no new tasks, by its own decision. */
      readonly draining?: boolean;
      /** As many as it runs at once now; absent: as before. */
      readonly maxConcurrent?: number;
      /** Absent is none. */
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
  | {
      readonly type: "AcquireSlots";
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly handle: SlotHandle;
      /** One slot for each mention, in any order; 1 to `limits.slotsPerLeaseMax`. */
      readonly resources: readonly ResourceName[];
      /** ≥ 1,000 */
      readonly weightThousandths: number;
      readonly holder?: string;
      /** Longest it waits, ≥ 0; absent is for ever. Counted from when it was first decided. */
      readonly timeoutMs?: number;
    }
  /** Gives slots back, or gives up waiting for them. */
  | {
      readonly type: "ReleaseSlots";
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
  /** Whatever is due at this instant: releases, deadlines, time-outs, agents to forget. */
  | { readonly type: "Tick"; readonly jitter: number }
  | {
      readonly type: "SummarizeRefusals";
      readonly project: ProjectId;
      readonly reason: RefusalReason;
      readonly count: number;
    }
  /** Idempotent: the audit's beginning only moves on. */
  | { readonly type: "TrimAudit"; readonly firstIdx: BatchIndex; readonly reason: TrimReason }
  | SettingsCommand;

/** What an operator sets. */
export type SettingsCommand =
  | { readonly type: "SetPolicy"; readonly patch: PolicyPatch }
  | { readonly type: "SetProject"; readonly project: ProjectId; readonly patch: ProjectPatch }
  | { readonly type: "RemoveProject"; readonly project: ProjectId }
  | { readonly type: "SetKind"; readonly kind: Kind; readonly patch: KindPatch }
  | { readonly type: "SetResource"; readonly resource: ResourceName; readonly patch: ResourcePatch }
  | { readonly type: "RemoveResource"; readonly resource: ResourceName }
  | { readonly type: "SetRate"; readonly agentType: string; readonly patch: RatePatch }
  /** Of one window; absent: of all that are set. */
  | { readonly type: "RemoveRate"; readonly agentType: string; readonly window?: RateWindow }
  /** Nothing is assigned, of one project or at all; what runs goes on. */
  | { readonly type: "Pause" | "Resume"; readonly project?: ProjectId };

/** One command of one type: `CommandOf<"SetPolicy">`. */
export type CommandOf<Type extends Command["type"]> = Extract<Command, { type: Type }>;

/** Answers of `decide`, one member a command type that has an asker; `none` for the shell's own. */
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
  /** It could never be assigned: its estimate is above a hard budget. */
  | {
      readonly kind: "over-budget";
      readonly reason: "project-budget" | "global-budget";
      readonly tokens: number;
      readonly source: EstimateSource;
      readonly tokensMax: number;
    }
  | { readonly kind: "no-capable-agent"; readonly taskKind: Kind; readonly nearMisses: readonly Kind[] }
  | { readonly kind: "conflict"; readonly task: TaskId }
  | { readonly kind: "unknown-task"; readonly task: TaskId }
  /** How the round ended: cancelled, now or before, or otherwise before. */
  | { readonly kind: "cancelled"; readonly task: TaskId; readonly state: EndedTaskState }
  /** The task is in another round than the one to cancel: nothing was changed. */
  | { readonly kind: "other-round"; readonly task: TaskId; readonly round: number; readonly wanted: number }
  /** Its round was opened, now or before. */
  | { readonly kind: "retried"; readonly task: TaskId; readonly round: number }
  /** It has completed, lives, or is not in the round before: nothing was changed. */
  | {
      readonly kind: "not-retried";
      readonly task: TaskId;
      readonly state: TaskState;
      readonly round: number;
      readonly wanted: number;
    }
  | { readonly kind: "joined"; readonly unknownAttempts: readonly HeldAttempt[]; readonly resumed: boolean }
  /** Attempts the agent holds and should not: it is told to stop them. */
  | {
      readonly kind: "reconciled";
      readonly unknown: readonly HeldAttempt[];
      readonly slots?: SlotCorrections;
    }
  /** Carried out in part: the same command is to be decided again, in the next batch. */
  | { readonly kind: "again" }
  | { readonly kind: "ok" }
  /** The attempt was closed before, by other means: the agent forgets it. Final. */
  | { readonly kind: "stale" }
  /** Nobody knows this attempt any more. Final. */
  | { readonly kind: "gone" }
  | { readonly kind: "stale-token" }
  | { readonly kind: "unknown-agent"; readonly agent: AgentId }
  /** The incarnation left, lapsed or was fenced: a life does not begin twice. */
  | { readonly kind: "life-over"; readonly agent: AgentId }
  /** A later start under the same id has put an end to this life. */
  | { readonly kind: "fenced"; readonly agent: AgentId }
  /** An agent of this id is online in another group. */
  | { readonly kind: "other-group"; readonly agent: AgentId }
  | { readonly kind: "too-many-agents"; readonly retryAfterMs: number }
  /** The complete settings that hold now; null where none do any more. */
  | {
      readonly kind: "set";
      readonly settings: object | null;
      readonly changed: boolean;
      /** What it will not do, though one may think so; absent when there is nothing to say. */
      readonly warnings?: readonly string[];
    }
  /** It is not removed: so many of its tasks have not ended. */
  | { readonly kind: "project-in-use"; readonly project: ProjectId; readonly live: number }
  /** It is not removed: so many of its slots are held, and so many requests wait for it. */
  | {
      readonly kind: "resource-in-use";
      readonly resource: ResourceName;
      readonly inUse: number;
      readonly waiting: number;
    }
  | { readonly kind: "invalid-setting"; readonly field: string; readonly sentence: string }
  /** Projects must be declared, and this one is not. */
  | { readonly kind: "unknown-project"; readonly project: ProjectId }
  // slot leases
  | { readonly kind: "slot-granted" | "slot-awaited"; readonly handle: SlotHandle }
  /** It ended before; asked for or released again, it stays so. */
  | {
      readonly kind: "slot-ended";
      readonly handle: SlotHandle;
      readonly reason: SlotReleaseReason | SlotWaitEndReason;
    }
  /** Given back now (`held`), or given up now (`waiting`). */
  | { readonly kind: "slot-released"; readonly handle: SlotHandle; readonly was: "held" | "waiting" }
  | { readonly kind: "unknown-handle"; readonly handle: SlotHandle }
  /** The handle stands for other resources, another weight or another holder. */
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
  /** Its holder has slots of `held`, which comes later in name order, or is the same where it must not be. */
  | { readonly kind: "out-of-order"; readonly resource: ResourceName; readonly held: ResourceName }
  | {
      readonly kind: "too-many-waiters";
      readonly resource: ResourceName;
      readonly maxWaiters: number;
      readonly retryAfterMs: number;
    }
  | { readonly kind: "too-many-slot-leases"; readonly retryAfterMs: number };

/** There is no room for one more task: a bound on what waits was hit, and which. */
export type QueueRefusal = {
  readonly kind: "refused";
  readonly reason: QueueBound;
  readonly project: ProjectId;
  readonly user: UserId;
  /** Tasks that wait: the swarm's, the project's, or the user's in it. For `too-many-users` users of the project with
   *  live tasks, for `too-many-projects` projects that are kept. */
  readonly has: number;
  /** The most there may be of these now. */
  readonly max: number;
  readonly retryAfterMs: number;
};

/** A budget in mode `reject` has too little left for the task. */
export interface BudgetRefusal {
  readonly kind: "budget-exceeded";
  readonly reason: BudgetBound;
  readonly project: ProjectId;
  readonly budget: BudgetSettings;
  /** Tokens of its window. */
  readonly spent: number;
  /** Held back for open attempts. */
  readonly reserved: number;
  /** Estimate of the task. */
  readonly tokens: number;
  readonly source: EstimateSource;
  /** Until so much has left the window, if nothing else is spent. Where open attempts hold back the rest, only their
   *  ends make room: then `limits.budgetRetryMs`, and `isHeld`. */
  readonly retryAfterMs: number;
  readonly isHeld: boolean;
}

/** What an agent believes of its slot leases and is not so. */
export interface SlotCorrections {
  /** It waits for them, and they were granted. */
  readonly granted: readonly SlotHandle[];
  /** It waits for them, and the wait has ended, or was never heard of (`unknown`). */
  readonly ended: readonly {
    readonly handle: SlotHandle;
    readonly reason: SlotReleaseReason | SlotWaitEndReason | "unknown";
  }[];
  /** It holds them, and they are not its own. */
  readonly revoked: readonly SlotHandle[];
}

export interface SubmitWarning {
  readonly code: "no-agent-serves-kind";
  readonly taskKind: Kind;
  readonly nearMisses: readonly Kind[];
}
