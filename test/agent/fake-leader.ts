// A scripted leader for an agent's tests: answers as a leader unless scripted otherwise, records every message,
// and pushes on demand. For behaviour that a real leader does not show on demand.

import { swarmId } from "../../src/ids.ts";
import { encode } from "../../src/protocol/codec.ts";
import type { Assignment, Chunks, Heartbeat, JoinRequest, ResultReport } from "../../src/protocol/schemas.ts";
import type { AcquireRequest } from "../../src/protocol/slot-schemas.ts";
import { type AgentVerb, agentVerbs, subjectsOf } from "../../src/protocol/subjects.ts";
import type { Message, Subscription, Transport } from "../../src/transport/transport.ts";

export const subjects = subjectsOf(swarmId("test"));

interface Heard<Body> {
  readonly body: Body;
  readonly bytes: string;
}

interface Bodies {
  join: JoinRequest;
  leave: { incarnation: string };
  heartbeat: Heartbeat;
  progress: { task: string; attempt: number; fraction?: number; message?: string };
  chunk: Pick<Chunks, "task" | "attempt" | "first" | "chunks">;
  result: { incarnation: string; results: ResultReport[] };
  acquire: AcquireRequest;
  touch: { incarnation: string; handle: string };
  release: { incarnation: string; handle: string; usage?: object; refused?: { forMs?: number } };
}

type Answer = object | "silence";

export class FakeLeader {
  term = 1;
  termStarts = [{ term: 1, idx: 1, opened: "first" }];
  heartbeatMs = 1_000;
  leaseTtlMs = 10_000;
  /** Scripted answer. `undefined`: the answer of a leader. */
  readonly script: { [Verb in AgentVerb]?: (body: Bodies[Verb]) => Answer | undefined } = {};
  readonly #transport: Transport;
  readonly #agent: string;
  readonly #heard: { [Verb in AgentVerb]: Heard<Bodies[Verb]>[] } = {
    join: [],
    leave: [],
    heartbeat: [],
    progress: [],
    chunk: [],
    result: [],
    acquire: [],
    touch: [],
    release: [],
  };
  #number = 0;
  #subscriptions: Subscription[] = [];

  constructor(hub: { connect(): Transport }, agent = "a1") {
    this.#transport = hub.connect();
    this.#agent = agent;
    this.appear();
  }

  /** A leader appears. */
  appear(term = this.term): void {
    this.term = term;
    if (this.#subscriptions.length > 0) return;
    this.#subscriptions = agentVerbs.map((verb) =>
      this.#transport.subscribe(subjects.agent("_", this.#agent, verb), (message) =>
        this.#take(verb, message),
      ),
    );
  }

  /** The leader disappears: requests have no responders. */
  vanish(): void {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#subscriptions = [];
  }

  all<Verb extends AgentVerb>(verb: Verb): Bodies[Verb][] {
    return this.#heard[verb].map(({ body }) => body);
  }

  last<Verb extends AgentVerb>(verb: Verb): Bodies[Verb] {
    const last = this.#heard[verb].at(-1);
    if (last === undefined) throw new Error(`the agent sent no ${verb}`);
    return last.body;
  }

  /** The received messages of a verb. */
  raw(verb: AgentVerb): string[] {
    return this.#heard[verb].map(({ bytes }) => bytes);
  }

  /** Every report of a result, repetitions included. */
  reports(): ResultReport[] {
    return this.all("result").flatMap(({ results }) => results);
  }

  get incarnation(): string {
    return this.last("join").incarnation;
  }

  /** The next assignment to the present incarnation, not sent yet. */
  assignment(overrides: Partial<Assignment> = {}): Assignment {
    this.#number += 1;
    return {
      number: this.#number,
      task: `t${this.#number}`,
      attempt: 1,
      token: `${this.term}.${this.#number}`,
      kind: "count",
      project: "p",
      user: "u",
      payload: "",
      timeoutMs: 60_000,
      maxAttempts: 3,
      ...overrides,
    };
  }

  /** Assignment numbers begin anew with each incarnation. */
  countFromOne(): void {
    this.#number = 0;
  }

  assign(...assignments: Assignment[]): void {
    this.push({ type: "assign", assignments });
  }

  revoke(...attempts: { readonly project: string; readonly task: string; readonly attempt: number }[]): void {
    this.push({
      type: "revoke",
      attempts,
      reason: "requested",
    });
  }

  push(push: object): void {
    this.send({ term: this.term, incarnation: this.incarnation, ...push });
  }

  send(message: unknown): void {
    const bytes = message instanceof Uint8Array ? message : encode(message);
    this.#transport.publish(subjects.assign("_", this.#agent), bytes);
  }

  #take(verb: AgentVerb, { data, reply }: Message): void {
    const bytes = Buffer.from(data).toString();
    const body = JSON.parse(bytes);
    this.#heard[verb].push({ body, bytes });
    const answer = this.script[verb]?.(body as never) ?? this.#answer(verb, body);
    if (reply !== undefined && answer !== "silence") this.#transport.publish(reply, encode(answer));
  }

  #answer(verb: AgentVerb, body: Bodies["result"]): Answer {
    const { term, heartbeatMs, leaseTtlMs } = this;
    switch (verb) {
      case "join":
        return { ok: true, term, idx: 1, unknown: [], resumed: false, heartbeatMs, leaseTtlMs };
      case "heartbeat":
        return { term, renewed: true, termStarts: this.termStarts };
      case "result":
        return { term, idx: 1, answers: body.results.map(() => ({ ok: true, status: "ok" })) };
      case "acquire":
        return { term, idx: 1, answer: { ok: true, state: "granted" } };
      case "touch":
        return { ok: true, term, idx: 1, state: "held" };
      case "release":
        return { ok: true, term, idx: 1, was: "held" };
      case "leave":
        return { ok: true, term, idx: 1 };
      default:
        return "silence";
    }
  }
}
