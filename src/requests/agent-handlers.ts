// Handlers of `agent.<g>.<a>.<verb>`: join, leave, heartbeat, progress and result; slots are in slot-handlers.ts. Each
// message is counted first against the agent's limits (agent-gate.ts), and shows that its agent lives (presence.ts).
// Every decision is left to the turn (core/decide-agent.ts).

import type { Command, Reply, ReportedRefusal } from "../core/command.ts";
import { type Effect, sentAgain } from "../core/effect.ts";
import { type BeyondGrant, refusalOfReturn } from "../core/grant-rules.ts";
import { headOf } from "../cut-text.ts";
import { type AgentId, type AssignmentNumber, type GroupId, type Incarnation, NO_GROUP } from "../ids.ts";
import { limits } from "../limits.ts";
import { decode, encode, invalid } from "../protocol/codec.ts";
import { readQuickly } from "../protocol/quick-checks.ts";
import {
  agentIdSchema,
  type CodedError,
  chunksSchema,
  groupIdSchema,
  type Heartbeat,
  type HoldClaim,
  heartbeatSchema,
  joinRequestSchema,
  leaveRequestSchema,
  type Progress,
  progressSchema,
  type ResultReport,
  resultRequestSchema,
  resultSchema,
} from "../protocol/schemas.ts";
import { chunkSubject, progressSubject } from "../protocol/subjects.ts";
import type { SwarmState } from "../state/state.ts";
import type { Message } from "../transport/transport.ts";
import { AgentGate, type AgentName, type MessageSort, sortByVerb } from "./agent-gate.ts";
import { backpressure, joinAnswer, otherGroup, resultAnswersJson, sendFitting } from "./answers.ts";
import type { Commit } from "./inbox.ts";
import type { Intake, LeaderParts } from "./intake.ts";
import { Items } from "./items.ts";
import { refusalField } from "./outbox.ts";
import type { HeartbeatVerdict } from "./presence.ts";
import {
  isPlainHeartbeat,
  isProgress,
  isRightResultRequest,
  readMessage,
  readToken,
} from "./quick-checks.ts";
import { SlotHandlers } from "./slot-handlers.ts";

/** A session of an agent. */
interface Session {
  readonly agent: AgentId;
  readonly incarnation: Incarnation;
}

type Verdict = HeartbeatVerdict & { readonly session: Session };

export class AgentHandlers {
  readonly #intake: Intake;
  readonly #parts: LeaderParts;
  readonly #gate: AgentGate;
  readonly #slots: SlotHandlers;

  constructor(intake: Intake, parts: LeaderParts) {
    this.#intake = intake;
    this.#parts = parts;
    this.#gate = new AgentGate(parts.clock);
    this.#slots = new SlotHandlers(intake, (agent, incarnation) => this.#heard({ agent, incarnation }));
  }

  take([group, id, verb = ""]: readonly string[], message: Message): void {
    const agent = readToken(id, agentIdSchema, "agent");
    if (!agent.ok) return this.#intake.refuseMaybe(message, agent);
    const of = readToken(group, groupIdSchema, "group");
    if (!of.ok) return this.#intake.refuseMaybe(message, of);
    const name = { group: of.value, agent: agent.value };
    const sort = sortByVerb.get(verb);
    if (sort !== undefined && !this.#admits(name, sort)) return this.#turnAway(sort, message.reply);
    const row = this.#parts.state.agentById.get(name.agent);
    if (row?.online === true && row.group !== name.group)
      return this.#intake.refuseMaybe(message, otherGroup(name.agent));
    switch (verb) {
      case "heartbeat":
        return this.#heartbeat(name, message);
      case "progress":
        return this.#progress(name.agent, message);
      case "chunk":
        return this.#chunks(name.agent, message);
      case "join":
        return this.#join(name, message);
      case "leave":
        return this.#leave(name.agent, message);
      case "result":
        return this.#result(name, message);
      case "acquire":
      case "touch":
      case "release":
        return this.#slots[verb](name.agent, message);
      default:
        return this.#intake.count("unknown-subject");
    }
  }

  /** Whether the message is within the agent's limits. Asked before the message is read. */
  #admits(name: AgentName, sort: MessageSort): boolean {
    const { agent } = name;
    const row = this.#parts.state.agentById.get(agent);
    if ((sort === "progress" || sort === "chunks") && row?.online !== true) return false;
    const admission = this.#gate.admit(name, row, sort);
    if (admission === "dropped-first")
      this.#parts.logger.warn({ agent, sort }, "an agent sends too many messages; the surplus is dropped");
    return admission === "heard";
  }

  /** Surplus reports, chunks and heartbeats are dropped: readers see a gap, the next heartbeat repeats. Requests are
   *  refused. */
  #turnAway(sort: MessageSort, reply: string | undefined): void {
    this.#intake.count(sort === "progress" ? "too-much-progress" : `too-many-${sort}`);
    if (sort === "progress" || sort === "chunks" || sort === "heartbeats" || reply === undefined) return;
    this.#intake.refuse(reply, backpressure("too-many-messages", limits.retryAfterMs));
  }

  /** Any valid message shows that its sender lives. */
  #heard({ agent, incarnation }: Session): void {
    const { state, presences, logger } = this.#parts;
    const row = state.agentById.get(agent);
    if (row?.fencedIncarnations.includes(incarnation) === true) {
      // A fenced session that still sends is a second process under the same id, not a restart of the first.
      if (!presences.outlived(agent)) return;
      const what = "two processes use one agent id; the earlier is fenced and stops. Give each its own id";
      return logger.warn({ agent, incarnation }, what);
    }
    if (row?.online === true && row.incarnation === incarnation) presences.heard(agent, incarnation);
  }

  // --- heartbeats and progress ----------------------------------------------------------------------

  /** Heartbeats of one agent, or of several agents of a connection. All share one entry of the inbox, and an answer. */
  #heartbeat(name: AgentName, { data, reply }: Message): void {
    const { term, state, transport, holdsLease } = this.#parts;
    const read = readMessage(data, heartbeatSchema, isPlainHeartbeat);
    if (!read.ok) return this.#intake.refuseMaybe({ reply }, read);
    const { agent = name.agent, others = [] } = read.value;
    const heartbeats: Heartbeat[] = [read.value, ...others];
    const verdicts = [this.#verdict(name, agent, read.value)];
    for (const other of others) verdicts.push(this.#verdict(name, other.agent, other));
    const renew = () => {
      if (reply === undefined) return;
      const [first, ...more] = heartbeats.map((each, at) => renewal(each, verdicts[at], state));
      const answer = { term: term(), ...first, ...(more.length > 0 ? { others: more } : {}) };
      sendFitting(transport, reply, encode(answer));
    };
    const open = verdicts.filter((verdict) => verdict !== undefined);
    if (open.length === 0) return;
    const isInOrder = open.every(({ command, missing }) => command === undefined && missing.length === 0);
    if (isInOrder && holdsLease()) renew();
    else this.#reconcile(open, renew);
  }

  /** @returns undefined for a heartbeat that renews nothing */
  #verdict({ group, agent: speaker }: AgentName, agent: AgentId, heartbeat: Heartbeat): Verdict | undefined {
    const { state, presences } = this.#parts;
    const session = { agent, incarnation: heartbeat.incarnation };
    const row = state.agentById.get(agent);
    if (row?.online === true && row.group !== group) return undefined;
    if (row?.online !== true || row.incarnation !== session.incarnation) {
      this.#heard(session);
      this.#dismiss(session, group, row?.online === true ? "fenced" : "rejoin");
      return undefined;
    }
    return { session, ...presences.heartbeat(state, row, heartbeat, speaker) };
  }

  /** Has the turn decide on heartbeats, and sends missing assignments again if the agents still have them then.
   *  @param renew answers the heartbeats, behind all pushes to the agents */
  #reconcile(verdicts: readonly Verdict[], renew: () => void): void {
    const replies: Reply[] = [];
    const effects: Effect[] = [];
    const decided = verdicts.filter(({ command }) => command !== undefined);
    this.#parts.enqueue({
      commands: decided.map(({ command }) => command as Command),
      replies,
      look: (state) => {
        for (const { session, missing } of verdicts) {
          for (const attempt of missing) {
            if (state.agentById.get(session.agent)?.open.get(attempt.number) === attempt)
              effects.push(...sentAgain(state, attempt));
          }
        }
      },
      finish: (commit) => {
        for (const [nth, { session }] of decided.entries())
          this.#notifyReconciled(session, replies[nth], commit);
        this.#parts.outbox.perform(effects, commit);
        renew();
      },
    });
  }

  #notifyReconciled(session: Session, reply: Reply | undefined, commit: Commit): void {
    if (reply?.kind !== "reconciled") return;
    const { outbox } = this.#parts;
    const { unknown: attempts, slots } = reply;
    const reason = "the attempt is no longer yours";
    if (attempts.length > 0) outbox.revoke({ ...session, attempts, reason }, commit);
    if (slots !== undefined) outbox.sendSlots(session, slots, commit);
  }

  #dismiss(session: Session, group: GroupId, type: "fenced" | "rejoin"): void {
    const { agent, incarnation } = session;
    let refusal: BeyondGrant | undefined;
    this.#parts.enqueue({
      commands: [],
      replies: [],
      look: (state) => {
        refusal = refusalOfReturn(state, session);
      },
      finish: ({ term }) =>
        this.#parts.outbox.push(agent, { type, term, incarnation, ...refusalField(refusal) }, group),
    });
  }

  #progress(agent: AgentId, message: Message): void {
    const report = readMessage(message.data, progressSchema, isProgress);
    if (!report.ok) return this.#intake.refuseMaybe(message, report);
    if (!this.#progressed(agent, report.value)) return;
    const { outbox, transport } = this.#parts;
    const { project, task, attempt, fraction, message: text } = report.value;
    const push = {
      project,
      task,
      attempt,
      agent,
      ...(fraction === undefined ? {} : { fraction }),
      ...(text === undefined ? {} : { message: text }),
    };
    for (const inbox of outbox.awaiting.of(report.value))
      sendFitting(transport, progressSubject(inbox), encode(push));
  }

  /** Passes on chunks to the clients that await the task. A chunk is progress as well. */
  #chunks(agent: AgentId, message: Message): void {
    const read = decode(message.data, chunksSchema);
    if (!read.ok) return this.#intake.refuseMaybe(message, read);
    if (!this.#progressed(agent, read.value)) return;
    const { outbox, transport } = this.#parts;
    const { project, task, attempt, first, chunks } = read.value;
    const inboxes = outbox.awaiting.of(read.value);
    if (inboxes.length === 0) return;
    const push = encode({ project, task, attempt, agent, first, chunks });
    for (const inbox of inboxes) sendFitting(transport, chunkSubject(inbox), push);
  }

  /** Notes that an attempt goes on. @returns false unless the agent holds the attempt */
  #progressed(
    agent: AgentId,
    report: Pick<Progress, "incarnation" | "project" | "task" | "attempt">,
  ): boolean {
    const { state, presences } = this.#parts;
    const { incarnation, attempt } = report;
    const open = state.taskById.get(report)?.open;
    const isHeld = open?.agent === agent && open.incarnation === incarnation && open.attempt === attempt;
    if (!isHeld) {
      this.#intake.count("invalid-publish");
      return false;
    }
    presences.heard(agent, incarnation);
    presences.progressed(report);
    return true;
  }

  // --- requests -------------------------------------------------------------------------------------

  #join({ group, agent }: AgentName, message: Message): void {
    const request = this.#intake.read(message, (data) => decode(data, joinRequestSchema));
    if (request === undefined) return;
    const {
      incarnation,
      after,
      kinds,
      role,
      type,
      labels,
      maxConcurrent,
      prefetch,
      held = [],
      seen = 0 as AssignmentNumber,
    } = request.body;
    this.#heard({ agent, incarnation });
    const command: Command = {
      type: "JoinAgent",
      agent,
      ...(group === NO_GROUP ? {} : { group }),
      incarnation,
      ...(after === undefined ? {} : { after }),
      kinds: [...new Set(kinds)],
      ...(role === undefined ? {} : { role }),
      ...(type === undefined ? {} : { agentType: type }),
      ...(labels === undefined ? {} : { labels }),
      maxConcurrent,
      ...(prefetch === undefined ? {} : { prefetch }),
      held,
      seen,
    };
    this.#intake.decide({
      reply: request.reply,
      commands: [command],
      answer: ([decided], commit) => joinAnswer(decided, commit),
    });
  }

  #leave(agent: AgentId, message: Message): void {
    const request = this.#intake.read(message, (data) => decode(data, leaveRequestSchema));
    if (request === undefined) return;
    const { incarnation } = request.body;
    this.#heard({ agent, incarnation });
    this.#intake.decide({
      reply: request.reply,
      commands: [{ type: "LeaveAgent", agent, incarnation }],
      answer: (_, commit) => ({ ok: true, ...commit }),
    });
  }

  /** Results of one agent, or of several agents of a connection. */
  #result(name: AgentName, message: Message): void {
    const request = this.#readResults(message);
    if (request === undefined) return;
    const { state, random, tokens } = this.#parts;
    const commands: Command[] = [];
    const ofAgents = request.ofAgents.map(({ agent = name.agent, incarnation, items }) => {
      const row = state.agentById.get(agent);
      if (row?.online === true && row.group !== name.group) return otherGroup(agent);
      this.#heard({ agent, incarnation });
      for (const report of items.right) {
        const { project, task, attempt } = report;
        const token = tokens.opened(report);
        const outcome = reportedOutcome(report);
        const jitter = random.next();
        const session = { agent, incarnation };
        commands.push({ type: "ReportResult", ...session, project, task, attempt, token, outcome, jitter });
      }
      return items;
    });
    this.#intake.decide({
      reply: request.reply,
      commands,
      answer: (replies, commit) => resultAnswersJson(ofAgents, replies, commit),
    });
  }

  /** The error of a hold that would end later than a hold may, by this coordinator's clock. */
  #endsTooLate({ hold }: ResultReport, where: string): CodedError | undefined {
    const latest = this.#parts.clock.now() + limits.holdMsMax;
    if (hold?.until === undefined || hold.until <= latest) return undefined;
    const field = `${where}.hold.until`;
    return invalid(`${field}: must be at most 7 days from now`, field);
  }

  /** @returns undefined for an invalid request */
  #readResults(message: Message): ReadResults | undefined {
    const right = readQuickly(message.data, isRightResultRequest);
    if (right !== undefined && message.reply !== undefined) {
      const ofAgents = [right, ...(right.others ?? [])];
      return {
        reply: message.reply,
        ofAgents: ofAgents.map((each) => ({ ...each, items: new Items(each.results) })),
      };
    }
    const request = this.#intake.read(message, (data) => decode(data, resultRequestSchema));
    if (request === undefined) return undefined;
    const { body, reply } = request;
    const items = (results: readonly unknown[], list: string) =>
      this.#intake.checkItems(results, resultSchema, list, (report, where) =>
        this.#endsTooLate(report, where),
      );
    const others = (body.others ?? []).map((other, at) => ({
      ...other,
      items: items(other.results, `others[${at}].results`),
    }));
    return { reply, ofAgents: [{ ...body, items: items(body.results, "results") }, ...others] };
  }
}

interface ReadResults {
  readonly reply: string;
  readonly ofAgents: readonly {
    /** Absent: the agent of the subject. */
    readonly agent?: AgentId | undefined;
    readonly incarnation: Incarnation;
    readonly items: Items<ResultReport>;
  }[];
}

/** The answer to a heartbeat, without its term. @param verdict undefined: not renewed */
function renewal(
  { asksTermStarts }: Heartbeat,
  verdict: Verdict | undefined,
  { termStarts }: SwarmState,
): object {
  return {
    ...(verdict === undefined ? {} : { renewed: true }),
    ...(asksTermStarts === true ? { termStarts } : {}),
  };
}

function refusalOf({ scope, forMs, until }: HoldClaim): ReportedRefusal {
  return {
    ...(scope === undefined ? {} : { on: scope }),
    ...(forMs === undefined ? {} : { forMs }),
    ...(until === undefined ? {} : { until }),
  };
}

function reportedOutcome(report: ResultReport): Extract<Command, { type: "ReportResult" }>["outcome"] {
  const { tokens, encoding } = report;
  const spent = tokens === undefined ? {} : { tokens };
  switch (report.outcome) {
    case "completed": {
      const completed = { kind: "completed", result: report.result ?? "" } as const;
      if (encoding === undefined && tokens === undefined) return completed;
      return { ...completed, ...(encoding === undefined ? {} : { encoding }), ...spent };
    }
    case "revoked":
      return { kind: "revoked", ...spent };
    case "infrastructure":
      return {
        kind: "infrastructure",
        error: headOf(report.error ?? "", limits.errorCharactersMax),
        ...(report.hold === undefined ? {} : { refusal: refusalOf(report.hold) }),
        ...spent,
      };
    case "failed":
    case "invalid":
      return {
        kind: report.outcome,
        error: headOf(report.error ?? "", limits.errorCharactersMax),
        ...spent,
      };
  }
}
