// From a message on the wire to an entry of the inbox, or straight to a refusal: the edge of the coordinator.
// Whatever does not parse is answered with a coded error that names the field, counted, and changes nothing;
// where no reply is due, or the reply subject is not an inbox, it is dropped and counted.

import type { z } from "zod";
import type { Random } from "../clock.ts";
import type { Command, Reply } from "../core/command.ts";
import type { RefusalReason } from "../core/event.ts";
import type { SwarmState } from "../core/state.ts";
import {
  type AgentId,
  type AssignmentNumber,
  type Incarnation,
  NO_PROJECT,
  type ProjectId,
  type TaskId,
  taskId,
} from "../ids.ts";
import { limits } from "../limits.ts";
import { check, type Decoded, decode, encode, invalid } from "../protocol/codec.ts";
import {
  agentIdSchema,
  awaitRequestSchema,
  type CodedError,
  cancelRequestSchema,
  type Heartbeat,
  heartbeatSchema,
  joinRequestSchema,
  leaveRequestSchema,
  type Progress,
  progressSchema,
  projectIdSchema,
  resultRequestSchema,
  resultSchema,
  submitRequestSchema,
  taskIdSchema,
  taskInputSchema,
} from "../protocol/schemas.ts";
import { isInbox, type Subjects } from "../protocol/subjects.ts";
import type { Message } from "../transport/transport.ts";
import { type MessageSort, sortByVerb } from "./agent-gate.ts";
import { backpressure, cancelAnswer, codedError, resultAnswer, submitAnswer } from "./answers.ts";
import type { Commit, InboxEntry } from "./inbox.ts";
import { type TransferRequest, takeOperator } from "./operator-requests.ts";
import { SlotRequests } from "./slot-requests.ts";
import { contentHash, taskSpec } from "./task-spec.ts";

/** What the edge hands to the leader. */
export interface RequestTarget {
  /** @returns false when the inbox is full */
  enqueue(entry: InboxEntry): boolean;
  heartbeat(agent: AgentId, beat: Heartbeat, reply: string | undefined): void;
  /** Any valid message shows that its sender lives. */
  heard(agent: AgentId, incarnation: Incarnation): void;
  /** Why no task is accepted now, if so. */
  closedReason(): "journal-full" | undefined;
  /** Why nothing can be decided or answered now, if so: a sentence without its full stop. */
  stuckReason(): string | undefined;
  /** Whether a refusal for want of room may be said at all; otherwise the asker hears nothing and asks again. */
  mayRefuse(): boolean;
  /** Whether one more message of an agent is listened to: asked before it is read. */
  hears(agent: AgentId, sort: MessageSort): boolean;
  progress(agent: AgentId, report: Progress): void;
  /** Asks for outcomes of tasks: those that ended and those that live. */
  await(entry: AwaitRequest): boolean;
  /** Lets another coordinator lead. @returns false when the inbox is full */
  transfer(request: TransferRequest): boolean;
  awaitOutcome(task: TaskId, inboxToken: string): void;
  send(subject: string, message: Uint8Array): void;
  count(what: DropReason | "invalid" | "refused" | "unanswered"): void;
  /** Refusals for want of room are summarised in the journal. */
  refused(project: ProjectId, reason: RefusalReason, count: number): void;
}

export interface AwaitRequest {
  readonly tasks: readonly (TaskId | CodedError)[];
  readonly notify: string;
  readonly project: ProjectId;
  readonly reply: string;
}

/** Why a message was dropped without an answer. */
export type DropReason =
  | "reply-not-an-inbox"
  | "no-reply"
  | "unknown-subject"
  | "invalid-publish"
  | "too-much-progress"
  | `too-many-${Exclude<MessageSort, "progress">}`;

export class Requests {
  readonly #prefix: string;
  readonly #random: Random;
  readonly #target: RequestTarget;
  readonly #slots: SlotRequests;

  constructor(subjects: Subjects, random: Random, target: RequestTarget) {
    this.#prefix = `${subjects.prefix}.`;
    this.#random = random;
    this.#target = target;
    this.#slots = new SlotRequests({
      enqueue: (reply, entry) => this.#enqueue(reply, undefined, entry),
      refuse: (reply, error) => this.#refuse(reply, error),
      send: (subject, answer) => target.send(subject, answer),
      heard: (agent, life) => target.heard(agent, life),
    });
  }

  /** Takes one message from a subject that only a leader serves. Never throws. */
  take(message: Message): void {
    const [party, id = "", verb = ""] = message.subject.slice(this.#prefix.length).split(".");
    if (message.reply !== undefined && !isInbox(message.reply))
      return this.#target.count("reply-not-an-inbox");
    if (party === "agent") return this.#takeAgent(id, verb, message);
    if (this.#leavesOpen(message.reply)) return;
    if (party === "project") return this.#takeProject(id, verb, message);
    if (party === "operator") return this.#takeOperator(id, message);
    this.#target.count("unknown-subject");
  }

  /** Who asks while nothing can be decided is told why, and asks again; agents ask on by themselves. */
  #leavesOpen(reply: string | undefined): boolean {
    const why = this.#target.stuckReason();
    if (why === undefined || reply === undefined) return false;
    this.#target.count("unanswered");
    this.#target.send(reply, encode(codedError("WAGGLE_UNREACHABLE", why)));
    return true;
  }

  #takeProject(id: string, verb: string, message: Message): void {
    const reply = this.#replyOf(message);
    if (reply === undefined) return;
    const project = check(id, projectIdSchema, "project");
    if (!project.ok) return this.#refuse(reply, project);
    if (id === NO_PROJECT) return this.#refuse(reply, invalid("project: _ stands for no project", "project"));
    switch (verb) {
      case "submit":
        return this.#submit(id as ProjectId, message.data, reply);
      case "cancel":
        return this.#cancel(id as ProjectId, message.data, reply);
      case "await":
        return this.#await(id as ProjectId, message.data, reply);
      default:
        return this.#target.count("unknown-subject");
    }
  }

  #submit(project: ProjectId, data: Uint8Array, reply: string): void {
    const request = decode(data, submitRequestSchema);
    if (!request.ok) return this.#refuse(reply, request);
    const { tasks, notify, failFast } = request.value;
    const closed = this.#target.closedReason();
    if (closed !== undefined) {
      this.#target.refused(project, closed, tasks.length);
      return this.#refuse(reply, backpressure(closed, limits.retryAfterMs));
    }
    const inputs = tasks.map((item, at) => this.#checkItem(item, taskInputSchema, `tasks[${at}]`));
    const commands = inputs.flatMap((input): Command[] => {
      if (!input.ok) return [];
      const task = taskSpec(input.value, project, () => taskId(this.#random.id(20)));
      return [
        { type: "SubmitTask", task, hash: contentHash(task), ...(failFast === true ? { failFast } : {}) },
      ];
    });
    const target = this.#target;
    this.#enqueue(reply, project, {
      commands,
      replies: [],
      finish(commit) {
        for (const each of this.replies) if (each.kind === "refused") target.refused(project, each.reason, 1);
        target.send(reply, answerMessage(commit, answersOf(inputs, this.replies, submitAnswer)));
      },
      ...(notify === undefined
        ? {}
        : {
            look(this: InboxEntry, state: SwarmState) {
              awaitAccepted(state, project, this.replies, notify, target);
            },
          }),
    });
  }

  #cancel(project: ProjectId, data: Uint8Array, reply: string): void {
    const request = decode(data, cancelRequestSchema);
    if (!request.ok) return this.#refuse(reply, request);
    const tasks = request.value.tasks.map((item, at) => this.#checkItem(item, taskIdSchema, `tasks[${at}]`));
    const commands = tasks.flatMap((task): Command[] =>
      task.ok ? [{ type: "CancelTask", project, task: task.value }] : [],
    );
    const target = this.#target;
    this.#enqueue(reply, project, {
      commands,
      replies: [],
      finish(commit) {
        target.send(reply, answerMessage(commit, answersOf(tasks, this.replies, cancelAnswer)));
      },
    });
  }

  #await(project: ProjectId, data: Uint8Array, reply: string): void {
    const request = decode(data, awaitRequestSchema);
    if (!request.ok) return this.#refuse(reply, request);
    const tasks = request.value.tasks.map((item, at) => {
      const task = this.#checkItem(item, taskIdSchema, `tasks[${at}]`);
      return task.ok ? task.value : task;
    });
    const isTaken = this.#target.await({ tasks, notify: request.value.notify, project, reply });
    if (!isTaken) this.#refuse(reply, backpressure("inbox-full", limits.retryAfterMs));
  }

  #takeAgent(id: string, verb: string, message: Message): void {
    const agent = check(id, agentIdSchema, "agent");
    if (!agent.ok) return this.#refuseMaybe(message, agent);
    const sort = sortByVerb.get(verb);
    if (sort !== undefined && !this.#target.hears(agent.value, sort))
      return this.#turnAway(sort, message.reply);
    switch (verb) {
      case "heartbeat":
        return this.#heartbeat(agent.value, message);
      case "progress":
        return this.#progress(agent.value, message);
      case "join":
        return this.#join(agent.value, message);
      case "leave":
        return this.#leave(agent.value, message);
      case "result":
        return this.#result(agent.value, message);
      case "acquire":
      case "release":
        return this.#takeSlots(verb, agent.value, message);
      default:
        return this.#target.count("unknown-subject");
    }
  }

  /** Who is told comes again after a pause; the next heartbeat says what this one would have. */
  #turnAway(sort: MessageSort, reply: string | undefined): void {
    this.#target.count(sort === "progress" ? "too-much-progress" : `too-many-${sort}`);
    if (sort === "progress" || sort === "heartbeats" || reply === undefined) return;
    this.#refuse(reply, backpressure("too-many-messages", limits.retryAfterMs));
  }

  #heartbeat(agent: AgentId, message: Message): void {
    const beat = decode(message.data, heartbeatSchema);
    if (!beat.ok) return this.#refuseMaybe(message, beat);
    this.#target.heartbeat(agent, beat.value, message.reply);
  }

  #progress(agent: AgentId, message: Message): void {
    const report = decode(message.data, progressSchema);
    if (!report.ok) return this.#refuseMaybe(message, report);
    this.#target.progress(agent, report.value);
  }

  #join(agent: AgentId, message: Message): void {
    const reply = this.#replyOf(message);
    if (reply === undefined) return;
    const request = decode(message.data, joinRequestSchema);
    if (!request.ok) return this.#refuse(reply, request);
    const {
      incarnation,
      kinds,
      role,
      type,
      labels,
      maxConcurrent,
      prefetch,
      held = [],
      seen = 0 as AssignmentNumber,
    } = request.value;
    this.#target.heard(agent, incarnation);
    const command: Command = {
      type: "JoinAgent",
      agent,
      incarnation,
      kinds: [...new Set(kinds)],
      ...(role === undefined ? {} : { role }),
      ...(type === undefined ? {} : { agentType: type }),
      ...(labels === undefined ? {} : { labels }),
      maxConcurrent,
      ...(prefetch === undefined ? {} : { prefetch }),
      held,
      seen,
    };
    const target = this.#target;
    this.#enqueue(reply, undefined, {
      commands: [command],
      replies: [],
      finish(commit) {
        target.send(reply, encode(joinAnswer(this.replies.at(-1), commit)));
      },
    });
  }

  #leave(agent: AgentId, message: Message): void {
    const reply = this.#replyOf(message);
    if (reply === undefined) return;
    const request = decode(message.data, leaveRequestSchema);
    if (!request.ok) return this.#refuse(reply, request);
    const target = this.#target;
    target.heard(agent, request.value.incarnation);
    this.#enqueue(reply, undefined, {
      commands: [{ type: "LeaveAgent", agent, incarnation: request.value.incarnation }],
      replies: [],
      finish(commit) {
        target.send(reply, encode({ ok: true, ...commit }));
      },
    });
  }

  #result(agent: AgentId, message: Message): void {
    const reply = this.#replyOf(message);
    if (reply === undefined) return;
    const request = decode(message.data, resultRequestSchema);
    if (!request.ok) return this.#refuse(reply, request);
    const { incarnation, results } = request.value;
    this.#target.heard(agent, incarnation);
    const reports = results.map((item, at) => this.#checkItem(item, resultSchema, `results[${at}]`));
    const commands = reports.flatMap((report): Command[] => {
      if (!report.ok) return [];
      const { task, attempt, token } = report.value;
      const outcome = reportedOutcome(report.value);
      return [
        {
          type: "ReportResult",
          agent,
          incarnation,
          task,
          attempt,
          token,
          outcome,
          jitter: this.#random.next(),
        },
      ];
    });
    const target = this.#target;
    this.#enqueue(reply, undefined, {
      commands,
      replies: [],
      finish(commit) {
        target.send(reply, answerMessage(commit, answersOf(reports, this.replies, resultAnswer)));
      },
    });
  }

  #takeSlots(verb: "acquire" | "release", agent: AgentId, message: Message): void {
    const reply = this.#replyOf(message);
    if (reply !== undefined) this.#slots[verb](agent, message.data, reply);
  }

  #takeOperator(verb: string, message: Message): void {
    const reply = this.#replyOf(message);
    if (reply === undefined) return;
    takeOperator(verb, message.data, reply, {
      enqueue: (to, entry) => this.#enqueue(to, undefined, entry),
      refuse: (to, error) => this.#refuse(to, error),
      send: (to, answer) => this.#target.send(to, answer),
      transfer: (request) => {
        if (!this.#target.transfer(request))
          this.#refuse(reply, backpressure("inbox-full", limits.retryAfterMs));
      },
    });
  }

  #enqueue(reply: string, project: ProjectId | undefined, entry: InboxEntry): void {
    if (this.#target.enqueue(entry)) return;
    if (project !== undefined)
      this.#target.refused(project, "inbox-full", Math.max(1, entry.commands.length));
    this.#refuse(reply, backpressure("inbox-full", limits.retryAfterMs));
  }

  /** One item of a message; what fails is counted, and refused in its place. */
  #checkItem<Schema extends z.ZodType>(
    item: unknown,
    schema: Schema,
    where: string,
  ): Decoded<z.infer<Schema>> {
    const checked = check(item, schema, where);
    if (!checked.ok) this.#target.count("invalid");
    return checked;
  }

  #replyOf(message: Message): string | undefined {
    if (message.reply === undefined) this.#target.count("no-reply");
    return message.reply;
  }

  #refuse(reply: string, error: CodedError): void {
    const isForRoom = error.code === "WAGGLE_BACKPRESSURE";
    if (isForRoom && !this.#target.mayRefuse()) return this.#target.count("unanswered");
    this.#target.count(isForRoom ? "refused" : "invalid");
    this.#target.send(reply, encode(error));
  }

  #refuseMaybe(message: Message, error: CodedError): void {
    if (message.reply === undefined) this.#target.count("invalid-publish");
    else this.#refuse(message.reply, error);
  }
}

/** One answer an item, in order: its own refusal, or what was decided of it. */
function answersOf<Answer>(
  items: readonly Decoded<unknown>[],
  replies: readonly Reply[],
  toAnswer: (reply: Reply) => Answer,
): readonly (Answer | CodedError)[] {
  let next = 0;
  return items.map((item) => (item.ok ? toAnswer(replies[next++] ?? { kind: "none" }) : item));
}

function answerMessage({ term, idx }: Commit, answers: readonly unknown[]): Uint8Array {
  return encode({ term, idx, answers });
}

function joinAnswer(reply: InboxEntry["replies"][number] | undefined, { term, idx }: Commit) {
  if (reply?.kind === "too-many-agents") {
    return codedError("WAGGLE_BACKPRESSURE", `the swarm has as many agents as it may (${limits.agentsMax})`, {
      retryAfterMs: reply.retryAfterMs,
    });
  }
  if (reply?.kind === "life-over") {
    return codedError(
      "WAGGLE_UNKNOWN_AGENT",
      `this life of agent ${reply.agent} is over: join as a new incarnation`,
      { field: "incarnation" },
    );
  }
  if (reply?.kind === "fenced") {
    return codedError(
      "WAGGLE_FENCED",
      `another process joined as ${reply.agent} after this one. Give each its own id`,
      { field: "incarnation" },
    );
  }
  if (reply?.kind !== "joined")
    return codedError("WAGGLE_OUTCOME_UNKNOWN", "the join was interrupted: join again");
  const { unknownAttempts, resumed } = reply;
  return {
    ok: true,
    term,
    idx,
    // Of what is left out the agent hears with its first heartbeat.
    unknown: unknownAttempts.slice(0, limits.unknownPerJoinMax),
    resumed,
    heartbeatMs: limits.heartbeatMs,
    leaseTtlMs: limits.leaseTtlMs,
  };
}

function reportedOutcome(
  report: typeof resultSchema._output,
): Extract<Command, { type: "ReportResult" }>["outcome"] {
  const spent = report.tokens === undefined ? {} : { tokens: report.tokens };
  switch (report.outcome) {
    case "completed":
      return {
        kind: "completed",
        result: report.result ?? "",
        ...(report.encoding === undefined ? {} : { encoding: report.encoding }),
        ...spent,
      };
    case "revoked":
      return { kind: "revoked", ...spent };
    case "failed":
    case "infrastructure":
    case "invalid":
      return {
        kind: report.outcome,
        error: (report.error ?? "").slice(0, limits.errorCharactersMax),
        ...spent,
      };
  }
}

/** Only what was accepted for this project: the id in a refused submit may be anybody's. */
function awaitAccepted(
  state: SwarmState,
  project: ProjectId,
  replies: readonly Reply[],
  notify: string,
  target: RequestTarget,
): void {
  for (const reply of replies) {
    const row = reply.kind === "accepted" ? state.taskById.get(reply.task) : undefined;
    if (row?.spec.project === project) target.awaitOutcome(row.spec.id, notify);
  }
}
