// The attempts that one life of an agent holds, and which assignments have reached it. Pure bookkeeping: it
// sends nothing and starts nothing.
//
// The rules: `seen` is the highest assignment number with none missing; an attempt is held from the moment its
// assignment arrives until its result was answered; an assignment whose number has arrived before is never
// started again. The leader closes as lost whatever number is ≤ `seen` and not held, so both change together, here.

import { Observable } from "rxjs";
import {
  type AssignmentNumber,
  type AttemptNumber,
  assignmentNumber,
  attemptKey,
  attemptNumber,
  type ProjectId,
  projectId,
  type TaskId,
  type Token,
  taskId,
  token,
} from "../ids.ts";
import { limits } from "../limits.ts";
import { Listeners } from "../listeners.ts";
import type { Assignment } from "../protocol/schemas.ts";
import type { AttemptKey } from "./link.ts";

/** One attempt as the wire names it. */
export interface AttemptName {
  readonly project: string;
  readonly task: string;
  readonly attempt: number;
}

export interface HeldAttempt {
  readonly key: AttemptKey;
  readonly project: ProjectId;
  readonly task: TaskId;
  readonly attempt: AttemptNumber;
  readonly token: Token;
  /** Its handler has not ended. */
  isRunning: boolean;
  /** The leader wants it stopped; its end is reported as that and nothing else. */
  isRevoked: boolean;
  /** Its handler was told to end. */
  isAborted: boolean;
  /** When the last confirmed renewal of its lease was sent, monotonic ms. */
  confirmedAt: number;
}

export interface Arrival {
  readonly held: HeldAttempt;
  readonly assignment: Assignment;
}

export class AttemptLedger {
  readonly #incarnation: string;
  readonly #heldByName = new Map<string, HeldAttempt>();
  readonly #heldByKey = new Map<AttemptKey, HeldAttempt>();
  /** Numbers above `seen` that have arrived. */
  readonly #ahead = new Set<number>();
  /** Names of attempts revoked before they arrived. */
  readonly #earlyRevokes = new Set<string>();
  readonly #emptiness = new Listeners<[isEmpty: boolean]>();
  #seen = 0;
  #running = 0;

  constructor(incarnation: string) {
    this.#incarnation = incarnation;
  }

  /** Highest assignment number with none missing; 0 before the first. */
  get seen(): AssignmentNumber {
    return assignmentNumber(this.#seen);
  }

  /** Attempts whose handlers have not ended. */
  get running(): number {
    return this.#running;
  }

  /** Attempts that have ended and whose results no leader has answered. */
  get unanswered(): number {
    return this.#heldByName.size - this.#running;
  }

  get isEmpty(): boolean {
    return this.#heldByName.size === 0;
  }

  /** Whether nothing is held: now, and at each change. */
  readonly isEmpty$ = new Observable<boolean>((subscriber) => {
    subscriber.next(this.isEmpty);
    return this.#emptiness.add((isEmpty) => subscriber.next(isEmpty));
  });

  held(): HeldAttempt[] {
    return [...this.#heldByName.values()];
  }

  /** Those that have not begun: they begin in the order in which they came. @param places for handlers, at least 0 */
  waiting(places: number): HeldAttempt[] {
    return this.held()
      .filter(({ isRunning }) => isRunning)
      .slice(places);
  }

  find(key: AttemptKey): HeldAttempt | undefined {
    return this.#heldByKey.get(key);
  }

  /** Marks every running attempt as told to end; returns those that were not told before. */
  abortAll(): HeldAttempt[] {
    const told = this.held().filter(({ isRunning, isAborted }) => isRunning && !isAborted);
    for (const held of told) held.isAborted = true;
    return told;
  }

  /** Takes note of assignments; returns those that had not arrived before. One that was revoked before it
   *  arrived is among them, marked, and must not be started. */
  receive(assignments: readonly Assignment[], confirmedAt: number): Arrival[] {
    const arrivals: Arrival[] = [];
    const wasEmpty = this.isEmpty;
    for (const assignment of assignments) {
      if (!this.#note(assignment.number)) continue;
      const name = attemptKey(assignment);
      if (this.#heldByName.has(name)) continue;
      const held: HeldAttempt = {
        key: `${this.#incarnation}.${assignment.number}`,
        project: projectId(assignment.project),
        task: taskId(assignment.task),
        attempt: attemptNumber(assignment.attempt),
        token: token(assignment.token),
        isRunning: true,
        isRevoked: this.#earlyRevokes.delete(name),
        isAborted: false,
        confirmedAt,
      };
      this.#heldByName.set(name, held);
      this.#heldByKey.set(held.key, held);
      this.#running += 1;
      arrivals.push({ held, assignment });
    }
    if (wasEmpty && !this.isEmpty) this.#emptiness.tell(false);
    return arrivals;
  }

  /** Marks attempts as revoked; returns those whose handlers must be told. */
  revoke(attempts: readonly AttemptName[]): HeldAttempt[] {
    const told: HeldAttempt[] = [];
    for (const attempt of attempts) {
      const held = this.#heldByName.get(attemptKey(attempt));
      if (held === undefined) this.#rememberRevoke(attemptKey(attempt));
      else if (held.isRunning && !held.isRevoked) {
        held.isRevoked = true;
        held.isAborted = true;
        told.push(held);
      }
    }
    return told;
  }

  /** The handler ended; the attempt stays held. Undefined when that was known, or the attempt is not. */
  end(key: AttemptKey): HeldAttempt | undefined {
    const held = this.#heldByKey.get(key);
    if (held?.isRunning !== true) return undefined;
    held.isRunning = false;
    this.#running -= 1;
    return held;
  }

  /** The leader has answered the result: the attempt is held no longer. */
  release(key: AttemptKey): void {
    const held = this.#heldByKey.get(key);
    if (held === undefined) return;
    this.end(key);
    this.#heldByKey.delete(key);
    this.#heldByName.delete(attemptKey(held));
    if (this.isEmpty) this.#emptiness.tell(true);
  }

  /** @returns whether the number had not arrived before */
  #note(number: number): boolean {
    if (number <= this.#seen || this.#ahead.has(number)) return false;
    // A leader never has more under way than the agent has places; what lies further ahead is sent again.
    if (number > this.#seen + limits.assignmentsAheadMax) return false;
    this.#ahead.add(number);
    while (this.#ahead.delete(this.#seen + 1)) this.#seen += 1;
    return true;
  }

  #rememberRevoke(name: string): void {
    if (this.#earlyRevokes.size >= limits.earlyRevokesMax) {
      for (const oldest of this.#earlyRevokes) {
        this.#earlyRevokes.delete(oldest);
        break;
      }
    }
    this.#earlyRevokes.add(name);
  }
}
