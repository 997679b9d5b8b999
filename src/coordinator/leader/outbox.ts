// Performs effects: tells agents and clients what a committed batch obliges the coordinator to tell them. Many of one
// batch for one receiver leave as one message. Not here: answers and events (telling.ts).

import type { Effect } from "../../core/effect.ts";
import type { AgentId, GroupId, Incarnation } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { encode } from "../../protocol/codec.ts";
import type { Assignment, Outcome } from "../../protocol/schemas.ts";
import { doneSubject, type Subjects } from "../../protocol/subjects.ts";
import type { SlotEnding } from "../../state/state.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Awaiting } from "../requests/awaiting.ts";
import type { Commit } from "../requests/inbox.ts";
import { outcomeOf } from "../requests/outcome.ts";
import type { Presences } from "./presence.ts";

type Tell = Extract<Effect, { kind: "tell" }>["what"];

/** What one agent is told at once, in this order: what it must stop, what it may start, what it is to become. */
interface AgentMail {
  readonly agent: AgentId;
  readonly incarnation: Incarnation;
  readonly revokedByReason: Map<string, NamedAttempt[]>;
  readonly assignments: Assignment[];
  readonly tell: Tell[];
  readonly grantedHandles: string[];
  readonly endedWaits: EndedWait[];
}

interface NamedAttempt {
  readonly project: string;
  readonly task: string;
  readonly attempt: number;
}

/** A wait that is over, as an agent is told. */
export interface EndedWait {
  readonly handle: string;
  readonly reason: SlotEnding | "unknown";
}

export interface OutboxDeps {
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly awaiting: Awaiting;
  readonly presences: Presences;
  readonly groupOf: (agent: AgentId) => GroupId;
}

export class Outbox {
  readonly #transport: Transport;
  readonly #subjects: Subjects;
  readonly #awaiting: Awaiting;
  readonly #presences: Presences;
  readonly #groupOf: (agent: AgentId) => GroupId;

  constructor({ transport, subjects, awaiting, presences, groupOf }: OutboxDeps) {
    this.#transport = transport;
    this.#subjects = subjects;
    this.#awaiting = awaiting;
    this.#presences = presences;
    this.#groupOf = groupOf;
  }

  perform(effects: readonly Effect[], commit: Commit): void {
    const mailByLife = new Map<string, AgentMail>();
    const endedByInbox = new Map<string, Outcome[]>();
    for (const effect of effects) {
      switch (effect.kind) {
        case "assign":
          mailFor(mailByLife, effect.attempt).assignments.push(assignmentOf(effect));
          break;
        case "revoke":
          revoke(mailFor(mailByLife, effect.attempt), effect);
          break;
        case "tell":
          mailFor(mailByLife, effect).tell.push(effect.what);
          break;
        case "slots-granted":
          mailFor(mailByLife, effect).grantedHandles.push(...effect.handles);
          break;
        case "slot-waits-ended":
          mailFor(mailByLife, effect).endedWaits.push(
            ...effect.handles.map((handle) => ({ handle, reason: effect.reason })),
          );
          break;
        case "ended":
          this.#collectEnded(effect, endedByInbox);
          break;
      }
    }
    for (const mail of mailByLife.values()) this.#deliver(mail, commit);
    for (const [inbox, ended] of endedByInbox) this.announce(inbox, ended, commit);
  }

  /** Tells an agent what it must stop. */
  revoke(
    {
      agent,
      attempts,
      ...rest
    }: {
      readonly agent: AgentId;
      readonly incarnation: Incarnation;
      readonly attempts: readonly NamedAttempt[];
      readonly reason: string;
    },
    { term }: Commit,
  ): void {
    for (const part of this.#fitting(attempts, ({ task }) => task.length))
      this.tellAgent(agent, { type: "revoke", term, ...rest, attempts: part });
  }

  /** Tells a client how tasks ended. */
  announce(inbox: string, ended: readonly Outcome[], { term, idx }: Commit): void {
    for (const part of this.#fitting(ended, (outcome) => (outcome.result ?? outcome.error ?? "").length)) {
      this.#transport.publish(doneSubject(inbox), encode({ term, idx, ended: part }));
    }
  }

  /** Tells one agent something outside of any batch: what it must stop, or that it must join anew.
   *  @param group default: the group in which it joined */
  tellAgent(agent: AgentId, push: object, group = this.#groupOf(agent)): void {
    this.#transport.publish(this.#subjects.assign(group, agent), encode(push));
  }

  #collectEnded(effect: Extract<Effect, { kind: "ended" }>, endedByInbox: Map<string, Outcome[]>): void {
    const inboxes = this.#awaiting.take(effect);
    if (inboxes.length === 0) return;
    const outcome = outcomeOf(effect.event, effect);
    if (outcome === undefined) return;
    for (const inbox of inboxes) {
      const ended = endedByInbox.get(inbox);
      if (ended === undefined) endedByInbox.set(inbox, [outcome]);
      else ended.push(outcome);
    }
  }

  /** Tells an agent what became of its slot leases; what it was granted only where it is heard, as an assignment. */
  tellSlots(
    { agent, incarnation }: { readonly agent: AgentId; readonly incarnation: Incarnation },
    slots: {
      readonly granted?: readonly string[];
      readonly ended?: readonly EndedWait[];
      readonly revoked?: readonly string[];
    },
    { term }: Commit,
  ): void {
    const { ended = [], revoked = [] } = slots;
    const granted = this.#presences.isSilent(agent, incarnation) ? [] : (slots.granted ?? []);
    const head = { term, incarnation };
    if (revoked.length > 0) this.tellAgent(agent, { type: "slots-revoked", ...head, handles: revoked });
    if (ended.length > 0) this.tellAgent(agent, { type: "slot-waits-ended", ...head, waits: ended });
    if (granted.length > 0) this.tellAgent(agent, { type: "slots-granted", ...head, handles: granted });
  }

  #deliver(mail: AgentMail, commit: Commit): void {
    const { agent, incarnation, revokedByReason, assignments, tell } = mail;
    const { term } = commit;
    for (const [reason, attempts] of revokedByReason)
      this.revoke({ agent, incarnation, attempts, reason }, commit);
    // Its batch was on its way for long, and the agent's lease of something new would begin when the leader's count is
    // nearly over: given up at the next pulse, it would run beside the next. Its next heartbeat has it told.
    const isSilent = this.#presences.isSilent(agent, incarnation);
    if (isSilent) this.#presences.withheld(agent, incarnation, assignments.at(-1)?.number ?? 0);
    else this.#assign(mail, commit);
    this.tellSlots(mail, { granted: mail.grantedHandles, ended: mail.endedWaits }, commit);
    for (const type of tell) this.tellAgent(agent, { type, term, incarnation });
  }

  #assign({ agent, incarnation, assignments }: AgentMail, { term }: Commit): void {
    // Kept until the connection is back, it could be told after its attempt was taken back. The agent's next heartbeat
    // has it told.
    if (this.#transport.status() !== "connected")
      return this.#presences.withheld(agent, incarnation, assignments.at(-1)?.number ?? 0);
    for (const part of this.#fitting(assignments, ({ payload }) => payload.length)) {
      this.tellAgent(agent, { type: "assign", term, incarnation, assignments: part });
      this.#presences.sent(agent, incarnation, part.at(-1)?.number ?? 0);
    }
  }

  /** Cuts a list so that each part fits a message even where JSON writes every character in six bytes. One item
   *  alone always fits: the schema of payloads and results sees to it. */
  *#fitting<Item>(list: readonly Item[], charactersOf: (item: Item) => number): Generator<readonly Item[]> {
    const charactersMax = this.#transport.maxPayloadBytes / 8;
    let from = 0;
    let characters = 0;
    for (const [at, item] of list.entries()) {
      const size = charactersOf(item) + limits.pushItemOverheadBytes;
      if (characters + size > charactersMax && at > from) {
        yield list.slice(from, at);
        from = at;
        characters = 0;
      }
      characters += size;
    }
    if (from < list.length) yield from === 0 ? list : list.slice(from);
  }
}

function mailFor(
  mailByLife: Map<string, AgentMail>,
  { agent, incarnation }: { readonly agent: AgentId; readonly incarnation: Incarnation },
): AgentMail {
  const key = `${agent}.${incarnation}`;
  const known = mailByLife.get(key);
  if (known !== undefined) return known;
  const mail: AgentMail = {
    agent,
    incarnation,
    revokedByReason: new Map(),
    assignments: [],
    tell: [],
    grantedHandles: [],
    endedWaits: [],
  };
  mailByLife.set(key, mail);
  return mail;
}

function revoke(mail: AgentMail, { attempt, reason }: Extract<Effect, { kind: "revoke" }>): void {
  const named = { project: attempt.project, task: attempt.task, attempt: attempt.attempt };
  const attempts = mail.revokedByReason.get(reason);
  if (attempts === undefined) mail.revokedByReason.set(reason, [named]);
  else attempts.push(named);
}

function assignmentOf({ attempt, spec }: Extract<Effect, { kind: "assign" }>): Assignment {
  const { number, task, attempt: ordinal, token, kind, project } = attempt;
  const grant = { number, project, task, attempt: ordinal, token, kind };
  if (spec === undefined)
    return { ...grant, user: "", payload: "", timeoutMs: 0, maxAttempts: 1, revoked: true };
  return {
    ...grant,
    user: spec.user,
    payload: spec.payload,
    ...(spec.encoding === undefined ? {} : { encoding: spec.encoding }),
    timeoutMs: spec.timeoutMs,
    maxAttempts: spec.maxAttempts,
    ...(spec.stallMs === undefined ? {} : { stallMs: spec.stallMs }),
  };
}
