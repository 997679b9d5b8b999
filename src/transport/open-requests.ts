// The open requests of a connection, and the timer for time-outs. The owner sends requests, receives answers and calls
// `settle`.
//
// Requests share a single timer for the earliest deadline. The timer is set again after firing. Under load almost all
// requests are answered before, so thousands of requests per second cost no timer at all.

import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";
import type { RequestFailure, RequestOptions, RequestOutcome } from "./transport.ts";

export interface OpenRequest<Ending> {
  /** Identifies the request in the reply subject. Unique within the connection. */
  readonly token: string;
  readonly outcome: Promise<RequestOutcome | Ending>;
}

interface Waiting<Ending> {
  /** Subject of the request. */
  readonly subject: string;
  readonly deadline: number;
  readonly resolve: (outcome: RequestOutcome | Ending) => void;
  /** Stops listening to the signal and to `ending`. */
  readonly letGo: () => void;
}

/** `Ending`: results specific to the connection, in addition to the common results. */
export class OpenRequests<Ending = never> {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Waiting<Ending>>();
  #opened = 0;
  #timerDeadline = Number.POSITIVE_INFINITY;
  #cancelTimer: () => void = () => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** An aborted `signal` ends the request as `timeout`, because a receiver may still act. */
  open({ timeoutMs, signal, ending }: RequestOptions, subject = ""): OpenRequest<Ending> {
    this.#opened += 1;
    const token = this.#opened.toString(36);
    const deadline = this.#clock.monotonicMs() + timeoutMs;
    const outcome = new Promise<RequestOutcome | Ending>((resolve) => {
      const giveUp = () => this.settle(token, ended.timeout);
      signal?.addEventListener("abort", giveUp);
      const forget = ending?.add(giveUp);
      const letGo = () => {
        signal?.removeEventListener("abort", giveUp);
        forget?.();
      };
      this.#waiting.set(token, { subject, deadline, resolve, letGo });
    });
    if (signal?.aborted) this.settle(token, ended.timeout);
    else if (deadline < this.#timerDeadline) this.#setTimer(deadline);
    return { token, outcome };
  }

  isOpen(token: string): boolean {
    return this.#waiting.has(token);
  }

  /** Answers to ended requests are ignored. */
  settle(token: string, outcome: RequestOutcome | Ending): void {
    const waiting = this.#waiting.get(token);
    if (waiting === undefined) return;
    this.#waiting.delete(token);
    waiting.letGo();
    waiting.resolve(outcome);
    if (this.#waiting.size === 0) this.#dropTimer(); // an idle connection keeps no process alive
  }

  /** Ends the requests to a subject, or all requests. */
  settleOf(subject: string | undefined, ending: Ending): void {
    for (const [token, waiting] of [...this.#waiting])
      if (subject === undefined || waiting.subject === subject) this.settle(token, ending);
  }

  settleAll(failure: RequestFailure): void {
    for (const token of [...this.#waiting.keys()]) this.settle(token, ended[failure]);
  }

  #setTimer(deadline: number): void {
    this.#cancelTimer();
    this.#timerDeadline = deadline;
    this.#cancelTimer = this.#clock.after(Math.max(0, deadline - this.#clock.monotonicMs()), () => {
      this.#timerDeadline = Number.POSITIVE_INFINITY;
      this.#endExpired();
    });
  }

  #dropTimer(): void {
    this.#cancelTimer();
    this.#timerDeadline = Number.POSITIVE_INFINITY;
  }

  #endExpired(): void {
    const now = this.#clock.monotonicMs();
    let earliest = Number.POSITIVE_INFINITY;
    for (const [token, { deadline }] of this.#waiting) {
      if (deadline <= now) this.settle(token, ended.timeout);
      else earliest = Math.min(earliest, deadline);
    }
    if (this.#waiting.size > 0) this.#setTimer(Math.max(earliest, now + limits.requestTimeoutGrainMs));
  }
}

/** Results without an answer, created once. */
export const ended: Readonly<Record<RequestFailure, RequestOutcome>> = {
  "no-responders": { kind: "no-responders" },
  timeout: { kind: "timeout" },
  disconnected: { kind: "disconnected" },
};
