// Messages of agents on `agent.<g>.<a>.<verb>`: what an agent says of its life, its attempts and its slots, as far as
// it is listened to (agent-gate.ts). Not here: `acquire` and `release` themselves (slot-requests.ts), and what holds
// for every request (request-edge.ts).

import type { Random } from "../../clock.ts";
import type { Command } from "../../core/command.ts";
import { headOf } from "../../cut-text.ts";
import { type AgentId, type AssignmentNumber, NO_GROUP } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { check, decode, encode } from "../../protocol/codec.ts";
import {
  agentIdSchema,
  groupIdSchema,
  heartbeatSchema,
  joinRequestSchema,
  leaveRequestSchema,
  progressSchema,
  resultRequestSchema,
  resultSchema,
} from "../../protocol/schemas.ts";
import type { Message } from "../../transport/transport.ts";
import { type AgentName, type MessageSort, sortByVerb } from "./agent-gate.ts";
import { answerMessage, answersOf, backpressure, joinAnswer, otherGroup, resultAnswer } from "./answers.ts";
import type { RequestEdge } from "./request-edge.ts";
import { SlotRequests } from "./slot-requests.ts";

export class AgentRequests {
  readonly #edge: RequestEdge;
  readonly #random: Random;
  readonly #slots: SlotRequests;

  constructor(edge: RequestEdge, random: Random) {
    this.#edge = edge;
    this.#random = random;
    this.#slots = new SlotRequests(edge);
  }

  take([group, id, verb = ""]: readonly string[], message: Message): void {
    const agent = check(id, agentIdSchema, "agent");
    if (!agent.ok) return this.#edge.refuseMaybe(message, agent);
    const of = check(group, groupIdSchema, "group");
    if (!of.ok) return this.#edge.refuseMaybe(message, of);
    const name = { group: of.value, agent: agent.value };
    const sort = sortByVerb.get(verb);
    if (sort !== undefined && !this.#edge.target.agents.hears(name, sort))
      return this.#turnAway(sort, message.reply);
    if (!this.#edge.target.agents.isOf(name)) return this.#edge.refuseMaybe(message, otherGroup(name.agent));
    switch (verb) {
      case "heartbeat":
        return this.#heartbeat(name, message);
      case "progress":
        return this.#progress(agent.value, message);
      case "join":
        return this.#join(name, message);
      case "leave":
        return this.#leave(agent.value, message);
      case "result":
        return this.#result(agent.value, message);
      case "acquire":
      case "release":
        return this.#takeSlots(verb, agent.value, message);
      default:
        return this.#edge.target.count("unknown-subject");
    }
  }

  /** Who is told comes again after a pause; the next heartbeat says what this one would have. */
  #turnAway(sort: MessageSort, reply: string | undefined): void {
    this.#edge.target.count(sort === "progress" ? "too-much-progress" : `too-many-${sort}`);
    if (sort === "progress" || sort === "heartbeats" || reply === undefined) return;
    this.#edge.refuse(reply, backpressure("too-many-messages", limits.retryAfterMs));
  }

  #heartbeat(name: AgentName, message: Message): void {
    const beat = decode(message.data, heartbeatSchema);
    if (!beat.ok) return this.#edge.refuseMaybe(message, beat);
    this.#edge.target.agents.heartbeat(name, beat.value, message.reply);
  }

  #progress(agent: AgentId, message: Message): void {
    const report = decode(message.data, progressSchema);
    if (!report.ok) return this.#edge.refuseMaybe(message, report);
    const { target } = this.#edge;
    if (!target.agents.progress(agent, report.value)) target.count("invalid-publish");
  }

  #join({ group, agent }: AgentName, message: Message): void {
    const reply = this.#edge.replyOf(message);
    if (reply === undefined) return;
    const request = decode(message.data, joinRequestSchema);
    if (!request.ok) return this.#edge.refuse(reply, request);
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
    this.#edge.target.agents.heard(agent, incarnation);
    const command: Command = {
      type: "JoinAgent",
      agent,
      ...(group === NO_GROUP ? {} : { group }),
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
    const { target } = this.#edge;
    this.#edge.enqueue(reply, {
      commands: [command],
      replies: [],
      finish(commit) {
        target.send(reply, encode(joinAnswer(this.replies.at(-1), commit)));
      },
    });
  }

  #leave(agent: AgentId, message: Message): void {
    const reply = this.#edge.replyOf(message);
    if (reply === undefined) return;
    const request = decode(message.data, leaveRequestSchema);
    if (!request.ok) return this.#edge.refuse(reply, request);
    const { target } = this.#edge;
    target.agents.heard(agent, request.value.incarnation);
    this.#edge.enqueue(reply, {
      commands: [{ type: "LeaveAgent", agent, incarnation: request.value.incarnation }],
      replies: [],
      finish(commit) {
        target.send(reply, encode({ ok: true, ...commit }));
      },
    });
  }

  #result(agent: AgentId, message: Message): void {
    const reply = this.#edge.replyOf(message);
    if (reply === undefined) return;
    const request = decode(message.data, resultRequestSchema);
    if (!request.ok) return this.#edge.refuse(reply, request);
    const { incarnation, results } = request.value;
    this.#edge.target.agents.heard(agent, incarnation);
    const reports = results.map((item, at) => this.#edge.checkItem(item, resultSchema, `results[${at}]`));
    const commands = reports.flatMap((report): Command[] => {
      if (!report.ok) return [];
      const { project, task, attempt, token } = report.value;
      const outcome = reportedOutcome(report.value);
      return [
        {
          type: "ReportResult",
          agent,
          incarnation,
          project,
          task,
          attempt,
          token,
          outcome,
          jitter: this.#random.next(),
        },
      ];
    });
    const { target } = this.#edge;
    this.#edge.enqueue(reply, {
      commands,
      replies: [],
      finish(commit) {
        target.send(reply, answerMessage(commit, answersOf(reports, this.replies, resultAnswer)));
      },
    });
  }

  #takeSlots(verb: "acquire" | "release", agent: AgentId, message: Message): void {
    const reply = this.#edge.replyOf(message);
    if (reply !== undefined) this.#slots[verb](agent, message.data, reply);
  }
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
        error: headOf(report.error ?? "", limits.errorCharactersMax),
        ...spent,
      };
  }
}
