// What the leader does with what agents say that is no command alone: that they live, what they hold, how far they are.
// Reads the state, and leaves every decision to the turn. Not here: what is known of who lives (presence.ts), and what
// is decided of it (core/decide-agent.ts).

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import type { Reply } from "../../core/command.ts";
import { type Effect, sentAgain } from "../../core/effect.ts";
import type { AgentId, GroupId, Incarnation, Term } from "../../ids.ts";
import { encode } from "../../protocol/codec.ts";
import type { Heartbeat, Progress } from "../../protocol/schemas.ts";
import { progressSubject } from "../../protocol/subjects.ts";
import type { SwarmState } from "../../state/state.ts";
import type { Transport } from "../../transport/transport.ts";
import { AgentGate, type AgentName, type MessageSort } from "../requests/agent-gate.ts";
import type { Awaiting } from "../requests/awaiting.ts";
import { sendFitting } from "../requests/fitting.ts";
import type { Commit, InboxEntry } from "../requests/inbox.ts";
import type { AgentTarget } from "../requests/request-target.ts";
import type { Outbox } from "./outbox.ts";
import type { BeatVerdict, Presences } from "./presence.ts";

export interface AgentDeskDeps {
  readonly term: () => Term;
  readonly state: SwarmState;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly presences: Presences;
  /** Who is told how far a task is. */
  readonly awaiting: Awaiting;
  readonly outbox: Outbox;
  /** Puts an entry before the next turn. @returns false when there is no room */
  readonly enqueue: (entry: InboxEntry) => boolean;
  /** Whether something definite may be said without a commit. */
  readonly isTrusted: () => boolean;
}

/** One life of an agent. */
interface Life {
  readonly agent: AgentId;
  readonly incarnation: Incarnation;
}

export class AgentDesk implements AgentTarget {
  readonly #deps: AgentDeskDeps;
  readonly #gate: AgentGate;

  constructor(deps: AgentDeskDeps) {
    this.#deps = deps;
    this.#gate = new AgentGate(deps.clock);
  }

  hears(name: AgentName, sort: MessageSort): boolean {
    const { agent } = name;
    const row = this.#deps.state.agentById.get(agent);
    if (sort === "progress" && row?.online !== true) return false;
    const admission = this.#gate.admit(name, row, sort);
    if (admission === "dropped-first")
      this.#deps.logger.warn(
        { agent, sort },
        "an agent sends too many messages: what is too much is not listened to",
      );
    return admission === "heard";
  }

  isOf({ group, agent }: AgentName): boolean {
    const row = this.#deps.state.agentById.get(agent);
    return row?.online !== true || row.group === group;
  }

  heard(agent: AgentId, incarnation: Incarnation): void {
    const row = this.#deps.state.agentById.get(agent);
    if (row?.fencedLives.includes(incarnation) === true) return this.#outlived({ agent, incarnation });
    if (row?.online === true && row.incarnation === incarnation)
      this.#deps.presences.heard(agent, incarnation);
  }

  heartbeat({ group, agent }: AgentName, beat: Heartbeat, reply: string | undefined): void {
    const { term, state, transport, presences } = this.#deps;
    const life = { agent, incarnation: beat.incarnation };
    const row = state.agentById.get(agent);
    if (row?.online !== true || row.incarnation !== beat.incarnation) {
      this.heard(agent, beat.incarnation);
      return this.#dismiss(life, group, row?.online === true ? "fenced" : "rejoin");
    }
    const verdict = presences.beat(state, row, beat);
    const renew = () => {
      if (reply !== undefined) sendFitting(transport, reply, encode({ term: term(), renewed: true }));
    };
    const isInOrder = verdict.command === undefined && verdict.missing.length === 0;
    if (isInOrder && this.#deps.isTrusted()) renew();
    else this.#reconcile(life, verdict, renew);
  }

  progress(agent: AgentId, report: Progress): boolean {
    const { state, presences, awaiting, transport } = this.#deps;
    const { incarnation, project, task, attempt, fraction, message } = report;
    const open = state.taskById.get(report)?.open;
    if (open?.agent !== agent || open.incarnation !== incarnation || open.attempt !== attempt) return false;
    presences.heard(agent, incarnation);
    presences.progressed(report);
    const push = {
      project,
      task,
      attempt,
      agent,
      ...(fraction === undefined ? {} : { fraction }),
      ...(message === undefined ? {} : { message }),
    };
    for (const inbox of awaiting.of(report)) sendFitting(transport, progressSubject(inbox), encode(push));
    return true;
  }

  /** Has it decided what a heartbeat calls for; what is missing is sent again if it is still the agent's then.
   *  @param renew answers the heartbeat, behind what the agent is told */
  #reconcile({ agent, incarnation }: Life, { command, missing }: BeatVerdict, renew: () => void): void {
    const effects: Effect[] = [];
    const tell = (reply: Reply | undefined, commit: Commit) => {
      this.#tellReconciled({ agent, incarnation }, reply, commit);
      this.#deps.outbox.perform(effects, commit);
      renew();
    };
    this.#deps.enqueue({
      commands: command === undefined ? [] : [command],
      replies: [],
      look: (state) => {
        for (const attempt of missing) {
          if (state.agentById.get(agent)?.open.get(attempt.number) === attempt)
            effects.push(...sentAgain(state, attempt));
        }
      },
      finish(commit) {
        tell(this.replies.at(-1), commit);
      },
    });
  }

  #tellReconciled(life: Life, reply: Reply | undefined, commit: Commit): void {
    if (reply?.kind !== "reconciled") return;
    const { unknown: attempts, slots } = reply;
    const reason = "the attempt is no longer yours";
    if (attempts.length > 0) this.#deps.outbox.revoke({ ...life, attempts, reason }, commit);
    if (slots !== undefined) this.#deps.outbox.tellSlots(life, slots, commit);
  }

  /** A fenced life speaks: no restart of one process, but two processes under one id. */
  #outlived({ agent, incarnation }: Life): void {
    if (!this.#deps.presences.outlived(agent)) return;
    const what = "two processes use one agent id: the earlier was fenced and stops. Give each its own id";
    this.#deps.logger.warn({ agent, incarnation }, what);
  }

  #dismiss({ agent, incarnation }: Life, group: GroupId, type: "fenced" | "rejoin"): void {
    this.#deps.enqueue({
      commands: [],
      replies: [],
      finish: ({ term }) => this.#deps.outbox.tellAgent(agent, { type, term, incarnation }, group),
    });
  }
}
