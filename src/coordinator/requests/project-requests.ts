// Requests of clients on `project.<p>.<verb>`: `submit`, `cancel`, `retry` and `await`, from the wire to an entry of
// the inbox and from what was decided to the answers, item by item. Not here: what holds for every request
// (request-edge.ts).

import type { Random } from "../../clock.ts";
import type { Command, Reply } from "../../core/command.ts";
import { NO_PROJECT, type ProjectId, taskId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { check, decode, invalid } from "../../protocol/codec.ts";
import {
  awaitRequestSchema,
  cancelItemSchema,
  cancelRequestSchema,
  projectIdSchema,
  retryItemSchema,
  retryRequestSchema,
  submitRequestSchema,
  taskIdSchema,
  taskInputSchema,
} from "../../protocol/schemas.ts";
import type { SwarmState } from "../../state/state.ts";
import type { Message } from "../../transport/transport.ts";
import { answerMessage, answersOf, backpressure, cancelAnswer, submitAnswer } from "./answers.ts";
import type { InboxEntry } from "./inbox.ts";
import type { RequestEdge } from "./request-edge.ts";
import type { AwaitTarget } from "./request-target.ts";
import { contentHash, taskSpec } from "./task-spec.ts";

export class ProjectRequests {
  readonly #edge: RequestEdge;
  readonly #random: Random;

  constructor(edge: RequestEdge, random: Random) {
    this.#edge = edge;
    this.#random = random;
  }

  take(id: string, verb: string, message: Message): void {
    const reply = this.#edge.replyOf(message);
    if (reply === undefined) return;
    const project = check(id, projectIdSchema, "project");
    if (!project.ok) return this.#edge.refuse(reply, project);
    if (id === NO_PROJECT)
      return this.#edge.refuse(reply, invalid("project: _ stands for no project", "project"));
    switch (verb) {
      case "submit":
        return this.#submit(id as ProjectId, message.data, reply);
      case "cancel":
        return this.#cancel(id as ProjectId, message.data, reply);
      case "retry":
        return this.#retry(id as ProjectId, message.data, reply);
      case "await":
        return this.#await(id as ProjectId, message.data, reply);
      default:
        return this.#edge.target.count("unknown-subject");
    }
  }

  #submit(project: ProjectId, data: Uint8Array, reply: string): void {
    const request = decode(data, submitRequestSchema);
    if (!request.ok) return this.#edge.refuse(reply, request);
    const { tasks, notify, failFast } = request.value;
    const closed = this.#edge.target.closedReason();
    if (closed !== undefined) {
      this.#edge.target.refused(project, closed, tasks.length);
      return this.#edge.refuse(reply, backpressure(closed, limits.retryAfterMs));
    }
    const inputs = tasks.map((item, at) => this.#edge.checkItem(item, taskInputSchema, `tasks[${at}]`));
    const commands = inputs.flatMap((input): Command[] => {
      if (!input.ok) return [];
      const task = taskSpec(input.value, project, () => taskId(this.#random.id(20)));
      return [
        { type: "SubmitTask", task, hash: contentHash(task), ...(failFast === true ? { failFast } : {}) },
      ];
    });
    const { target } = this.#edge;
    this.#edge.enqueue(
      reply,
      {
        commands,
        replies: [],
        finish(commit) {
          for (const each of this.replies)
            if (each.kind === "refused" || each.kind === "budget-exceeded")
              target.refused(project, each.reason, 1);
          target.send(reply, answerMessage(commit, answersOf(inputs, this.replies, submitAnswer)));
        },
        ...(notify === undefined
          ? {}
          : {
              look(this: InboxEntry, state: SwarmState) {
                awaitAccepted(state, project, this.replies, notify, target.awaited);
              },
            }),
      },
      project,
    );
  }

  #cancel(project: ProjectId, data: Uint8Array, reply: string): void {
    const request = decode(data, cancelRequestSchema);
    if (!request.ok) return this.#edge.refuse(reply, request);
    const items = request.value.tasks.map((item, at) =>
      this.#edge.checkItem(item, cancelItemSchema, `tasks[${at}]`),
    );
    const commands = items.flatMap((item): Command[] =>
      item.ok ? [{ type: "CancelTask", project, ...item.value }] : [],
    );
    const { target } = this.#edge;
    this.#edge.enqueue(
      reply,
      {
        commands,
        replies: [],
        finish(commit) {
          target.send(reply, answerMessage(commit, answersOf(items, this.replies, cancelAnswer)));
        },
      },
      project,
    );
  }

  #retry(project: ProjectId, data: Uint8Array, reply: string): void {
    const request = decode(data, retryRequestSchema);
    if (!request.ok) return this.#edge.refuse(reply, request);
    const { tasks, deadline } = request.value;
    const { target } = this.#edge;
    const closed = target.closedReason();
    if (closed !== undefined) {
      target.refused(project, closed, tasks.length);
      return this.#edge.refuse(reply, backpressure(closed, limits.retryAfterMs));
    }
    const items = tasks.map((item, at) => {
      const checked = this.#edge.checkItem(item, retryItemSchema, `tasks[${at}]`);
      return checked.ok ? checked.value : checked;
    });
    if (!target.retries.ask({ items, deadline, project, reply }))
      this.#edge.refuse(reply, backpressure("too-many-retries", limits.retryAfterMs));
  }

  #await(project: ProjectId, data: Uint8Array, reply: string): void {
    const request = decode(data, awaitRequestSchema);
    if (!request.ok) return this.#edge.refuse(reply, request);
    const tasks = request.value.tasks.map((item, at) => {
      const task = this.#edge.checkItem(item, taskIdSchema, `tasks[${at}]`);
      return task.ok ? task.value : task;
    });
    const isTaken = this.#edge.target.awaited.ask({ tasks, notify: request.value.notify, project, reply });
    if (!isTaken) this.#edge.refuseFull(reply);
  }
}

/** The outcome of a task that had ended before is asked for. */
function awaitAccepted(
  state: SwarmState,
  project: ProjectId,
  replies: readonly Reply[],
  notify: string,
  awaited: AwaitTarget,
): void {
  for (const reply of replies) {
    if (reply.kind !== "accepted") continue;
    const ref = { project, task: reply.task };
    if (state.taskById.has(ref)) awaited.note(ref, notify);
  }
}
