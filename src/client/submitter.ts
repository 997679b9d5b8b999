// Turns many calls of `submit` into few messages, and asks until each task is accepted or refused.
//
// Calls made together become one message. While messages are in flight, more calls gather. So a busy submitter
// sends few large messages, an idle submitter sends at once, and no timer waits to fill a batch. A task keeps
// its id and bytes over all retries, so accepting a task twice has the effect of accepting it once.

import type { Aborts } from "../abort.ts";
import { BackpressureError, InvalidMessageError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { Horizon } from "../protocol/horizon.ts";
import type { HeldBack } from "./backpressure.ts";
import { Submission, type SubmitAck } from "./submission.ts";
import { type QueueTerms, SubmitQueue, type SubmitQueueDeps } from "./submit-queue.ts";
import type { PreparedTask } from "./task-request.ts";

export interface SubmitTerms extends Omit<QueueTerms, "project"> {
  /** Try again after BackpressureError, instead of failing. */
  readonly retry: boolean;
  readonly timeoutMs: number;
  readonly heldBack: HeldBack;
  readonly signal: AbortSignal | undefined;
}

export interface SubmitterDeps extends SubmitQueueDeps {
  readonly aborts: Aborts;
  readonly horizon: Horizon;
}

/** Upper bound of a message's size without its tasks. */
const ENVELOPE_BYTES = 256;

export class Submitter {
  readonly #deps: SubmitterDeps;
  readonly #queueByKey = new Map<string, SubmitQueue>();
  readonly #stopListening: () => void;
  #pending = 0;

  constructor(deps: SubmitterDeps) {
    this.#deps = deps;
    this.#stopListening = deps.horizon.onNewLeader(() => {
      for (const queue of this.#queueByKey.values()) queue.hurry();
    });
  }

  /** Resolves after the commit.
   *  @throws WaggleError with the code of the leader's refusal
   *  @throws BackpressureError when a queue, here or at the leader, is full
   *  @throws NoLeaderError when no leader could be asked: nothing was done
   *  @throws OutcomeUnknownError when the task may have been accepted: submit again with the same id
   *  @throws the reason of `signal` when it aborted before the task was sent */
  async submit(task: PreparedTask, terms: SubmitTerms): Promise<SubmitAck> {
    const { clock, transport, aborts } = this.#deps;
    terms.signal?.throwIfAborted();
    if (task.bytes > transport.maxPayloadBytes - ENVELOPE_BYTES)
      throw tooLarge(task, transport.maxPayloadBytes);
    if (this.#pending >= limits.pendingSubmitsMax) {
      const sentence = `${this.#pending} tasks of this connection wait to be accepted, the maximum: await some results first`;
      throw new BackpressureError(sentence, limits.retryAfterMs);
    }
    this.#pending += 1;
    const giveUpAtMs = clock.monotonicMs() + terms.timeoutMs;
    const { retry, heldBack, signal } = terms;
    const submission = new Submission(task, { giveUpAtMs, retry, heldBack, signal, aborts });
    this.#queueOf(task, terms).add(submission);
    try {
      return await submission.acked;
    } finally {
      this.#pending -= 1;
    }
  }

  /** Ends pending submissions: sent tasks with an unknown outcome, the rest as not done. */
  close(): void {
    this.#stopListening();
    for (const queue of this.#queueByKey.values()) queue.close();
    this.#queueByKey.clear();
  }

  #queueOf(task: PreparedTask, { notify, failFast }: SubmitTerms): SubmitQueue {
    const key = `${task.project} ${notify ?? ""} ${failFast}`;
    const known = this.#queueByKey.get(key);
    if (known !== undefined) return known;
    const queue = new SubmitQueue(this.#deps, { project: task.project, notify, failFast }, () => {
      if (this.#queueByKey.get(key) === queue) this.#queueByKey.delete(key);
    });
    this.#queueByKey.set(key, queue);
    return queue;
  }
}

function tooLarge(task: PreparedTask, maxPayloadBytes: number): InvalidMessageError {
  return new InvalidMessageError(
    `payload: the task takes ${task.bytes} bytes as JSON, and the server's maximum per message is ${maxPayloadBytes}`,
    { field: "payload" },
  );
}
