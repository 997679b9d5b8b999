// The history of one task, folded from its events: attempts with their receipts, and waits. Not here: the view
// (src/cli), the current state (the coordinator's status).

import { projectOf } from "../core/effect.ts";
import { usedTokens } from "../state/budget-rows.ts";
import type { AttemptFailure, DeadLetterReason, Event, EventOf, TaskSpec } from "../state/event.ts";
import type { Receipt } from "../state/receipt.ts";
import type { TaskState } from "../state/state.ts";
import { taskOf } from "./filter.ts";
import type { JournaledEvent } from "./journaled-event.ts";

export interface AttemptStory {
  /** Number of the attempt, from 1, over all rounds. */
  readonly attempt: number;
  /** Round of the task; absent in the first round. */
  readonly round?: number;
  readonly agent: string;
  /** The cheaper kind as which the attempt ran, if a budget in mode `downgrade` had too little left, or all agents of
   *  the kind were on hold. */
  readonly runsAs?: string;
  /** The cheaper type of agents to which such a budget restricted the attempt. */
  readonly cheaperType?: string;
  /** Why the agent was chosen. */
  readonly receipt: Receipt;
  /** All instants are journal time, ms since the Unix epoch. */
  readonly assignedAt: number;
  readonly assignedIdx: number;
  /** Time at which the assignment was confirmed by the agent. */
  readonly runningAt?: number;
  readonly endedAt?: number;
  /** Absent while the attempt is open. `cancelled` and `expired`: the task ended during the attempt. */
  readonly ended?: "completed" | "cancelled" | "expired" | AttemptFailure["class"];
  readonly error?: string;
  readonly latencyMs?: number;
  /** Tokens that the agent reported. */
  readonly tokens?: number;
  /** Tokens reserved in budgets at the assignment; absent without a budget. */
  readonly tokensReserved?: number;
  /** Tokens charged to budgets; absent until known, and if nothing was reserved or reported. */
  readonly tokensCharged?: number;
  /** The attempt was revoked and still uses capacity of its agent. */
  readonly holdsCapacity?: boolean;
}

/** A stretch of time without an agent. */
export interface WaitStory {
  /** `queued`: for an agent. `delayed`: for an instant. */
  readonly state: "queued" | "delayed";
  readonly from: number;
  /** Absent while the wait lasts. */
  readonly to?: number;
}

export interface StoryLine {
  /** Absent when the reading began after the submission. */
  readonly spec?: TaskSpec;
  /** Absent when none of the events read says so. */
  readonly state?: TaskState;
  readonly submittedAt?: number;
  /** Current round and the time of its retry; absent in the first round. */
  readonly round?: number;
  readonly retriedAt?: number;
  /** Time at which the current round ended. */
  readonly endedAt?: number;
  readonly deadLetterReason?: DeadLetterReason;
  readonly attempts: readonly AttemptStory[];
  readonly waits: readonly WaitStory[];
  /** Every event about the task, in order. */
  readonly events: readonly JournaledEvent<Event>[];
}

/** Folds events in journal order. Ignores events of other tasks. */
export class StoryFold {
  readonly #project: string;
  readonly #task: string;
  #line: StoryLine = { attempts: [], waits: [], events: [] };
  /** Assignment number of the open attempt, which confirmations refer to. */
  #openNumber = 0;

  constructor({ project, task }: { readonly project: string; readonly task: string }) {
    this.#project = project;
    this.#task = task;
  }

  get line(): StoryLine {
    return this.#line;
  }

  /** Whether the current round has ended, so that only a retry can follow. */
  get isOver(): boolean {
    return this.#line.endedAt !== undefined && !this.#line.attempts.some((attempt) => attempt.holdsCapacity);
  }

  add(journaled: JournaledEvent<Event>): void {
    const before = this.#line;
    this.#apply(journaled);
    if (this.#line !== before) this.#line = { ...this.#line, events: [...before.events, journaled] };
  }

  #apply({ event, at, idx }: JournaledEvent<Event>): void {
    if (event.type === "AssignmentsConfirmed") return this.#confirm(event.agent, event.upTo, at);
    if (taskOf(event) !== this.#task || projectOf(event) !== this.#project) return;
    switch (event.type) {
      case "TaskSubmitted": {
        const isDelayed = event.task.notBefore !== undefined && event.task.notBefore > at;
        this.#set({ spec: event.task, submittedAt: at });
        return this.#wait(isDelayed ? "delayed" : "queued", at);
      }
      case "TaskRetried":
        return this.#retry(event, at);
      case "TaskReleased":
        return this.#wait("queued", at);
      case "TaskRescheduled": {
        const { spec } = this.#line;
        const { notBefore } = event;
        // Also without the submission, and in the same state, the event is one about the task.
        this.#set(spec === undefined ? {} : { spec: { ...spec, notBefore } });
        const state = notBefore > at ? "delayed" : "queued";
        return state === this.#line.state ? undefined : this.#wait(state, at);
      }
      case "TaskAssigned": {
        const { attempt, agent, runsAs, cheaperType, tokensReserved, receipt, number } = event;
        this.#openNumber = number;
        this.#endWait(at);
        const kind = runsAs === undefined ? {} : { runsAs };
        const type = cheaperType === undefined ? {} : { cheaperType };
        const held = tokensReserved === undefined ? {} : { tokensReserved };
        const cheaper = { ...kind, ...type };
        const { round } = this.#line;
        const ofRound = round === undefined ? {} : { round };
        const opened = {
          attempt,
          ...ofRound,
          agent,
          ...cheaper,
          ...held,
          receipt,
          assignedAt: at,
          assignedIdx: idx,
        };
        return this.#set({ state: "assigned", attempts: [...this.#line.attempts, opened] });
      }
      case "TaskCompleted": {
        const { latencyMs } = event;
        this.#changeLast({ ended: "completed", endedAt: at, latencyMs });
        this.#settle(event, "completed");
        return this.#end("completed", at);
      }
      case "AttemptFailed":
        this.#failLast(event, at);
        return this.#wait(event.retryAt === undefined || event.retryAt <= at ? "queued" : "delayed", at);
      case "TaskFailed":
        this.#failLast(event, at);
        return this.#end("failed", at);
      case "TaskDeadLettered":
        this.#failLast(event, at);
        this.#set({ deadLetterReason: event.reason });
        return this.#end("dead-lettered", at);
      case "TaskCancelled":
        this.#stopLast("cancelled", at);
        return this.#end("cancelled", at);
      case "TaskExpired":
        this.#stopLast("expired", at);
        return this.#end("expired", at);
      case "AttemptReleased":
        this.#change(event.attempt, { holdsCapacity: false });
        return this.#settle(event, event.reason === "agent-gone" ? "lost" : "revoked");
      case "TokensCharged":
        return this.#change(event.attempt, { tokensCharged: event.tokens });
      default:
        return; // about agents, terms and refusals: these name no task
    }
  }

  /** Attempts and events already show how the earlier round ended. */
  #retry({ task: spec, round }: EventOf<"TaskRetried">, at: number): void {
    const { endedAt: _, deadLetterReason: __, ...before } = this.#line;
    this.#line = { ...before, spec, round, retriedAt: at };
    this.#wait("queued", at);
  }

  #confirm(agent: string, upTo: number, at: number): void {
    const last = this.#line.attempts.at(-1);
    const isOurs = this.#line.state === "assigned" && last?.agent === agent && this.#openNumber <= upTo;
    if (!isOurs) return;
    this.#changeLast({ runningAt: at });
    this.#set({ state: "running" });
  }

  #set(part: Partial<StoryLine>): void {
    this.#line = { ...this.#line, ...part };
  }

  #wait(state: WaitStory["state"], at: number): void {
    this.#endWait(at);
    this.#set({ state, waits: [...this.#line.waits, { state, from: at }] });
  }

  #endWait(at: number): void {
    this.#set({
      waits: this.#line.waits.map((wait) => (wait.to === undefined ? { ...wait, to: at } : wait)),
    });
  }

  #end(state: TaskState, at: number): void {
    this.#endWait(at);
    this.#set({ state, endedAt: at });
  }

  #changeLast(part: Partial<AttemptStory>): void {
    const last = this.#line.attempts.at(-1);
    if (last !== undefined) this.#change(last.attempt, part);
  }

  #change(attempt: number, part: Partial<AttemptStory>): void {
    const attempts = this.#line.attempts.map((other) =>
      other.attempt === attempt ? { ...other, ...part } : other,
    );
    this.#set({ attempts });
  }

  #failLast(event: EventOf<"AttemptFailed" | "TaskFailed" | "TaskDeadLettered">, at: number): void {
    const { failure, latencyMs } = event;
    const isRevoked = "revoked" in event && event.revoked === true;
    const ended = { ended: failure.class, error: failure.error, endedAt: at, latencyMs };
    this.#changeLast({ ...ended, ...(isRevoked ? { holdsCapacity: true } : {}) });
    if (!isRevoked) this.#settle(event, failure.class);
  }

  /** As the budgets do (state/budget-rows.ts). */
  #settle(
    { attempt, tokens }: { readonly attempt: number; readonly tokens?: number },
    verdict: Parameters<typeof usedTokens>[1],
  ): void {
    const tokensReserved = this.#line.attempts.find((one) => one.attempt === attempt)?.tokensReserved;
    if (tokens !== undefined) this.#change(attempt, { tokens });
    if (tokens === undefined && tokensReserved === undefined) return;
    this.#change(attempt, {
      tokensCharged: usedTokens({ tokensReserved: tokensReserved ?? 0 }, verdict, tokens),
    });
  }

  /** The task ended from outside: an open attempt is revoked. */
  #stopLast(ended: "cancelled" | "expired", at: number): void {
    const last = this.#line.attempts.at(-1);
    if (last !== undefined && last.endedAt === undefined)
      this.#changeLast({ ended, endedAt: at, holdsCapacity: true });
  }
}
