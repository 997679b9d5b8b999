// Turns many calls of `submit` into few messages, and asks until each task is accepted or refused.
//
// Calls made together become one message. While messages are in flight, more calls gather. So a busy submitter
// sends few large messages, an idle submitter sends at once, and no timer waits to fill a batch. A task keeps
// its id and bytes over all retries, so accepting a task twice has the effect of accepting it once.

import type { Aborts } from "../abort.ts";
import { BackpressureError, InvalidMessageError, type WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { Horizon } from "../protocol/horizon.ts";
import type { AwaitedTask } from "./awaited-task.ts";
import { Submission, type SubmissionOwner, type SubmissionTerms } from "./submission.ts";
import type { Acceptance } from "./submit-ack.ts";
import { type DeliveryTerms, type QueueTerms, SubmitQueue, type SubmitQueueDeps } from "./submit-queue.ts";
import type { TaskHandle } from "./task-handle.ts";
import { bytesBeyond, type PreparedTask } from "./task-request.ts";

export interface SubmitTerms extends DeliveryTerms, SubmissionTerms {
  readonly timeoutMs: number;
}

/** The connection's part of a submission. */
export interface SubmissionEnds {
  accepted(task: PreparedTask, awaited: AwaitedTask | undefined, acceptance: Acceptance): TaskHandle;
  notAccepted(awaited: AwaitedTask | undefined): void;
}

export interface SubmitterDeps extends SubmitQueueDeps {
  readonly aborts: Aborts;
  readonly horizon: Horizon;
  readonly ends: SubmissionEnds;
}

/** Upper bound of a message's size without its tasks. */
const ENVELOPE_BYTES = 256;

export class Submitter {
  readonly #deps: SubmitterDeps;
  readonly #queueByKey = new Map<string, SubmitQueue>();
  /** Queue of the newest submission. Stays when idle: most submissions have the terms of the one before. */
  #newest: SubmitQueue | undefined;
  readonly #stopListening: () => void;
  readonly #owner: SubmissionOwner = {
    accepted: ({ task, awaited }, acceptance) => {
      this.#pending -= 1;
      return this.#deps.ends.accepted(task, awaited, acceptance);
    },
    notAccepted: ({ awaited }) => {
      this.#pending -= 1;
      this.#deps.ends.notAccepted(awaited);
    },
    onAbort: (signal, run) => this.#deps.aborts.on(signal, run),
  };
  #pending = 0;

  constructor(deps: SubmitterDeps) {
    this.#deps = deps;
    this.#stopListening = deps.horizon.onNewLeader(() => {
      for (const queue of this.#queueByKey.values()) queue.hurry();
    });
  }

  /** Resolves after the commit. The errors of the checks before sending are thrown, all others rejections.
   *  @throws WaggleError with the code of the leader's refusal
   *  @throws BackpressureError when a queue, here or at the leader, is full
   *  @throws NoLeaderError when no leader could be asked: nothing was done
   *  @throws OutcomeUnknownError when the task may have been accepted: submit again with the same id
   *  @throws the reason of `signal` when it aborted before the task was sent */
  submit(task: PreparedTask, terms: SubmitTerms, awaited: AwaitedTask | undefined): Promise<TaskHandle> {
    const { clock, transport } = this.#deps;
    terms.signal?.throwIfAborted();
    const bytes = bytesBeyond(task, transport.maxPayloadBytes - ENVELOPE_BYTES);
    if (bytes !== undefined) throw tooLarge(bytes, transport.maxPayloadBytes);
    if (this.#pending >= limits.pendingSubmitsMax) {
      const sentence = `${this.#pending} tasks of this connection wait to be accepted, the maximum: await some results first`;
      throw new BackpressureError(sentence, limits.retryAfterMs);
    }
    this.#pending += 1;
    const giveUpAtMs = clock.monotonicMs() + terms.timeoutMs;
    const submission = new Submission({ task, awaited, giveUpAtMs }, terms, this.#owner);
    this.#queueOf(task.project, terms).add(submission);
    return submission.handle;
  }

  /** Ends pending submissions: sent tasks with an unknown outcome, the rest as not done. */
  close(cause: WaggleError): void {
    this.#stopListening();
    for (const queue of this.#queueByKey.values()) queue.close(cause);
    this.#queueByKey.clear();
    this.#newest = undefined;
  }

  #queueOf(project: string, terms: SubmitTerms): SubmitQueue {
    const before = this.#newest;
    if (before?.isFor(project, terms)) return before;
    const { notify, failFast } = terms;
    const key = `${project} ${notify ?? ""} ${failFast}`;
    const queue = this.#queueByKey.get(key) ?? this.#newQueue(key, { project, notify, failFast });
    this.#newest = queue;
    before?.restIfIdle();
    return queue;
  }

  #newQueue(key: string, terms: QueueTerms): SubmitQueue {
    const queue = new SubmitQueue(this.#deps, terms, () => {
      if (queue !== this.#newest && this.#queueByKey.get(key) === queue) this.#queueByKey.delete(key);
    });
    this.#queueByKey.set(key, queue);
    return queue;
  }
}

function tooLarge(bytes: number, maxPayloadBytes: number): InvalidMessageError {
  return new InvalidMessageError(
    `payload: the task takes ${bytes} bytes as JSON, and the server's maximum per message is ${maxPayloadBytes}`,
    { field: "payload" },
  );
}
