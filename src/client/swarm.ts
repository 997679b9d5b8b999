// The client that `connect` returns: its parts, put together over one connection. connect.ts finds the server.
// Each imported file explains its own part.

import type { Logger } from "pino";
import { Observable } from "rxjs";
import * as z from "zod";
import { Aborts } from "../abort.ts";
import {
  type Agent,
  type AgentConnection,
  type AgentOptions,
  readAgentOptions,
  type TypedAgentOptions,
} from "../agent/agent.ts";
import { Bundler } from "../agent/bundler.ts";
import { currentAttemptOf } from "../agent/current-attempt.ts";
import type { HandlerContext } from "../agent/handler.ts";
import { argument, callback, flag, judged, objectOf, readerOf } from "../agent/options.ts";
import type { PayloadCodec } from "../agent/payload-codec.ts";
import { type ReleaseOptions, readRelease } from "../agent/slot-refusal.ts";
import { addReport, type SlotReport } from "../agent/slot-usage.ts";
import { type AcquireOptions, type Slot, type SlotTicket, ticketIn } from "../agent/slots.ts";
import type { ResultValueOf, TypedKind } from "../agent/typed-kind.ts";
import type { WrapOptions } from "../agent/wraps.ts";
import type { ReplayedAssignment } from "../audit/assignment-replay.ts";
import type { Health } from "../audit/health.ts";
import type { Clock, Random } from "../clock.ts";
import { NoLeaderError, UnreachableError, UnreadableAnswerError, WaggleError } from "../errors.ts";
import { NO_PROJECT, type SwarmId } from "../ids.ts";
import { limits } from "../limits.ts";
import { decode } from "../protocol/codec.ts";
import type { SlotWaits } from "../protocol/explain-schemas.ts";
import { Horizon } from "../protocol/horizon.ts";
import type { LossError } from "../protocol/loss-error.ts";
import {
  chunksPushSchema,
  coordinatorHeartbeatSchema,
  type ProgressPush,
  progressPushSchema,
  type StatusResponse,
  type StatusTable,
  statusResponseSchema,
  statusTables,
  taskIdSchema,
} from "../protocol/schemas.ts";
import { shown } from "../protocol/sentence.ts";
import type { SettingsResponse } from "../protocol/settings-schemas.ts";
import { chunkSubject, progressSubject, type Subjects, subjectsOf } from "../protocol/subjects.ts";
import type { ListedTask } from "../protocol/task-list-schemas.ts";
import { retried, TryAgain } from "../retry-paused.ts";
import type { Event } from "../state/event.ts";
import type { Tracing } from "../tracing/tracing.ts";
import type { Transport } from "../transport/transport.ts";
import { abortOf, askPace } from "./ask-pace.ts";
import { Asker, type AskOptions, askRules, readAskOptions } from "./asker.ts";
import { type AttemptLog, AttemptLogs } from "./attempt-logs.ts";
import type { AwaitedTask } from "./awaited-task.ts";
import { AwaitedTasks } from "./awaited-tasks.ts";
import { type Backpressure, HeldBack } from "./backpressure.ts";
import { Bulk, type BulkResult, type ManyTasks } from "./bulk.ts";
import { type CancelOptions, type CancelOutcome, Cancels } from "./cancels.ts";
import { ChunkLogs } from "./chunk-log.ts";
import { type EventSourceDeps, followProject, openEventStream } from "./event-source.ts";
import type { EventStream, EventsOptions } from "./event-stream.ts";
import { healthFrom } from "./health.ts";
import { JournalNews } from "./journal-news.ts";
import { JournalPages } from "./journal-pages.ts";
import { Operations, type Pause, type Setting, type SwarmOperations } from "./operations.ts";
import { OwnAgents } from "./own-agents.ts";
import { type RescheduleOptions, type RescheduleOutcome, Reschedules } from "./reschedules.ts";
import { Retries, type RetryOptions, type RetryOutcome } from "./retries.ts";
import { type RevokeOptions, type RevokeOutcome, Revokes } from "./revokes.ts";
import { projectIn, type Scope } from "./scope.ts";
import { SlotAgent } from "./slot-agent.ts";
import type { Acceptance } from "./submit-ack.ts";
import { type SubmitOutcome, submitMany } from "./submit-many.ts";
import { type SubmitTerms, Submitter } from "./submitter.ts";
import { SwarmTask, type TaskHandle, type TaskHandleDeps, type TypedTaskHandle } from "./task-handle.ts";
import { TaskInbox } from "./task-inbox.ts";
import { readTaskListOptions, type TaskListOptions, TaskLists, type TaskPage } from "./task-lists.ts";
import {
  type AnyTaskRequest,
  type PreparedTask,
  prepareTask,
  projectName,
  sealedTask,
  type TaskDefaults,
  type TaskRequest,
  type TypedTaskRequest,
  traceOf,
  withTrace,
} from "./task-request.ts";
import {
  type AcceptedTaskStatus,
  type OpenJournal,
  type ReplayOptions,
  readSlotWaitOptions,
  readTaskOptions,
  type SlotWaitOptions,
  type TaskExplanation,
  type TaskOptions,
  TaskStories,
  type TaskStory,
} from "./task-stories.ts";
import { type TaskUpdate, taskUpdates } from "./task-updates.ts";
import { leaderWarning, WarningLog } from "./task-warnings.ts";
import { checkedAt } from "./typed-tasks.ts";

export interface SubmitOptions {
  /** Let the leader push the outcome of the task to this connection. Default true. Use false for tasks whose
   *  results are not awaited here. */
  readonly notify?: boolean;
  /** Refuse the task when no online agent serves its kind. Default false: the task waits for an agent. */
  readonly failFast?: boolean;
  /** Retry after BackpressureError: wait `retryAfterMs`, then submit again, within `timeoutMs`. Default false
   *  in `submit`, true in `submitMany`. */
  readonly retry?: boolean;
  /** Maximum time to keep trying, ms. Tasks without an answer fail at the end. Default `limits.askTimeoutMs`,
   *  30 s. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Called for each refusal that holds back tasks of this call because a queue is full, and with `tasks: 0`
   *  when no tasks are held back now. Only with `retry`. Default: the logger reports both. */
  readonly onBackpressure?: (backpressure: Backpressure) => void;
}

/** A connection to a swarm. All methods may be called concurrently, any number of times. */
export interface Swarm extends SwarmOperations, AsyncDisposable {
  readonly id: string;
  /** Emits when acknowledged records are missing from the journal: a server lost its disk, or a backup was
   *  restored. Each affected `result()` rejects as well. Subscribe to learn of losses without waiting for a
   *  result. */
  readonly losses$: Observable<LossError>;
  /** Resolves when the connection has ended for good. With the error `WAGGLE_UNAUTHORIZED` if the server refuses
   *  formerly accepted credentials: they were revoked, or have expired. With undefined after `close`. Never rejects. */
  readonly closed: Promise<WaggleError | undefined>;

  /** Resolves when the task is committed to the journal. A committed task ends exactly once.
   *  @throws InvalidMessageError naming the field
   *  @throws BackpressureError when a queue is full; try again after `retryAfterMs`, or set `retry`
   *  @throws BudgetExceededError when a budget in mode `reject` is used up; `retry` does not apply
   *  @throws WaggleError `WAGGLE_OVER_BUDGET` (the estimate is above a budget in mode `wait` or `reject`)
   *  @throws WaggleError `WAGGLE_CONFLICT` (same id, different content), `WAGGLE_NO_CAPABLE_AGENT` (`failFast`)
   *  @throws NoLeaderError when no leader could be asked within `timeoutMs`, or the task was not sent: nothing
   *    was done
   *  @throws OutcomeUnknownError when the task may have been accepted: submit again with the same `id` */
  submit(task: TaskRequest, options?: SubmitOptions): Promise<TaskHandle>;
  /** Submits a task of a kind made by `defineKind`. Checks the payload before sending and the result on
   *  arrival.
   *  @throws InvalidMessageError with the path of each problem of the payload; and as above */
  submit<Kind extends TypedKind>(
    task: TypedTaskRequest<Kind>,
    options?: SubmitOptions,
  ): Promise<TypedTaskHandle<ResultValueOf<Kind>>>;

  /** Submits as fast as the swarm accepts, reading ahead at most `limits.submitWindowTasksMax` tasks. Yields
   *  one outcome per task, in order. A refused task does not stop the rest. */
  submitMany(
    tasks: Iterable<TaskRequest> | AsyncIterable<TaskRequest>,
    options?: SubmitOptions,
  ): AsyncIterable<SubmitOutcome>;
  submitMany<Kind extends TypedKind>(
    tasks: Iterable<TypedTaskRequest<Kind>> | AsyncIterable<TypedTaskRequest<Kind>>,
    options?: SubmitOptions,
  ): AsyncIterable<SubmitOutcome<TypedTaskRequest<Kind>, TypedTaskHandle<ResultValueOf<Kind>>>>;

  /** A view of the swarm bound to `project`. Its calls default to `project` and refuse any other project.
   *  @throws InvalidMessageError, `field: "project"` */
  project(project: string): ProjectSwarm;

  /** A handle for a task by id, whoever submitted the task. Sends no request. */
  task(id: string, options?: ProjectOptions): TaskHandle;

  /** Ends the present round of a task. If a retry opens a new round meanwhile, the new round goes on.
   *  @throws InvalidMessageError naming the option
   *  @throws WaggleError `WAGGLE_UNKNOWN_TASK`; `WAGGLE_CONFLICT` when a retry opened a new round meanwhile
   *  @throws NoLeaderError; OutcomeUnknownError: cancel again with the same `round`, which is harmless */
  cancel(id: string, options?: CancelOptions): Promise<CancelOutcome>;
  /** Cancels the named tasks, or all live tasks that match a filter, up to 1,024 per message. Resolves with one
   *  result per task, in order. A refused task does not stop the rest. `timeoutMs` applies to each message.
   *  @throws InvalidMessageError naming the option; NoLeaderError when no leader could list the tasks of the
   *    filter */
  cancel(tasks: ManyTasks, options?: CancelOptions): Promise<BulkResult<CancelOutcome>[]>;

  /** Iterates over the tasks that match a filter, page by page: live tasks, and ended tasks within the horizon.
   *  @throws InvalidMessageError naming the option; NoLeaderError, UnreachableError; BackpressureError */
  tasks(options?: TaskListOptions): AsyncIterable<ListedTask>;

  /** A page of tasks, with the number of matching tasks and the cursor of the next page. @throws as `tasks` */
  taskPage(options?: TaskListOptions): Promise<TaskPage>;

  /** Opens the next round of a task in state failed, expired, cancelled or dead-lettered. The id stays, and the
   *  payload is read from the journal. Failures count from 0; attempt numbers continue. Resolves when the round
   *  is committed. A wait for the result that begins later is for the new round.
   *  @throws InvalidMessageError naming the option
   *  @throws WaggleError `WAGGLE_CONFLICT` when the task completed or has not ended, `WAGGLE_GONE` when its
   *    payload is no longer kept, `WAGGLE_UNKNOWN_TASK`, and the refusals of a submission
   *  @throws NoLeaderError; OutcomeUnknownError: ask again with the same `round` */
  retry(id: string, options?: RetryOptions): Promise<RetryOutcome>;
  /** Retries the named tasks, or all retryable tasks that match a filter, up to 1,024 per message. Resolves
   *  with one result per task, in order. A refused task does not stop the rest. `timeoutMs` applies to each
   *  message.
   *  @throws InvalidMessageError naming the option; NoLeaderError when no leader could list the tasks of the
   *    filter */
  retry(tasks: ManyTasks, options?: RetryOptions): Promise<BulkResult<RetryOutcome>[]>;

  /** Takes the running attempt of a task from its agent, which is notified to stop. The task goes back to its queue, or
   *  is dead-lettered when that was its last attempt. The agent's capacity stays occupied until the agent confirms.
   *  @throws InvalidMessageError naming the option
   *  @throws WaggleError `WAGGLE_UNKNOWN_TASK`; `WAGGLE_CONFLICT` when the task is not running
   *  @throws NoLeaderError; OutcomeUnknownError: revoke again with the same `attempt`, which is harmless */
  revoke(id: string, options?: RevokeOptions): Promise<RevokeOutcome>;
  /** Revokes the attempts of the named tasks, or of all running tasks that match a filter. @throws as `cancel` */
  revoke(tasks: ManyTasks, options?: RevokeOptions): Promise<BulkResult<RevokeOutcome>[]>;

  /** Changes the time before which a waiting task may not start.
   *  @throws InvalidMessageError naming the option
   *  @throws WaggleError `WAGGLE_UNKNOWN_TASK`; `WAGGLE_CONFLICT` when the task runs or has ended;
   *    `WAGGLE_INVALID_VALUE`, `field: "notBefore"`, when the task would expire before
   *  @throws NoLeaderError; OutcomeUnknownError: reschedule again with the same options, which is harmless */
  reschedule(id: string, options: RescheduleOptions): Promise<RescheduleOutcome>;
  /** Reschedules the named tasks, or all waiting tasks that match a filter. @throws as `cancel` */
  reschedule(tasks: ManyTasks, options: RescheduleOptions): Promise<BulkResult<RescheduleOutcome>[]>;

  /** Joins an agent to the swarm, in this process, over a connection of its own. Resolves when a leader has
   *  accepted the agent, waiting for a leader if necessary. The agent ends when this connection closes. To end
   *  the agent earlier, call `drain()`, or declare it with `await using`.
   *  @throws InvalidConfigError naming the option; UnreachableError; the reason of `options.signal` */
  agent(options: AgentOptions): Promise<Agent>;
  /** An agent of a kind made by `defineKind`. The handler receives the checked `task.input`. A payload that
   *  does not fit the schema ends the task as invalid. A result that does not fit fails the attempt. */
  agent<Kind extends TypedKind>(options: TypedAgentOptions<Kind>): Promise<Agent>;

  /** Acquires slots of shared resources, in competition with all agents of the swarm. The first slot lease
   *  joins an agent without kinds for this connection. Several resources are granted together. A resource named
   *  twice counts as two slots. A free slot is granted at once; otherwise waiting time and backlog decide the
   *  order. Use `await using slot = await swarm.acquire("gpt-4o")`, or release the slot in a `finally`.
   *  @throws InvalidMessageError naming the field
   *  @throws BackpressureError when the queue of the resource is full
   *  @throws BudgetExceededError when a budget in mode `reject` has too little left for `tokens`
   *  @throws WaggleError `WAGGLE_UNKNOWN_RESOURCE`, `WAGGLE_ABOVE_CAPACITY`, `WAGGLE_ACQUIRE_TIMED_OUT`
   *  @throws WaggleError `WAGGLE_UNKNOWN_PROJECT`; `WAGGLE_OVER_BUDGET` when a hard budget is smaller than `tokens`
   *  @throws WaggleError `WAGGLE_ACQUIRE_ORDER` inside a `wrap`, and for a `holder` that holds slots, unless the
   *    resource is later in name order
   *  @throws NoLeaderError when no leader answered within `limits.askTimeoutMs`, 30 s; after a first answer,
   *    the wait outlasts the absence of a leader
   *  @throws UnreachableError; the reason of `options.signal` */
  acquire(resources: string | readonly string[], options?: AcquireOptions): Promise<Slot>;

  /** Runs `work` while holding slots, and releases the slots however `work` ends: `await swarm.wrap(() =>
   *  ask(model), { resource: "gpt-4o", weight: 2.5 })`. Inside `work`, only resources later in name order are
   *  granted.
   *  @throws as `acquire`, and the error of `work` */
  wrap<Result>(work: (slot: Slot) => Result | Promise<Result>, options: WrapOptions): Promise<Result>;

  /** The context of the running handler, as the function `currentAttempt` returns it. Undefined also where the handler
   *  serves another swarm. Two swarms differ if their names differ, or if their connections name no common server. */
  currentAttempt(): HandlerContext | undefined;

  /** Acquires slots and returns a handle for `releaseHandle`, for frameworks whose callbacks begin and end work
   *  in different places. @throws as `acquire` */
  acquireStart(resources: string | readonly string[], options?: AcquireOptions): Promise<SlotTicket>;

  /** Releases the slots that this connection acquired under a handle. Idempotent. Resolves after at most 5 s;
   *  without an answer of a leader, the release continues in the background.
   *  @param report tokens used under the slots
   *  @param options as of `Slot.release`: whether the provider refused the work
   *  @throws WaggleError `WAGGLE_UNKNOWN_HANDLE` when this connection acquired nothing under the handle;
   *    InvalidMessageError naming the field of the report or the option */
  releaseHandle(handle: string | SlotTicket, report?: SlotReport, options?: ReleaseOptions): Promise<void>;

  /** The events of the journal, as an Observable and an async iterable. Payloads and results are left out, unless
   *  `contents` is true. */
  events(options: EventsOptions & { readonly contents: true }): EventStream<Event>;
  events(options?: EventsOptions): EventStream;

  /** Agents, queues, projects and journal. Rows that do not fit the answer are counted in `omitted`; `rows`
   *  reads them, a table at a time. @throws NoLeaderError, UnreachableError */
  status(options?: StatusOptions): Promise<StatusResponse>;

  /** One verdict on flow, execution and liveness, by fixed rules over `status`, with the next command to run. Resolves
   *  also if no leader and no server answers: the finding says so. */
  health(options?: AskOptions): Promise<Health>;

  /** The present status of a task. @throws as `story` */
  taskStatus(id: string, options?: TaskOptions): Promise<AcceptedTaskStatus>;

  /** The history of a task from the journal, with the receipt of every assignment.
   *  @throws InvalidMessageError naming the option
   *  @throws WaggleError `WAGGLE_UNKNOWN_TASK`; `WAGGLE_AMBIGUOUS_TASK` when no project is named and several
   *    projects have a task with the id; NoLeaderError; UnreachableError */
  story(id: string, options?: TaskOptions): Promise<TaskStory>;

  /** Output of the newest attempts of a task, at most three: the last 16 KiB of stderr (`--exec`) or
   *  `context.log`. Only the agent keeps its logs, until it ends. `missing` says why a log is unavailable.
   *  @param task its id, or its story if already read
   *  @param options `timeoutMs` for the agents' answers, default `limits.logAskTimeoutMs`, 2 s
   *  @throws as `story`, when an id is given */
  log(task: string | TaskStory, options?: TaskOptions): Promise<AttemptLog[]>;

  /** Why a task waits, and why each attempt went to its agent.
   *  @throws as `story` */
  explain(id: string, options?: TaskOptions): Promise<TaskExplanation>;

  /** All agents with their scores at the moment of an assignment; the receipt shows three. Replays the journal up to
   *  the assignment. With access to the journal (its folder or streams) the replay begins at the newest base before
   *  the assignment. Else coordinators send the journal from its first batch on, and the duration grows with it.
   *  @throws as `story`; InvalidValueError when the task did not have the attempt; AuditTrimmedError when no state
   *    from before the assignment can be read */
  replayAssignment(id: string, options?: ReplayOptions): Promise<ReplayedAssignment>;

  /** The requests that wait for slots of a resource, in the order of this moment, with L and its terms. With an agent:
   *  only the requests up to the agent's, so all before it.
   *  @throws InvalidMessageError naming the option
   *  @throws WaggleError `WAGGLE_UNKNOWN_RESOURCE`; `WAGGLE_UNKNOWN_HANDLE` when the request does not wait;
   *    NoLeaderError; UnreachableError */
  explainSlots(resource: string, options?: SlotWaitOptions): Promise<SlotWaits>;

  /** Drains the agents started here, and stops them after `limits.closeDrainMs`, 5 s; other agents rerun
   *  unfinished tasks. Handlers may use the connection meanwhile. Then pending waits reject with
   *  UnreachableError, and streams end without an error. Submitted tasks go on. Idempotent. */
  close(): Promise<void>;
}

/** The status of a project. */
export type ProjectStatus = StatusResponse["projects"][number];

/** The calls of a swarm for one project, as `swarm.project("red")` returns them. An option or task that names
 *  another project is refused with InvalidMessageError, `field: "project"`. */
export interface ProjectSwarm
  extends Pick<
    Swarm,
    | "submit"
    | "submitMany"
    | "task"
    | "tasks"
    | "taskPage"
    | "taskStatus"
    | "story"
    | "explain"
    | "log"
    | "cancel"
    | "retry"
    | "revoke"
    | "reschedule"
    | "events"
  > {
  readonly project: string;
  /** Tasks, users and budget of the project; zeros before its first task. Of very many users, only the most
   *  relevant.
   *  @throws InvalidMessageError naming the option; NoLeaderError, UnreachableError */
  status(options?: AskOptions): Promise<ProjectStatus>;
  /** Settings of the project, and the policy. @throws as `swarm.settings` */
  settings(options?: AskOptions): Promise<SettingsResponse>;
  /** Changes settings of the project. @throws as `swarm.setProject` */
  set(
    patch: Parameters<SwarmOperations["setProject"]>[1],
    options?: AskOptions,
  ): ReturnType<SwarmOperations["setProject"]>;
  /** Stops assigning tasks of the project until `resume`. @throws as `swarm.pause` */
  pause(options?: AskOptions): Promise<Setting<Pause>>;
  resume(options?: AskOptions): Promise<Setting<Pause>>;
  /** Removes all settings of the project. @throws as `swarm.removeProject` */
  remove(options?: AskOptions): Promise<Setting<null>>;
}

export interface StatusOptions extends AskOptions {
  /** Return only the tasks, users and budget of this project. Default: the whole swarm. */
  readonly project?: string;
  /** Return only rows of `table`, without the first `from` rows. Rows have no particular order. */
  readonly rows?: { readonly table: StatusTable; readonly from: number };
}

export interface ProjectOptions {
  /** The task's project. Default: the connection's. */
  readonly project?: string;
}

export interface SwarmDeps {
  readonly transport: Transport;
  readonly swarm: SwarmId;
  readonly project: string;
  /** Whether this user may ask about `project` alone. Default false. */
  readonly projectOnly?: boolean | undefined;
  readonly user: string | undefined;
  /** Group of agents that name no group. */
  readonly group?: string;
  readonly codec?: PayloadCodec | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Default: no spans. */
  readonly tracing?: Tracing;
  /** Default: only coordinators read the journal. */
  readonly openJournal?: OpenJournal;
  /** Connection of the agents started here. Default: over `transport`, in this thread. */
  readonly agentConnection?: AgentConnection;
  /** Called once, after all other parts were closed. */
  readonly onClose: () => Promise<void>;
}

/** Length of an inbox name. Unique for each connection: 36²⁰ values. */
const INBOX_NAME_LENGTH = 20;
/** Length of the connection's part of a task id: 36¹² values. */
const CONNECTION_NAME_LENGTH = 12;

export class SwarmClient implements Swarm {
  readonly id: string;
  readonly losses$: Observable<LossError>;
  readonly closed: Promise<WaggleError | undefined>;
  readonly #deps: SwarmDeps;
  readonly #subjects: Subjects;
  /** Subject prefix on which leaders push outcomes and progress. */
  readonly #inbox: string;
  readonly #connectionName: string;
  readonly #asker: Asker;
  readonly #awaited: AwaitedTasks;
  readonly #submitter: Submitter;
  readonly #progress: TaskInbox<ProgressPush>;
  readonly #chunkLogs: ChunkLogs;
  readonly #reading: EventSourceDeps;
  readonly #handles: TaskHandleDeps;
  readonly #stories: TaskStories;
  readonly #logs: AttemptLogs;
  readonly #stops: readonly (() => void)[];
  readonly #closed = new AbortController();
  readonly #aborts = new Aborts();
  readonly #agents: OwnAgents;
  readonly #bundler: Bundler;
  readonly #operations: Operations;
  readonly #cancels: Cancels;
  readonly #retries: Retries;
  readonly #revokes: Revokes;
  readonly #reschedules: Reschedules;
  readonly #lists: TaskLists;
  readonly #slots: SlotAgent;
  readonly #heldBack: HeldBack;
  readonly #warningLog: WarningLog;
  readonly #scope: Scope;
  readonly #taskDefaults: TaskDefaults;
  /** Terms of submissions without options. */
  readonly #usualTerms: SubmitTerms;
  #idsMade = 0;
  #closing: Promise<void> | undefined;
  #resolveClosed: (reason: WaggleError | undefined) => void = () => undefined;

  constructor(deps: SwarmDeps) {
    const { transport, clock, random } = deps;
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    const horizon = new Horizon(clock);
    const subjects = subjectsOf(deps.swarm);
    const aborts = this.#aborts;
    const own = deps.projectOnly === true ? `${subjects.prefix}.project.${deps.project}.` : undefined;
    const mayAsk = own === undefined ? undefined : (subject: string) => subject.startsWith(own);
    const asker = new Asker({ transport, horizon, clock, random, aborts, mayAsk });
    const shared = { transport, subjects, asker, horizon, clock, random, aborts };
    const reader = new JournalPages(asker, subjects);

    this.id = deps.swarm;
    this.#deps = deps;
    this.#subjects = subjects;
    this.#asker = asker;
    this.#inbox = `${transport.inboxPrefix}.${random.id(INBOX_NAME_LENGTH)}`;
    this.#connectionName = random.id(CONNECTION_NAME_LENGTH);
    this.#awaited = new AwaitedTasks({ ...shared, inbox: this.#inbox });
    this.#submitter = new Submitter({
      ...shared,
      ends: {
        accepted: (task, awaited, acceptance) => this.#accepted(task, awaited, acceptance),
        notAccepted: (awaited) => {
          if (awaited !== undefined) this.#notAccepted(awaited);
        },
      },
    });
    this.#taskDefaults = { user: deps.user, clock, nextId: () => this.#nextId() };
    this.#agents = new OwnAgents(shared);
    this.#bundler = new Bundler(deps);
    this.#operations = new Operations(asker, subjects, clock);
    this.#slots = new SlotAgent({
      swarm: deps.swarm,
      project: deps.project,
      user: deps.user,
      aborts,
      clock,
      startAgent: (options) => this.agent(options),
    });
    this.#warningLog = new WarningLog(deps.logger);
    this.#scope = { project: deps.project, isBound: false };
    this.#heldBack = new HeldBack({ clock, report: backpressureLog(deps.logger) });
    this.#usualTerms = this.#termsOf({}, { retry: false });
    this.#progress = new TaskInbox(transport, progressSubject(this.#inbox), progressPushSchema);
    this.#chunkLogs = new ChunkLogs(new TaskInbox(transport, chunkSubject(this.#inbox), chunksPushSchema));
    this.#reading = {
      ...shared,
      reader,
      news: new JournalNews(shared),
      closed: this.#closed.signal,
      presentIdx: async (project, signal) =>
        (await reader.page({ project, start: { from: Number.MAX_SAFE_INTEGER }, contents: false }, signal))
          .last,
      leaderIdx: (project, signal) => this.#leaderIdx(project, signal),
    };
    this.#logs = new AttemptLogs(asker, subjects);
    this.#stories = new TaskStories({
      ...this.#reading,
      ...{ asker, subjects, openJournal: deps.openJournal },
    });
    this.#lists = new TaskLists(shared);
    const status = (id: string, asked: TaskOptions) => this.#stories.status(id, asked);
    const bulk = new Bulk({ ...shared, lists: this.#lists, status });
    this.#cancels = new Cancels({ ...shared, bulk });
    this.#retries = new Retries({ ...shared, bulk, awaitedTasks: this.#awaited });
    this.#revokes = new Revokes({ ...shared, bulk });
    this.#reschedules = new Reschedules({ ...shared, bulk });
    this.#handles = {
      clock,
      codec: deps.codec,
      aborts,
      awaitedTasks: this.#awaited,
      chunkLogs: this.#chunkLogs,
      closed: this.#closed.signal,
      updates: (task) => this.#updates(task),
      cancel: (id, asked) => this.cancel(id, asked),
      retry: (id, asked) => this.retry(id, asked),
    };
    this.losses$ = new Observable((subscriber) => horizon.onLoss((loss) => subscriber.next(loss)));
    const heartbeats = transport.subscribe(subjects.coordinator, ({ data }) => {
      const heartbeat = decode(data, coordinatorHeartbeatSchema);
      if (!heartbeat.ok) return;
      const { term, leading, began, termStarts } = heartbeat.value;
      // A client that knows no term sent its pending requests before the announced term began. Noting the
      // preceding term makes the new term a change of leader, which repeats the requests. A new term begins
      // with its leader's heartbeat.
      if (horizon.term === 0) horizon.noteTerm(began ? term - 1 : term);
      if (leading) horizon.noteTerm(term);
      if (leading && termStarts !== undefined) horizon.noteTermStarts(termStarts);
    });
    this.#stops = [
      () => heartbeats.unsubscribe(),
      horizon.onLoss((loss) => deps.logger.error({ err: loss }, "the journal lost acknowledged records")),
      transport.onStatus((status) => {
        if (status !== "closed" || transport.closedBy === undefined) return;
        this.#end(transport.closedBy);
        this.#resolveClosed(transport.closedBy);
      }),
    ];
  }

  readonly submit = ((task: TaskRequest, options?: SubmitOptions) =>
    this.#submitIn(this.#scope, task, options)) as Swarm["submit"];

  readonly submitMany = ((tasks: Iterable<TaskRequest>, options?: SubmitOptions) =>
    this.#submitManyIn(this.#scope, tasks, options)) as Swarm["submitMany"];

  /** No async function: one promise for each task. */
  #submitIn(scope: Scope, task: AnyTaskRequest, given: unknown): Promise<TaskHandle> {
    try {
      const terms =
        given === undefined
          ? this.#usualTerms
          : this.#termsOf(readSubmitOptions("submit", given), { retry: false });
      return this.#submit(prepareTask(task, scope, this.#taskDefaults), terms);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async *#submitManyIn(
    scope: Scope,
    tasks: Iterable<TaskRequest> | AsyncIterable<TaskRequest>,
    given: unknown,
  ): AsyncGenerator<SubmitOutcome> {
    const options = readSubmitOptions("submitMany", given);
    const terms = this.#termsOf(options, { retry: true });
    yield* submitMany(argument(["submitMany", "tasks"], tasks, iterable), {
      prepare: (task) => prepareTask(task, scope, this.#taskDefaults),
      submit: (task) => this.#submit(task, terms),
      signal: options.signal,
      aborts: this.#aborts,
    });
  }

  task(id: string, options?: ProjectOptions): TaskHandle {
    return this.#taskIn(this.#scope, id, options);
  }

  #taskIn(scope: Scope, id: string, options: unknown): TaskHandle {
    const { project } = readProjectOptions("task", options);
    return new SwarmTask({ id: idIn("task", id), project: projectIn(scope, project) }, this.#handles);
  }

  readonly cancel = ((tasks: string | ManyTasks, options?: CancelOptions) =>
    this.#cancels.cancel(tasks, this.#scope, options)) as Swarm["cancel"];

  tasks(options?: TaskListOptions): AsyncIterable<ListedTask> {
    return this.#lists.all(readTaskListOptions("tasks", options));
  }

  async taskPage(options?: TaskListOptions): Promise<TaskPage> {
    return await this.#lists.page(readTaskListOptions("taskPage", options));
  }

  readonly retry = ((tasks: string | ManyTasks, options?: RetryOptions) =>
    this.#retries.retry(tasks, this.#scope, options)) as Swarm["retry"];

  readonly revoke = ((tasks: string | ManyTasks, options?: RevokeOptions) =>
    this.#revokes.revoke(tasks, this.#scope, options)) as Swarm["revoke"];

  readonly reschedule = ((tasks: string | ManyTasks, options: RescheduleOptions) =>
    this.#reschedules.reschedule(tasks, this.#scope, options)) as Swarm["reschedule"];

  project(given: string): ProjectSwarm {
    const project = argument(["project", "project"], given, projectName);
    const scope = { project, isBound: true };
    const submit = (task: AnyTaskRequest, options?: SubmitOptions) => this.#submitIn(scope, task, options);
    const submitMany = (tasks: Iterable<TaskRequest>, options?: SubmitOptions) =>
      this.#submitManyIn(scope, tasks, options);
    const cancel = (tasks: string | ManyTasks, options?: CancelOptions) =>
      this.#cancels.cancel(tasks, scope, options);
    const retry = (tasks: string | ManyTasks, options?: RetryOptions) =>
      this.#retries.retry(tasks, scope, options);
    const revoke = (tasks: string | ManyTasks, options?: RevokeOptions) =>
      this.#revokes.revoke(tasks, scope, options);
    const reschedule = (tasks: string | ManyTasks, options: RescheduleOptions) =>
      this.#reschedules.reschedule(tasks, scope, options);
    const ofProject = (call: string, given: unknown) => {
      const options = readTaskListOptions(call, given);
      return { ...options, project: projectIn(scope, options.project) };
    };
    const ofTask = (call: string, given: unknown) => {
      const options = readTaskOptions(call, given);
      return { ...options, project: projectIn(scope, options.project) };
    };
    return {
      project,
      taskStatus: async (id, options) => await this.taskStatus(id, ofTask("taskStatus", options)),
      story: async (id, options) => await this.story(id, ofTask("story", options)),
      explain: async (id, options) => await this.explain(id, ofTask("explain", options)),
      log: async (task, options) => await this.log(task, ofTask("log", options)),
      tasks: (options) => this.#lists.all(ofProject("tasks", options)),
      taskPage: async (options) => await this.#lists.page(ofProject("taskPage", options)),
      submit: submit as Swarm["submit"],
      submitMany: submitMany as Swarm["submitMany"],
      task: (id, options) => this.#taskIn(scope, id, options),
      cancel: cancel as Swarm["cancel"],
      retry: retry as Swarm["retry"],
      revoke: revoke as Swarm["revoke"],
      reschedule: reschedule as Swarm["reschedule"],
      events: (options) => openEventStream(this.#reading, options, scope),
      status: (options) => this.#statusOf(project, options),
      settings: async (options) => {
        return await this.settings({ ...readAskOptions("settings", options), project });
      },
      set: (patch, options) => this.setProject(project, patch, options),
      pause: (options) => this.pause(project, options),
      resume: (options) => this.resume(project, options),
      remove: (options) => this.removeProject(project, options),
    };
  }

  async agent(options: AgentOptions | TypedAgentOptions<TypedKind>): Promise<Agent> {
    const { swarm, transport, clock, random, logger, group, tracing, codec } = this.#deps;
    const own = this.#deps.agentConnection ?? { kind: "transport", transport };
    const connection = own.kind === "transport" ? { ...own, bundler: this.#bundler } : own;
    return await this.#agents.start(
      { ...(group === undefined ? {} : { group }), ...readAgentOptions(options) },
      { swarm, connection, clock, random, logger, codec, ...(tracing === undefined ? {} : { tracing }) },
    );
  }

  async acquire(resources: string | readonly string[], options?: AcquireOptions): Promise<Slot> {
    return await this.#slots.acquire(resources, options);
  }

  async wrap<Result>(work: (slot: Slot) => Result | Promise<Result>, options: WrapOptions): Promise<Result> {
    return await this.#slots.wrap(work, options);
  }

  currentAttempt(): HandlerContext | undefined {
    const { swarm, transport } = this.#deps;
    return currentAttemptOf({ swarm, servers: transport.servers });
  }

  async acquireStart(resources: string | readonly string[], options?: AcquireOptions): Promise<SlotTicket> {
    return await this.#slots.acquireStart(resources, options);
  }

  async releaseHandle(
    given: string | SlotTicket,
    report?: SlotReport,
    options?: ReleaseOptions,
  ): Promise<void> {
    const ticket = ticketIn(given);
    // before any wait for an agent or a leader
    if (report !== undefined) addReport(undefined, report);
    readRelease(options, ticket.resources);
    await this.#slots.releaseHandle(given, report, options);
  }

  events(options?: EventsOptions): EventStream<Event> {
    return openEventStream(this.#reading, options);
  }

  async #leaderIdx(project: string, signal: AbortSignal): Promise<number | undefined> {
    try {
      const ofProject = project === NO_PROJECT ? {} : { project };
      const { idx, stale } = await this.status({ ...ofProject, signal });
      return stale === true ? undefined : idx;
    } catch (error) {
      if (error instanceof NoLeaderError || error instanceof UnreachableError) return undefined;
      throw error;
    }
  }

  async status(given?: StatusOptions): Promise<StatusResponse> {
    const { rows, project = NO_PROJECT, ...options } = readStatusOptions("status", given);
    const subject = this.#subjects.query(project, "status");
    const message = { v: 1, ...(rows === undefined ? {} : { rows }) };
    return await this.#asker.ask({ kind: "query", subject, message, schema: statusResponseSchema }, options);
  }

  async health(options?: AskOptions): Promise<Health> {
    const asked = readAskOptions("health", options);
    return await healthFrom(() => this.status(asked));
  }

  async #statusOf(project: string, options: unknown): Promise<ProjectStatus> {
    const { projects } = await this.status({ ...readAskOptions("status", options), project });
    const [status] = projects;
    if (status?.project === project) return status;
    throw new UnreadableAnswerError(
      `The status of project ${project} is not in the answer. Run coordinators and clients of one version`,
    );
  }

  async taskStatus(id: string, options?: TaskOptions): Promise<AcceptedTaskStatus> {
    return await this.#stories.status(idIn("taskStatus", id), readTaskOptions("taskStatus", options));
  }

  async story(id: string, options?: TaskOptions): Promise<TaskStory> {
    return await this.#stories.story(idIn("story", id), readTaskOptions("story", options));
  }

  async log(given: string | TaskStory, asked?: TaskOptions): Promise<AttemptLog[]> {
    const { project, ...options } = readTaskOptions("log", asked);
    const { signal } = options;
    const task = argument(["log", "task"], given, idOrStory);
    const reading = {
      ...(project === undefined ? {} : { project }),
      ...(signal === undefined ? {} : { signal }),
    };
    const story = typeof task === "string" ? await this.story(task, reading) : task;
    return await this.#logs.of(story, options);
  }

  async explain(id: string, options?: TaskOptions): Promise<TaskExplanation> {
    return await this.#stories.explain(idIn("explain", id), readTaskOptions("explain", options));
  }

  async replayAssignment(id: string, options?: ReplayOptions): Promise<ReplayedAssignment> {
    return await this.#stories.replayAssignment(idIn("replayAssignment", id), options);
  }

  async explainSlots(resource: string, options?: SlotWaitOptions): Promise<SlotWaits> {
    const name = argument(["explainSlots", "resource"], resource, z.string());
    return await this.#stories.slotWaits(name, readSlotWaitOptions("explainSlots", options));
  }

  readonly settings: Swarm["settings"] = (options) => this.#operations.settings(options);
  readonly setPolicy: Swarm["setPolicy"] = (...asked) => this.#operations.setPolicy(...asked);
  readonly setProject: Swarm["setProject"] = (...asked) => this.#operations.setProject(...asked);
  readonly setKind: Swarm["setKind"] = (...asked) => this.#operations.setKind(...asked);
  readonly setResource: Swarm["setResource"] = (...asked) => this.#operations.setResource(...asked);
  readonly setRate: Swarm["setRate"] = (...asked) => this.#operations.setRate(...asked);
  readonly removeProject: Swarm["removeProject"] = (...asked) => this.#operations.removeProject(...asked);
  readonly removeResource: Swarm["removeResource"] = (...asked) => this.#operations.removeResource(...asked);
  readonly removeRate: Swarm["removeRate"] = (...asked) => this.#operations.removeRate(...asked);
  readonly pause: Swarm["pause"] = (...asked) => this.#operations.pause(...asked);
  readonly resume: Swarm["resume"] = (...asked) => this.#operations.resume(...asked);
  readonly setGrant: Swarm["setGrant"] = (...asked) => this.#operations.setGrant(...asked);
  readonly removeGrant: Swarm["removeGrant"] = (...asked) => this.#operations.removeGrant(...asked);
  readonly hold: Swarm["hold"] = (...asked) => this.#operations.hold(...asked);
  readonly unhold: Swarm["unhold"] = (...asked) => this.#operations.unhold(...asked);
  readonly drain: Swarm["drain"] = (...asked) => this.#operations.drain(...asked);
  readonly undrain: Swarm["undrain"] = (...asked) => this.#operations.undrain(...asked);
  readonly transferLead: Swarm["transferLead"] = (options) => this.#operations.transferLead(options);

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    const reason = new UnreachableError("The connection to the swarm is closed; submitted tasks go on");
    if (!this.#agents.isEmpty) await this.#agents.close(reason);
    for (const stop of this.#stops) stop();
    this.#end(reason);
    this.#progress.close();
    this.#chunkLogs.close();
    await this.#deps.onClose();
    this.#resolveClosed(undefined);
  }

  /** No answer and no outcome can arrive any more. Idempotent: the first reason counts. */
  #end(reason: WaggleError): void {
    this.#closed.abort(reason);
    this.#submitter.close(reason);
    this.#awaited.close(reason);
  }

  /** Reports to the caller's callback, or else to the log. */
  #heldBackOf({ onBackpressure }: SubmitOptions): HeldBack {
    const { clock, logger } = this.#deps;
    if (onBackpressure === undefined) return this.#heldBack;
    const report = (backpressure: Backpressure) => {
      try {
        onBackpressure(backpressure);
      } catch (error) {
        logger.error({ err: error }, "onBackpressure threw; submitting the tasks goes on");
      }
    };
    return new HeldBack({ clock, report });
  }

  /** Unique without a random number for each task. */
  #nextId(): string {
    this.#idsMade += 1;
    return `${this.#connectionName}-${this.#idsMade.toString(36)}`;
  }

  #termsOf(options: SubmitOptions, defaults: { readonly retry: boolean }): SubmitTerms {
    const { notify = true, failFast = false, timeoutMs = limits.askTimeoutMs, signal } = options;
    const { retry = defaults.retry } = options;
    const inbox = notify ? this.#inbox : undefined;
    return { notify: inbox, failFast, retry, timeoutMs, heldBack: this.#heldBackOf(options), signal };
  }

  /** Checks the payload of a typed task first. Never throws: all errors are rejections. */
  #submit(task: PreparedTask, terms: SubmitTerms): Promise<TaskHandle> {
    try {
      this.#closed.signal.throwIfAborted();
      const { codec } = this.#deps;
      if (codec !== undefined) return this.#sendSealed(task, terms, codec);
      if (task.typed === undefined) return this.#send(task, terms);
      const { kind, payload } = task.typed;
      return checkedAt("payload", payload, kind.input).then(() => this.#send(task, terms));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #sendSealed(task: PreparedTask, terms: SubmitTerms, codec: PayloadCodec): Promise<TaskHandle> {
    if (task.typed !== undefined) await checkedAt("payload", task.typed.payload, task.typed.kind.input);
    return await this.#send(await sealedTask(task, codec), terms);
  }

  /** The errors of the checks before sending are thrown, all others rejections. */
  #send(task: PreparedTask, terms: SubmitTerms): Promise<TaskHandle> {
    const { id, kind, project } = task;
    const { traceparent, tracestate } = traceOf(task);
    const span = this.#deps.tracing?.submit({ id, kind, project, traceparent, tracestate });
    if (span === undefined) return this.#sendPlain(task, terms);
    try {
      const accepted = this.#sendPlain(withTrace(task, span.context), terms);
      accepted.then(
        () => span.accepted(),
        (error: unknown) => span.refused(error),
      );
      return accepted;
    } catch (error) {
      span.refused(error);
      throw error;
    }
  }

  #sendPlain(task: PreparedTask, terms: SubmitTerms): Promise<TaskHandle> {
    const awaited = terms.notify === undefined ? undefined : this.#awaited.expect(task.id, task.project);
    if (task.isStreamed && awaited !== undefined) this.#chunkLogs.of(awaited); // before the first chunk
    try {
      return this.#submitter.submit(task, terms, awaited);
    } catch (error) {
      if (awaited !== undefined) this.#notAccepted(awaited);
      throw error;
    }
  }

  #notAccepted(awaited: AwaitedTask): void {
    this.#chunkLogs.drop(awaited);
    this.#awaited.notAccepted(awaited);
  }

  #accepted(task: PreparedTask, awaited: AwaitedTask | undefined, acceptance: Acceptance): TaskHandle {
    if (awaited !== undefined) this.#awaited.accepted(awaited, acceptance);
    const given = acceptance.warnings.map((warning) => leaderWarning(task.kind, warning));
    const warnings = given.length === 0 ? task.warnings : [...task.warnings, ...given];
    for (const warning of warnings) this.#warningLog.note(task.kind, warning, task.id);
    const { isStreamed, typed } = task;
    return new SwarmTask(task, this.#handles, {
      acceptance,
      awaited,
      warnings,
      kind: typed?.kind,
      isStreamed,
    });
  }

  #updates(task: SwarmTask): Observable<TaskUpdate> {
    const { id, project } = task;
    return taskUpdates(
      { project, task: id },
      {
        progress: this.#progress,
        watch: () => task.watched(),
        abandon: (awaited) => this.#awaited.abandoned(awaited),
        closed: this.#closed.signal,
        begun: (signal) => this.#status(task, signal),
        follow: (from, signal) => followProject(this.#reading, { project, from }, signal),
      },
    );
  }

  /** A standby may not have read the submission yet, although the leader accepted the task. */
  async #status(task: SwarmTask, signal: AbortSignal): Promise<AcceptedTaskStatus> {
    const attempt = async () => {
      try {
        return await this.#stories.status(task.id, { project: task.project, signal });
      } catch (error) {
        if (task.ack === undefined || signal.aborted || !isUnknownTask(error)) throw error;
        throw new TryAgain({}, { cause: error });
      }
    };
    const giveUpAtMs = this.#deps.clock.monotonicMs() + limits.askTimeoutMs;
    return await retried(attempt, { ...askPace(this.#deps), giveUpAtMs, hurry$: abortOf(signal) });
  }
}

const readSubmitOptions = readerOf<SubmitOptions>({
  each: {
    ...askRules.each,
    notify: flag,
    failFast: flag,
    retry: flag,
    onBackpressure: callback<NonNullable<SubmitOptions["onBackpressure"]>>(),
  },
  otherwise: askRules.otherwise,
  example: "{ failFast: true }",
});

const readStatusOptions = readerOf<StatusOptions>({
  ...askRules,
  each: {
    ...askRules.each,
    project: projectName,
    rows: objectOf<NonNullable<StatusOptions["rows"]>>({
      each: { table: z.enum(statusTables), from: z.int().min(0) },
      required: ["table", "from"],
      example: '{ table: "agents", from: 500 }',
    }),
  },
});

const readProjectOptions = readerOf<ProjectOptions>({
  each: { project: projectName },
  example: '{ project: "red" }',
});

const iterable = judged<Iterable<TaskRequest> | AsyncIterable<TaskRequest>>((input) => {
  const isIterable =
    typeof input === "object" &&
    input !== null &&
    (Symbol.iterator in input || Symbol.asyncIterator in input);
  return isIterable ? undefined : `must be an iterable of tasks, not ${shown(input)}`;
});

const idOrStory = judged<string | TaskStory>((input) => {
  if (typeof input === "string") return taskIdSchema.safeParse(input).error?.issues[0]?.message;
  const { status, attempts } = (input ?? {}) as {
    readonly status?: Partial<TaskStory["status"]>;
    readonly attempts?: unknown;
  };
  const isStory =
    typeof status?.task === "string" && typeof status.project === "string" && Array.isArray(attempts);
  return isStory ? undefined : `must be text or a task's story, not ${shown(input)}`;
});

function idIn(call: string, id: string): string {
  return argument([call, "id"], id, taskIdSchema);
}

/** Logs when a queue fills up and when all tasks were taken, not for each answer. */
function backpressureLog(logger: Logger): (backpressure: Backpressure) => void {
  let isHeldBack = false;
  return ({ tasks, since, retryAfterMs, reason }) => {
    if (tasks === 0) logger.info({ since }, "no tasks are held back now");
    else if (!isHeldBack) logger.warn({ tasks, since, retryAfterMs }, `tasks are held back: ${reason}`);
    isHeldBack = tasks > 0;
  };
}

function isUnknownTask(error: unknown): boolean {
  return error instanceof WaggleError && error.code === "WAGGLE_UNKNOWN_TASK";
}
