// One task that viewers watch: its history read once from the journal, then folded on with the events that come. So a
// long life is not read again. A long history takes seconds to read: meanwhile the view has the status, and the reason
// for the wait, which is asked for every two seconds at most.

import { agentOf, taskOf } from "../audit/filter.ts";
import type { JournaledEvent } from "../audit/journaled-event.ts";
import { StoryFold } from "../audit/story.ts";
import type { Swarm } from "../client/swarm.ts";
import type { AcceptedTaskStatus } from "../client/task-stories.ts";
import type { Clock } from "../clock.ts";
import { projectOf } from "../core/effect.ts";
import { defined } from "../defined.ts";
import { limits } from "../limits.ts";
import { decode, encode } from "../protocol/codec.ts";
import { explainResponseSchema, type TaskWait } from "../protocol/explain-schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { Event, TaskSpec } from "../state/event.ts";
import type { Transport } from "../transport/transport.ts";
import type { EventTap } from "./event-tap.ts";
import { taskView } from "./views/task.ts";
import type { ActionVerb, TaskDetail } from "./wire.ts";

export interface TaskRefQuery {
  readonly task: string;
  readonly project: string | undefined;
}

export interface TaskDeps {
  readonly swarm: Pick<Swarm, "story" | "taskStatus">;
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly clock: Clock;
  readonly verbs: readonly ActionVerb[];
  /** Journal time as far as known. */
  readonly nowAt: () => number;
}

/** The page of a task at this moment. @throws WaggleError WAGGLE_UNKNOWN_TASK, WAGGLE_AMBIGUOUS_TASK; as `story` */
export async function taskNow(deps: TaskDeps, { task, project }: TaskRefQuery): Promise<TaskDetail> {
  const story = await deps.swarm.story(task, {
    ...defined({ project }),
    timeoutMs: limits.dashboardActionMs,
  });
  const { status, ...line } = story;
  const wait = isWaiting(line.state ?? status.state) ? await waitOf(deps, status) : undefined;
  return taskView({
    status,
    line,
    wait,
    nowAt: Math.max(status.at, deps.nowAt()),
    verbs: deps.verbs,
    isReading: false,
  });
}

/** Undefined when the answer does not come, or the task waits no more. */
export async function waitOf(
  { transport, subjects }: Pick<TaskDeps, "transport" | "subjects">,
  { task, project }: Pick<AcceptedTaskStatus, "task" | "project">,
): Promise<TaskWait | undefined> {
  const timeoutMs = limits.dashboardAskMs;
  const outcome = await transport.request(subjects.query(project, "explain"), encode({ v: 1, task }), {
    timeoutMs,
  });
  if (outcome.kind !== "answered") return undefined;
  const answer = decode(outcome.data, explainResponseSchema);
  return answer.ok && "task" in answer.value ? answer.value.waiting : undefined;
}

function isWaiting(state: string): boolean {
  return state === "queued" || state === "delayed";
}

export class TaskFollower {
  readonly #deps: TaskDeps;
  readonly #ref: TaskRefQuery;
  readonly #stop: () => void;
  readonly #listeners = new Set<() => void>();
  readonly #closed = new AbortController();
  #fold: StoryFold | undefined;
  #reading: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;
  #status: AcceptedTaskStatus | undefined;
  /** Events of the task that came while its history was read. */
  #held: JournaledEvent[] = [];
  /** The history was read up to this batch. Later events of one batch may come in several messages. */
  #readIdx = 0;
  #lastIdx = 0;
  #wait: TaskWait | undefined;
  #waitAskedMs = Number.NEGATIVE_INFINITY;

  constructor(deps: TaskDeps & { readonly tap: EventTap }, ref: TaskRefQuery) {
    this.#deps = deps;
    this.#ref = ref;
    this.#stop = deps.tap.on((events) => this.#take(events));
  }

  get lastIdx(): number {
    return this.#lastIdx;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Without the history when it takes long to read: `onChange` tells when it was read. @throws as `taskNow` */
  async compute(): Promise<TaskDetail> {
    const status = this.#status ?? (await this.#readStatus());
    if (this.#fold === undefined) await this.#historyFor(limits.dashboardStoryMs);
    const { line } = this.#fold ?? new StoryFold(status);
    if (!isWaiting(line.state ?? status.state)) this.#wait = undefined;
    else await this.#askWait(status);
    const { verbs, nowAt: now } = this.#deps;
    const nowAt = Math.max(status.at, now());
    const isReading = this.#fold === undefined;
    return taskView({ status, line, wait: this.#wait, nowAt, verbs, isReading });
  }

  close(): void {
    this.#closed.abort();
    this.#stop();
  }

  async #readStatus(): Promise<AcceptedTaskStatus> {
    const { task, project } = this.#ref;
    const asked = { ...defined({ project }), timeoutMs: limits.dashboardActionMs };
    const status = await this.#deps.swarm.taskStatus(task, asked);
    this.#status = status;
    return status;
  }

  /** Waits for the history for a while. @throws why it cannot be read; the next call tries again */
  async #historyFor(ms: number): Promise<void> {
    this.#reading ??= this.#read().then(
      () => this.#changed(),
      (error: unknown) => {
        this.#failure = { error };
        this.#reading = undefined;
        this.#changed();
      },
    );
    let cancel: (() => void) | undefined;
    const late = new Promise<void>((resolve) => {
      cancel = this.#deps.clock.after(ms, resolve, { unref: true });
    });
    await Promise.race([this.#reading, late]);
    cancel?.();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure.error;
  }

  async #read(): Promise<void> {
    const { task, project } = this.#ref;
    this.#held = [];
    const { signal } = this.#closed;
    const asked = { ...defined({ project }), timeoutMs: limits.dashboardActionMs, signal };
    const { status, events } = await this.#deps.swarm.story(task, asked);
    const fold = new StoryFold(status);
    for (const event of events) fold.add(event);
    this.#readIdx = Math.max(status.idx, events.at(-1)?.idx ?? 0);
    this.#lastIdx = this.#readIdx;
    this.#status = status;
    this.#fold = fold;
    this.#take(this.#held);
    this.#held = [];
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  #take(events: readonly JournaledEvent[]): void {
    const { task, project } = this.#status ?? this.#ref;
    const own = events.filter(({ event }) => {
      if (event.type === "AssignmentsConfirmed") return this.#isAgent(agentOf(event));
      return taskOf(event) === task && (project === undefined || projectOf(event) === project);
    });
    const fold = this.#fold;
    if (fold === undefined) {
      this.#held.push(...own);
      if (own.every(({ event }) => event.type === "AssignmentsConfirmed")) return;
      this.#status = undefined; // the task moved on while its history is read
      return this.#changed();
    }
    const next = own.filter(({ idx }) => idx > this.#readIdx);
    if (next.length === 0) return;
    for (const journaled of next) fold.add(withPayload(journaled, fold.line.spec));
    this.#lastIdx = next.at(-1)?.idx ?? this.#lastIdx;
    this.#waitAskedMs = Number.NEGATIVE_INFINITY;
    this.#changed();
  }

  /** Before the history is known, any agent may be the task's. */
  #isAgent(agent: string | undefined): boolean {
    return this.#fold === undefined || this.#fold.line.attempts.at(-1)?.agent === agent;
  }

  async #askWait(status: AcceptedTaskStatus): Promise<void> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs - this.#waitAskedMs < limits.dashboardTaskLookMs) return;
    this.#waitAskedMs = nowMs;
    this.#wait = await waitOf(this.#deps, status);
  }
}

/** Live events have no payloads; a retry keeps the payload of its task. */
function withPayload(
  { event, ...place }: JournaledEvent,
  known: TaskSpec | undefined,
): JournaledEvent<Event> {
  if (event.type !== "TaskSubmitted" && event.type !== "TaskRetried") return { ...place, event };
  const { payload = known?.payload ?? "", ...task } = event.task;
  return { ...place, event: { ...event, task: { ...task, payload } } };
}
