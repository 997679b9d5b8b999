// The state of one incarnation of an agent: the attempts it holds and the results it owes. After the leader has
// reassigned the attempts, nothing carries over to the next incarnation.

import { type Incarnation, kind } from "../ids.ts";
import { limits } from "../limits.ts";
import type { AgentPush, Heartbeat, JoinRequest, ResultReport } from "../protocol/schemas.ts";
import { AttemptLedger, type HeldAttempt } from "./attempt-ledger.ts";
import type { AgentProfile, AttemptEnd } from "./link.ts";
import type { ResultOutbox } from "./result-outbox.ts";

export class IncarnationState {
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

  /** @param after the agent's newest session before, if known */
  joinRequest(
    { kinds, role, type, labels, maxConcurrent, prefetch }: AgentProfile,
    after: Incarnation | undefined,
  ): JoinRequest {
    return {
      incarnation: this.incarnation,
      ...(after === undefined ? {} : { after }),
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

  /** The part of a heartbeat before its attempts, as JSON without the closing brace.
   *  @param capacity number of handlers that can run, ≥ 1 */
  heartbeatHead(
    capacity: number,
    own: Pick<
      Heartbeat,
      "status" | "saturated" | "draining" | "successRate" | "latencyMs" | "slots" | "asksTermStarts"
    >,
  ): string {
    return JSON.stringify({ incarnation: this.incarnation, ...own, maxConcurrent: capacity }).slice(0, -1);
  }

  /** A heartbeat as JSON (`heartbeatSchema`), written by hand: agents of short tasks write one for nearly each task.
   *  @param head made by `heartbeatHead`
   *  @param listed the attempts that the incarnation holds now
   *  @param capacity number of handlers that can run, ≥ 1 */
  heartbeat(head: string, listed: readonly HeldAttempt[], capacity: number): string {
    const { running, seen } = this.ledger;
    const waiting = running > capacity ? new Set(this.ledger.waiting(capacity)) : nobody;
    const names = listed.map((each) => heldJson(each, waiting.has(each)));
    return `${head},"inFlight":${running},"seen":${seen},"held":[${names.join(",")}]}`;
  }

  /** A leader renewed the leases that a message sent at `sentAt` listed. */
  confirm(listed: readonly HeldAttempt[], sentAt: number): void {
    this.confirmedAt = Math.max(this.confirmedAt, sentAt);
    for (const attempt of listed) attempt.confirmedAt = Math.max(attempt.confirmedAt, sentAt);
  }

  /** Keeps a push until a leader confirms a heartbeat. The leader repeats pushes beyond the maximum.
   *  @returns true if nothing was kept before */
  defer(push: AgentPush): boolean {
    if (this.#deferred.length < limits.deferredPushesMax) this.#deferred.push(push);
    return this.#deferred.length === 1;
  }

  /** All deferred pushes; none are left. */
  takeDeferred(): readonly AgentPush[] {
    return this.#deferred.splice(0);
  }

  /** From now on, sends nothing and obeys nothing. */
  end(): void {
    this.#deferred.length = 0;
    this.outbox.close();
  }

  /** Queues the result of an attempt for the leader. Undefined when already reported, or of an earlier
   *  incarnation. */
  report(end: AttemptEnd): HeldAttempt | undefined {
    const held = this.ledger.end(end.key);
    if (held !== undefined) this.outbox.add(held.key, reportOf(held, end));
    return held;
  }
}

const nobody: ReadonlySet<HeldAttempt> = new Set();

function heldJson({ project, task, attempt }: HeldAttempt, isWaiting: boolean): string {
  const name = `{"project":${JSON.stringify(project)},"task":${JSON.stringify(task)},"attempt":${attempt}`;
  return isWaiting ? `${name},"waiting":true}` : `${name}}`;
}

export function attemptName({
  project,
  task,
  attempt,
}: HeldAttempt): Pick<HeldAttempt, "project" | "task" | "attempt"> {
  return { project, task, attempt };
}

function reportOf(held: HeldAttempt, end: AttemptEnd): ResultReport {
  const { project, task, attempt, token } = held;
  const { outcome, result, encoding, error, hold, tokens, traceparent, tracestate } = end;
  if (held.isRevoked || outcome === "aborted")
    return { project, task, attempt, token, outcome: "revoked", tokens, traceparent, tracestate };
  const report = {
    project,
    task,
    attempt,
    token,
    outcome,
    result,
    encoding,
    error,
    tokens,
    traceparent,
    tracestate,
  };
  return hold === undefined ? report : { ...report, hold };
}
