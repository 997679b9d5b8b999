// Joins the heartbeats and results of several agents of one connection and group into shared messages, and splits the
// leader's shared assignments (docs/protocol.md, "Several agents on one connection"). Their subject is
// `agent.<group>.<connection>.<verb>`. Each part is one agent's own message, and gets an answer of its own.
//
// The only agent of a group uses its own subject. So do all agents if the server forbids the shared subject. Never
// shared: join, leave, progress, slots, and pushes other than assignments.

import { Buffer } from "node:buffer";
import { filter, interval, map, type Observable, share } from "rxjs";
import type { Clock, Random } from "../clock.ts";
import { schedulerOn } from "../clock-scheduler.ts";
import { limits } from "../limits.ts";
import { Listeners } from "../listeners.ts";
import { encodeText, parseJson } from "../protocol/codec.ts";
import { isRecord } from "../protocol/quick-checks.ts";
import type { AgentPush } from "../protocol/schemas.ts";
import type { AgentVerb, Subjects } from "../protocol/subjects.ts";
import type { Forbidden, RequestOutcome, Transport } from "../transport/transport.ts";
import { readPush } from "./quick-checks.ts";

export interface BundlerDeps {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
}

export type AssignPush = Extract<AgentPush, { readonly type: "assign" }>;

/** `part`: the agent's part of the answer; undefined without a readable one. */
export type PartOutcome = RequestOutcome | Forbidden | { readonly kind: "part"; readonly value: unknown };

/** Gets the outcome of a request: one call of one of the two. Neither may throw. */
export interface OutcomeTaker {
  settle(outcome: PartOutcome): void;
  /** The request was not sent: the message is too large, or a bug. */
  fail(error: unknown): void;
}

export interface BundledAgent {
  readonly subjects: Subjects;
  readonly group: string;
  readonly id: string;
}

/** One agent's part in a bundler. */
export interface BundleMember {
  /** Takes the agent's assignments that arrive with those of other agents. Returns a function that ends this. */
  listen(onAssign: (push: AssignPush) => void): () => void;
  /** Whether messages of the verb are bundled now. */
  carries(verb: AgentVerb): verb is BundledVerb;
  /** As `Transport.request` with the agent's own message, without a promise.
   *  @param message JSON of an object with at least one field
   *  @returns a function that ends the wait: the outcome is a time-out */
  request(verb: BundledVerb, message: string, taker: OutcomeTaker): () => void;
  /** Emits once per period, for several agents of the connection at the same time. */
  turns(periodMs: number): Observable<unknown>;
}

export type BundledVerb = "heartbeat" | "result";

/** 36¹² values. */
const CONNECTION_LENGTH = 12;

export class Bundler {
  readonly #deps: BundlerDeps;
  readonly #bundleByGroup = new Map<string, GroupBundle>();
  readonly #ticksByMs = new Map<number, Observable<number>>();
  #agents = 0;

  constructor(deps: BundlerDeps) {
    this.#deps = deps;
  }

  memberFor(agent: BundledAgent): BundleMember {
    const key = `${agent.subjects.prefix} ${agent.group}`;
    const bundle = this.#bundleByGroup.get(key) ?? new GroupBundle(this.#deps, agent);
    this.#bundleByGroup.set(key, bundle);
    const nth = Math.trunc(this.#agents / limits.heartbeatGroupAgents) % limits.heartbeatGroups;
    this.#agents += 1;
    return {
      listen: (onAssign) => bundle.listen(agent.id, onAssign),
      carries: (verb): verb is BundledVerb => bundle.carries(verb),
      request: (verb, message, taker) => {
        const part = new Part(agent.id, message, taker);
        bundle.add(verb, part);
        return () => part.settle({ kind: "timeout" });
      },
      turns: (periodMs) =>
        this.#ticks(periodMs / limits.heartbeatGroups).pipe(
          map((tick) => tick % limits.heartbeatGroups),
          filter((tick) => tick === nth),
        ),
    };
  }

  #ticks(ms: number): Observable<number> {
    const known = this.#ticksByMs.get(ms);
    if (known !== undefined) return known;
    const ticks = interval(ms, schedulerOn(this.#deps.clock)).pipe(share());
    this.#ticksByMs.set(ms, ticks);
    return ticks;
  }
}

type OnAssign = (push: AssignPush) => void;

/** The agents of one group. */
class GroupBundle {
  readonly #deps: BundlerDeps;
  readonly #subjects: Subjects;
  readonly #group: string;
  readonly #connection: string;
  /** Two agents of one id fence each other: both listen for a while. */
  readonly #listenersByAgent = new Map<string, readonly OnAssign[]>();
  readonly #channels: Readonly<Record<BundledVerb, Channel>>;
  #listeners = 0;
  #isForbidden = false;
  #unsubscribe: (() => void) | undefined;

  constructor(deps: BundlerDeps, { subjects, group }: BundledAgent) {
    this.#deps = deps;
    this.#subjects = subjects;
    this.#group = group;
    this.#connection = deps.random.id(CONNECTION_LENGTH);
    const send = (verb: BundledVerb) => async (parts: readonly Part[]) => await this.#send(verb, parts);
    this.#channels = {
      heartbeat: new Channel(deps, { restMs: limits.bundledHeartbeatsMs, send: send("heartbeat") }),
      result: new Channel(deps, { inFlightMax: limits.resultMessagesInFlightMax, send: send("result") }),
    };
  }

  listen(agent: string, onAssign: OnAssign): () => void {
    this.#listenersByAgent.set(agent, [...(this.#listenersByAgent.get(agent) ?? []), onAssign]);
    this.#listeners += 1;
    if (this.#listeners > 1 && !this.#isForbidden) this.#unsubscribe ??= this.#subscribe();
    return () => {
      const left = (this.#listenersByAgent.get(agent) ?? []).filter((each) => each !== onAssign);
      if (left.length > 0) this.#listenersByAgent.set(agent, left);
      else this.#listenersByAgent.delete(agent);
      this.#listeners -= 1;
      if (this.#listeners > 0) return;
      this.#unsubscribe?.();
      this.#unsubscribe = undefined;
    };
  }

  carries(verb: AgentVerb): boolean {
    return (verb === "heartbeat" || verb === "result") && this.#listeners > 1 && !this.#isForbidden;
  }

  add(verb: BundledVerb, part: Part): void {
    this.#channels[verb].add(part);
  }

  #subscribe(): () => void {
    const subject = this.#subjects.assign(this.#group, this.#connection);
    const subscription = this.#deps.transport.subscribe(subject, ({ data }) => this.#onPush(data), {
      onForbidden: () => {
        this.#isForbidden = true;
      },
    });
    return () => subscription.unsubscribe();
  }

  /** Messages that do not parse are left to the agents: missing assignments come again, on their own subjects. */
  #onPush(data: Uint8Array): void {
    const push = readPush(data);
    if (!push.ok || push.value.type !== "assign") return;
    const { type, term, agent = "", incarnation, assignments, others = [] } = push.value;
    this.#assign(agent, { type, term, incarnation, assignments });
    for (const other of others)
      this.#assign(other.agent, {
        type,
        term,
        incarnation: other.incarnation,
        assignments: other.assignments,
      });
  }

  #assign(agent: string, push: AssignPush): void {
    for (const onAssign of this.#listenersByAgent.get(agent) ?? none) onAssign(push);
  }

  async #send(verb: BundledVerb, parts: readonly Part[]): Promise<void> {
    const { transport } = this.#deps;
    const [first] = parts;
    if (first === undefined) return;
    const own = parts.length === 1 && first.bytes > transport.maxPayloadBytes;
    const speaker = own ? first.agent : this.#connection;
    const message = encodeText(own ? first.message : joined(parts));
    const ending = new Listeners();
    let open = parts.length;
    for (const part of parts)
      part.onEnded(() => {
        open -= 1;
        if (open === 0) ending.notify();
      });
    try {
      const subject = this.#subjects.agent(this.#group, speaker, verb);
      const terms = { timeoutMs: limits.requestTimeoutMs, ending };
      this.#settle(parts, await transport.request(subject, message, terms), own);
    } catch (error) {
      for (const part of parts) part.fail(error);
    }
  }

  #settle(parts: readonly Part[], outcome: RequestOutcome | Forbidden, isOwn: boolean): void {
    if (isOwn) return settleAll(parts, outcome);
    if (outcome.kind === "forbidden") {
      this.#isForbidden = true;
      return settleAll(parts, { kind: "timeout" }); // each agent asks again, on its own subject
    }
    if (outcome.kind !== "answered") return settleAll(parts, outcome);
    const answer = parseJson(outcome.data);
    settleParts(parts, answer.ok ? answer.value : undefined);
  }
}

const none: readonly OnAssign[] = [];

/** Every agent gets an answer to the whole message, which is a refusal, or its part of the answers. */
function settleParts(parts: readonly Part[], answer: unknown): void {
  if (!isRecord(answer)) return settleAll(parts, { kind: "part", value: undefined });
  const { others, ...first } = answer;
  if (!Array.isArray(others) && first["ok"] === false)
    return settleAll(parts, { kind: "part", value: first });
  const { term, idx } = first;
  for (const [at, part] of parts.entries()) {
    const value: unknown = at === 0 ? first : Array.isArray(others) ? others[at - 1] : undefined;
    if (at > 0 && isRecord(value)) {
      value["term"] ??= term;
      if (idx !== undefined) value["idx"] ??= idx;
    }
    part.settle({ kind: "part", value });
  }
}

function settleAll(parts: readonly Part[], outcome: PartOutcome): void {
  for (const part of parts) part.settle(outcome);
}

const OPEN = '{"agent":"';
const OTHERS = ',"others":[';
const END = "]}";

/** JSON of a bundle: the first agent's message, and in its field `others` the messages of the remaining agents. */
function joined(parts: readonly Part[]): string {
  const [first = "", ...others] = parts.map(named);
  return others.length === 0 ? first : `${first.slice(0, -1)}${OTHERS}${others.join(",")}${END}`;
}

function named({ agent, message }: Part): string {
  return `${OPEN}${agent}",${message.slice(1)}`;
}

/** An agent's message on its way. */
class Part {
  readonly agent: string;
  readonly message: string;
  /** At most, within a message of several. */
  readonly bytes: number;
  #taker: OutcomeTaker | undefined;
  #onEnded: () => void = () => undefined;

  constructor(agent: string, message: string, taker: OutcomeTaker) {
    this.agent = agent;
    this.message = message;
    this.bytes = Buffer.byteLength(message) + OPEN.length + agent.length + OTHERS.length + END.length;
    this.#taker = taker;
  }

  get isSettled(): boolean {
    return this.#taker === undefined;
  }

  onEnded(run: () => void): void {
    this.#onEnded = run;
  }

  settle(outcome: PartOutcome): void {
    this.#end()?.settle(outcome);
  }

  fail(error: unknown): void {
    this.#end()?.fail(error);
  }

  #end(): OutcomeTaker | undefined {
    const taker = this.#taker;
    this.#taker = undefined;
    if (taker !== undefined) this.#onEnded();
    return taker;
  }
}

interface ChannelTerms {
  /** Time between two messages. */
  readonly restMs?: number;
  readonly inFlightMax?: number;
  /** Settles all parts. Never rejects. */
  readonly send: (parts: readonly Part[]) => Promise<void>;
}

/** Messages of one verb: parts that wait share the next message. */
class Channel {
  readonly #deps: BundlerDeps;
  readonly #terms: ChannelTerms;
  #waiting: Part[] = [];
  #isScheduled = false;
  #sentAt = Number.NEGATIVE_INFINITY;
  #inFlight = 0;

  constructor(deps: BundlerDeps, terms: ChannelTerms) {
    this.#deps = deps;
    this.#terms = terms;
  }

  add(part: Part): void {
    this.#waiting.push(part);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    const { clock } = this.#deps;
    const { restMs = 0, inFlightMax = Number.POSITIVE_INFINITY } = this.#terms;
    if (this.#inFlight >= inFlightMax) return;
    this.#isScheduled = true;
    const waitMs = this.#sentAt + restMs - clock.monotonicMs();
    if (waitMs > 0) clock.after(waitMs, () => this.#flush(), { unref: true });
    else clock.soon(() => this.#flush());
  }

  #flush(): void {
    this.#isScheduled = false;
    const { inFlightMax = Number.POSITIVE_INFINITY } = this.#terms;
    this.#waiting = this.#waiting.filter(({ isSettled }) => !isSettled);
    while (this.#waiting.length > 0 && this.#inFlight < inFlightMax) void this.#sendNext();
  }

  async #sendNext(): Promise<void> {
    const parts = this.#waiting.splice(0, this.#countFitting());
    this.#sentAt = this.#deps.clock.monotonicMs();
    this.#inFlight += 1;
    await this.#terms.send(parts);
    this.#inFlight -= 1;
    this.#schedule();
  }

  /** At least one. */
  #countFitting(): number {
    let bytes = 0;
    let count = 0;
    for (const part of this.#waiting) {
      bytes += part.bytes;
      if (count > 0 && (bytes > this.#deps.transport.maxPayloadBytes || count > limits.agentsPerMessageMax))
        break;
      count += 1;
    }
    return count;
  }
}
