// The lease of a slot for one call of a model. It ends with the first of: the provider's end, an error, the consumer's
// cancel, an abort, the loss of the slot, the idle limit. None of them implies another.

import type { Aborts } from "../abort.ts";
import type { HandlerContext } from "../agent/handler.ts";
import type { CallRecord } from "../agent/hidden-failures.ts";
import type { RefusedSlot } from "../agent/slot-refusal.ts";
import type { Slot } from "../agent/slots.ts";
import { WaggleError } from "../errors.ts";
import { isRefused, type Refusal, refusalIn } from "./refusal.ts";
import { laterUsage, type TokenUsage } from "./token-usage.ts";

interface LeaseEnd {
  /** The call was cut off, so more tokens may have been used. */
  readonly partial?: boolean;
  /** Nothing is known about the provider's quota. */
  readonly unanswered?: boolean;
  /** The resource is put on hold. */
  readonly refused?: RefusedSlot;
}

/** The lease of a slot for one call. */
export class Lease {
  readonly model: string;
  readonly resource: string;
  /** Undefined outside of handlers. */
  readonly attempt: HandlerContext | undefined;
  readonly #slot: Slot;
  readonly #standIn: string | undefined;
  readonly #controller = new AbortController();
  readonly #letGo: (() => void)[];
  #usage: TokenUsage = {};
  /** Undefined outside of handlers, and once the caller has given up the call. */
  #record: CallRecord | undefined;
  #mustEnd: LeaseEnd | undefined;
  #isOver = false;
  #isAnswered = false;

  constructor(of: {
    readonly slot: Slot;
    readonly attempt: HandlerContext | undefined;
    readonly record: CallRecord | undefined;
    readonly standIn: string | undefined;
    readonly model: string;
    readonly resource: string;
    readonly aborts: Aborts;
    readonly signal: AbortSignal | undefined;
  }) {
    this.model = of.model;
    this.resource = of.resource;
    this.attempt = of.attempt;
    this.#slot = of.slot;
    this.#record = of.record;
    this.#standIn = of.standIn;
    const ends: [AbortSignal | undefined, (reason: unknown) => void][] = [
      [of.signal, (reason) => this.abandon(reason)],
      [of.slot.signal, (reason) => this.stop(reason)],
      [of.attempt?.signal, (reason) => this.stop(reason)],
    ];
    this.#letGo = ends.flatMap(([signal, end]) =>
      signal === undefined ? [] : [of.aborts.on(signal, () => end(signal.reason))],
    );
    const [aborted, end] = ends.find(([signal]) => signal?.aborted === true) ?? [];
    end?.(aborted?.reason);
  }

  /** For the provider's call: aborted with the caller's signal, the attempt, the loss of the slot, the consumer. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The provider took the call: it sent an answer, or the beginning of one. */
  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  /** Adds what a provider reports. */
  note(usage: TokenUsage | undefined, add = laterUsage): void {
    if (usage !== undefined) this.#usage = add(this.#usage, usage);
  }

  /** A provider charges nothing for a call that it refused, unless it said otherwise before. */
  noteUncharged(): void {
    this.note({ inputTokens: 0, outputTokens: 0 }, (before, none) => ({ ...none, ...before }));
  }

  noteText(text: string | undefined): void {
    if (text !== undefined) this.#record?.delivered(text);
  }

  /** For a framework that hides errors. */
  noteFailed(error: unknown): void {
    if (this.#standIn !== undefined) this.#record?.failed(error, this.#standIn);
  }

  /** The provider is at work: renews the idle limit. */
  touch(): void {
    this.#slot.touch();
  }

  /** The provider has answered. */
  succeed(): void {
    if (!this.#isOver && this.#mustEnd === undefined) this.#record?.succeeded();
    this.end();
  }

  /** Sets how the lease ends, whatever ends it. */
  mustEnd(how: LeaseEnd): void {
    this.#mustEnd = how;
  }

  /** Reports the tokens, and releases the slot. Without a report, the estimate is charged. Idempotent. */
  end(how: LeaseEnd = {}): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { partial = false, unanswered = false, refused } = this.#mustEnd ?? how;
    for (const letGo of this.#letGo) letGo();
    this.#report(partial);
    void this.#slot.release(refused === undefined ? { unanswered } : { refused });
  }

  /** A provider's figures that no report permits are left out: the estimate is charged then. So are reports after the
   *  end of an attempt, which released its slots. */
  #report(partial: boolean): void {
    if (Object.keys(this.#usage).length === 0) return;
    try {
      this.#slot.report({ ...this.#usage, ...(partial ? { partial } : {}) });
    } catch (error) {
      if (!(error instanceof WaggleError)) throw error;
    }
  }

  /** The caller gives up the call: what becomes of it does not matter to the attempt. */
  abandon(reason: unknown): void {
    this.#record = undefined;
    this.stop(reason);
  }

  /** Ends the lease before the call has ended, and aborts the call. */
  stop(reason: unknown): void {
    if (this.#isOver) return;
    this.end({ partial: true, unanswered: !this.#isAnswered });
    this.#controller.abort(reason);
  }

  /** Reports a refusal after the lease has ended, where it is the outcome of the call. */
  refuseLate(outcome: unknown): void {
    const refusal = refusalIn(outcome, Date.now());
    if (refusal === undefined || !isRefused(refusal)) return;
    // A second report of the same refusal changes nothing.
    void this.#slot.release({ refused: refusedBy(this.model, refusal) });
  }

  /** Settles as `work`, or rejects when the lease is stopped, whatever becomes of `work`. */
  async race<Result>(work: PromiseLike<Result> | Result): Promise<Result> {
    const { signal } = this;
    return await new Promise<Result>((resolve, reject) => {
      const stopped = () => reject(signal.reason);
      const over = () => signal.removeEventListener("abort", stopped);
      signal.addEventListener("abort", stopped, { once: true });
      if (signal.aborted) stopped();
      const settled = (outcome: unknown) => {
        over();
        if (signal.aborted) this.refuseLate(outcome);
      };
      Promise.resolve(work).then(
        (result) => {
          this.#isAnswered = true;
          settled(result);
          resolve(result);
        },
        (error) => {
          settled(error);
          reject(error);
        },
      );
    });
  }
}

/** The release of the slot of a refused call. */
export function refusedBy(
  model: string,
  { status, retryAfterMs }: Refusal,
): RefusedSlot & { readonly reason: string } {
  const reason =
    status === 429 ? `the quota of ${model} is used up (429)` : `${model} is overloaded (${status})`;
  return retryAfterMs === undefined ? { reason } : { reason, retryAfterMs };
}
