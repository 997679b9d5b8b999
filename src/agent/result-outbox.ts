// Results on their way to the leader, each repeated with the same content until a definite answer. All waiting
// results share a message, and few messages are in flight. So a busy agent sends large messages and an idle
// agent sends at once. Belongs to one incarnation of an agent and ends with it.

import { limits } from "../limits.ts";
import { type ResultAnswer, type ResultReport, resultResponseSchema } from "../protocol/schemas.ts";
import { pauseAfter, type RetryPace } from "../retry-paused.ts";
import type { Answer, LeaderClient } from "./leader-client.ts";
import type { AttemptKey, SessionLog } from "./link.ts";

export interface ResultOutboxDeps {
  readonly incarnation: string;
  readonly leader: LeaderClient;
  readonly pace: RetryPace;
  readonly log: SessionLog;
  /** The leader gave a definite answer: the attempt is no longer held. */
  readonly onSettled: (key: AttemptKey) => void;
  /** The leader refuses all messages of this agent. */
  readonly onRefused: (refusal: Answer<never> & { readonly kind: "refused" }) => void;
  readonly onTerm: (term: number) => void;
  /** A bug, not a failure of the connection. */
  readonly onFailure: (error: unknown) => void;
}

interface Waiting {
  readonly key: AttemptKey;
  readonly report: ResultReport;
  /** The report as JSON, encoded once: repetitions are byte-identical. */
  readonly json: string;
  readonly bytes: number;
}

export class ResultOutbox {
  readonly #deps: ResultOutboxDeps;
  #waiting: Waiting[] = [];
  #underWay = 0;
  #failures = 0;
  #isPausing = false;
  #isClosed = false;
  #hurry = new AbortController();

  constructor(deps: ResultOutboxDeps) {
    this.#deps = deps;
  }

  add(key: AttemptKey, report: ResultReport): void {
    this.#waiting.push(waitingOf(key, report));
    this.#pump();
  }

  /** A new leader begins: results in flight are sent again at once. */
  sendAgain(): void {
    this.#hurry.abort();
    this.#hurry = new AbortController();
  }

  /** From now on, sends and reports nothing. */
  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
    this.#hurry.abort();
  }

  #pump(): void {
    while (!this.#isClosed && !this.#isPausing && this.#underWay < limits.resultMessagesInFlightMax) {
      const batch = this.#nextBatch();
      if (batch.length === 0) return;
      this.#underWay += 1;
      this.#send(batch).catch((error: unknown) => this.#deps.onFailure(error));
    }
  }

  #nextBatch(): Waiting[] {
    const first = this.#waiting[0];
    // After a reconnect, the server's maximum may be smaller than when the report was encoded.
    if (first !== undefined) this.#waiting[0] = this.#fitting(first);
    let bytes = this.#frameBytes();
    let count = 0;
    for (const { bytes: more } of this.#waiting) {
      if (count === limits.itemsPerMessageMax || (count > 0 && bytes + more > this.#deps.leader.roomBytes))
        break;
      bytes += more;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    const { signal: hurry } = this.#hurry;
    const message = `${this.#frame()}${batch.map(({ json }) => json).join(",")}]}`;
    const answer = await this.#deps.leader.ask("result", Buffer.from(message), resultResponseSchema, hurry);
    this.#underWay -= 1;
    if (this.#isClosed) return;
    if (answer.kind === "refused") return this.#deps.onRefused(answer);
    const left = answer.kind === "answered" ? this.#settle(batch, answer.value) : batch;
    if (left.length === 0) {
      this.#failures = 0;
      return this.#pump();
    }
    this.#waiting.unshift(...left);
    if (hurry.aborted) return this.#pump();
    this.#pause(answer.kind === "unanswered" ? answer.why : "the leader did not decide on some results");
  }

  /** @returns the results to send again */
  #settle(
    batch: readonly Waiting[],
    response: { term: number; answers: readonly ResultAnswer[] },
  ): Waiting[] {
    this.#deps.onTerm(response.term);
    const left: Waiting[] = [];
    for (const [at, waiting] of batch.entries()) {
      const next = this.#afterAnswer(waiting, response.answers[at]);
      if (next === undefined) this.#deps.onSettled(waiting.key);
      else left.push(next);
    }
    return left;
  }

  #afterAnswer(waiting: Waiting, answer: ResultAnswer | undefined): Waiting | undefined {
    if (answer === undefined) return waiting;
    if (answer.ok) return undefined;
    const { task, attempt } = waiting.report;
    this.#deps.log.warn({ task, attempt, code: answer.code, field: answer.field }, "a result was refused");
    switch (answer.code) {
      case "WAGGLE_INVALID_MESSAGE":
        return waiting.report.outcome === "failed" ? undefined : this.#refusedResult(waiting, answer.message);
      case "WAGGLE_STALE_TOKEN":
      case "WAGGLE_UNKNOWN_TASK":
      case "WAGGLE_GONE":
      case "WAGGLE_FENCED":
        return undefined;
      default:
        return waiting; // no verdict on the result: backpressure, or a code of a later version
    }
  }

  #pause(why: string): void {
    if (this.#isPausing) return;
    this.#isPausing = true;
    this.#failures += 1;
    this.#deps.log.debug({ why, failures: this.#failures }, "sending results again");
    pauseAfter(this.#failures, this.#deps.pace).subscribe(() => {
      this.#isPausing = false;
      this.#pump();
    });
  }

  /** A result too large for any message fails its attempt, with the reason. */
  #fitting(waiting: Waiting): Waiting {
    const room = this.#deps.leader.roomBytes - this.#frameBytes();
    if (waiting.bytes <= room) return waiting;
    return this.#refusedResult(
      waiting,
      `it needs ${waiting.bytes} bytes on the wire, and the server accepts ${room}`,
    );
  }

  #refusedResult({ key, report }: Waiting, why: string): Waiting {
    const { project, task, attempt, token } = report;
    return waitingOf(key, {
      project,
      task,
      attempt,
      token,
      outcome: "failed",
      error: `the result was refused: ${why}`,
    });
  }

  #frame(): string {
    return `{"incarnation":${JSON.stringify(this.#deps.incarnation)},"results":[`;
  }

  #frameBytes(): number {
    return this.#frame().length + 2;
  }
}

function waitingOf(key: AttemptKey, report: ResultReport): Waiting {
  const json = JSON.stringify(report);
  return { key, report, json, bytes: Buffer.byteLength(json) + 1 };
}
