// Handlers of `project.<p>.submit` and `.cancel`; `retry` and `await` have files of their own (retry-handler.ts,
// await-handler.ts). Here too: the complete, immutable specification of a submitted task, and its content hash.

import { hash } from "node:crypto";
import type { Random } from "../../clock.ts";
import type { Command, Reply } from "../../core/command.ts";
import { NO_PROJECT, type ProjectId, type TaskId, taskId, userId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { check, decode, invalid } from "../../protocol/codec.ts";
import {
  cancelItemSchema,
  cancelRequestSchema,
  projectIdSchema,
  submitRequestSchema,
  type TaskInput,
  taskInputSchema,
} from "../../protocol/schemas.ts";
import type { TaskSpec } from "../../state/event.ts";
import type { SwarmState } from "../../state/state.ts";
import type { Message } from "../../transport/transport.ts";
import { answersOf, cancelAnswer, submitAnswer } from "./answers.ts";
import { AwaitHandler } from "./await-handler.ts";
import type { Intake, LeaderParts } from "./intake.ts";
import type { Outbox } from "./outbox.ts";
import { RetryHandler } from "./retry-handler.ts";

export class ProjectHandlers {
  readonly #intake: Intake;
  readonly #random: Random;
  readonly #outbox: Outbox;
  readonly #awaits: AwaitHandler;
  readonly #retries: RetryHandler;

  constructor(intake: Intake, parts: LeaderParts) {
    this.#intake = intake;
    this.#random = parts.random;
    this.#outbox = parts.outbox;
    this.#awaits = new AwaitHandler(intake, parts);
    this.#retries = new RetryHandler(intake, parts);
  }

  take([id, verb]: readonly string[], message: Message): void {
    const { reply } = message;
    if (reply === undefined) return this.#intake.count("no-reply");
    const project = check(id, projectIdSchema, "project");
    if (!project.ok) return this.#intake.refuse(reply, project);
    if (project.value === NO_PROJECT)
      return this.#intake.refuse(reply, invalid("project: _ stands for no project", "project"));
    switch (verb) {
      case "submit":
        return this.#submit(project.value, message);
      case "cancel":
        return this.#cancel(project.value, message);
      case "retry":
        return this.#retries.take(project.value, message);
      case "await":
        return this.#awaits.take(project.value, message);
      default:
        return this.#intake.count("unknown-subject");
    }
  }

  #submit(project: ProjectId, message: Message): void {
    const intake = this.#intake;
    const request = intake.read(message, (data) => decode(data, submitRequestSchema));
    if (request === undefined) return;
    const { reply } = request;
    const { tasks, notify, failFast } = request.body;
    if (intake.isClosed(reply, project, tasks.length)) return;
    const inputs = tasks.map((item, at) => intake.checkItem(item, taskInputSchema, `tasks[${at}]`));
    const commands = inputs.flatMap((input): Command[] => {
      if (!input.ok) return [];
      const task = taskSpec(input.value, project, () => taskId(this.#random.id(20)));
      return [
        { type: "SubmitTask", task, hash: contentHash(task), ...(failFast === true ? { failFast } : {}) },
      ];
    });
    intake.decide({
      reply,
      commands,
      project,
      ...(notify === undefined
        ? {}
        : { look: (state, replies) => this.#awaitAccepted(state, replies, { project, notify }) }),
      answer: (replies, commit) => {
        for (const each of replies)
          if (each.kind === "refused" || each.kind === "budget-exceeded")
            intake.refusals.add(project, each.reason, 1);
        return { ...commit, answers: answersOf(inputs, replies, submitAnswer) };
      },
    });
  }

  /** Notes a client that awaits its accepted tasks. The client asks for the outcome of a task that had ended
   *  before. */
  #awaitAccepted(
    state: SwarmState,
    replies: readonly Reply[],
    { project, notify }: { readonly project: ProjectId; readonly notify: string },
  ): void {
    for (const reply of replies) {
      if (reply.kind !== "accepted") continue;
      const ref = { project, task: reply.task };
      if (state.taskById.has(ref)) this.#outbox.awaiting.add(ref, notify);
    }
  }

  #cancel(project: ProjectId, message: Message): void {
    const intake = this.#intake;
    const request = intake.read(message, (data) => decode(data, cancelRequestSchema));
    if (request === undefined) return;
    const items = request.body.tasks.map((item, at) =>
      intake.checkItem(item, cancelItemSchema, `tasks[${at}]`),
    );
    const commands = items.flatMap((item): Command[] =>
      item.ok ? [{ type: "CancelTask", project, ...item.value }] : [],
    );
    intake.decide({
      reply: request.reply,
      commands,
      project,
      answer: (replies, commit) => ({ ...commit, answers: answersOf(items, replies, cancelAnswer) }),
    });
  }
}

const DEFAULT_USER = userId("default");
const DEFAULT_PRIORITY = 100;
const DEFAULT_WEIGHT = 1;

/** Fills in the defaults. @param freshId makes an id for a task without one */
export function taskSpec(input: TaskInput, project: ProjectId, freshId: () => TaskId): TaskSpec {
  return {
    id: input.id ?? freshId(),
    kind: input.kind,
    ...(input.role === undefined ? {} : { role: input.role }),
    project,
    user: input.user ?? DEFAULT_USER,
    weight: input.weight ?? DEFAULT_WEIGHT,
    priority: input.priority ?? DEFAULT_PRIORITY,
    payload: input.payload ?? "",
    ...(input.encoding === undefined ? {} : { encoding: input.encoding }),
    ...(input.tokens === undefined ? {} : { tokens: input.tokens }),
    ...(input.deadline === undefined ? {} : { deadline: input.deadline }),
    ...(input.notBefore === undefined ? {} : { notBefore: input.notBefore }),
    maxAttempts: input.maxAttempts ?? limits.maxAttemptsDefault,
    timeoutMs: input.timeoutMs ?? limits.attemptTimeoutMs,
    ...(input.stallMs === undefined ? {} : { stallMs: input.stallMs }),
  };
}

/** First 22 characters of the SHA-256 over the submitted content. Same id and same hash: the same task. */
export function contentHash(spec: TaskSpec): string {
  const { role, encoding, tokens, deadline, notBefore, stallMs } = spec;
  const content = [
    spec.kind,
    spec.project,
    spec.user,
    spec.weight,
    spec.priority,
    spec.maxAttempts,
    spec.timeoutMs,
    role,
    encoding,
    tokens,
    deadline,
    notBefore,
    stallMs,
  ];
  return hash("sha256", `${JSON.stringify(content)}${spec.payload}`, "base64url").slice(0, 22);
}
