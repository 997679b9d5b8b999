// What the leader does with messages that are not commands alone: heartbeats, progress, waiting clients, and what
// is counted or refused at the edge. Reads the state, leaves every decision to the turn.

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import { type Effect, sentAgain } from "../../core/effect.ts";
import type { RefusalReason } from "../../core/event.ts";
import type { SwarmState } from "../../core/state.ts";
import type { AgentId, BatchIndex, Incarnation, ProjectId, TaskId, Term } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { encode } from "../../protocol/codec.ts";
import type { AwaitAnswer, Heartbeat, Progress } from "../../protocol/schemas.ts";
import type { Subjects } from "../../protocol/subjects.ts";
import type { Transport } from "../../transport/transport.ts";
import type { JournalRoom } from "../journal-room.ts";
import type { AgentGate, MessageSort } from "../requests/agent-gate.ts";
import { backpressure, unknownTask } from "../requests/answers.ts";
import type { AuditReader } from "../requests/audit-reader.ts";
import { awaitedAnswers, type Look } from "../requests/awaited-answers.ts";
import type { Awaiting } from "../requests/awaiting.ts";
import { sendable } from "../requests/fitting.ts";
import type { Commit, InboxEntry } from "../requests/inbox.ts";
import type { AwaitRequest, DropReason, RequestTarget, TransferRequest } from "../requests/request-target.ts";
import type { Outbox } from "./outbox.ts";
import type { Presences } from "./presence.ts";
import type { RefusalTally } from "./refusal-tally.ts";

export interface DeskDeps {
  readonly term: Term;
  readonly state: SwarmState;
  readonly subjects: Subjects;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly room: JournalRoom;
  readonly presences: Presences;
  readonly gate: AgentGate;
  readonly awaiting: Awaiting;
  readonly outbox: Outbox;
  readonly reader: AuditReader;
  readonly refusals: RefusalTally;
  /** Puts an entry before the next turn. @returns false when there is no room */
  readonly enqueue: (entry: InboxEntry) => boolean;
  /** Lets another coordinator lead. @returns false when there is no room */
  readonly transfer: (request: TransferRequest) => boolean;
  /** The first batch that is kept to be read. */
  readonly auditFirstIdx: () => BatchIndex;
  /** Why nothing can be decided or answered now, if so. */
  readonly stuckReason: () => string | undefined;
  /** Whether something definite may be said without a commit. */
  readonly isTrusted: () => boolean;
}

export class RequestDesk implements RequestTarget {
  /** Messages dropped or refused at the edge, by reason. */
  readonly counters: Record<string, number> = {};
  readonly #deps: DeskDeps;

  constructor(deps: DeskDeps) {
    this.#deps = deps;
  }

  enqueue(entry: InboxEntry): boolean {
    return this.#deps.enqueue(entry);
  }

  stuckReason(): string | undefined {
    return this.#deps.stuckReason();
  }

  /** A leader that may be deposed without knowing refuses nobody. */
  mayRefuse(): boolean {
    return this.#deps.isTrusted();
  }

  heard(agent: AgentId, incarnation: Incarnation): void {
    const row = this.#deps.state.agentById.get(agent);
    if (row?.fencedLives.includes(incarnation) === true) return this.#outlived(agent, incarnation);
    if (row?.online === true && row.incarnation === incarnation)
      this.#deps.presences.heard(agent, incarnation);
  }

  heartbeat(agent: AgentId, beat: Heartbeat, reply: string | undefined): void {
    const row = this.#deps.state.agentById.get(agent);
    if (row?.online !== true || row.incarnation !== beat.incarnation) {
      this.heard(agent, beat.incarnation);
      return this.#dismiss(agent, beat.incarnation, row?.online === true ? "fenced" : "rejoin");
    }
    const { command, missing } = this.#deps.presences.beat(this.#deps.state, row, beat);
    const renew = () => {
      if (reply !== undefined) this.send(reply, encode({ term: this.#deps.term, renewed: true }));
    };
    if (command === undefined && missing.length === 0 && this.#deps.isTrusted()) return renew();
    const effects: Effect[] = [];
    const tell = (entry: InboxEntry, commit: Commit) => {
      const reply = entry.replies.at(-1);
      if (reply?.kind === "reconciled" && reply.unknown.length > 0) {
        const reason = "the attempt is no longer yours";
        this.#deps.outbox.revoke(
          { agent, incarnation: beat.incarnation, attempts: reply.unknown, reason },
          commit,
        );
      }
      if (reply?.kind === "reconciled" && reply.slots !== undefined)
        this.#deps.outbox.tellSlots({ agent, incarnation: beat.incarnation }, reply.slots, commit);
      this.#deps.outbox.perform(effects, commit);
      renew();
    };
    this.enqueue({
      commands: command === undefined ? [] : [command],
      replies: [],
      look: (state) => {
        for (const attempt of missing) {
          if (state.agentById.get(agent)?.open.get(attempt.number) === attempt)
            effects.push(...sentAgain(state, attempt));
        }
      },
      finish(commit) {
        tell(this, commit);
      },
    });
  }

  hears(agent: AgentId, sort: MessageSort): boolean {
    const row = this.#deps.state.agentById.get(agent);
    if (sort === "progress" && row?.online !== true) return false;
    const admission = this.#deps.gate.admit(agent, row, sort);
    if (admission === "dropped-first")
      this.#deps.logger.warn(
        { agent, sort },
        "an agent sends too many messages: what is too much is not listened to",
      );
    return admission === "heard";
  }

  progress(agent: AgentId, report: Progress): void {
    const attempt = this.#deps.state.taskById.get(report.task)?.open;
    if (
      attempt?.agent !== agent ||
      attempt.incarnation !== report.incarnation ||
      attempt.attempt !== report.attempt
    ) {
      return this.count("invalid-publish");
    }
    this.#deps.presences.heard(agent, report.incarnation);
    this.#deps.presences.progressed(report);
    const { task, attempt: number, fraction, message } = report;
    const push = {
      task,
      attempt: number,
      agent,
      ...(fraction === undefined ? {} : { fraction }),
      ...(message === undefined ? {} : { message }),
    };
    for (const token of this.#deps.awaiting.of(task))
      this.send(this.#deps.subjects.progress(token), encode(push));
  }

  await({ tasks, notify, project, reply }: AwaitRequest): boolean {
    const looks: Look[] = [];
    const bytesMax = this.#deps.transport.maxPayloadBytes / 4; // the rest is for what is not an outcome
    return this.enqueue({
      commands: [],
      replies: [],
      look: (state) => {
        for (const task of tasks)
          looks.push(
            typeof task === "string"
              ? this.#lookAt(state, project, task, notify)
              : { kind: "answer", answer: task },
          );
      },
      finish: (commit) => {
        const { clock, logger, outbox, reader, auditFirstIdx } = this.#deps;
        const firstIdx = auditFirstIdx(); // by the batch that the answer names: what goes meanwhile is to be asked again
        void awaitedAnswers(looks, {
          clock,
          read: (ended) => reader.outcome(ended, firstIdx),
          bytesMax,
          overflow: (outcome) => outbox.announce(notify, [outcome], commit),
          onUnread: ({ id: task, endedIdx: idx }, cause) =>
            logger.warn({ err: cause, task, idx }, "how a task ended could not be read"),
        }).then((answers) => this.send(reply, encode({ ...commit, answers })));
      },
    });
  }

  transfer(request: TransferRequest): boolean {
    return this.#deps.transfer(request);
  }

  awaitOutcome(task: TaskId, inboxToken: string): void {
    this.#deps.awaiting.add(task, inboxToken);
  }

  send(subject: string, message: Uint8Array): void {
    const { transport } = this.#deps;
    transport.publish(subject, sendable(message, transport.maxPayloadBytes));
  }

  count(what: DropReason | "invalid" | "refused" | "unanswered"): void {
    this.counters[what] = (this.counters[what] ?? 0) + 1;
  }

  refused(project: ProjectId, reason: RefusalReason, count: number): void {
    this.#deps.refusals.add(project, reason, count);
  }

  closedReason(): "journal-full" | undefined {
    return this.#deps.room.isShort ? "journal-full" : undefined;
  }

  /** How a task stands, to be answered after the commit: an ended one's result is read from the journal then. */
  #lookAt(state: SwarmState, project: ProjectId, task: TaskId, notify: string): Look {
    const row = state.taskById.get(task);
    if (row?.spec.project === project) {
      const isNoted = this.#deps.awaiting.add(task, notify);
      const answer: AwaitAnswer = isNoted
        ? { ok: true, live: true }
        : backpressure("too-many-waiting", limits.retryAfterMs);
      return { kind: "answer", answer };
    }
    const ended = state.endedById.get(task);
    if (ended?.project !== project) return { kind: "answer", answer: unknownTask(task) };
    return { kind: "ended", ended };
  }

  /** A fenced life speaks: no restart of one process, but two processes under one id. */
  #outlived(agent: AgentId, incarnation: Incarnation): void {
    if (!this.#deps.presences.outlived(agent)) return;
    const what = "two processes use one agent id: the earlier was fenced and stops. Give each its own id";
    this.#deps.logger.warn({ agent, incarnation }, what);
  }

  #dismiss(agent: AgentId, incarnation: Incarnation, type: "fenced" | "rejoin"): void {
    this.enqueue({
      commands: [],
      replies: [],
      finish: ({ term }) => this.#deps.outbox.tellAgent(agent, { type, term, incarnation }),
    });
  }
}
