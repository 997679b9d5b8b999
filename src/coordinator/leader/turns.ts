// The turns of a leader: the inbox, when a turn runs, and its contents. Many messages become one batch.
//
// Bounded: at most `limits.inboxDepthMax` entries wait for their turn or their commit. The leader's own commands go
// first, beyond the bound. Not here: whether a turn may be taken (leader.ts), and its commit (commits.ts).

import type { Logger } from "pino";
import type { Clock, Random } from "../../clock.ts";
import type { Command } from "../../core/command.ts";
import { journalsHashes } from "../../core/decide-attempt.ts";
import { JsonWriter } from "../../core/json-writer.ts";
import { Turn } from "../../core/step.ts";
import type { BatchIndex, Instant } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { type Commit, Inbox, type InboxEntry } from "../../requests/inbox.ts";
import { digestOf } from "../../result-digest.ts";
import { Planner } from "../../scheduling/planner.ts";
import { Wake } from "../../scheduling/wake.ts";
import type { SwarmState } from "../../state/state.ts";
import type { JournalRoom } from "../journal-room.ts";
import type { Held } from "./in-flight.ts";
import type { JournalClock } from "./journal-clock.ts";
import type { Timings } from "./timings.ts";

export interface TurnsDeps {
  /** Turns change the state. */
  readonly state: SwarmState;
  readonly time: JournalClock;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly room: Pick<JournalRoom, "isTight">;
  readonly timings: Timings;
  /** Longest wait of a turn for more commands, ms; 0: turns never wait. */
  readonly turnSpacingMs: number;
}

export interface TurnsHooks {
  readonly isOver: () => boolean;
  /** Whether entries are taken. */
  readonly isLeading: () => boolean;
  /** Runs a turn if possible. */
  readonly onTime: () => void;
  /** Index of the next turn's batch. */
  readonly nextIdx: () => BatchIndex;
  /** Commits a turn. */
  readonly take: (held: Held) => void;
}

export class Turns {
  readonly #deps: TurnsDeps;
  readonly #hooks: TurnsHooks;
  readonly #planner: Planner;
  readonly #json = new JsonWriter();
  readonly #wake: Wake;
  readonly #dueTimer: DueTimer;
  readonly #inbox = new Inbox();
  /** Commands of the leader's own. */
  readonly #own: Command[] = [];
  /** Number of entries without an answer: queued for a turn, or in a batch without a commit. */
  #unanswered = 0;
  #isScheduled = false;
  /** Cancels a turn that waits for more commands. */
  #cancelLater: (() => void) | undefined;
  /** Begin of the last turn. */
  #beganMonotonicMs = Number.NEGATIVE_INFINITY;
  /** Assignments pause: the journal keeps its room for the results of running tasks. */
  #isHeldBack = false;

  constructor(deps: TurnsDeps, hooks: TurnsHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#planner = new Planner(deps.state);
    this.#wake = new Wake(deps.state);
    this.#dueTimer = new DueTimer(deps.clock, () => this.schedule());
  }

  /** Whether no entry waits for a turn. */
  get isInboxEmpty(): boolean {
    return this.#inbox.depth === 0;
  }

  /** Whether commands of the leader's own wait. */
  get hasOwn(): boolean {
    return this.#own.length > 0;
  }

  /** Whether assignments paused for want of room, and there is room again. */
  get isHeldBackInVain(): boolean {
    return this.#isHeldBack && !this.#deps.room.isTight;
  }

  /** Puts an entry before the next turn. @returns false when the inbox is full, or the term ends */
  enqueue(entry: InboxEntry): boolean {
    if (!this.#hooks.isLeading() || this.#unanswered >= limits.inboxDepthMax) return false;
    this.#unanswered += 1;
    this.#inbox.push(entry);
    this.schedule();
    return true;
  }

  /** Puts commands of the leader's own before the next turn, without a call for a turn. */
  addOwn(...commands: readonly Command[]): void {
    this.#own.push(...commands);
  }

  /** Puts a command of the leader's own before the next turn. */
  ask(command: Command): void {
    this.addOwn(command);
    this.schedule();
  }

  /** A turn has fixed costs in all processes. So a turn waits for one command per attempt that runs, at most
   *  `turnSpacingMs` from the begin of the turn before. */
  schedule(): void {
    if (this.#isScheduled || this.#hooks.isOver()) return;
    const waitMs = this.#waitMs();
    if (waitMs <= 0) this.#scheduleNow();
    else this.#cancelLater ??= this.#deps.clock.after(waitMs, () => this.#scheduleNow());
  }

  /** One turn, in one batch: waiting entries, due timers, possible assignments. */
  run(): void {
    const { state, clock, random, room } = this.#deps;
    const startedMs = clock.monotonicMs();
    this.#beganMonotonicMs = startedMs;
    const { turn, at } = this.#begin();
    const entries: InboxEntry[] = [];
    const isLate = () => clock.monotonicMs() - startedMs > limits.turnMsMax;
    const waiting = { inbox: this.#inbox, state, isLate, done: entries };
    const tookAll = takeCommands(turn, this.#own) && takeEntries(turn, waiting);
    const didDue = turn.takeDue(() => random.next());
    this.#isHeldBack = room.isTight;
    const didPlan = this.#isHeldBack || turn.plan();
    this.#wake.touch(turn.touchedAgents);
    this.#hooks.take({ turn, at, entries });
    this.#dueTimer.set(this.#wake.nextAt(at), at);
    if (!tookAll || !didDue || !didPlan) this.#scheduleNow();
    this.#noteLength(startedMs);
  }

  /** Answers committed entries. */
  answer(entries: readonly InboxEntry[], commit: Commit): void {
    this.#unanswered -= entries.length;
    for (const entry of entries) entry.finish(commit);
  }

  stop(): void {
    this.#dueTimer.stop();
    this.#cancelLater?.();
  }

  /** Time that the next turn waits for more commands. */
  #waitMs(): number {
    const { state, clock, turnSpacingMs } = this.#deps;
    const { assigned, running } = state.counts;
    if (this.#inbox.commands >= assigned + running) return 0;
    return this.#beganMonotonicMs + turnSpacingMs - clock.monotonicMs();
  }

  #scheduleNow(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#cancelLater?.();
    this.#cancelLater = undefined;
    this.#deps.clock.soon(() => {
      this.#isScheduled = false;
      this.#hooks.onTime();
    });
  }

  #begin() {
    const at = this.#deps.time.now();
    return { at, turn: new Turn(this.#deps.state, at, this.#hooks.nextIdx(), this.#planner, this.#json) };
  }

  #noteLength(startedMs: number): void {
    const turnMs = this.#deps.clock.monotonicMs() - startedMs;
    this.#deps.timings.decided(turnMs);
    if (turnMs > limits.turnMsAlarm)
      this.#deps.logger.warn({ turnMs: Math.round(turnMs) }, "a turn took long");
  }
}

/** Takes commands off the front of `commands`. @returns whether none is left */
function takeCommands(turn: Turn, commands: Command[]): boolean {
  for (let command = commands[0]; command !== undefined; command = commands[0]) {
    if (turn.isFull || turn.take(command).kind === "again") return false;
    commands.shift();
  }
  return true;
}

interface EntriesOfTurn {
  readonly inbox: Inbox;
  /** Changed by the turn. */
  readonly state: SwarmState;
  /** Whether the turn used up its time. */
  readonly isLate: () => boolean;
  /** Receives the decided entries. */
  readonly done: InboxEntry[];
}

/** Takes entries off the front of `inbox`. An entry that does not fit as a whole continues in the next turn.
 *  @returns whether the inbox is empty */
function takeEntries(turn: Turn, { inbox, state, isLate, done }: EntriesOfTurn): boolean {
  let commands = 0;
  for (let entry = inbox.peek(); entry !== undefined; entry = inbox.peek()) {
    while (entry.replies.length < entry.commands.length) {
      if (turn.isFull || commands >= limits.turnCommandsMax) return false;
      if (commands % limits.turnClockCommands === limits.turnClockCommands - 1 && isLate()) return false;
      const reply = turn.take(withDigest(entry.commands[entry.replies.length] as Command, state));
      commands += 1;
      if (reply.kind === "again") return false;
      entry.replies.push(reply);
    }
    entry.look?.(state);
    done.push(entry);
    inbox.shift();
    if (entry.look !== undefined && isLate()) return inbox.depth === 0;
  }
  return true;
}

/** Adds the digest of a result that the journal will not keep. The setting is read here, as the decision reads it. */
function withDigest(command: Command, state: SwarmState): Command {
  if (command.type !== "ReportResult" || command.outcome.kind !== "completed") return command;
  if (!journalsHashes(state, command)) return command;
  return { ...command, outcome: { ...command.outcome, digest: digestOf(command.outcome) } };
}

/** Runs a turn when time alone makes something due (scheduling/wake.ts). */
class DueTimer {
  readonly #clock: Clock;
  readonly #onDue: () => void;
  #dueAt = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Sets the timer, unless it is set for an earlier instant. @param dueAt journal time, like `now`; undefined:
   *  none */
  set(dueAt: Instant | undefined, now: Instant): void {
    if (dueAt === undefined || dueAt >= this.#dueAt) return;
    this.#cancel?.();
    this.#dueAt = dueAt;
    this.#cancel = this.#clock.after(Math.max(0, dueAt - now), () => {
      this.#dueAt = Number.POSITIVE_INFINITY;
      this.#onDue();
    });
  }

  stop(): void {
    this.#cancel?.();
  }
}
