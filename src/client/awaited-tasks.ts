// Outcomes of awaited tasks: a single inbox for the connection, to which the leader pushes.
//
// Overview. A leader keeps the inboxes of waiting clients in memory; the journal does not have them. So a client asks
// a leader to notify (`notify` on submission, `await` later). The client asks again after a new term, after a
// reconnect, and from time to time in case a notification was lost.
//
// What is authoritative: the leader's answer. The client asks for a notification that never comes. A task is lost when
// its leader accepted it and no longer knows it. A loss is an error, never silence.
//
// Bounds: entries are tasks that have a waiter or were submitted with `notify`. A request holds `itemsPerMessageMax`
// ids, and requests go one at a time. A sweep asks for `awaitRefreshTasksMax` tasks.

import type { Clock, Random } from "../clock.ts";
import type { WaggleError } from "../errors.ts";
import { taskKey } from "../ids.ts";
import { limits } from "../limits.ts";
import { decode, encode } from "../protocol/codec.ts";
import { forbidden } from "../protocol/forbidden.ts";
import type { Horizon } from "../protocol/horizon.ts";
import type { JournalPoint } from "../protocol/journal-point.ts";
import { LossError } from "../protocol/loss-error.ts";
import { isPlainDonePush, readQuickly } from "../protocol/quick-checks.ts";
import {
  type AwaitAnswer,
  awaitResponseSchema,
  type DonePush,
  donePushSchema,
  type Outcome,
} from "../protocol/schemas.ts";
import { doneSubject, type Subjects } from "../protocol/subjects.ts";
import { retried, TryAgain } from "../retry-paused.ts";
import type { Message, Subscription, Transport } from "../transport/transport.ts";
import { abortOf, askPace } from "./ask-pace.ts";
import type { Answer, Asker } from "./asker.ts";
import { AwaitedTask } from "./awaited-task.ts";
import { errorFrom } from "./coded-error.ts";
import { KeptTasks } from "./kept-tasks.ts";

export interface AwaitedTasksDeps {
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly asker: Asker;
  readonly horizon: Horizon;
  readonly clock: Clock;
  readonly random: Random;
  /** Inbox of this connection: outcomes come to `<inbox>.done`. */
  readonly inbox: string;
}

export class AwaitedTasks {
  readonly #deps: AwaitedTasksDeps;
  /** Tasks that have not ended. */
  readonly #kept = new KeptTasks();
  /** Tasks to ask a leader about. */
  readonly #toAsk = new Set<AwaitedTask>();
  /** Newest round of tasks retried over this connection. Bounded: the oldest entries are dropped. */
  readonly #roundByKey = new Map<string, number>();
  readonly #closed = new AbortController();
  readonly #subscription: Subscription;
  readonly #stops: readonly (() => void)[];
  #cancelSweep: (() => void) | undefined;
  /** Set when the server forbids the inbox. */
  #isolation: WaggleError | undefined;
  #isAsking = false;

  constructor(deps: AwaitedTasksDeps) {
    this.#deps = deps;
    this.#subscription = deps.transport.subscribe(
      doneSubject(deps.inbox),
      (message) => this.#notice(message),
      {
        onForbidden: (violation) => this.#cannotHear(errorFrom(forbidden(violation))),
      },
    );
    this.#stops = [
      deps.horizon.onTerm((term) => this.#askAboutAllAskedBefore(term)),
      deps.horizon.onLoss(() => this.#askAboutAll()),
      deps.transport.onStatus((status) => {
        if (status === "connected") this.#askAboutAll();
      }),
    ];
  }

  /** Must be called before the task is sent with `notify`, so that no notification comes too early. */
  expect(id: string, project: string): AwaitedTask {
    return this.#kept.find(project, id) ?? this.#add(new AwaitedTask(id, project));
  }

  /** The leader accepted the task and will notify. */
  accepted(task: AwaitedTask, ack: JournalPoint & { readonly duplicate: boolean }): void {
    task.acceptedAt = ack;
    if (task.hasEnded || this.#closed.signal.aborted) return;
    const isKnown = this.#kept.has(task);
    if (!isKnown) this.#add(task);
    task.isWatched = true;
    task.askedTerm = ack.term;
    if (ack.duplicate || !isKnown || ack.term < this.#deps.horizon.term) this.#askAbout(task);
  }

  /** The task was not accepted: drop the entry unless a waiter watches the task. */
  notAccepted(task: AwaitedTask): void {
    if (!task.isWatched) this.#drop(task);
  }

  /** Asks a leader to notify about a task, whoever submitted the task. */
  watch(id: string, project: string): AwaitedTask {
    const task = this.expect(id, project);
    if (task.isWatched || task.hasEnded) return task;
    task.isWatched = true;
    this.#askAbout(task);
    return task;
  }

  /** A new round of a task was opened: outcomes of earlier rounds no longer end the wait. */
  retried(named: { readonly project: string; readonly task: string }, round: number): void {
    const key = taskKey(named);
    if (round <= this.#roundOf(key)) return;
    this.#roundByKey.delete(key);
    this.#roundByKey.set(key, round);
    const [oldest] = this.#roundByKey.keys();
    if (this.#roundByKey.size > limits.retriedTasksMax && oldest !== undefined)
      this.#roundByKey.delete(oldest);
  }

  /** True if the task has a newer round than the outcome. */
  isOutdated(outcome: Outcome): boolean {
    return this.#roundByKey.size > 0 && (outcome.round ?? 1) < this.#roundOf(taskKey(outcome));
  }

  #roundOf(key: string): number {
    return this.#roundByKey.get(key) ?? 1;
  }

  /** Must be called when a wait was given up. Drops a task that was submitted elsewhere and has no listener
   *  left. */
  abandoned(task: AwaitedTask): void {
    if (!task.hasListeners && task.acceptedAt === undefined) this.#drop(task);
  }

  /** Ends every wait with the reason. Idempotent. */
  close(reason: WaggleError): void {
    this.#closed.abort(reason);
    this.#subscription.unsubscribe();
    for (const stop of this.#stops) stop();
    this.#cancelSweep?.();
    for (const task of this.#kept.all()) task.fail(reason);
    this.#kept.clear();
    this.#toAsk.clear();
  }

  /** No outcome can arrive: every wait fails, now and later. */
  #cannotHear(error: WaggleError): void {
    this.#isolation = error;
    for (const task of [...this.#kept.all()]) if (task.isWatched) this.#fail(task, error);
  }

  #add(task: AwaitedTask): AwaitedTask {
    if (this.#isolation !== undefined) {
      task.fail(this.#isolation);
      return task;
    }
    if (this.#closed.signal.aborted) {
      task.fail(this.#closed.signal.reason);
      return task;
    }
    task.askedAtMs = this.#deps.clock.monotonicMs();
    this.#kept.add(task);
    this.#scheduleSweep();
    return task;
  }

  #drop(task: AwaitedTask): void {
    this.#kept.remove(task);
    this.#toAsk.delete(task);
  }

  #notice({ data }: Message): void {
    const push = readQuickly(data, isPlainDonePush) ?? decodedPush(data);
    if (push === undefined) return; // not of this protocol; the next sweep asks about its tasks
    this.#deps.horizon.note(push);
    for (const outcome of push.ended) this.#end(outcome);
  }

  #end(outcome: Outcome): void {
    const task = this.#kept.find(outcome.project, outcome.task);
    if (task === undefined || this.isOutdated(outcome)) return;
    this.#drop(task);
    task.end(outcome);
  }

  #fail(task: AwaitedTask, error: WaggleError): void {
    this.#drop(task);
    task.fail(error);
  }

  #askAboutAll(): void {
    for (const task of this.#kept.all()) if (task.isWatched) this.#toAsk.add(task);
    this.#startAsking();
  }

  /** A leader's list of inboxes to notify ends with its term. */
  #askAboutAllAskedBefore(term: number): void {
    for (const task of this.#kept.all()) {
      if (task.isWatched && task.askedTerm > 0 && task.askedTerm < term) this.#toAsk.add(task);
    }
    this.#startAsking();
  }

  #askAbout(task: AwaitedTask): void {
    if (this.#closed.signal.aborted) return;
    this.#toAsk.add(task);
    this.#startAsking();
  }

  #startAsking(): void {
    if (this.#isAsking || this.#toAsk.size === 0) return;
    this.#isAsking = true;
    this.#deps.clock.soon(() => void this.#askUntilNoneIsLeft());
  }

  /** Never rejects. */
  async #askUntilNoneIsLeft(): Promise<void> {
    await retried(() => this.#askAll(), { ...askPace(this.#deps), hurry$: abortOf(this.#closed.signal) });
    this.#isAsking = false;
    this.#startAsking(); // for a task added just now
  }

  /** One message at a time, at a pace that leaves the leader time for other work.
   *  @throws TryAgain */
  async #askAll(): Promise<void> {
    for (let isProgress = false; this.#toAsk.size > 0 && !this.#closed.signal.aborted; isProgress = true) {
      const tasks = this.#takeMessage();
      const accepted = new Set(tasks.filter(({ acceptedAt }) => acceptedAt !== undefined));
      const answer = await this.#ask(tasks);
      const waitMs = this.#settle(tasks, answer, accepted);
      if (waitMs === undefined) continue;
      for (const task of tasks) if (this.#kept.has(task)) this.#toAsk.add(task);
      throw new TryAgain({ atLeastMs: waitMs, isProgress });
    }
  }

  /** Ids of one project, because the subject contains the project. */
  #takeMessage(): AwaitedTask[] {
    const message: AwaitedTask[] = [];
    let bytes = 0;
    for (const task of this.#toAsk) {
      if (message.length === limits.itemsPerMessageMax) break;
      if (task.project !== (message[0] ?? task).project) continue;
      bytes += JSON.stringify(task.id).length * 3;
      if (message.length > 0 && bytes > this.#deps.transport.maxPayloadBytes / 2) break;
      message.push(task);
      this.#toAsk.delete(task);
    }
    return message;
  }

  async #ask(tasks: readonly AwaitedTask[]): Promise<AwaitAnswers> {
    const { asker, subjects, inbox } = this.#deps;
    const subject = subjects.project(tasks[0]?.project ?? "", "await");
    const bytes = encode({ v: 1, tasks: tasks.map(({ id }) => id), notify: inbox });
    const options = { timeoutMs: limits.requestTimeoutMs, signal: this.#closed.signal };
    return await asker.once({ kind: "command", subject, schema: awaitResponseSchema }, bytes, options);
  }

  /** @param accepted tasks that were known to be accepted when the leader was asked
   *  @returns delay before asking about the tasks again, ms; undefined when not needed */
  #settle(
    tasks: readonly AwaitedTask[],
    answer: AwaitAnswers,
    accepted: ReadonlySet<AwaitedTask>,
  ): number | undefined {
    if (answer.kind === "no-leader" || answer.kind === "unknown") return 0;
    if (answer.kind === "refused") {
      if (answer.refusal.code === "WAGGLE_BACKPRESSURE")
        return answer.refusal.retryAfterMs ?? limits.retryAfterMs;
      for (const task of tasks) this.#fail(task, errorFrom(answer.refusal));
      return undefined;
    }
    let waitMs: number | undefined;
    for (const [place, task] of tasks.entries()) {
      const item = answer.value.answers[place];
      // Accepted meanwhile: the leader may have looked before the acceptance.
      const isTooEarly = isUnknownTask(item) && task.acceptedAt !== undefined && !accepted.has(task);
      const own = isTooEarly ? 0 : this.#settleOne(task, item, answer.value);
      if (own !== undefined) waitMs = Math.max(waitMs ?? 0, own);
    }
    return waitMs;
  }

  #settleOne(task: AwaitedTask, answer: AwaitAnswer | undefined, at: JournalPoint): number | undefined {
    if (task.hasEnded || !this.#kept.has(task)) return undefined; // ended, or given up meanwhile
    if (answer === undefined) return 0;
    if (answer.ok && "outcome" in answer) this.#end(answer.outcome);
    else if (at.term < this.#deps.horizon.term)
      return 0; // an old leader cannot notify later
    else if (!answer.ok) return this.#settleRefused(task, answer, at);
    else this.#asked(task, at.term);
    return undefined;
  }

  #settleRefused(
    task: AwaitedTask,
    answer: AwaitAnswer & { readonly ok: false },
    at: JournalPoint,
  ): number | undefined {
    switch (answer.code) {
      case "WAGGLE_BACKPRESSURE":
        this.#asked(task, at.term); // the leader has no room for the inbox: the sweep asks again
        return undefined;
      case "WAGGLE_NO_LEADER":
      case "WAGGLE_OUTCOME_UNKNOWN":
        return 0;
      case "WAGGLE_UNKNOWN_TASK":
        if (task.acceptedAt !== undefined) {
          this.#fail(task, new LossError(task.acceptedAt, at, task.id));
          return undefined;
        }
        break;
    }
    this.#fail(task, errorFrom(answer));
    return undefined;
  }

  /** Moves the task to the end of the order: a sweep begins with the tasks asked about longest ago. */
  #asked(task: AwaitedTask, term: number): void {
    task.askedAtMs = this.#deps.clock.monotonicMs();
    task.askedTerm = term;
    this.#kept.remove(task);
    this.#kept.add(task);
  }

  #scheduleSweep(): void {
    if (this.#cancelSweep !== undefined) return;
    this.#cancelSweep = this.#deps.clock.after(limits.awaitRefreshMs, () => {
      this.#cancelSweep = undefined;
      this.#sweep();
    });
  }

  #sweep(): void {
    const before = this.#deps.clock.monotonicMs() - limits.awaitRefreshMs;
    let asked = 0;
    for (const task of this.#kept.askedBefore(before)) {
      if (!task.isWatched) continue;
      this.#toAsk.add(task);
      asked += 1;
      if (asked === limits.awaitRefreshTasksMax) break;
    }
    this.#startAsking();
    if (!this.#kept.isEmpty) this.#scheduleSweep();
  }
}

function decodedPush(data: Uint8Array): DonePush | undefined {
  const push = decode(data, donePushSchema);
  return push.ok ? push.value : undefined;
}

function isUnknownTask(answer: AwaitAnswer | undefined): boolean {
  return answer?.ok === false && answer.code === "WAGGLE_UNKNOWN_TASK";
}

type AwaitAnswers = Answer<JournalPoint & { readonly answers: readonly AwaitAnswer[] }>;
