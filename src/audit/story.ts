// One task's life, folded from the events about it: its attempts with their receipts, and every wait.
// Says what happened, not how it looks (src/cli) and not what is true now (the coordinator's status).

import { projectOf } from "../core/effect.ts";
import { usedTokens } from "../state/budget-rows.ts";
import type { AttemptFailure, DeadLetterReason, EventOf, TaskSpec } from "../state/event.ts";
import type { Receipt } from "../state/receipt.ts";
import type { TaskState } from "../state/state.ts";
import { taskOf } from "./filter.ts";
import type { JournaledEvent } from "./journaled-event.ts";

export interface AttemptStory {
  /** From 1, over all rounds of its task. */
  readonly attempt: number;
  /** Of its task; absent in the first. */
  readonly round?: number;
  readonly agent: string;
  /** The cheaper kind that it ran as, where a budget in mode `downgrade` had too little left. */
  readonly runsAs?: string;
  /** The type named as cheaper, whose agents alone might have it there. */
  readonly cheaperType?: string;
  /** Why this agent. */
  readonly receipt: Receipt;
  /** All instants are journal time, ms since the Unix epoch. */
  readonly assignedAt: number;
  readonly assignedIdx: number;
  /** When it was known to have reached the agent. */
  readonly runningAt?: number;
  readonly endedAt?: number;
  /** Absent while it is open. `cancelled` and `expired`: the task ended over it. */
  readonly ended?: "completed" | "cancelled" | "expired" | AttemptFailure["class"];
  readonly error?: string;
  readonly latencyMs?: number;
  /** As its agent reported. */
  readonly tokens?: number;
  /** Held back from the budgets when it was assigned; absent where none was asked. */
  readonly tokensReserved?: number;
  /** What it cost them; absent until that is known, and where nothing was reserved or reported. */
  readonly tokensCharged?: number;
  /** It was told to stop and still holds its agent's place. */
  readonly holdsPlace?: boolean;
}

/** A stretch of time without an agent. */
export interface WaitStory {
  /** `queued`: for an agent. `delayed`: for an instant. */
  readonly state: "queued" | "delayed";
  readonly from: number;
  /** Absent while it lasts. */
  readonly to?: number;
}

export interface StoryLine {
  /** Absent when the reading began after the submission. */
  readonly spec?: TaskSpec;
  /** Absent when none of the events read says so. */
  readonly state?: TaskState;
  readonly submittedAt?: number;
  /** The present round, and when its retry opened it; absent in the first. */
  readonly round?: number;
  readonly retriedAt?: number;
  /** When its present round ended. */
  readonly endedAt?: number;
  readonly deadLetterReason?: DeadLetterReason;
  readonly attempts: readonly AttemptStory[];
  readonly waits: readonly WaitStory[];
  /** Every event about the task, in order. */
  readonly events: readonly JournaledEvent[];
}

/** Folds events, in journal order, of which those that do not concern the task are passed over. */
export class StoryFold {
  readonly #project: string;
  readonly #task: string;
  #line: StoryLine = { attempts: [], waits: [], events: [] };
  /** The open attempt's number among its agent's assignments: what a confirmation refers to. */
  #openNumber = 0;

  constructor({ project, task }: { readonly project: string; readonly task: string }) {
    this.#project = project;
    this.#task = task;
  }

  get line(): StoryLine {
    return this.#line;
  }

  /** Whether its present round has ended, and nothing about it can follow but a retry. */
  get isOver(): boolean {
    return this.#line.endedAt !== undefined && !this.#line.attempts.some((attempt) => attempt.holdsPlace);
  }

  add(journaled: JournaledEvent): void {
    const before = this.#line;
    this.#apply(journaled);
    if (this.#line !== before) this.#line = { ...this.#line, events: [...before.events, journaled] };
  }

  #apply({ event, at, idx }: JournaledEvent): void {
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
        this.#change(event.attempt, { holdsPlace: false });
        return this.#settle(event, event.reason === "agent-gone" ? "lost" : "revoked");
      case "TokensCharged":
        return this.#change(event.attempt, { tokensCharged: event.tokens });
      default:
        return; // about agents, terms and refusals: they name no task
    }
  }

  /** How the round before ended stands in its attempts and events. */
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
    this.#changeLast({ ...ended, ...(isRevoked ? { holdsPlace: true } : {}) });
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

  /** The task ended from outside: an attempt that is open is told to stop. */
  #stopLast(ended: "cancelled" | "expired", at: number): void {
    const last = this.#line.attempts.at(-1);
    if (last !== undefined && last.endedAt === undefined)
      this.#changeLast({ ended, endedAt: at, holdsPlace: true });
  }
}
