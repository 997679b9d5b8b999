// One life of an agent: an incarnation with the attempts it holds and the results it owes. When the leader has
// given its attempts away nothing of it is carried over to the next.

import { type Incarnation, kind } from "../ids.ts";
import { limits } from "../limits.ts";
import type { AgentPush, Heartbeat, JoinRequest, ResultReport } from "../protocol/schemas.ts";
import { AttemptLedger, type HeldAttempt } from "./attempt-ledger.ts";
import type { AgentProfile, AttemptEnd } from "./link.ts";
import type { ResultOutbox } from "./result-outbox.ts";

export class Life {
  readonly incarnation: Incarnation;
  readonly ledger: AttemptLedger;
  readonly outbox: ResultOutbox;
  /** When the newest message that a leader confirmed was sent, monotonic ms. */
  confirmedAt: number;
  readonly #deferred: AgentPush[] = [];

  constructor(incarnation: Incarnation, makeOutbox: (ledger: AttemptLedger) => ResultOutbox, bornAt: number) {
    this.incarnation = incarnation;
    this.ledger = new AttemptLedger(incarnation);
    this.outbox = makeOutbox(this.ledger);
    this.confirmedAt = bornAt;
  }

  joinRequest({ kinds, role, type, labels, maxConcurrent, prefetch }: AgentProfile): JoinRequest {
    return {
      incarnation: this.incarnation,
      kinds: kinds.map(kind),
      ...(role === undefined ? {} : { role }),
      ...(type === undefined ? {} : { type }),
      ...(labels === undefined ? {} : { labels }),
      maxConcurrent,
      ...(prefetch === undefined ? {} : { prefetch }),
      held: this.ledger.held().map(attemptName),
      seen: this.ledger.seen,
    };
  }

  /** @param listed what this life holds now
   *  @param places in which its handlers can run, ≥ 1 */
  heartbeat(
    listed: readonly HeldAttempt[],
    places: number,
    own: Pick<Heartbeat, "status" | "saturated" | "draining" | "successRate" | "latencyMs" | "slots">,
  ): Heartbeat {
    const waiting = new Set(this.ledger.waiting(places));
    const nameOf = (each: HeldAttempt) => ({
      ...attemptName(each),
      ...(waiting.has(each) ? { waiting: true as const } : {}),
    });
    return {
      incarnation: this.incarnation,
      ...own,
      inFlight: this.ledger.running,
      maxConcurrent: places,
      seen: this.ledger.seen,
      held: listed.map(nameOf),
    };
  }

  /** A leader has renewed the leases of what was listed in a message sent at `sentAt`. */
  confirm(listed: readonly HeldAttempt[], sentAt: number): void {
    this.confirmedAt = Math.max(this.confirmedAt, sentAt);
    for (const attempt of listed) attempt.confirmedAt = Math.max(attempt.confirmedAt, sentAt);
  }

  /** Keeps what is to be obeyed once a leader confirms a heartbeat. What is too much is sent again.
   *  @returns whether nothing was kept before */
  defer(push: AgentPush): boolean {
    if (this.#deferred.length < limits.deferredPushesMax) this.#deferred.push(push);
    return this.#deferred.length === 1;
  }

  nextDeferred(): AgentPush | undefined {
    return this.#deferred.shift();
  }

  /** Sends and obeys nothing more. */
  end(): void {
    this.#deferred.length = 0;
    this.outbox.close();
  }

  /** Puts the end of an attempt on its way to the leader. Undefined when that was done, or it is of a life
   *  before this one. */
  report(end: AttemptEnd): HeldAttempt | undefined {
    const held = this.ledger.end(end.key);
    if (held !== undefined) this.outbox.add(held.key, reportOf(held, end));
    return held;
  }
}

export function attemptName({
  project,
  task,
  attempt,
}: HeldAttempt): Pick<HeldAttempt, "project" | "task" | "attempt"> {
  return { project, task, attempt };
}

function reportOf(held: HeldAttempt, end: AttemptEnd): ResultReport {
  const named = { ...attemptName(held), token: held.token };
  const { outcome, result, encoding, error } = end;
  const spent = end.tokens === undefined ? {} : { tokens: end.tokens };
  if (held.isRevoked || outcome === "aborted") return { ...named, outcome: "revoked", ...spent };
  return {
    ...named,
    outcome,
    ...(result === undefined ? {} : { result }),
    ...(encoding === undefined ? {} : { encoding }),
    ...(error === undefined ? {} : { error }),
    ...spent,
  };
}
