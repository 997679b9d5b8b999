// The attempts that one incarnation of an agent holds, and the assignments that have reached it. Bookkeeping
// only: sends nothing and starts nothing.
//
// The rules: `seen` is the highest assignment number without a gap below. An attempt is held from the arrival
// of its assignment until the leader has answered its result. An assignment whose number has arrived before is
// never started again. The leader closes attempts as lost when their number is ≤ `seen` and they are not held.
// So both change together, here.

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

/** An attempt as named on the wire. */
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
  /** The handler has not ended. */
  isRunning: boolean;
  /** The leader revoked the attempt; its end is reported as `revoked` only. */
  isRevoked: boolean;
  /** The handler was asked to end. */
  isAborted: boolean;
  /** When the last confirmed renewal of the lease was sent, monotonic ms. */
  confirmedAt: number;
}

export interface Arrival {
  readonly held: HeldAttempt;
  readonly assignment: Assignment;
}

export class AttemptLedger {
  readonly #incarnation: string;
  readonly #heldByKey = new Map<AttemptKey, HeldAttempt>();
  readonly #heldByName = new HeldByName();
  /** Numbers above `seen` that have arrived. */
  readonly #ahead = new Set<number>();
  /** Attempts revoked before their arrival, the newest of each task id. An assignment that the leader sends again says
   *  itself that the attempt was revoked. */
  readonly #earlyRevokes = new Map<string, AttemptName>();
  readonly #emptiness = new Listeners<[isEmpty: boolean]>();
  #seen = 0;
  #running = 0;

  constructor(incarnation: string) {
    this.#incarnation = incarnation;
  }

  /** Highest assignment number without a gap below; 0 before the first. */
  get seen(): AssignmentNumber {
    return assignmentNumber(this.#seen);
  }

  /** Number of attempts whose handlers have not ended. */
  get running(): number {
    return this.#running;
  }

  /** Number of ended attempts whose results no leader has answered. */
  get unanswered(): number {
    return this.size - this.#running;
  }

  /** Number of held attempts. */
  get size(): number {
    return this.#heldByKey.size;
  }

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** True if nothing is held: the present value, then each change. */
  readonly isEmpty$ = new Observable<boolean>((subscriber) => {
    subscriber.next(this.isEmpty);
    return this.#emptiness.add((isEmpty) => subscriber.next(isEmpty));
  });

  held(): HeldAttempt[] {
    return [...this.#heldByKey.values()];
  }

  /** Attempts that have not begun; attempts begin in order of arrival. @param capacity for handlers, at least 0 */
  waiting(capacity: number): HeldAttempt[] {
    return this.held()
      .filter(({ isRunning }) => isRunning)
      .slice(capacity);
  }

  find(key: AttemptKey): HeldAttempt | undefined {
    return this.#heldByKey.get(key);
  }

  /** Marks every running attempt as aborted. Returns the attempts that were not aborted before. */
  abortAll(): HeldAttempt[] {
    const marked = this.held().filter(({ isRunning, isAborted }) => isRunning && !isAborted);
    for (const held of marked) held.isAborted = true;
    return marked;
  }

  /** Records assignments. Returns the new arrivals. An attempt revoked before its arrival is marked as revoked
   *  and must not be started. */
  receive(assignments: readonly Assignment[], confirmedAt: number): Arrival[] {
    const arrivals: Arrival[] = [];
    const wasEmpty = this.isEmpty;
    for (const assignment of assignments) {
      if (!this.#note(assignment.number)) continue;
      if (this.#heldByName.find(assignment) !== undefined) continue;
      const held: HeldAttempt = {
        key: `${this.#incarnation}.${assignment.number}`,
        project: projectId(assignment.project),
        task: taskId(assignment.task),
        attempt: attemptNumber(assignment.attempt),
        token: token(assignment.token),
        isRunning: true,
        isRevoked: assignment.revoked === true || this.#wasRevoked(assignment),
        isAborted: false,
        confirmedAt,
      };
      this.#heldByName.add(held);
      this.#heldByKey.set(held.key, held);
      this.#running += 1;
      arrivals.push({ held, assignment });
    }
    if (wasEmpty && !this.isEmpty) this.#emptiness.notify(false);
    return arrivals;
  }

  /** Marks attempts as revoked. Returns the attempts whose handlers must be aborted. */
  revoke(attempts: readonly AttemptName[]): HeldAttempt[] {
    const marked: HeldAttempt[] = [];
    for (const attempt of attempts) {
      const held = this.#heldByName.find(attempt);
      if (held === undefined) this.#rememberRevoke(attempt);
      else if (held.isRunning && !held.isRevoked) {
        held.isRevoked = true;
        held.isAborted = true;
        marked.push(held);
      }
    }
    return marked;
  }

  /** The handler ended; the attempt stays held. Undefined when the attempt is unknown or had ended. */
  end(key: AttemptKey): HeldAttempt | undefined {
    const held = this.#heldByKey.get(key);
    if (held?.isRunning !== true) return undefined;
    held.isRunning = false;
    this.#running -= 1;
    return held;
  }

  /** The leader answered the result: the attempt is no longer held. */
  release(key: AttemptKey): void {
    const held = this.#heldByKey.get(key);
    if (held === undefined) return;
    this.end(key);
    this.#heldByKey.delete(key);
    this.#heldByName.remove(held);
    if (this.isEmpty) this.#emptiness.notify(true);
  }

  /** @returns true if the number had not arrived before */
  #note(number: number): boolean {
    if (number <= this.#seen || this.#ahead.has(number)) return false;
    // A leader never exceeds the agent's capacity; assignments further ahead are sent again.
    if (number > this.#seen + limits.assignmentsAheadMax) return false;
    if (number === this.#seen + 1) this.#seen = number;
    else this.#ahead.add(number);
    while (this.#ahead.size > 0 && this.#ahead.delete(this.#seen + 1)) this.#seen += 1;
    return true;
  }

  #wasRevoked(attempt: AttemptName): boolean {
    const revoked = this.#earlyRevokes.get(attempt.task);
    return revoked !== undefined && isSame(revoked, attempt) && this.#earlyRevokes.delete(attempt.task);
  }

  #rememberRevoke(attempt: AttemptName): void {
    if (this.#earlyRevokes.size >= limits.earlyRevokesMax) {
      for (const oldest of this.#earlyRevokes.keys()) {
        this.#earlyRevokes.delete(oldest);
        break;
      }
    }
    this.#earlyRevokes.set(attempt.task, attempt);
  }
}

/** Finds attempts without building a text of project, task and attempt number: nearly always, a task id names a single
 *  held attempt. */
class HeldByName {
  readonly #firstByTask = new Map<string, HeldAttempt>();
  /** By name: attempts that arrived while a second attempt with the same task id was held. */
  readonly #others = new Map<string, HeldAttempt>();

  find(name: AttemptName): HeldAttempt | undefined {
    const first = this.#firstByTask.get(name.task);
    if (first !== undefined && isSame(first, name)) return first;
    return this.#others.size === 0 ? undefined : this.#others.get(attemptKey(name));
  }

  add(held: HeldAttempt): void {
    if (this.#firstByTask.has(held.task)) this.#others.set(attemptKey(held), held);
    else this.#firstByTask.set(held.task, held);
  }

  remove(held: HeldAttempt): void {
    if (this.#firstByTask.get(held.task) === held) this.#firstByTask.delete(held.task);
    else this.#others.delete(attemptKey(held));
  }
}

function isSame(one: AttemptName, other: AttemptName): boolean {
  return one.task === other.task && one.attempt === other.attempt && one.project === other.project;
}
