// The parts of a client put together over one connection: what `connect` returns.
// Not here: finding the server (connect.ts), how each part works (the files it imports).

import type { Logger } from "pino";
import { Observable } from "rxjs";
import { z } from "zod";
import { Aborts } from "../abort.ts";
import {
  type Agent,
  type AgentConnection,
  type AgentOptions,
  readAgentOptions,
  type TypedAgentOptions,
} from "../agent/agent.ts";
import { argument, callback, flag, judged, objectOf, readerOf, text } from "../agent/options.ts";
import type { AcquireOptions, Slot } from "../agent/slots.ts";
import type { ResultValueOf, TypedKind } from "../agent/typed-kind.ts";
import type { ReplayedAssignment } from "../audit/assignment-replay.ts";
import type { Clock, Random } from "../clock.ts";
import { UnreachableError, UnreadableAnswerError, WaggleError } from "../errors.ts";
import { NO_PROJECT, type SwarmId } from "../ids.ts";
import { limits } from "../limits.ts";
import { decode } from "../protocol/codec.ts";
import { Horizon } from "../protocol/horizon.ts";
import type { LossError } from "../protocol/loss-error.ts";
import {
  coordinatorHeartbeatSchema,
  type StatusResponse,
  type StatusTable,
  statusResponseSchema,
  statusTables,
  taskIdSchema,
} from "../protocol/schemas.ts";
import { shown } from "../protocol/sentence.ts";
import { progressSubject, type Subjects, subjectsOf } from "../protocol/subjects.ts";
import type { ListedTask } from "../protocol/task-list-schemas.ts";
import { retried, TryAgain } from "../retry-paused.ts";
import type { Transport } from "../transport/transport.ts";
import { abortOf, askPace } from "./ask-pace.ts";
import { Asker, type AskOptions, askRules, readAskOptions } from "./asker.ts";
import { type AttemptLog, AttemptLogs } from "./attempt-logs.ts";
import { AwaitedTasks } from "./awaited-tasks.ts";
import { type Backpressure, HeldBack } from "./backpressure.ts";
import { Bulk, type BulkResult, type ManyTasks } from "./bulk.ts";
import { type CancelOptions, type CancelOutcome, Cancels } from "./cancels.ts";
import { type EventSourceDeps, followProject, openEventStream } from "./event-source.ts";
import type { EventStream, EventsOptions } from "./event-stream.ts";
import { JournalNews } from "./journal-news.ts";
import { JournalPages } from "./journal-pages.ts";
import { Operations, type Pause, type Setting, type SwarmOperations } from "./operations.ts";
import { OwnAgents } from "./own-agents.ts";
import { ProgressInbox } from "./progress-inbox.ts";
import { Retries, type RetryOptions, type RetryOutcome } from "./retries.ts";
import { projectIn, type Scope } from "./scope.ts";
import { SlotAgent, type WrapOptions } from "./slot-agent.ts";
import { type SubmitOutcome, submitMany } from "./submit-many.ts";
import { Submitter } from "./submitter.ts";
import { SwarmTask, type TaskHandle, type TaskHandleDeps, type TypedTaskHandle } from "./task-handle.ts";
import { readTaskListOptions, type TaskListOptions, TaskLists, type TaskPage } from "./task-lists.ts";
import {
  type AnyTaskRequest,
  type PreparedTask,
  prepareTask,
  projectName,
  type TaskRequest,
  type TypedTaskRequest,
} from "./task-request.ts";
import {
  type AcceptedTaskStatus,
  type ReplayOptions,
  readTaskOptions,
  type TaskExplanation,
  type TaskOptions,
  TaskStories,
  type TaskStory,
} from "./task-stories.ts";
import { type TaskUpdate, taskUpdates } from "./task-updates.ts";
import { leaderWarning, WarningLog } from "./task-warnings.ts";
import { checkedAt } from "./typed-tasks.ts";

export interface SubmitOptions {
  /** Have the leader tell this connection how the task ends, without being asked. Default true; false for
   *  tasks whose results nobody here waits for. */
  readonly notify?: boolean;
  /** Refuse the task when no agent that is online serves its kind. Default false: it waits for one. */
  readonly failFast?: boolean;
  /** When there is no room: wait as long as the refusal says and try again, within `timeoutMs`.
   *  Default false in `submit`, true in `submitMany`. */
  readonly retry?: boolean;
  /** How long to go on trying, ms: then it is over, whatever is not answered. Default `limits.askTimeoutMs`, 30 s. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Called when tasks of this call are held back because a queue is full, at each answer that says so, and with
   *  `tasks: 0` when none is any more. With `retry` only. Without it, the logger is told. */
  readonly onBackpressure?: (backpressure: Backpressure) => void;
}

/** One connection to one swarm. Everything here may be called at once, any number of times. */
export interface Swarm extends SwarmOperations, AsyncDisposable {
  readonly id: string;
  /** What was acknowledged and is found missing: a server lost its disk, or a backup was put back. Each
   *  affected `result()` fails too; this is for whoever waits for none. */
  readonly losses$: Observable<LossError>;

  /** Resolves when the task is committed to the journal: from then on it ends, exactly once.
   *  @throws InvalidMessageError naming the field
   *  @throws BackpressureError when there is no room; try again after `retryAfterMs`, or set `retry`
   *  @throws BudgetExceededError when a budget in mode `reject` is used up: it is not tried again, also with `retry`
   *  @throws WaggleError `WAGGLE_OVER_BUDGET` (the estimate is above a budget in mode `wait` or `reject`)
   *  @throws WaggleError `WAGGLE_CONFLICT` (same id, other content), `WAGGLE_NO_CAPABLE_AGENT` (`failFast`)
   *  @throws NoLeaderError when nobody could be asked for `timeoutMs`, or it was not sent: nothing was done
   *  @throws OutcomeUnknownError when it may have been accepted: submit it again with the same `id` */
  submit(task: TaskRequest, options?: SubmitOptions): Promise<TaskHandle>;
  /** A task of a kind that `defineKind` made: its payload is checked before it is sent, and the result when it has
   *  come.
   *  @throws InvalidMessageError with the path of each problem of the payload; and as above */
  submit<Kind extends TypedKind>(
    task: TypedTaskRequest<Kind>,
    options?: SubmitOptions,
  ): Promise<TypedTaskHandle<ResultValueOf<Kind>>>;

  /** Submits as fast as the swarm takes them, reading ahead at most `limits.submitWindowTasksMax` tasks. One
   *  outcome for each task, in order; a refused task does not stop the others. */
  submitMany(
    tasks: Iterable<TaskRequest> | AsyncIterable<TaskRequest>,
    options?: SubmitOptions,
  ): AsyncIterable<SubmitOutcome>;
  submitMany<Kind extends TypedKind>(
    tasks: Iterable<TypedTaskRequest<Kind>> | AsyncIterable<TypedTaskRequest<Kind>>,
    options?: SubmitOptions,
  ): AsyncIterable<SubmitOutcome<TypedTaskRequest<Kind>, TypedTaskHandle<ResultValueOf<Kind>>>>;

  /** This swarm for one project: its calls need not name the project, and refuse another one.
   *  @throws InvalidMessageError, `field: "project"` */
  project(project: string): ProjectSwarm;

  /** A task by its id, whoever submitted it. Asks nothing yet. */
  task(id: string, options?: ProjectOptions): TaskHandle;

  /** Ends the present round of a task. A round that a retry opens while the cancellation is under way goes on.
   *  @throws InvalidMessageError naming the option
   *  @throws WaggleError `WAGGLE_UNKNOWN_TASK`; `WAGGLE_CONFLICT` when a retry opened another round meanwhile
   *  @throws NoLeaderError; OutcomeUnknownError: cancel it again with the same `round`, which is harmless */
  cancel(id: string, options?: CancelOptions): Promise<CancelOutcome>;
  /** Cancels the named tasks, or all live tasks that a filter takes, up to 1,024 in a message. Resolves with one result
   *  per task, in order; a task that is refused does not stop the others. `timeoutMs` is for each message.
   *  @throws InvalidMessageError naming the option; NoLeaderError when the filter could not be asked for */
  cancel(tasks: ManyTasks, options?: CancelOptions): Promise<BulkResult<CancelOutcome>[]>;

  /** Tasks that a filter takes, page by page, as an async iterable: live ones, and ended ones within the horizon.
   *  @throws InvalidMessageError naming the option; NoLeaderError, UnreachableError; BackpressureError */
  tasks(options?: TaskListOptions): AsyncIterable<ListedTask>;

  /** One page of them, with how many there are and where the next page begins. @throws as `tasks` */
  taskPage(options?: TaskListOptions): Promise<TaskPage>;

  /** Opens the next round of a task that failed, expired, was cancelled or was dead-lettered: under the same id, with
   *  the same payload, which is read from the journal. Its failures count from 0, its attempts are numbered on.
   *  Resolves when that is committed; a wait for the result begun then is for the new round.
   *  @throws InvalidMessageError naming the option
   *  @throws WaggleError `WAGGLE_CONFLICT` when it completed or has not ended, `WAGGLE_GONE` when its payload is no
   *    longer kept, `WAGGLE_UNKNOWN_TASK`, and what a submission is refused with
   *  @throws NoLeaderError; OutcomeUnknownError: ask again with the same `round` */
  retry(id: string, options?: RetryOptions): Promise<RetryOutcome>;
  /** Retries the named tasks, or all that a filter takes and that may be retried, up to 1,024 in a message. Resolves
   *  with one result per task, in order; a task that is refused does not stop the others. `timeoutMs` is for each
   *  message. @throws InvalidMessageError naming the option; NoLeaderError when the filter could not be asked for */
  retry(tasks: ManyTasks, options?: RetryOptions): Promise<BulkResult<RetryOutcome>[]>;

  /** Joins an agent to the swarm, in this process, over a connection of its own. It ends when this connection is
   *  closed; to end it before, call `drain()`, or declare it with `await using`. Resolves when a leader has
   *  accepted it, waiting for one if there is none.
   *  @throws InvalidConfigError naming the option; UnreachableError; the reason of `options.signal` */
  agent(options: AgentOptions): Promise<Agent>;
  /** An agent of one kind that `defineKind` made. Its handler is given the checked `task.input`; a payload that does
   *  not fit ends the task as invalid, a result that does not fit fails the attempt. */
  agent<Kind extends TypedKind>(options: TypedAgentOptions<Kind>): Promise<Agent>;

  /** Acquires slots of shared resources, in competition with every agent of the swarm, whatever process it is in: the
   *  first slot lease joins an agent without kinds for this connection. Several resources are granted whole, all at
   *  once; one mentioned twice is two slots. A free slot is granted at once; else who waits longest and has most
   *  waiting goes first. `await using slot = await swarm.acquire("gpt-4o")`, or release it in a `finally`.
   *  @throws InvalidMessageError naming the field
   *  @throws BackpressureError when as many wait for the resource as may
   *  @throws WaggleError `WAGGLE_UNKNOWN_RESOURCE`, `WAGGLE_ABOVE_CAPACITY`, `WAGGLE_ACQUIRE_ORDER` (something is
   *    held that does not come before it in name order), `WAGGLE_ACQUIRE_TIMED_OUT`
   *  @throws NoLeaderError when no leader answered for `limits.askTimeoutMs`, 30 s; a wait that one has answered
   *    outlasts its absence
   *  @throws UnreachableError; the reason of `options.signal` */
  acquire(resources: string | readonly string[], options?: AcquireOptions): Promise<Slot>;

  /** Runs `work` while holding slots, and releases them however it ends: `await swarm.wrap(() => ask(model),
   *  { resource: "gpt-4o", weight: 2.5 })`. Inside `work`, only what comes later in name order is granted.
   *  @throws as `acquire`, and what `work` throws */
  wrap<Result>(work: (slot: Slot) => Result | Promise<Result>, options: WrapOptions): Promise<Result>;

  /** For frameworks whose callbacks begin and end work in different places: acquires, and gives a handle to release
   *  by. @throws as `acquire` */
  acquireStart(resources: string | readonly string[], options?: AcquireOptions): Promise<string>;

  /** Releases what was acquired under a handle by this connection. Idempotent. Where no leader hears of it within
   *  5 s it resolves all the same, and goes on in the background.
   *  @throws WaggleError `WAGGLE_UNKNOWN_HANDLE` when nothing ever was */
  releaseHandle(handle: string): Promise<void>;

  /** The record of everything that happened: an Observable and an async iterable. */
  events(options?: EventsOptions): EventStream;

  /** Agents, queues, projects, journal. Rows that do not fit one answer are counted in `omitted`; with `rows` they are
   *  asked for, a table at a time. @throws NoLeaderError, UnreachableError */
  status(options?: StatusOptions): Promise<StatusResponse>;

  /** Where a task stands now. @throws as `story` */
  taskStatus(id: string, options?: TaskOptions): Promise<AcceptedTaskStatus>;

  /** A task's life from the journal, with the receipt of every assignment.
   *  @throws InvalidMessageError naming the option
   *  @throws WaggleError `WAGGLE_UNKNOWN_TASK`; `WAGGLE_AMBIGUOUS_TASK` when no project is named and several have a
   *    task of this id; NoLeaderError; UnreachableError */
  story(id: string, options?: TaskOptions): Promise<TaskStory>;

  /** What a task's newest attempts wrote to stderr (`--exec`) or to `context.log`: of at most three, the last 16 KiB
   *  each. Agents keep that while they live, and nobody else does: `missing` says why one is not to be had.
   *  @param task its id, or its story where that was read
   *  @param options `timeoutMs` for the agents' answers, default `limits.logAskTimeoutMs`, 2 s
   *  @throws as `story`, when an id is given */
  log(task: string | TaskStory, options?: TaskOptions): Promise<AttemptLog[]>;

  /** Why a task waits, or why each of its attempts went where it did.
   *  @throws as `story` */
  explain(id: string, options?: TaskOptions): Promise<TaskExplanation>;

  /** Every agent with its terms at the moment of one assignment, found by replaying the journal up to it: the
   *  receipt shows three. Takes as long as the journal is.
   *  @throws as `story`; InvalidValueError when the task has not had that attempt; AuditTrimmedError when the journal
   *  was purged of its beginning */
  replayAssignment(id: string, options?: ReplayOptions): Promise<ReplayedAssignment>;

  /** First ends the agents that were started here, whose handlers may go on using the connection meanwhile: they are
   *  drained, and stopped when that takes longer than `limits.closeDrainMs`, 5 s; what they then still run is run
   *  elsewhere. After that, waits under way end with UnreachableError, streams without an error; the tasks go on.
   *  Idempotent. */
  close(): Promise<void>;
}

/** What `status` says of a project. */
export type ProjectStatus = StatusResponse["projects"][number];

/** What `swarm.project("red")` returns: the calls of a swarm that take a project, for this one. An option or task that
 *  names another project is refused with InvalidMessageError, `field: "project"`; this project may be named. */
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
    | "events"
  > {
  readonly project: string;
  /** Tasks, users and budget of the project; zeros before its first task. Of very many users, the users that matter
   *  most. @throws InvalidMessageError naming the option; NoLeaderError, UnreachableError */
  status(options?: AskOptions): Promise<ProjectStatus>;
  /** Changes what is set for the project. @throws as `swarm.setProject` */
  set(
    patch: Parameters<SwarmOperations["setProject"]>[1],
    options?: AskOptions,
  ): ReturnType<SwarmOperations["setProject"]>;
  /** Assigns nothing of the project until `resume`. @throws as `swarm.pause` */
  pause(options?: AskOptions): Promise<Setting<Pause>>;
  resume(options?: AskOptions): Promise<Setting<Pause>>;
  /** Sets nothing for the project any more. @throws as `swarm.removeProject` */
  remove(options?: AskOptions): Promise<Setting<null>>;
}

export interface StatusOptions extends AskOptions {
  /** Of all tables only this one, without its first `from` rows, which are in no particular order. */
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
  readonly user: string | undefined;
  /** Of agents that name none. */
  readonly group?: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** How agents that are started here reach the swarm. Default: over `transport`, in this thread. */
  readonly agentConnection?: AgentConnection;
  /** Called once, after everything else was closed. */
  readonly onClose: () => Promise<void>;
}

/** Of the name of an inbox that no other connection has; 36²⁰ of them. */
const INBOX_NAME_LENGTH = 20;
/** The part of a task id that names the connection; 36¹² of them. */
const CONNECTION_NAME_LENGTH = 12;

export class SwarmClient implements Swarm {
  readonly id: string;
  readonly losses$: Observable<LossError>;
  readonly #deps: SwarmDeps;
  readonly #subjects: Subjects;
  /** Where leaders tell this connection of its tasks. */
  readonly #inbox: string;
  readonly #connectionName: string;
  readonly #asker: Asker;
  readonly #awaited: AwaitedTasks;
  readonly #submitter: Submitter;
  readonly #progress: ProgressInbox;
  readonly #reading: EventSourceDeps;
  readonly #handles: TaskHandleDeps;
  readonly #stories: TaskStories;
  readonly #logs: AttemptLogs;
  readonly #stops: readonly (() => void)[];
  readonly #closed = new AbortController();
  readonly #aborts = new Aborts();
  readonly #agents: OwnAgents;
  readonly #operations: Operations;
  readonly #cancels: Cancels;
  readonly #retries: Retries;
  readonly #lists: TaskLists;
  readonly #slots: SlotAgent;
  readonly #heldBack: HeldBack;
  readonly #warningLog: WarningLog;
  readonly #scope: Scope;
  #idsMade = 0;
  #closing: Promise<void> | undefined;

  constructor(deps: SwarmDeps) {
    const { transport, clock, random } = deps;
    const horizon = new Horizon(clock);
    const subjects = subjectsOf(deps.swarm);
    const aborts = this.#aborts;
    const asker = new Asker({ transport, horizon, clock, random, aborts });
    const shared = { transport, subjects, asker, horizon, clock, random, aborts };
    const reader = new JournalPages(asker, subjects);

    this.id = deps.swarm;
    this.#deps = deps;
    this.#subjects = subjects;
    this.#asker = asker;
    this.#inbox = `${transport.inboxPrefix}.${random.id(INBOX_NAME_LENGTH)}`;
    this.#connectionName = random.id(CONNECTION_NAME_LENGTH);
    this.#awaited = new AwaitedTasks({ ...shared, inbox: this.#inbox });
    this.#submitter = new Submitter(shared);
    this.#agents = new OwnAgents(shared);
    this.#operations = new Operations(asker, subjects, clock);
    this.#slots = new SlotAgent({
      swarm: deps.swarm,
      aborts,
      clock,
      startAgent: (options) => this.agent(options),
    });
    this.#warningLog = new WarningLog(deps.logger);
    this.#scope = { project: deps.project, isBound: false };
    this.#heldBack = new HeldBack({ clock, report: backpressureLog(deps.logger) });
    this.#progress = new ProgressInbox(transport, progressSubject(this.#inbox));
    this.#reading = {
      ...shared,
      reader,
      news: new JournalNews(shared),
      closed: this.#closed.signal,
      presentIdx: async (project, signal) =>
        (await reader.page(project, { from: Number.MAX_SAFE_INTEGER }, signal)).last,
    };
    this.#logs = new AttemptLogs(asker, subjects);
    this.#stories = new TaskStories({ ...this.#reading, asker, subjects });
    this.#lists = new TaskLists(shared);
    const status = (id: string, asked: TaskOptions) => this.#stories.status(id, asked);
    const bulk = new Bulk({ ...shared, lists: this.#lists, status });
    this.#cancels = new Cancels({ ...shared, bulk });
    this.#retries = new Retries({ ...shared, bulk, awaitedTasks: this.#awaited });
    this.#handles = {
      clock,
      aborts,
      awaitedTasks: this.#awaited,
      updates: (task) => this.#updates(task),
      cancel: (id, asked) => this.cancel(id, asked),
      retry: (id, asked) => this.retry(id, asked),
    };
    this.losses$ = new Observable((subscriber) => horizon.onLoss((loss) => subscriber.next(loss)));
    const beats = transport.subscribe(subjects.coordinator, ({ data }) => {
      const beat = decode(data, coordinatorHeartbeatSchema);
      if (!beat.ok) return;
      const { term, leading, began } = beat.value;
      // Who knows of none asked in the one before that which begins now, or learns from anybody whose term it was that
      // it asked in; a new one begins with who leads it.
      if (horizon.term === 0) horizon.noteTerm(began ? term - 1 : term);
      if (leading) horizon.noteTerm(term);
    });
    this.#stops = [
      () => beats.unsubscribe(),
      horizon.onLoss((loss) => deps.logger.error({ err: loss }, "the journal lost what it had acknowledged")),
    ];
  }

  readonly submit = ((task: TaskRequest, options?: SubmitOptions) =>
    this.#submitIn(this.#scope, task, options)) as Swarm["submit"];

  readonly submitMany = ((tasks: Iterable<TaskRequest>, options?: SubmitOptions) =>
    this.#submitManyIn(this.#scope, tasks, options)) as Swarm["submitMany"];

  async #submitIn(scope: Scope, task: AnyTaskRequest, given: unknown): Promise<TaskHandle> {
    const options = readSubmitOptions("submit", given);
    const heldBack = this.#heldBackOf(options);
    return await this.#submit(this.#prepare(scope, task), { retry: false, ...options }, heldBack);
  }

  async *#submitManyIn(
    scope: Scope,
    tasks: Iterable<TaskRequest> | AsyncIterable<TaskRequest>,
    given: unknown,
  ): AsyncGenerator<SubmitOutcome> {
    const options = readSubmitOptions("submitMany", given);
    const heldBack = this.#heldBackOf(options);
    yield* submitMany(argument(["submitMany", "tasks"], tasks, iterable), {
      prepare: (task) => this.#prepare(scope, task),
      submit: (task) => this.#submit(task, { retry: true, ...options }, heldBack),
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
      events: (options) => openEventStream(this.#reading, options, scope),
      status: (options) => this.#statusOf(project, options),
      set: (patch, options) => this.setProject(project, patch, options),
      pause: (options) => this.pause(project, options),
      resume: (options) => this.resume(project, options),
      remove: (options) => this.removeProject(project, options),
    };
  }

  async agent(options: AgentOptions | TypedAgentOptions<TypedKind>): Promise<Agent> {
    const { swarm, transport, clock, random, logger, group } = this.#deps;
    const connection = this.#deps.agentConnection ?? { kind: "transport", transport };
    return await this.#agents.start(
      { ...(group === undefined ? {} : { group }), ...readAgentOptions(options) },
      { swarm, connection, clock, random, logger },
    );
  }

  async acquire(resources: string | readonly string[], options?: AcquireOptions): Promise<Slot> {
    return await this.#slots.acquire(resources, options);
  }

  async wrap<Result>(work: (slot: Slot) => Result | Promise<Result>, options: WrapOptions): Promise<Result> {
    return await this.#slots.wrap(work, options);
  }

  async acquireStart(resources: string | readonly string[], options?: AcquireOptions): Promise<string> {
    const { handle } = await this.#slots.acquire(resources, options);
    return handle;
  }

  async releaseHandle(handle: string): Promise<void> {
    await this.#slots.releaseHandle(argument(["releaseHandle", "handle"], handle, text));
  }

  events(options?: EventsOptions): EventStream {
    return openEventStream(this.#reading, options);
  }

  async status(given?: StatusOptions): Promise<StatusResponse> {
    const { rows, ...options } = readStatusOptions("status", given);
    const subject = this.#subjects.query(NO_PROJECT, "status");
    const message = { v: 1, ...(rows === undefined ? {} : { rows }) };
    return await this.#asker.ask({ kind: "query", subject, message, schema: statusResponseSchema }, options);
  }

  async #statusOf(project: string, options: unknown): Promise<ProjectStatus> {
    const subject = this.#subjects.query(project, "status");
    const question = { kind: "query", subject, message: { v: 1 }, schema: statusResponseSchema } as const;
    const { projects } = await this.#asker.ask(question, readAskOptions("status", options));
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
    const reason = new UnreachableError("The connection to the swarm is closed");
    if (!this.#agents.isEmpty) await this.#agents.close(reason);
    this.#closed.abort(reason);
    for (const stop of this.#stops) stop();
    this.#submitter.close();
    this.#awaited.close();
    this.#progress.close();
    await this.#deps.onClose();
  }

  #prepare(scope: Scope, task: AnyTaskRequest): PreparedTask {
    return prepareTask(task, {
      scope,
      now: this.#deps.clock.now(),
      user: this.#deps.user,
      nextId: () => this.#nextId(),
    });
  }

  /** The caller is told, or else the log. */
  #heldBackOf({ onBackpressure }: SubmitOptions): HeldBack {
    const { clock, logger } = this.#deps;
    if (onBackpressure === undefined) return this.#heldBack;
    const report = (backpressure: Backpressure) => {
      try {
        onBackpressure(backpressure);
      } catch (error) {
        logger.error({ err: error }, "onBackpressure threw; the tasks are submitted all the same");
      }
    };
    return new HeldBack({ clock, report });
  }

  /** Unique without asking for randomness each time. */
  #nextId(): string {
    this.#idsMade += 1;
    return `${this.#connectionName}-${this.#idsMade.toString(36)}`;
  }

  async #submit(
    task: PreparedTask,
    options: SubmitOptions & { readonly retry: boolean },
    heldBack: HeldBack,
  ): Promise<TaskHandle> {
    this.#closed.signal.throwIfAborted();
    const { notify = true, failFast = false, retry, timeoutMs = limits.askTimeoutMs, signal } = options;
    if (task.typed !== undefined) await checkedAt("payload", task.typed.payload, task.typed.kind.input);
    const awaited = notify ? this.#awaited.expect(task.id, task.project) : undefined;
    const terms = {
      notify: notify ? this.#inbox : undefined,
      failFast,
      retry,
      timeoutMs,
      heldBack,
      signal,
    };
    try {
      const ack = await this.#submitter.submit(task, terms);
      if (awaited !== undefined) this.#awaited.accepted(awaited, ack);
      const warnings = [
        ...task.warnings,
        ...ack.warnings.map((warning) => leaderWarning(task.kind, warning)),
      ];
      for (const warning of warnings) this.#warningLog.note(task.kind, warning, task.id);
      return new SwarmTask(task, this.#handles, { ack, awaited, warnings, kind: task.typed?.kind });
    } catch (error) {
      if (awaited !== undefined) this.#awaited.notAccepted(awaited);
      throw error;
    }
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

  /** A coordinator that stands by may not have read of a task yet that its leader accepted. */
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

/** A line when a queue is full, and one when everything was taken; not one for each answer. */
function backpressureLog(logger: Logger): (backpressure: Backpressure) => void {
  let isHeldBack = false;
  return ({ tasks, since, retryAfterMs, reason }) => {
    if (tasks === 0) logger.info({ since }, "no task is held back any more");
    else if (!isHeldBack) logger.warn({ tasks, since, retryAfterMs }, `tasks are held back: ${reason}`);
    isHeldBack = tasks > 0;
  };
}

function isUnknownTask(error: unknown): boolean {
  return error instanceof WaggleError && error.code === "WAGGLE_UNKNOWN_TASK";
}
