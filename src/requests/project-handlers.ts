// Handlers of `project.<p>.submit`, `.cancel`, `.revoke`, `.reschedule`, `.set`, `.pause` and `.resume`. `retry` and
// `await` have files of their own (retry-handler.ts, await-handler.ts).

import type { Random } from "../clock.ts";
import type { Command, Reply } from "../core/command.ts";
import { NO_PROJECT, type ProjectId, taskId } from "../ids.ts";
import { decode, invalid } from "../protocol/codec.ts";
import {
  type CodedError,
  cancelItemSchema,
  cancelRequestSchema,
  projectIdSchema,
  rescheduleItemSchema,
  rescheduleRequestSchema,
  revokeItemSchema,
  revokeRequestSchema,
  submitRequestSchema,
  taskInputSchema,
} from "../protocol/schemas.ts";
import { ownerPauseRequestSchema, ownerSetRequestSchema } from "../protocol/settings-schemas.ts";
import type { SwarmState } from "../state/state.ts";
import type { Message } from "../transport/transport.ts";
import {
  answersJson,
  cancelAnswer,
  codedError,
  rescheduleAnswer,
  revokeAnswer,
  submitAnswerJson,
} from "./answers.ts";
import { AwaitHandler } from "./await-handler.ts";
import { foreignInbox, InboxOwners } from "./inbox-owners.ts";
import type { Intake, LeaderParts } from "./intake.ts";
import { operatorAnswer } from "./operator-handlers.ts";
import type { Outbox } from "./outbox.ts";
import { isRightSubmitRequest, readToken } from "./quick-checks.ts";
import { RetryHandler } from "./retry-handler.ts";
import { ContentHasher, taskSpec } from "./task-spec.ts";

const submitRequest = {
  schema: submitRequestSchema,
  list: "tasks",
  itemSchema: taskInputSchema,
  isRight: isRightSubmitRequest,
} as const;

const cancelRequest = {
  schema: cancelRequestSchema,
  list: "tasks",
  itemSchema: cancelItemSchema,
} as const;

const revokeRequest = {
  schema: revokeRequestSchema,
  list: "tasks",
  itemSchema: revokeItemSchema,
} as const;

const rescheduleRequest = {
  schema: rescheduleRequestSchema,
  list: "tasks",
  itemSchema: rescheduleItemSchema,
} as const;

/** Settings that decide between projects. */
const operatorsOwn = ["creditWeight", "maxConcurrent", "budget"] as const;

function operatorsField(project: ProjectId, field: string): CodedError {
  const sentence = `${field}: the share and the limits of project ${project} are set by an operator of the swarm, with \`waggle project set\``;
  return codedError("WAGGLE_FORBIDDEN", sentence, { field });
}

export class ProjectHandlers {
  readonly #intake: Intake;
  readonly #random: Random;
  readonly #outbox: Outbox;
  readonly #hasher = new ContentHasher();
  readonly #awaits: AwaitHandler;
  readonly #retries: RetryHandler;
  readonly #parts: LeaderParts;
  readonly #owners: InboxOwners;

  constructor(intake: Intake, parts: LeaderParts) {
    this.#intake = intake;
    this.#parts = parts;
    this.#owners = new InboxOwners(() => parts.state);
    this.#random = parts.random;
    this.#outbox = parts.outbox;
    this.#awaits = new AwaitHandler(intake, parts);
    this.#retries = new RetryHandler(intake, parts);
  }

  take([id, verb]: readonly string[], message: Message): void {
    const { reply } = message;
    if (reply === undefined) return this.#intake.count("no-reply");
    const project = readToken(id, projectIdSchema, "project");
    if (!project.ok) return this.#intake.refuse(reply, project);
    if (project.value === NO_PROJECT)
      return this.#intake.refuse(reply, invalid("project: _ stands for no project", "project"));
    switch (verb) {
      case "submit":
        return this.#submit(project.value, message);
      case "cancel":
        return this.#cancel(project.value, message);
      case "revoke":
        return this.#revoke(project.value, message);
      case "reschedule":
        return this.#reschedule(project.value, message);
      case "retry":
        return this.#retries.take(project.value, message);
      case "await":
        return this.#awaits.take(project.value, message);
      case "set":
        return this.#set(project.value, message);
      case "pause":
      case "resume":
        return this.#pause(project.value, verb === "pause" ? "Pause" : "Resume", message);
      default:
        return this.#intake.count("unknown-subject");
    }
  }

  #submit(project: ProjectId, message: Message): void {
    const intake = this.#intake;
    const request = intake.readItems(message, submitRequest);
    if (request === undefined) return;
    const { reply, items } = request;
    const { tasks, notify, failFast } = request.body;
    if (intake.isClosed(reply, project, tasks.length)) return;
    const freshId = () => taskId(this.#random.id(20));
    const bounds = this.#parts.state.projectById.get(project)?.settings;
    if (notify !== undefined && !this.#owners.isOwn(project, notify))
      return intake.refuse(reply, foreignInbox(project));
    const commands = items.right.map((input): Command => {
      const task = taskSpec(input, project, freshId, bounds);
      const hash = this.#hasher.hashOf(task);
      return failFast === true
        ? { type: "SubmitTask", task, hash, failFast }
        : { type: "SubmitTask", task, hash };
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
        return answersJson(items, { replies, commit }, submitAnswerJson);
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
    const request = intake.readItems(message, cancelRequest);
    if (request === undefined) return;
    const { reply, items } = request;
    intake.decide({
      reply,
      commands: items.right.map((item): Command => ({ type: "CancelTask", project, ...item })),
      project,
      answer: (replies, commit) =>
        answersJson(items, { replies, commit }, (each) => JSON.stringify(cancelAnswer(each))),
    });
  }

  #revoke(project: ProjectId, message: Message): void {
    const request = this.#intake.readItems(message, revokeRequest);
    if (request === undefined) return;
    const { reply, items } = request;
    this.#intake.decide({
      reply,
      commands: items.right.map((item): Command => ({ type: "RevokeAttempt", project, ...item })),
      project,
      answer: (replies, commit) =>
        answersJson(items, { replies, commit }, (each) => JSON.stringify(revokeAnswer(each))),
    });
  }

  /** A change of the owner's own settings. Shares and limits against other projects are the operator's. */
  #set(project: ProjectId, message: Message): void {
    const request = this.#intake.read(message, (data) => decode(data, ownerSetRequestSchema));
    if (request === undefined) return;
    const { v: _, ...patch } = request.body;
    const theirs = operatorsOwn.find((field) => field in patch);
    if (theirs !== undefined) return this.#intake.refuse(request.reply, operatorsField(project, theirs));
    this.#decideOne(request.reply, { type: "SetProject", project, patch, byOwner: true });
  }

  #pause(project: ProjectId, type: "Pause" | "Resume", message: Message): void {
    const request = this.#intake.read(message, (data) => decode(data, ownerPauseRequestSchema));
    if (request !== undefined) this.#decideOne(request.reply, { type, project });
  }

  #decideOne(reply: string, command: Command): void {
    this.#intake.decide({
      reply,
      commands: [command],
      answer: ([decided], commit) => operatorAnswer(decided, commit),
    });
  }

  #reschedule(project: ProjectId, message: Message): void {
    const request = this.#intake.readItems(message, rescheduleRequest);
    if (request === undefined) return;
    const { reply, items } = request;
    const { notBefore } = request.body;
    this.#intake.decide({
      reply,
      commands: items.right.map((item): Command => ({ type: "RescheduleTask", project, ...item, notBefore })),
      project,
      answer: (replies, commit) =>
        answersJson(items, { replies, commit }, (each) => JSON.stringify(rescheduleAnswer(each))),
    });
  }
}
