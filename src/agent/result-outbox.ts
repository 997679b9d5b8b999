// Results on their way to the leader, each repeated with the same content until a definite answer. All waiting
// results share a message, and few messages are in flight. So a busy agent sends large messages and an idle
// agent sends at once. Belongs to one incarnation of an agent and ends with it.

import { Buffer } from "node:buffer";
import type { z } from "zod";
import { limits } from "../limits.ts";
import { type ResultAnswer, type ResultReport, resultResponseSchema } from "../protocol/schemas.ts";
import { pauseAfter, type RetryPace } from "../retry-paused.ts";
import type { Answer, LeaderClient } from "./leader-client.ts";
import type { AttemptKey, SessionLog } from "./link.ts";
import { isUsualResultResponse } from "./quick-checks.ts";

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
}

/** Results that fit a message, and the message. */
interface Batch {
  readonly waiting: readonly Waiting[];
  readonly message: string;
}

/** A message on its way. */
interface Flight {
  readonly waiting: readonly Waiting[];
  readonly newLeadersBefore: number;
  /** Ends the wait for the answer: the results are sent again. */
  endWait: () => void;
}

export class ResultOutbox {
  readonly #deps: ResultOutboxDeps;
  #waiting: Waiting[] = [];
  #inFlight: Flight[] = [];
  #failures = 0;
  #isPausing = false;
  #isClosed = false;
  /** Number of times that a new leader began. */
  #newLeaders = 0;

  constructor(deps: ResultOutboxDeps) {
    this.#deps = deps;
  }

  /** Call `send` after the last result of a turn: results that were added together share a message. */
  add(key: AttemptKey, report: ResultReport): void {
    this.#waiting.push({ key, report });
  }

  send(): void {
    this.#pump();
  }

  /** A new leader begins: results in flight are sent again at once. */
  sendAgain(): void {
    this.#newLeaders += 1;
    this.#endWaits();
  }

  /** From now on, sends and reports nothing. */
  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
    this.#endWaits();
  }

  #endWaits(): void {
    for (const { endWait } of [...this.#inFlight]) endWait();
  }

  #pump(): void {
    while (!this.#isClosed && !this.#isPausing && this.#inFlight.length < limits.resultMessagesInFlightMax) {
      const batch = this.#nextBatch();
      if (batch === undefined) return;
      this.#send(batch);
    }
  }

  /** Writes all results of a message at once, which costs half of writing each. */
  #nextBatch(): Batch | undefined {
    const { roomBytes } = this.#deps.leader;
    let count = this.#countWithin(roomBytes);
    if (count === 0) return undefined;
    let message = this.#messageOf(count);
    while (Buffer.byteLength(message) > roomBytes && count > 1) {
      count = Math.ceil(count / 2);
      message = this.#messageOf(count);
    }
    const bytes = Buffer.byteLength(message);
    if (bytes > roomBytes)
      message = this.#refuseFirst(`it needs ${bytes} bytes on the wire, and the server accepts ${roomBytes}`);
    return { waiting: this.#waiting.splice(0, count), message };
  }

  /** At least as many results as fit: texts grow when they are written. */
  #countWithin(roomBytes: number): number {
    let characters = 0;
    let count = 0;
    for (const { report } of this.#waiting) {
      characters += leastCharacters(report);
      if (count === limits.itemsPerMessageMax || (count > 0 && characters > roomBytes)) break;
      count += 1;
    }
    return count;
  }

  #messageOf(count: number): string {
    const { incarnation } = this.#deps;
    const results = this.#waiting.slice(0, count).map(({ report }) => report);
    return JSON.stringify({ incarnation, results });
  }

  /** A result too large for any message fails its attempt, with the reason. */
  #refuseFirst(why: string): string {
    const [first, ...others] = this.#waiting;
    if (first !== undefined) this.#waiting = [refusedResult(first, why), ...others];
    return this.#messageOf(1);
  }

  #send({ waiting, message }: Batch): void {
    const flight: Flight = { waiting, newLeadersBefore: this.#newLeaders, endWait: () => undefined };
    this.#inFlight.push(flight);
    flight.endWait = this.#deps.leader.request("result", message, reading, {
      onAnswer: (answer) => this.#onAnswer(flight, answer),
      onFailure: this.#deps.onFailure,
    });
  }

  #onAnswer(flight: Flight, answer: Answer<ResultResponse>): void {
    const { waiting, newLeadersBefore } = flight;
    this.#inFlight = this.#inFlight.filter((each) => each !== flight);
    if (this.#isClosed) return;
    if (answer.kind === "refused") return this.#deps.onRefused(answer);
    const left = answer.kind === "answered" ? this.#settle(waiting, answer.value) : waiting;
    if (left.length === 0) {
      this.#failures = 0;
      return this.#pump();
    }
    this.#waiting.unshift(...left);
    if (this.#newLeaders > newLeadersBefore) return this.#pump();
    this.#pause(answer.kind === "unanswered" ? answer.why : "the leader did not decide on some results");
  }

  /** @returns the results to send again */
  #settle(batch: readonly Waiting[], { term, answers }: ResultResponse): Waiting[] {
    this.#deps.onTerm(term);
    const left: Waiting[] = [];
    for (const [at, waiting] of batch.entries()) {
      const next = this.#afterAnswer(waiting, answers[at]);
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
        return waiting.report.outcome === "failed" ? undefined : refusedResult(waiting, answer.message);
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
}

type ResultResponse = z.infer<typeof resultResponseSchema>;

const reading = { schema: resultResponseSchema, isRight: isUsualResultResponse };

/** Says that the result was refused, in place of the result. Of a refused hold only the hold is left out. */
function refusedResult({ key, report }: Waiting, why: string): Waiting {
  const { project, task, attempt, token } = report;
  const { hold, ...bare } = report;
  if (hold !== undefined) return { key, report: bare };
  const error = `the result was refused: ${why}`;
  return { key, report: { project, task, attempt, token, outcome: "failed", error } };
}

const EMPTY_REPORT = JSON.stringify({ project: "", task: "", attempt: 1, token: "", outcome: "failed" });

/** Lower bound of a report's characters as JSON. */
function leastCharacters({ project, task, token, result = "", error = "" }: ResultReport): number {
  return EMPTY_REPORT.length + project.length + task.length + token.length + result.length + error.length;
}
