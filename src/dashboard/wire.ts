// The HTTP interface of the dashboard, as types: what the server answers and what the page sends. The page imports this
// file, so it imports nothing. Not here: the checks of what the page sends (requests.ts), docs/dashboard.md.
//
// Conventions. Instants end in `At`: milliseconds since the Unix epoch, in journal time where the journal knows them.
// Durations end in `Ms`: milliseconds. Shares and rates of success: 0 to 1. Tokens are whole numbers. An absent field
// means "none" or "not known"; no answer contains null except inside the series of `History` and of `Series`.
// Tables are records by id, so that a merge patch can change one row. Every text comes from users or agents unless
// noted: show it as text, never as HTML.
//
//   GET  /                                        the page; also for /tasks, /agents/a1 and its other routes
//   GET  /assets/NAME                             any file of dist/dashboard: app.js, app.css, icon.svg, chunks
//   GET  /api/session                             Session
//   GET  /api/live?view=VIEW&…                    Server-Sent Events; see LiveMessages
//   GET  /api/history?window=15m|6h               History
//   GET  /api/overview                            Overview
//   GET  /api/agents                              Agents
//   GET  /api/agents/ID                           AgentDetail
//   GET  /api/tasks?…TaskQuery                    TaskPage
//   GET  /api/tasks/ID?project=P                  TaskDetail
//   GET  /api/tasks/ID/contents?project=P         TaskContents
//   GET  /api/fairness                            Fairness
//   GET  /api/fairness/past?…PastQuery            FairnessPast
//   GET  /api/resources                           Resources
//   GET  /api/budgets                             Budgets
//   GET  /api/events?…EventQuery                  EventPage
//   GET  /api/system                              System
//   POST /api/actions/VERB                        ActionBodies[VERB] → ActionAnswer; header `x-waggle-token`
//
// Every refusal is an ApiError with the fitting HTTP status. Input: 400; 413 for a body that is too large. Rights: 401
// not signed in, 403 foreign Host or Origin, read-only, forbidden. State: 404 unknown, 409 conflict, 410 gone. Try
// again after the header Retry-After, seconds: 429 backpressure; 503 no leader, no server, too many live views.

export interface ApiError {
  readonly error: {
    /** Stable: `WAGGLE_UNKNOWN_TASK`. */
    readonly code: string;
    /** One or more sentences with the remedy. */
    readonly message: string;
    /** Query parameter, or path of the field in the body, that is wrong. */
    readonly field?: string;
    readonly retryAfterMs?: number;
    /** With `WAGGLE_CONFLICT` of "all that match": the number that matches now. */
    readonly count?: number;
  };
}

/** What the page needs before anything else. */
export interface Session {
  readonly swarm: string;
  /** Version of the package: `0.1.0`. */
  readonly version: string;
  /** Changes are refused, so the page offers none. */
  readonly isReadOnly: boolean;
  /** To be sent as the header `x-waggle-token` with each action; absent if read-only. */
  readonly changeToken?: string;
  /** Project of tasks that name none. */
  readonly project: string;
  readonly user?: string;
  /** Clock of the server, to correct the browser's. */
  readonly nowAt: number;
  readonly limits: {
    /** Live updates per second of one view, maximum. */
    readonly updatesPerSecond: number;
    readonly liveViewsMax: number;
    readonly tasksPageMax: number;
    /** Tasks that one action may touch. */
    readonly actionTasksMax: number;
    /** Bytes of a request body. */
    readonly bodyBytesMax: number;
  };
  /** Action verbs that this server knows; none if read-only. */
  readonly verbs: readonly ActionVerb[];
  /** Sentence by refused verb: the dashboard lacks the right for the change. The sentence names the remedy. Dry runs of
   *  a refused verb are answered. */
  readonly refusals: Readonly<Partial<Record<ActionVerb, string>>>;
}

// --- live ---------------------------------------------------------------------------------------------

/** Data of each view: the same as the answer of its GET. */
export interface LiveViews {
  readonly overview: Overview;
  readonly agents: Agents;
  /** `&id=ID` */
  readonly agent: AgentDetail;
  /** Only counts; the page asks for its rows again when `idx` grows, at most every 2 s. */
  readonly tasks: TaskCounts;
  /** `&id=ID&project=P` */
  readonly task: TaskDetail;
  readonly fairness: Fairness;
  readonly resources: Resources;
  readonly budgets: Budgets;
  /** `&types=A,B&task=&agent=&project=&kind=&text=`: rows come as `events` messages. */
  readonly events: EventsState;
  readonly system: System;
}
export type LiveView = keyof LiveViews;

/**
 * Messages of `/api/live`: the name is the SSE event, the value its JSON data. At most four messages of a kind per
 * second. The SSE id is opaque; the browser returns it as Last-Event-ID, or the page as `&last=ID`. A resume gets what
 * it missed as one `delta`, and as `events`; if the server no longer knows the place, a whole `state`.
 */
export interface LiveMessages<View extends LiveView = LiveView> {
  /** The whole data. First message, and again after a gap. */
  readonly state: { readonly idx: number; readonly at: number; readonly data: LiveViews[View] };
  /** A JSON Merge Patch (RFC 7396) to the data: null removes a key, arrays are replaced. */
  readonly delta: { readonly idx: number; readonly at: number; readonly patch: unknown };
  /** View `events` only, oldest first. `skipped`: events that did not fit: more than 500 matched within 250 ms. */
  readonly events: { readonly rows: readonly EventRow[]; readonly skipped: number };
  /** One second of `History`, for the charts. All views. */
  readonly point: HistoryPoint;
  /** The leader or the server is gone. The data stays as it was. Comes until `back` once for each reason. During a loss
   *  it is the first message of a stream. */
  readonly lost: {
    readonly what: "leader" | "server";
    readonly sinceAt: number;
    /** The server's words: what is wrong, and the remedy. */
    readonly message: string;
    /** Command to run next: `waggle up`. */
    readonly next: string;
  };
  /** It answers again; a `state` or `delta` follows. */
  readonly back: { readonly lostMs: number };
  /** The subject of the view is gone: an unknown task or agent. The stream ends; do not reconnect. */
  readonly refused: ApiError;
}
export type LiveMessageName = keyof LiveMessages;

// --- history ------------------------------------------------------------------------------------------

/** 1 s steps for 15 minutes, 10 s steps for 6 hours; since this dashboard began. */
export type HistoryWindow = "15m" | "6h";

/** One array per series, all as long as `times`, oldest first. Null: not known, shown as a gap. */
export interface History {
  readonly window: HistoryWindow;
  readonly stepMs: number;
  /** End of each step, ms since the Unix epoch. */
  readonly times: readonly number[];
  readonly series: { readonly [Name in HistorySeries]: readonly (number | null)[] };
}

/**
 * - `submitted`, `completed`, `failed`, `cancelled`: tasks per second. `failed` sums failed, dead-lettered, expired.
 * - `queued`, `delayed`, `running`: tasks at the end of the step. `running` sums assigned and running.
 * - `waitP50Ms`, `waitP95Ms`, `waitP99Ms`: wait of the tasks assigned within the step, null without one.
 * - `utilisation`: attempts in flight / capacity of online agents, 0 to 1.
 */
export type HistorySeries =
  | "submitted"
  | "completed"
  | "failed"
  | "cancelled"
  | "queued"
  | "delayed"
  | "running"
  | "waitP50Ms"
  | "waitP95Ms"
  | "waitP99Ms"
  | "utilisation";

export interface HistoryPoint {
  /** End of the second. */
  readonly at: number;
  readonly values: { readonly [Name in HistorySeries]: number | null };
}

/** A small chart: equally long arrays, oldest first. */
export interface Series<Name extends string> {
  readonly times: readonly number[];
  readonly series: { readonly [Each in Name]: readonly (number | null)[] };
}

// --- overview -----------------------------------------------------------------------------------------

export type HealthLevel = "ok" | "note" | "attention" | "critical";
export type HealthArea = "flow" | "execution" | "liveness";

export interface HealthView {
  readonly level: HealthLevel;
  /** One sentence without its end. */
  readonly verdict: string;
  /** Command to run next; absent for a healthy swarm. */
  readonly next?: string;
  readonly areas: Readonly<Record<HealthArea, HealthLevel | "unknown">>;
  /** The worst first. */
  readonly findings: readonly {
    readonly area: HealthArea;
    /** `nobody-capable` */
    readonly rule: string;
    readonly level: Exclude<HealthLevel, "ok">;
    readonly text: string;
    readonly evidence: Readonly<Record<string, number | string | readonly string[]>>;
    readonly next: string;
  }[];
}

export interface Overview {
  readonly health: HealthView;
  readonly swarm: string;
  /** Id of the leading coordinator. */
  readonly leader: string;
  /** Absent if a standby answered. */
  readonly standbys?: readonly string[];
  /** Answered by a standby: the leader may know more. */
  readonly isStale: boolean;
  readonly isPaused: boolean;
  readonly term: number;
  /** Live tasks by state, and ended tasks by outcome since the swarm began: `queued`, `delayed`, `assigned`, `running`,
   *  `completed`, `failed`, `cancelled`, `expired`, `dead-lettered`. */
  readonly tasks: Readonly<Record<string, number>>;
  /** Wait of the oldest queued task; 0 without one. */
  readonly oldestWaitMs: number;
  /** Within the last 60 s, or since the dashboard began if `windowMs` is less. */
  readonly lastMinute: {
    readonly windowMs: number;
    readonly submitted: number;
    readonly completed: number;
    readonly failed: number;
    readonly cancelled: number;
  };
  /** Slots of online agents. */
  readonly capacity: { readonly used: number; readonly total: number };
  readonly agents: { readonly online: number; readonly busy: number; readonly offline: number };
  /** By kind, or `kind (role)`; with needs, `kind with gpu=a100`. */
  readonly queues: Readonly<Record<string, QueueRow>>;
  /** The newest 10, newest first; since this dashboard began, and from the journal's last batches. */
  readonly failures: readonly FailureRow[];
  /** Durability in words: `page-cache`. */
  readonly durability: string;
}

export interface QueueRow {
  readonly kind: string;
  readonly role?: string;
  /** `gpu=a100 region=eu,us`: labels that agents must have. */
  readonly needs?: string;
  readonly waiting: number;
  readonly oldestMs: number;
  /** Online agents that serve the kind. */
  readonly agents: number;
}

export interface FailureRow {
  readonly at: number;
  readonly idx: number;
  readonly project: string;
  readonly task: string;
  readonly attempt: number;
  readonly agent: string;
  /** `failed`, `timed-out`, `lost`, … */
  readonly failureClass: string;
  readonly error: string;
  /** The task ended with it. */
  readonly isFinal: boolean;
}

// --- agents -------------------------------------------------------------------------------------------

export interface Agents {
  readonly agents: Readonly<Record<string, AgentRow>>;
  /** Agents that did not fit: the server reads at most 2,000. */
  readonly omitted: number;
  /** Window of `share`, `assigned`, `failed`: up to 15 minutes, since the dashboard began. */
  readonly windowMs: number;
}

export interface AgentRow {
  readonly id: string;
  readonly group?: string;
  readonly role?: string;
  readonly type?: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The agent's chart state. */
  readonly status: "ready" | "busy" | "offline";
  readonly isSaturated: boolean;
  readonly isDraining: boolean;
  readonly isUnresponsive: boolean;
  /** Its own hold or its type's; absent without a hold, and once the hold has elapsed. */
  readonly hold?: HoldBadge;
  readonly inFlight: number;
  readonly maxConcurrent: number;
  readonly prefetch: number;
  /** In flight / max concurrent. */
  readonly load: number;
  /** Attempts completed in total. */
  readonly completed: number;
  readonly kinds: Readonly<Record<string, AgentKind>>;
  /** As the agent says of itself: never scored. */
  readonly reported?: {
    readonly status: "ready" | "busy" | "offline";
    readonly successRate?: number;
    readonly latencyMs?: number;
    readonly inFlight: number;
  };
  /** Time since the last message of the agent: heartbeat age. Absent if offline, and on a standby. */
  readonly silentMs?: number;
  /** Score at its newest assignment; absent without one since the dashboard began. */
  readonly score?: number;
  /** Share of all assignments in the window. */
  readonly share: number;
  readonly assigned: number;
  readonly failed: number;
}

/** A hold in force. */
export interface HoldBadge {
  readonly on: "agent" | "type" | "resource";
  readonly untilAt: number;
  /** The hold's time is over, and its probe is under way. */
  readonly isProbed: boolean;
}

export interface AgentKind {
  readonly successRate: number;
  readonly completed: number;
  readonly attempts: number;
  readonly latencyMs: number;
  readonly suspendedUntilAt?: number;
}

export interface AgentDetail {
  readonly agent: AgentRow;
  /** Attempts in the window, oldest first, at most 500. */
  readonly attempts: readonly AttemptBar[];
  /** Beginning and end of the Gantt chart: at most 10 minutes. */
  readonly fromAt: number;
  readonly toAt: number;
  /** Rows of the Gantt chart; at least `maxConcurrent`. */
  readonly ganttRows: number;
  /** One point per assignment, at most 500. */
  readonly scores: Series<"score" | "load" | "successRate">;
  /** Newest first, at most 20. */
  readonly failures: readonly FailureRow[];
  readonly commands: {
    readonly drain: string;
    readonly undrain: string;
    readonly events: string;
  };
}

export interface AttemptBar {
  readonly project: string;
  readonly task: string;
  readonly attempt: number;
  /** Row of the chart, from 0. */
  readonly ganttRow: number;
  readonly fromAt: number;
  /** Absent while it runs. */
  readonly toAt?: number;
  /** `completed`, a class of failure, `cancelled`, `expired`; absent while it runs. */
  readonly ended?: string;
}

// --- tasks --------------------------------------------------------------------------------------------

export const taskStates = [
  "queued",
  "delayed",
  "assigned",
  "running",
  "completed",
  "failed",
  "cancelled",
  "expired",
  "dead-lettered",
] as const;
export type TaskState = (typeof taskStates)[number];

/** All given conditions must hold; of a list, any. In a query string lists are separated by commas. */
export interface TaskFilter {
  readonly state?: readonly TaskState[];
  readonly kind?: readonly string[];
  readonly project?: string;
  readonly user?: readonly string[];
  /** Agent of the last attempt. */
  readonly agent?: readonly string[];
  /** Values that the task's attributes must have. */
  readonly attributes?: Readonly<Record<string, string>>;
  /** Minimum age, ms. */
  readonly olderThanMs?: number;
}

export interface TaskQuery extends Omit<TaskFilter, "attributes"> {
  /** `name=value` of one attribute. */
  readonly attribute?: string;
  /** Part of the task's id, kind, user, project or agent, in any case. At most 128 characters. Not usable in actions on
   *  all that match: those take the listed ids. */
  readonly text?: string;
  readonly sort?: "newest" | "oldest" | "submitted" | "attempts";
  /** 1 to 1,024; default 50. */
  readonly limit?: number;
  /** `next` of the page before, with the same filter and sort. */
  readonly after?: string;
}

export interface TaskPage {
  readonly idx: number;
  readonly at: number;
  readonly isStale: boolean;
  readonly rows: readonly TaskRow[];
  /** Tasks that match the filter; with `text`, absent. */
  readonly total?: number;
  /** With `text`: tasks that were looked through for this page. */
  readonly scanned?: number;
  /** Absent on the last page. With `text`, a page may be short or empty and still have a next page. */
  readonly next?: string;
  /** `waggle tasks --state failed`; absent with `text`, which the command line does not know. */
  readonly command?: string;
}

export interface TaskRow {
  readonly task: string;
  readonly project: string;
  readonly user: string;
  readonly kind: string;
  readonly state: TaskState;
  readonly round: number;
  /** Number of attempts in all rounds. */
  readonly attempts: number;
  /** The agent of the last attempt. */
  readonly agent?: string;
  /** End of the task or, for a live task, begin of its round. */
  readonly sinceAt: number;
  readonly ageMs: number;
}

export interface TaskCounts {
  readonly tasks: Readonly<Record<string, number>>;
  /** Names for the filters' menus, sorted; at most 200 of each. */
  readonly kinds: readonly string[];
  readonly projects: readonly string[];
  readonly users: readonly string[];
  readonly agents: readonly string[];
}

export interface TaskDetail {
  readonly task: TaskRow;
  /** Absent when the journal no longer has the submission. */
  readonly spec?: {
    readonly role?: string;
    /** `gpu=a100 region=eu,us`. */
    readonly needs?: string;
    readonly affinity?: string;
    readonly attributes?: Readonly<Record<string, string>>;
    readonly weight: number;
    readonly priority: number;
    readonly tokens?: number;
    readonly deadlineAt?: number;
    readonly notBeforeAt?: number;
    readonly maxAttempts: number;
    readonly timeoutMs: number;
    readonly stallMs?: number;
    /** Size; the text itself comes from `/contents`. */
    readonly payloadBytes: number;
    readonly encoding?: "base64";
  };
  readonly submittedAt?: number;
  /** When the present round ended. */
  readonly endedAt?: number;
  /** Moment of the answer, for open bars. */
  readonly nowAt: number;
  /** In order of their beginning. */
  readonly waterfall: readonly WaterfallBar[];
  /** Oldest first. */
  readonly attempts: readonly AttemptView[];
  /** Attempts whose record the journal no longer keeps. */
  readonly attemptsOmitted: number;
  /** The history is still read from the journal: `spec`, waterfall and attempts follow. Never true over plain HTTP. */
  readonly isReading: boolean;
  /** Present while queued or delayed. */
  readonly wait?: WaitView;
  readonly deadLetterReason?: string;
  /** Actions that fit the state now. */
  readonly can: {
    readonly cancel: boolean;
    readonly retry: boolean;
    readonly revoke: boolean;
    readonly reschedule: boolean;
  };
  /** Equal commands: questions always, changes as far as they fit the state. */
  readonly commands: {
    readonly show: string;
    readonly explain: string;
    readonly events: string;
    readonly cancel?: string;
    readonly retry?: string;
    readonly revoke?: string;
    readonly reschedule?: string;
  };
}

export interface WaterfallBar {
  /** `held`: the task ended or was retried, and its attempt still occupies the agent. */
  readonly what: "queued" | "delayed" | "starting" | "running" | "held";
  readonly round: number;
  readonly fromAt: number;
  /** Absent while it lasts. */
  readonly toAt?: number;
  readonly attempt?: number;
  readonly agent?: string;
  /** How the attempt ended: `completed`, a class of failure, `cancelled`, `expired`. */
  readonly ended?: string;
}

export interface AttemptView {
  readonly attempt: number;
  readonly round: number;
  readonly agent: string;
  readonly runsAs?: string;
  readonly assignedAt: number;
  readonly assignedIdx: number;
  readonly runningAt?: number;
  readonly endedAt?: number;
  readonly ended?: string;
  readonly error?: string;
  readonly latencyMs?: number;
  readonly tokens?: number;
  readonly tokensReserved?: number;
  readonly tokensCharged?: number;
  /** Ended, and still occupies the agent. */
  readonly holdsCapacity: boolean;
  /** The receipt as one sentence: `highest score of 3 (7 agents; 4 not eligible); waited 20ms`. */
  readonly why: string;
  readonly receipt: {
    /** Winner first, then at most two runners-up. */
    readonly candidates: readonly {
      readonly agent: string;
      readonly score: number;
      readonly successRate: number;
      readonly load: number;
      readonly backlog?: number;
      readonly speed?: number;
    }[];
    readonly feasible: number;
    /** Agents by the first reason against each. */
    readonly ineligible: Readonly<Record<string, number>>;
    readonly decidedBy: string;
    readonly queue: string;
    readonly waiting: number;
    readonly waitedMs: number;
    /** Absent where both went by the rule. */
    readonly turn?: { readonly project: string; readonly user: string };
  };
}

export interface WaitView {
  /** The answer: the first obstacle, as one sentence with its remedy. */
  readonly sentence: string;
  /** All obstacles, the first to remove first. */
  readonly obstacles: readonly { readonly reason: string; readonly sentence: string }[];
  readonly ageMs: number;
  /** Where it stands in its queue; absent while it cannot be assigned at all. 1 is next. */
  readonly position?: {
    readonly project: PlaceView;
    readonly user: PlaceView;
    readonly task: PlaceView;
    /** Tasks of its queue. */
    readonly waiting: number;
    /** Task that the next free agent gets. */
    readonly next?: { readonly task: string; readonly project: string; readonly user: string };
  };
  /** Agents and their standing, eligible first; at most 50. */
  readonly agents: readonly {
    readonly agent: string;
    /** `feasible`, `probe`, `full`, `wrong-kind`, … */
    readonly standing: string;
    readonly servesKind: boolean;
    readonly capacity: number;
    readonly free: number;
    readonly untilAt?: number;
    readonly score?: number;
  }[];
}

export interface PlaceView {
  /** From 1. */
  readonly place: number;
  readonly of: number;
  /** In the unit of the rule: ticks of the kind, turns of the project, turns of the user. */
  readonly waited: number;
  readonly starvationLimit?: number;
}

/** On demand. Texts longer than 256 KiB are cut; `bytes` is the whole size. */
export interface TaskContents {
  readonly payload?: TextContent;
  readonly result?: TextContent;
  /** Why one is absent: the journal no longer keeps it, or the task has no result. */
  readonly missing: { readonly payload?: string; readonly result?: string };
  /** Output of the newest attempts. */
  readonly logs: readonly {
    readonly attempt: number;
    readonly agent: string;
    readonly text?: string;
    readonly missing?: string;
  }[];
}

export interface TextContent {
  readonly text: string;
  readonly bytes: number;
  readonly isCut: boolean;
  /** `text` is base64. */
  readonly encoding?: "base64";
}

// --- fairness, resources, budgets ---------------------------------------------------------------------

export interface Fairness {
  /** `waggle`, `lucio`, … */
  readonly rules: string;
  /** `clock`, `deficit`, … ; `none`: projects have no turns. */
  readonly projectTurn: string;
  readonly userTurn: string;
  /** Window of shares and waits: up to 15 minutes, since the dashboard began. */
  readonly windowMs: number;
  readonly projects: Readonly<Record<string, FairnessProject>>;
  /** By `project/user`; at most 200, the longest waits first by `waitMsMax`. */
  readonly users: Readonly<Record<string, FairnessUser>>;
  /** Share of assignments by project over time, one array per project; at most 8 projects, the rest as `(other)`. */
  readonly past: {
    readonly stepMs: number;
    readonly times: readonly number[];
    readonly shares: Readonly<Record<string, readonly (number | null)[]>>;
  };
  /** The newest 200, oldest first: the waterfall. */
  readonly waterfall: readonly WaterfallRow[];
}

/** An assignment. */
export interface WaterfallRow {
  readonly at: number;
  readonly project: string;
  readonly user: string;
  readonly task: string;
  readonly agent: string;
  readonly waitedMs: number;
  /** `rule`, `guarantee`, `starvation-limit` */
  readonly projectBy: string;
  readonly userBy: string;
}

/** One moment of the past: a batch, an assignment of a task, or a time. Exactly one of `idx`, `task` and `at`; with
 *  `idx`, `task` and `project` name the assignment within the batch. */
export interface PastQuery {
  readonly idx?: number;
  readonly task?: string;
  readonly project?: string;
  /** With `task` alone. Default: the last attempt. */
  readonly attempt?: number;
  readonly at?: number;
}

/** Found by replay of the journal in the dashboard's process. */
export interface FairnessPast {
  readonly idx: number;
  readonly at: number;
  /** The first replayed batch. */
  readonly firstIdx: number;
  /** Up to the chosen assignment, the newest 200, oldest first. */
  readonly waterfall: readonly WaterfallRow[];
  /** The batch of the assignment before these; absent if the replay began with them. */
  readonly earlierIdx?: number;
  /** Right before. `share`: part of the tokens of the guarantee's window. `target`: part of the credit weights
   *  of waiting projects; absent for a project without waiting tasks. */
  readonly projects: readonly {
    readonly project: string;
    readonly share: number;
    readonly target?: number;
    readonly queued: number;
    readonly running: number;
  }[];
  /** Users with tasks in the queue of the chosen task, the longest wait first; at most 200. */
  readonly users: readonly {
    readonly project: string;
    readonly user: string;
    readonly waiting: number;
    readonly oldestMs: number;
  }[];
  /** The chosen assignment; absent if the batch has none. */
  readonly decision?: {
    readonly project: string;
    readonly user: string;
    readonly task: string;
    readonly attempt: number;
    readonly agent: string;
    readonly kind: string;
    /** The receipt in words. */
    readonly why: string;
    /** Whether the replay ranks the agents as the receipt does. */
    readonly agrees: boolean;
    readonly agents: WaitView["agents"];
    readonly command: string;
  };
}

export interface FairnessProject {
  readonly project: string;
  readonly isPaused: boolean;
  readonly creditWeight: number;
  /** Weight over the weights of all projects that had work in the window; 0 for an idle project. */
  readonly target: number;
  /** Share of assigned cost in the window. */
  readonly share: number;
  /** `target - share`: above 0, the project got less than its part. */
  readonly deficit: number;
  readonly assigned: number;
  readonly queued: number;
  readonly running: number;
  readonly waitP50Ms?: number;
  readonly waitP95Ms?: number;
}

export interface FairnessUser {
  readonly project: string;
  readonly user: string;
  readonly queued: number;
  readonly running: number;
  /** Tasks assigned at least once. */
  readonly started: number;
  /** Since the swarm began. */
  readonly waitMsMean: number;
  readonly waitMsMax: number;
}

export interface Resources {
  readonly resources: Readonly<Record<string, ResourceRow>>;
  readonly omitted: number;
  readonly windowMs: number;
}

export interface ResourceRow {
  readonly resource: string;
  /** Nothing is granted until its end. */
  readonly hold?: HoldBadge;
  /** The limit. */
  readonly slots: number;
  /** What set the limit, as a command: `waggle resource set gpt-4o --slots 4`. */
  readonly setBy: string;
  readonly maxWaiters: number;
  readonly inUse: number;
  readonly waiting: number;
  readonly waitingWeight: number;
  /** Releases so far. */
  readonly tick: number;
  readonly grants: number;
  readonly utilisation: number;
  readonly alpha: number;
  readonly isAutoTuned: boolean;
  readonly alphaFrom: "resource" | "policy";
  /** The oldest few. */
  readonly holders: readonly SlotLeaseStatus[];
  /** In the order in which they would be granted, if `order` is present; else the oldest few. */
  readonly waiters: readonly (SlotLeaseStatus & {
    /** From 1. */
    readonly order?: number;
    /** L of the agent and its two terms: L = α · Q / max Q + (1 − α) · D / max D. Q: weights of its waiting requests.
     *  D: age of its oldest request, in ticks. */
    readonly load?: number;
    readonly backlogTerm?: number;
    readonly waitedTerm?: number;
    /** `tokens`: skipped, because its tokens do not fit a budget or a rate · `unreachable`: skipped, because its agent
     *  does not answer. */
    readonly by?: "starvation-limit" | "load" | "tokens" | "unreachable";
  })[];
  /** In the window. */
  readonly granted: number;
  /** The granted requests that had to wait for their slots. */
  readonly delayed: number;
  readonly delayP50Ms?: number;
  readonly delayP95Ms?: number;
  /** α over time: one point per change, at most 200. */
  readonly alphas: Series<"alpha">;
}

export interface SlotLeaseStatus {
  readonly agent: string;
  readonly handle: string;
  readonly forMs: number;
  /** Queue of its own within the agent. */
  readonly as?: string | undefined;
  readonly label?: string | undefined;
  readonly project?: string | undefined;
  readonly user?: string | undefined;
  /** The attempt that the slots serve. */
  readonly task?: { readonly project: string; readonly task: string; readonly attempt: number } | undefined;
  readonly tokens?: number | undefined;
  /** What has too little left for the tokens of a waiter. */
  readonly waitsFor?: "project-budget" | "global-budget" | "rate" | undefined;
  /** When the slots are taken back unless they are touched. */
  readonly idleAt?: number | undefined;
}

export interface Budgets {
  /** Absent without one. */
  readonly swarm?: BudgetView;
  readonly projects: Readonly<Record<string, BudgetView>>;
  /** By `type window`. */
  readonly rates: Readonly<Record<string, RateView>>;
}

export interface BudgetView {
  readonly tokens: number;
  readonly spent: number;
  readonly reserved: number;
  readonly windowMs: number;
  readonly mode: "wait" | "reject" | "alert" | "downgrade";
  /** Used up: spent + reserved reach the limit. */
  readonly isUsedUp: boolean;
  /** Tasks wait that it may hold: it is used up, or has less left than the oldest waiting task needs. */
  readonly isBinding: boolean;
  /** Tokens that the oldest waiting task needs, while it waits for this budget. */
  readonly needed?: number;
  /** So many tokens fit again by time alone; absent if they wait for the end of open attempts. */
  readonly opensAt?: number;
  /** When the next of the counted tokens return, and when all have returned, by time alone; absent without such. */
  readonly freesAt?: number;
  readonly emptyAt?: number;
  readonly queued: number;
  /** Command that raises it. */
  readonly command: string;
}

export interface RateView {
  readonly type: string;
  readonly window: "per_minute" | "per_hour" | "per_day";
  readonly isSliding: boolean;
  readonly tokensMax: number;
  readonly used: number;
  readonly reserved: number;
  /** Agents of the type get tasks again. Absent while open. */
  readonly opensAt?: number;
  /** When the next of the counted tokens return, and when all have returned, by time alone; absent without such. */
  readonly freesAt?: number;
  readonly emptyAt?: number;
  readonly command: string;
}

// --- events, system -----------------------------------------------------------------------------------

export interface EventQuery {
  readonly types?: readonly string[];
  readonly task?: string;
  readonly agent?: string;
  readonly project?: string;
  readonly kind?: string;
  /** Part of the sentence, in any case; at most 128 characters. */
  readonly text?: string;
  /** Events before this batch; default: the newest. */
  readonly before?: number;
  /** 1 to 500; default 100. */
  readonly limit?: number;
}

export interface EventPage {
  /** Newest last. */
  readonly rows: readonly EventRow[];
  /** `before` of the page of older events; absent at the journal's beginning. */
  readonly before?: number;
  readonly command: string;
}

export interface EventsState {
  /** All types, for the filter's menu. */
  readonly types: readonly string[];
  /** The newest batch. */
  readonly lastIdx: number;
  /** The first batch that the journal keeps. */
  readonly firstIdx: number;
  /** Events per second, over the last 10 s. */
  readonly perSecond: number;
  readonly command: string;
}

export interface EventRow {
  /** Unique: `idx.place`. */
  readonly id: string;
  readonly idx: number;
  readonly term: number;
  readonly at: number;
  readonly type: string;
  readonly project?: string;
  readonly task?: string;
  readonly agent?: string;
  /** One line for people. */
  readonly text: string;
  /** The batch is not as it was written: `waggle verify` tells more. Only of events read from the journal. */
  readonly isChanged?: true;
}

/** Event loop and memory of a process. */
export interface ProcessView {
  /** The lag is that of the last one to two windows of this length. */
  readonly windowMs: number;
  /** How much later than due the event loop ran a timer. */
  readonly loopLagP99Ms: number;
  readonly loopLagMaxMs: number;
  readonly rssBytes: number;
  /** The JavaScript heap in use. */
  readonly heapUsedBytes: number;
  readonly heapTotalBytes: number;
}

export interface System {
  readonly broker: {
    /** Without credentials. */
    readonly url: string;
    readonly name?: string;
    readonly version?: string;
    readonly connection: "connected" | "reconnecting" | "closed";
    /** Round trip of the last question. */
    readonly answerMs?: number;
  };
  readonly journal: {
    readonly id: string;
    readonly durability: string;
    /** A sentence of this package. */
    readonly sentence: string;
    readonly bytes: number;
    readonly bytesMax?: number;
    readonly firstIdx: number;
    readonly lastIdx: number;
    readonly base?: { readonly idx: number; readonly at: number; readonly bytes: number };
    readonly baseFailure?: string;
    readonly foreignRecords?: number;
    /** The leader's verification in the background; absent until it has begun. */
    readonly verified?: {
      /** The last batch found to be as it was written. */
      readonly idx: number;
      /** End of the last whole run; absent during the first. */
      readonly at?: number;
      /** Why the journal cannot be trusted from a batch on. */
      readonly fault?: string;
    };
  };
  readonly coordinators: {
    readonly leader: string;
    readonly term: number;
    readonly standbys: readonly string[];
    /** Percentiles over the leader's newest turns and appends, at most 512; absent on a standby and without a turn. */
    readonly appendP50Ms?: number;
    readonly appendP99Ms?: number;
    /** Time of a turn of the leader's loop, with planning and encoding. */
    readonly decisionP50Ms?: number;
    readonly decisionP99Ms?: number;
    /** The leader's; absent on a standby, and from older coordinators. */
    readonly process?: ProcessView;
  };
  /** Since the leader's term began: `refused`, … */
  readonly counters: Readonly<Record<string, number>>;
  /** The dashboard itself. */
  readonly dashboard: {
    readonly version: string;
    readonly node: string;
    readonly startedAt: number;
    readonly liveViews: number;
    readonly process: ProcessView;
    readonly eventsPerSecond: number;
  };
  /** In the order of the policy, projects, kinds, resources, rates. `origin`: `set by an operator` or `default`. */
  readonly settings: readonly {
    readonly area: "policy" | "project" | "kind" | "resource" | "rate";
    /** Name of the project, …; absent for the policy. */
    readonly name?: string;
    readonly setting: string;
    readonly value: string;
    readonly origin: string;
    /** Command that changes it. */
    readonly command: string;
  }[];
  readonly charts: readonly ChartView[];
}

/** A state chart, to be drawn, with where everything is now. */
export interface ChartView {
  /** `task`, `attempt`, `agent`, `coordinator`, … */
  readonly id: string;
  readonly title: string;
  readonly states: readonly {
    /** Path with dots: `online.busy`. */
    readonly name: string;
    /** Absent at the top. */
    readonly parent?: string;
    readonly isInitial: boolean;
    readonly isFinal: boolean;
    readonly isParallel: boolean;
    /** How many are in the state now; absent if not known. */
    readonly count?: number;
  }[];
  readonly edges: readonly { readonly from: string; readonly to: string; readonly event: string }[];
}

// --- actions ------------------------------------------------------------------------------------------

/** Every body may have `dryRun: true`: nothing is changed, and the answer holds the command and the count. */
export interface ActionBodies {
  readonly submit: {
    readonly task: {
      readonly kind: string;
      readonly id?: string;
      readonly project?: string;
      readonly user?: string;
      readonly role?: string;
      /** Accepted value or values by label. */
      readonly needs?: Readonly<Record<string, string | readonly string[]>>;
      readonly affinity?: string;
      readonly attributes?: Readonly<Record<string, string>>;
      readonly payload?: string;
      readonly encoding?: "base64";
      readonly weight?: number;
      readonly priority?: number;
      readonly tokens?: number;
      readonly deadlineAt?: number;
      readonly notBeforeAt?: number;
      readonly maxAttempts?: number;
      readonly timeoutMs?: number;
      readonly stallMs?: number;
    };
    readonly dryRun?: boolean;
  };
  readonly cancel: TasksAction;
  readonly retry: TasksAction;
  readonly drain: { readonly agent: string; readonly dryRun?: boolean };
  readonly undrain: { readonly agent: string; readonly dryRun?: boolean };
  /** Without `project`: the whole swarm. */
  readonly pause: { readonly project?: string; readonly dryRun?: boolean };
  readonly resume: { readonly project?: string; readonly dryRun?: boolean };
  /** Takes the open attempt from its agent; the task is tried again. */
  readonly revoke: {
    readonly task: string;
    readonly project: string;
    /** Attempt that the page showed: a later attempt goes on. Default: the running one. */
    readonly attempt?: number;
    readonly dryRun?: boolean;
  };
  readonly reschedule: {
    readonly task: string;
    readonly project: string;
    readonly notBeforeAt: number;
    readonly dryRun?: boolean;
  };
}
export type ActionVerb = keyof ActionBodies;

/** Named tasks, at most 1,024; or all tasks that match: first with `dryRun`, then with the count as `expected`. */
export type TasksAction =
  | {
      readonly tasks: readonly { readonly task: string; readonly project: string; readonly round?: number }[];
      readonly dryRun?: boolean;
    }
  | { readonly filter: TaskFilter; readonly dryRun: true }
  | {
      readonly filter: TaskFilter;
      /** Number that the user confirmed. If another number matches now, nothing is done: `WAGGLE_CONFLICT`, `count`. */
      readonly expected: number;
    };

export interface ActionAnswer {
  readonly ok: boolean;
  readonly isDryRun: boolean;
  /** The equal command line. */
  readonly command: string;
  /** Tasks, agents or projects that it touches or touched. */
  readonly count: number;
  /** One line for people: `cancelled 3 tasks; 1 refused`. */
  readonly text: string;
  /** With a dry run of a filter: the first 20 that match. */
  readonly sample?: readonly TaskRow[];
  /** Per task, at most 100, refusals first. Absent where no task is touched. */
  readonly results?: readonly {
    readonly task: string;
    readonly project?: string;
    readonly ok: boolean;
    readonly text: string;
    readonly code?: string;
  }[];
}
