// What the leader does for clients that wait for tasks: says how each stands, and notes for whom the outcome of one
// that lives is to be told. Not here: reading how those ended that did (requests/awaited-answers.ts), and telling it
// when one ends (outbox.ts).

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import type { BatchIndex, TaskId, TaskRef } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { encode } from "../../protocol/codec.ts";
import type { AwaitAnswer } from "../../protocol/schemas.ts";
import type { SwarmState } from "../../state/state.ts";
import type { Transport } from "../../transport/transport.ts";
import { backpressure, unknownTask } from "../requests/answers.ts";
import type { AuditReader } from "../requests/audit-reader.ts";
import { awaitedAnswers, type Look } from "../requests/awaited-answers.ts";
import type { Awaiting } from "../requests/awaiting.ts";
import { sendFitting } from "../requests/fitting.ts";
import type { Commit, InboxEntry } from "../requests/inbox.ts";
import type { AwaitRequest, AwaitTarget } from "../requests/request-target.ts";
import type { Outbox } from "./outbox.ts";

export interface AwaitDeskDeps {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly awaiting: Awaiting;
  readonly outbox: Outbox;
  readonly reader: AuditReader;
  /** Puts an entry before the next turn. @returns false when there is no room */
  readonly enqueue: (entry: InboxEntry) => boolean;
  /** The first batch that is kept to be read. */
  readonly auditFirstIdx: () => BatchIndex;
}

export class AwaitDesk implements AwaitTarget {
  readonly #deps: AwaitDeskDeps;

  constructor(deps: AwaitDeskDeps) {
    this.#deps = deps;
  }

  ask(request: AwaitRequest): boolean {
    const looks: Look[] = [];
    return this.#deps.enqueue({
      commands: [],
      replies: [],
      look: (state) => {
        for (const task of request.tasks)
          looks.push(
            typeof task === "string" ? this.#lookAt(state, task, request) : { kind: "answer", answer: task },
          );
      },
      finish: (commit) => void this.#answer(request, looks, commit),
    });
  }

  note(task: TaskRef, inbox: string): void {
    this.#deps.awaiting.add(task, inbox);
  }

  /** How a task stands, to be answered after the commit: an ended one's result is read from the journal then. */
  #lookAt(state: SwarmState, task: TaskId, { project, notify }: AwaitRequest): Look {
    const ref = { project, task };
    if (state.taskById.has(ref)) {
      const isNoted = this.#deps.awaiting.add(ref, notify);
      const answer: AwaitAnswer = isNoted
        ? { ok: true, live: true }
        : backpressure("too-many-waiting", limits.retryAfterMs);
      return { kind: "answer", answer };
    }
    const ended = state.endedById.get(ref);
    return ended === undefined ? { kind: "answer", answer: unknownTask(task) } : { kind: "ended", ended };
  }

  async #answer({ notify, reply }: AwaitRequest, looks: readonly Look[], commit: Commit): Promise<void> {
    const { transport, clock, logger, outbox, reader, auditFirstIdx } = this.#deps;
    const firstIdx = auditFirstIdx(); // by the batch that the answer names: what goes meanwhile is to be asked again
    const answers = await awaitedAnswers(looks, {
      clock,
      read: (ended) => reader.outcome(ended, firstIdx),
      bytesMax: transport.maxPayloadBytes / 4, // the rest is for what is not an outcome
      overflow: (outcome) => outbox.announce(notify, [outcome], commit),
      onUnread: ({ id: task, endedIdx: idx }, cause) =>
        logger.warn({ err: cause, task, idx }, "how a task ended could not be read"),
    });
    sendFitting(transport, reply, encode({ ...commit, answers }));
  }
}
