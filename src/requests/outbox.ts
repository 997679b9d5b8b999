// Performs the effects of committed batches: messages to agents and clients. All effects of a batch for one receiver
// leave as one message. Here too: the clients that await tasks. Not here: answers (inbox.ts) and live events
// (leader/dispatcher.ts).

import { outcomeOf } from "../audit/reading/audit-reader.ts";
import type { Effect } from "../core/effect.ts";
import type { BeyondGrant } from "../core/grant-rules.ts";
import { JsonWriter } from "../core/json-writer.ts";
import {
  type AgentId,
  type GroupId,
  type Incarnation,
  NO_GROUP,
  type ProjectId,
  type TaskId,
  type TaskRef,
} from "../ids.ts";
import { limits } from "../limits.ts";
import { encode } from "../protocol/codec.ts";
import { assignPushJson, donePushJson } from "../protocol/push-json.ts";
import type { Assignment, CodedError, Outcome } from "../protocol/schemas.ts";
import { doneSubject, type Subjects } from "../protocol/subjects.ts";
import type { SlotEnding, SwarmState } from "../state/state.ts";
import type { Transport } from "../transport/transport.ts";
import { beyondGrant } from "./answers.ts";
import type { AttemptTokens } from "./attempt-tokens.ts";
import type { Commit } from "./inbox.ts";
import type { Presences } from "./presence.ts";

type Notice = Pick<Extract<Effect, { kind: "notify" }>, "what" | "refusal">;

/** All pushes to an agent, in the order of sending: stop, start, slots, new status. */
interface AgentMail {
  readonly agent: AgentId;
  readonly incarnation: Incarnation;
  readonly revokedByReason: Map<string, NamedAttempt[]>;
  readonly assignments: Assignment[];
  readonly notices: Notice[];
  readonly grantedHandles: string[];
  readonly endedWaits: EndedWait[];
  readonly idleHandles: string[];
}

interface NamedAttempt {
  readonly project: string;
  readonly task: string;
  readonly attempt: number;
}

/** An ended wait for slots. */
export interface EndedWait {
  readonly handle: string;
  readonly reason: SlotEnding | "unknown";
}

export interface OutboxDeps {
  readonly state: SwarmState;
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly presences: Presences;
  readonly tokens: AttemptTokens;
}

export class Outbox {
  readonly awaiting = new Awaiting();
  readonly #deps: OutboxDeps;
  readonly #json = new JsonWriter();

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
  }

  perform(effects: readonly Effect[], commit: Commit): void {
    const mails = new Mails();
    const endedByInbox = new Map<string, Outcome[]>();
    for (const effect of effects) {
      switch (effect.kind) {
        case "assign":
          mails.to(effect.attempt).assignments.push(assignmentOf(effect, this.#deps.tokens));
          break;
        case "revoke":
          revoke(mails.to(effect.attempt), effect);
          break;
        case "notify":
          mails.to(effect).notices.push(effect);
          break;
        case "slots-granted":
          mails.to(effect).grantedHandles.push(...effect.handles);
          break;
        case "slots-revoked":
          mails.to(effect).idleHandles.push(...effect.handles);
          break;
        case "slot-waits-ended":
          mails
            .to(effect)
            .endedWaits.push(...effect.handles.map((handle) => ({ handle, reason: effect.reason })));
          break;
        case "ended":
          this.#collectEnded(effect, endedByInbox);
          break;
      }
    }
    this.#deliver([...mails.byAgent].flat(), commit);
    for (const [inbox, ended] of endedByInbox) this.announce(inbox, ended, commit);
  }

  /** Has an agent stop attempts. */
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
      this.push(agent, { type: "revoke", term, ...rest, attempts: part });
  }

  /** Sends a client the outcomes of tasks. */
  announce(inbox: string, ended: readonly Outcome[], { term, idx }: Commit): void {
    for (const part of this.#fitting(ended, (outcome) => (outcome.result ?? outcome.error ?? "").length)) {
      const push = donePushJson(this.#json, { term, idx, ended: part });
      this.#deps.transport.publish(doneSubject(inbox), push);
    }
  }

  /** Sends a message to an agent. @param group default: the agent's group */
  push(agent: AgentId, message: object, group: GroupId = this.#groupOf(agent)): void {
    const { transport, subjects } = this.#deps;
    transport.publish(subjects.assign(group, agent), encode(message));
  }

  #groupOf(agent: AgentId): GroupId {
    return this.#deps.state.agentById.get(agent)?.group ?? NO_GROUP;
  }

  #collectEnded(effect: Extract<Effect, { kind: "ended" }>, endedByInbox: Map<string, Outcome[]>): void {
    const inboxes = this.awaiting.take(effect);
    if (inboxes.length === 0) return;
    const outcome = outcomeOf(effect.event, effect);
    if (outcome === undefined) return;
    for (const inbox of inboxes) {
      const ended = endedByInbox.get(inbox);
      if (ended === undefined) endedByInbox.set(inbox, [outcome]);
      else ended.push(outcome);
    }
  }

  /** Sends an agent the changes of its slot leases. Like assignments, grants are not sent to a silent agent. */
  sendSlots(
    { agent, incarnation }: { readonly agent: AgentId; readonly incarnation: Incarnation },
    slots: {
      readonly granted?: readonly string[];
      readonly ended?: readonly EndedWait[];
      readonly revoked?: readonly string[];
      /** Taken back because they were not touched. */
      readonly idle?: readonly string[];
    },
    { term }: Commit,
  ): void {
    const { ended = [], revoked = [], idle = [] } = slots;
    const granted = this.#deps.presences.isSilent(agent, incarnation) ? [] : (slots.granted ?? []);
    const head = { term, incarnation };
    if (revoked.length > 0) this.push(agent, { type: "slots-revoked", ...head, handles: revoked });
    if (idle.length > 0) this.push(agent, { type: "slots-revoked", ...head, handles: idle, reason: "idle" });
    if (ended.length > 0) this.push(agent, { type: "slot-waits-ended", ...head, waits: ended });
    if (granted.length > 0) this.push(agent, { type: "slots-granted", ...head, handles: granted });
  }

  #deliver(mails: readonly AgentMail[], commit: Commit): void {
    for (const { agent, incarnation, revokedByReason } of mails)
      for (const [reason, attempts] of revokedByReason)
        this.revoke({ agent, incarnation, attempts, reason }, commit);
    this.#assign(mails, commit);
    for (const mail of mails) {
      const { agent, incarnation, notices } = mail;
      this.sendSlots(mail, slotsIn(mail), commit);
      for (const { what: type, refusal } of notices)
        this.push(agent, { type, term: commit.term, incarnation, ...refusalField(refusal) });
    }
  }

  /** Sends assignments: one message per connection, as far as the agents of a connection speak on one subject. */
  #assign(mails: readonly AgentMail[], { term }: Commit): void {
    const mailsBySubject = new Map<string, AgentMail[]>();
    for (const mail of mails) {
      const { agent, incarnation, assignments } = mail;
      const newest = assignments.at(-1)?.number;
      if (newest === undefined) continue;
      if (this.#isWithheld(agent, incarnation)) {
        this.#deps.presences.withheld(agent, incarnation, newest);
        continue;
      }
      const { subjects, presences } = this.#deps;
      const subject = subjects.assign(this.#groupOf(agent), presences.speakerOf(agent, incarnation));
      const shared = mailsBySubject.get(subject);
      if (shared === undefined) mailsBySubject.set(subject, [mail]);
      else shared.push(mail);
    }
    for (const [subject, shared] of mailsBySubject)
      for (const part of this.#assignmentsFitting(shared)) this.#sendAssignments(subject, part, term);
  }

  /** Whether the leader keeps assignments back. The agent's next heartbeat makes the leader send the assignments. */
  #isWithheld(agent: AgentId, incarnation: Incarnation): boolean {
    const { presences, transport } = this.#deps;
    // The append took long, and the agent is silent. The lease of a new attempt would begin shortly before the leader
    // declares the agent lost, and the attempt would run beside the next attempt.
    if (presences.isSilent(agent, incarnation)) return true;
    // The connection would keep the message, and could deliver it after the attempt was taken back.
    return transport.status() !== "connected";
  }

  #sendAssignments(subject: string, part: readonly AgentAssignments[], term: Commit["term"]): void {
    const { subjects, presences, transport } = this.#deps;
    const [first, ...others] = part;
    if (first === undefined) return;
    const isOwn = subject === subjects.assign(this.#groupOf(first.agent), first.agent);
    const { agent, ...ofAgent } = first;
    const push = {
      term,
      ...(isOwn ? {} : { agent }),
      ...ofAgent,
      ...(others.length === 0 ? {} : { others }),
    };
    transport.publish(subject, assignPushJson(this.#json, push));
    for (const { agent: to, incarnation, assignments } of part)
      presences.sent(to, incarnation, assignments.at(-1)?.number ?? 0);
  }

  /** Cuts the assignments of agents into parts that fit a message, as `#fitting`. */
  *#assignmentsFitting(mails: readonly AgentMail[]): Generator<readonly AgentAssignments[]> {
    const charactersMax = this.#charactersMax;
    let part: AgentAssignments[] = [];
    let characters = 0;
    for (const { agent, incarnation, assignments: all } of mails) {
      for (const assignments of this.#fitting(all, charactersOf)) {
        const size = assignments.reduce(
          (sum, each) => sum + charactersOf(each) + limits.pushItemOverheadBytes,
          0,
        );
        if (part.length > 0 && characters + size > charactersMax) {
          yield part;
          part = [];
          characters = 0;
        }
        part.push({ agent, incarnation, assignments });
        characters += size;
      }
    }
    if (part.length > 0) yield part;
  }

  get #charactersMax(): number {
    return this.#deps.transport.maxPayloadBytes / 8;
  }

  /** Cuts a list into parts that fit a message even if JSON escapes every character to six bytes. A single item
   *  always fits: schemas limit payloads and results. */
  *#fitting<Item>(list: readonly Item[], charactersOf: (item: Item) => number): Generator<readonly Item[]> {
    const charactersMax = this.#charactersMax;
    let from = 0;
    let characters = 0;
    for (let at = 0; at < list.length; at += 1) {
      const size = charactersOf(list[at] as Item) + limits.pushItemOverheadBytes;
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

/** Assignments of one agent. */
type AgentAssignments = Pick<AgentMail, "agent" | "incarnation"> & {
  readonly assignments: readonly Assignment[];
};

function charactersOf({ payload, attributes }: Assignment): number {
  if (attributes !== undefined) return payload.length + JSON.stringify(attributes).length;
  return payload.length;
}

function slotsIn({ grantedHandles: granted, endedWaits: ended, idleHandles: idle }: AgentMail) {
  return { granted, ended, idle };
}

/** One mail per session of an agent. */
class Mails {
  /** Usually one mail per agent: two sessions rarely share a batch. */
  readonly #mailsByAgent = new Map<AgentId, AgentMail[]>();

  get byAgent(): Iterable<readonly AgentMail[]> {
    return this.#mailsByAgent.values();
  }

  to({ agent, incarnation }: { readonly agent: AgentId; readonly incarnation: Incarnation }): AgentMail {
    const mails = this.#mailsByAgent.get(agent) ?? [];
    const known = mails.find((mail) => mail.incarnation === incarnation);
    if (known !== undefined) return known;
    if (mails.length === 0) this.#mailsByAgent.set(agent, mails);
    const mail: AgentMail = {
      agent,
      incarnation,
      revokedByReason: new Map(),
      assignments: [],
      notices: [],
      grantedHandles: [],
      endedWaits: [],
      idleHandles: [],
    };
    mails.push(mail);
    return mail;
  }
}

/** The field `refusal` of a push: the agent may not join again as it is. */
export function refusalField(refusal: BeyondGrant | undefined): { readonly refusal?: CodedError } {
  return refusal === undefined ? {} : { refusal: beyondGrant(refusal) };
}

function revoke(mail: AgentMail, { attempt, reason }: Extract<Effect, { kind: "revoke" }>): void {
  const named = { project: attempt.project, task: attempt.task, attempt: attempt.attempt };
  const attempts = mail.revokedByReason.get(reason);
  if (attempts === undefined) mail.revokedByReason.set(reason, [named]);
  else attempts.push(named);
}

function assignmentOf(
  { attempt, spec, waitedMs }: Extract<Effect, { kind: "assign" }>,
  tokens: AttemptTokens,
): Assignment {
  // Not by spreading: it costs as much as the JSON.
  const assignment: Assignment = {
    number: attempt.number,
    project: attempt.project,
    task: attempt.task,
    attempt: attempt.attempt,
    token: tokens.sealed(attempt),
    kind: attempt.kind,
    user: spec?.user ?? "",
    payload: spec?.payload ?? "",
    timeoutMs: spec?.timeoutMs ?? 0,
    maxAttempts: spec?.maxAttempts ?? 1,
  };
  if (spec?.encoding !== undefined) assignment.encoding = spec.encoding;
  if (spec?.stallMs !== undefined) assignment.stallMs = spec.stallMs;
  if (spec?.stream !== undefined) assignment.stream = true;
  if (spec?.attributes !== undefined) assignment.attributes = spec.attributes;
  if (spec === undefined) assignment.revoked = true;
  if (spec?.traceparent !== undefined) {
    assignment.traceparent = spec.traceparent;
    if (spec.tracestate !== undefined) assignment.tracestate = spec.tracestate;
    assignment.waitedMs = waitedMs;
  }
  return assignment;
}

/** Where outcomes go: `<inbox>.done`. */
type Inbox = string;

/** Clients that await tasks. In memory only: after a fail-over clients ask again. */
export class Awaiting {
  /** Nearly every awaited task has one client. No map of a project is empty. */
  readonly #inboxesByProject = new Map<ProjectId, Map<TaskId, Inbox | readonly Inbox[]>>();
  #size = 0;

  /** @returns false when there is no room: the client asks again later */
  add(ref: TaskRef, inbox: Inbox): boolean {
    const { project, task } = ref;
    const inboxes = this.of(ref);
    if (inboxes.includes(inbox)) return true;
    if (inboxes.length === 0 && this.#size >= limits.awaitedTasksMax) return false;
    if (inboxes.length >= limits.awaitersPerTaskMax) return false;
    const inboxesByTask = this.#inboxesByProject.get(project) ?? new Map<TaskId, Inbox | readonly Inbox[]>();
    if (inboxesByTask.size === 0) this.#inboxesByProject.set(project, inboxesByTask);
    if (inboxes.length === 0) this.#size += 1;
    inboxesByTask.set(task, inboxes.length === 0 ? inbox : [...inboxes, inbox]);
    return true;
  }

  of({ project, task }: TaskRef): readonly Inbox[] {
    const inboxes = this.#inboxesByProject.get(project)?.get(task);
    if (inboxes === undefined) return none;
    return typeof inboxes === "string" ? [inboxes] : inboxes;
  }

  /** Removes an ended task. @returns inboxes of the awaiting clients */
  take(ref: TaskRef): readonly Inbox[] {
    const inboxes = this.of(ref);
    if (inboxes.length === 0) return none;
    const inboxesByTask = this.#inboxesByProject.get(ref.project);
    inboxesByTask?.delete(ref.task);
    if (inboxesByTask?.size === 0) this.#inboxesByProject.delete(ref.project);
    this.#size -= 1;
    return inboxes;
  }
}

const none: readonly Inbox[] = [];
