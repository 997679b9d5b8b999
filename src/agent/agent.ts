// An agent in a user's program: a handler that runs assigned attempts until the agent is drained or stopped.
// Combines the runner, which calls the handler, with the session, which talks to the leader. Both run in this
// thread. A stand-in in a thread of its own sends heartbeats while the handler blocks this thread.

import { hostname } from "node:os";
import { type Logger, pino } from "pino";
import * as z from "zod";
import type { AgentStatus } from "../../machines/agent.ts";
import { unreachable } from "../assert.ts";
import { type Clock, type Random, systemClock, systemRandom } from "../clock.ts";
import {
  InvalidConfigError,
  InvalidMessageError,
  UnreachableError,
  WaggleError,
  type WaggleErrorCode,
} from "../errors.ts";
import { type AgentId, agentId, NO_GROUP, type SwarmId } from "../ids.ts";
import { limits } from "../limits.ts";
import { agentIdSchema, groupIdSchema, joinRequestSchema, labelsSchema } from "../protocol/schemas.ts";
import { subjectsOf } from "../protocol/subjects.ts";
import type { Tracing } from "../tracing/tracing.ts";
import { connectNats } from "../transport/nats.ts";
import { logServerError } from "../transport/server-error.ts";
import { logStatus } from "../transport/status-log.ts";
import type { Transport } from "../transport/transport.ts";
import type { Bundler } from "./bundler.ts";
import type { Handler } from "./handler.ts";
import type { AgentProfile, SessionNotice } from "./link.ts";
import { abortSignal, callback, flag, readerOf } from "./options.ts";
import type { PayloadCodec } from "./payload-codec.ts";
import { Runner, type RunnerCounts } from "./runner.ts";
import { AgentSession } from "./session.ts";
import type { ReleaseOptions } from "./slot-refusal.ts";
import type { SlotReport } from "./slot-usage.ts";
import { type AcquireOptions, readSlotLease, type Slot, Slots, type SlotTicket, ticketOf } from "./slots.ts";
import { StandIn, type StandInServer } from "./stand-in.ts";
import { handlerOf, type TypedHandler } from "./typed-handler.ts";
import { isTypedKind, type TypedKind } from "./typed-kind.ts";
import { checkWrapOrder, type WrapOptions, wrapWork } from "./wraps.ts";

export interface AgentOptions {
  /** Unique per process, 1–64 characters of `[A-Za-z0-9_-]`: a process that joins later with the same id fences
   *  the earlier. Forgotten a day after the agent left; after a minute, if the agent only acquired slots.
   *  Default: `<host>-<kind>-<8 random>`. */
  readonly id?: string;
  /** Kinds of tasks that the agent serves, at most 256; empty for an agent that only acquires slots. */
  readonly kinds: readonly string[];
  readonly handler: Handler;
  /** Maximum number of concurrent handlers, 1 to `limits.maxConcurrentMax`. Default 1. */
  readonly maxConcurrent?: number;
  /** Number of further attempts to hold ready while all handlers are busy. Default 0. */
  readonly prefetch?: number;
  /** Role of the agent. Tasks with a role go only to agents of the role. Default: none. */
  readonly role?: string;
  /** Type of the agent, for display and rate limits: `claude-sonnet`, `gpu-a100`. Default: none. */
  readonly type?: string;
  /** Group of agents that share a credential, 1–64 characters of `[A-Za-z0-9_-]`. Messages use
   *  `agent.<group>.<id>.…`, so that a server can restrict them to the credential. Default: the connection's
   *  group, else none. */
  readonly group?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** False: the journal gets class and code of a handler's error, without its text, which may quote the payload.
   *  The agent's logger still gets the text. Default true. */
  readonly errorText?: boolean;
  /** Stops the agent, as `stop()` does. */
  readonly signal?: AbortSignal;
}

/** Options of an agent that serves one kind, made by `defineKind`. */
export interface TypedAgentOptions<Kind extends TypedKind> extends Omit<AgentOptions, "kinds" | "handler"> {
  readonly kind: Kind;
  readonly handler: TypedHandler<Kind>;
}

/** How the agent reaches the swarm. `server`: over its own connection, with its own stand-in. `transport`: over a
 *  connection that it leaves open, with the connection's stand-in and bundler. Without a stand-in, a handler that
 *  blocks loses its leases. Without a bundler, each agent sends its own messages. */
export type AgentConnection =
  | { readonly kind: "server"; readonly server: StandInServer }
  | {
      readonly kind: "transport";
      readonly transport: Transport;
      readonly standIn?: StandIn;
      readonly bundler?: Bundler;
    };

export interface AgentDeps {
  readonly swarm: SwarmId;
  readonly connection: AgentConnection;
  readonly clock?: Clock;
  readonly random?: Random;
  /** Default: silent. Never receives payloads, results or credentials. */
  readonly logger?: Logger;
  /** Default: no spans. */
  readonly tracing?: Tracing;
  /** Opens payloads and seals results. Default: none. */
  readonly codec?: PayloadCodec | undefined;
}

export interface Agent extends AsyncDisposable {
  readonly id: AgentId;
  /** Acquires slots of resources for this agent, all or none, in competition with all agents of the swarm. A
   *  resource named twice counts as two slots.
   *  @throws InvalidMessageError naming the field
   *  @throws BackpressureError when the queue of the resource is full
   *  @throws BudgetExceededError when a budget in mode `reject` has too little left for `tokens`
   *  @throws WaggleError `WAGGLE_UNKNOWN_RESOURCE`, `WAGGLE_ABOVE_CAPACITY`, `WAGGLE_ACQUIRE_TIMED_OUT`;
   *    `WAGGLE_UNKNOWN_PROJECT`; `WAGGLE_OVER_BUDGET` when a hard budget is smaller than `tokens`;
   *    `WAGGLE_ACQUIRE_ORDER` inside a `wrap`, and for a `holder` that holds slots
   *  @throws NoLeaderError when no leader answered within `limits.askTimeoutMs`, 30 s; after a first answer,
   *    the wait outlasts the absence of a leader
   *  @throws UnreachableError when the agent has ended; the reason of `options.signal` */
  acquire(resources: string | readonly string[], options?: AcquireOptions): Promise<Slot>;
  /** Runs `work` while holding slots, as `Swarm.wrap` does for the connection. */
  wrap<Result>(work: (slot: Slot) => Result | Promise<Result>, options: WrapOptions): Promise<Result>;
  /** Acquires slots for `releaseHandle`, for frameworks whose callbacks begin and end work in different places.
   *  @throws as `acquire` */
  acquireStart(resources: string | readonly string[], options?: AcquireOptions): Promise<SlotTicket>;
  /** Releases all slots of a handle, also of one acquired elsewhere in this agent's name. Idempotent. Resolves
   *  when the release is journaled, and after at most 5 s; without an answer of a leader, the release continues
   *  in the background.
   *  @param report tokens used under the slots
   *  @param options as of `Slot.release`: whether the provider refused the work
   *  @throws WaggleError `WAGGLE_UNKNOWN_HANDLE`; InvalidMessageError naming the field of the report or the
   *    option */
  releaseHandle(handle: string | SlotTicket, report?: SlotReport, options?: ReleaseOptions): Promise<void>;
  /** Accepts nothing new, finishes its attempts, then leaves. Without a leader, an agent with unreported
   *  results keeps trying and logs the wait; an agent without results ends within about 6 s. */
  drain(): Promise<void>;
  /** Aborts running attempts, which other agents then run, and leaves within about 5 s, with or without a
   *  leader. Started attempts count: a task with `maxAttempts: 1` does not run again. */
  stop(): Promise<void>;
  /** Resolves when the agent has ended. With an error if the agent was neither drained nor stopped:
   *  `WAGGLE_FENCED` when another process joined under its id. `WAGGLE_FORBIDDEN` with the `field` when the grant of
   *  its group permits less than the agent declared. Never rejects. */
  readonly closed: Promise<WaggleError | undefined>;
  /** `ready`: nothing in flight. `busy`: attempts in flight. `offline`: not joined at present. */
  status(): AgentStatus;
  isDraining(): boolean;
  counts(): RunnerCounts;
}

/** Resolves when a leader has accepted the agent, waiting for a leader if necessary.
 *  @throws InvalidConfigError naming the option
 *  @throws UnreachableError when no server is reachable
 *  @throws the reason of `signal` */
export async function startAgent(given: AgentOptions, deps: AgentDeps): Promise<Agent> {
  const options = readAgentOptions(given);
  options.signal?.throwIfAborted();
  const { swarm, clock = systemClock, random = systemRandom } = deps;
  const profile = profileOf(options, random);
  const log = (deps.logger ?? pino({ level: "silent" })).child({ agent: profile.id });
  const wire = await openWire(deps.connection, { id: profile.id, log, signal: options.signal });
  if (options.signal?.aborted) await wire.close?.();
  options.signal?.throwIfAborted();
  const { tracing, codec } = deps;
  const agent = new LinkedAgent(options, profile, { swarm, clock, random, log, wire, tracing, codec });
  await agent.joined;
  return agent;
}

/** An agent's connection. */
interface AgentWire {
  readonly transport: Transport;
  readonly standIn: StandIn | undefined;
  readonly bundler?: Bundler;
  /** Absent: the connection outlives the agent. */
  readonly close?: () => Promise<void>;
}

async function openWire(
  connection: AgentConnection,
  {
    id,
    log,
    signal,
  }: { readonly id: string; readonly log: Logger; readonly signal: AbortSignal | undefined },
): Promise<AgentWire> {
  if (connection.kind === "transport") return { standIn: undefined, ...connection };
  const { server } = connection;
  const transport = await connectNats({
    ...server,
    name: `waggle-agent-${id}`,
    ...(signal === undefined ? {} : { signal }),
    onError: (error) => logServerError(log, error),
  });
  logStatus(transport, { address: server, log });
  return { transport, standIn: new StandIn(server, log), close: () => transport.close() };
}

interface LinkedAgentDeps {
  readonly swarm: SwarmId;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly wire: AgentWire;
  readonly tracing: Tracing | undefined;
  readonly codec: PayloadCodec | undefined;
}

class LinkedAgent implements Agent {
  readonly id: AgentId;
  readonly joined: Promise<void>;
  readonly closed: Promise<WaggleError | undefined>;
  readonly #swarm: SwarmId;
  readonly #runner: Runner;
  readonly #slots: Slots;
  readonly #session: AgentSession;
  readonly #wire: AgentWire;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.#session.send({ type: "stop" });
  #status: AgentStatus = "offline";
  #isDraining = false;
  #hasJoined!: () => void;
  #hasClosed!: (error: WaggleError | undefined) => void;

  constructor(options: AgentOptions, profile: AgentProfile, deps: LinkedAgentDeps) {
    const { swarm, clock, random, log, wire, tracing, codec } = deps;
    this.#wire = wire;
    this.#swarm = swarm;
    this.id = agentId(profile.id);
    this.closed = new Promise((resolve) => {
      this.#hasClosed = resolve;
    });
    this.joined = this.#untilJoined(options.signal);
    this.#slots = new Slots({ agent: profile.id, clock, send: (order) => this.#session.send(order) });
    this.#runner = new Runner({
      reached: { swarm, servers: wire.transport.servers },
      slots: this.#slots,
      handler: options.handler,
      reportsErrorText: options.errorText !== false,
      codec,
      maxConcurrent: profile.maxConcurrent,
      clock,
      log,
      agent: profile.id,
      tracing,
      send: (order) => this.#session.send(order),
    });
    const { id, group = NO_GROUP } = profile;
    const subjects = subjectsOf(swarm);
    const standIn = wire.standIn?.memberFor({
      heartbeat: subjects.agent(group, id, "heartbeat"),
      log: subjects.agentLog(group, id),
    });
    const bundle = wire.bundler?.memberFor({ subjects, group, id });
    this.#session = new AgentSession({
      swarm,
      profile,
      transport: wire.transport,
      clock,
      random,
      log,
      notify: (notice) => this.#obey(notice),
      ...(standIn === undefined ? {} : { standIn }),
      ...(bundle === undefined ? {} : { bundle }),
    });
    this.#session.start();
    this.#signal = options.signal;
    this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  async acquire(resources: string | readonly string[], options?: AcquireOptions): Promise<Slot> {
    const { wanted } = readSlotLease(resources, options);
    if (wanted.holder === undefined) checkWrapOrder(this.#swarm, wanted.resources);
    return await this.#slots.acquire(resources, options);
  }

  async wrap<Result>(work: (slot: Slot) => Result | Promise<Result>, options: WrapOptions): Promise<Result> {
    return await wrapWork(this.#swarm, (...asked) => this.acquire(...asked), work, options);
  }

  async acquireStart(resources: string | readonly string[], options?: AcquireOptions): Promise<SlotTicket> {
    return ticketOf(await this.acquire(resources, options));
  }

  async releaseHandle(
    handle: string | SlotTicket,
    report?: SlotReport,
    options?: ReleaseOptions,
  ): Promise<void> {
    await this.#slots.releaseHandle(handle, report, options);
  }

  async drain(): Promise<void> {
    this.#session.send({ type: "drain" });
    await this.closed;
  }

  async stop(): Promise<void> {
    this.#session.send({ type: "stop" });
    await this.closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain();
  }

  status(): AgentStatus {
    return this.#status;
  }

  isDraining(): boolean {
    return this.#isDraining;
  }

  counts(): RunnerCounts {
    return this.#runner.counts();
  }

  #close(error: WaggleError | undefined): void {
    const { close } = this.#wire;
    if (close === undefined) this.#hasClosed(error);
    else void close().finally(() => this.#hasClosed(error));
  }

  async #untilJoined(signal: AbortSignal | undefined): Promise<void> {
    const joined = new Promise<"joined">((resolve) => {
      this.#hasJoined = () => resolve("joined");
    });
    const first = await Promise.race([joined, this.closed]);
    if (first === "joined") return;
    throw first ?? signal?.reason ?? new UnreachableError("the agent was stopped before it had joined");
  }

  #obey(notice: SessionNotice): void {
    switch (notice.type) {
      case "run":
        return this.#runner.run(notice.attempts);
      case "abort":
        return this.#runner.abort(notice.keys, notice.reason);
      case "joined":
        return this.#hasJoined();
      case "status":
        this.#status = notice.status;
        this.#isDraining = notice.draining;
        return;
      case "slot-granted":
      case "slot-refused":
      case "slot-lost":
      case "slot-released":
        return this.#slots.obey(notice);
      case "closed":
        this.#slots.close();
        this.#status = "offline";
        this.#signal?.removeEventListener("abort", this.#onAbort);
        return this.#close(notice.error === undefined ? undefined : errorOf(notice.error));
      default:
        return unreachable(notice);
    }
  }
}

const { shape } = joinRequestSchema;

const sharedRules = {
  id: agentIdSchema,
  group: groupIdSchema,
  maxConcurrent: shape.maxConcurrent,
  prefetch: shape.prefetch,
  role: shape.role,
  type: shape.type,
  labels: labelsSchema,
  errorText: flag,
  signal: abortSignal,
};

const readOptions = readerOf<AgentOptions>(
  {
    each: { ...sharedRules, kinds: shape.kinds, handler: callback<Handler>() },
    required: ["kinds", "handler"],
    otherwise: { kind: "kinds", concurrency: "maxConcurrent", name: "id" },
    example: '{ kinds: ["count"], handler }',
  },
  InvalidConfigError,
);

/** @throws InvalidConfigError naming the option */
export function readAgentOptions(given: unknown): AgentOptions {
  if (!hasTypedKind(given)) return readOptions("agent", given);
  const { kind, handler, ...rest } = readTypedOptions("agent", given);
  return { ...rest, kinds: [kind.name], handler: handlerOf(kind, handler) };
}

const readTypedOptions = readerOf<TypedAgentOptions<TypedKind>>(
  {
    each: {
      ...sharedRules,
      kind: z.custom<TypedKind>(isTypedKind),
      handler: callback<TypedHandler<TypedKind>>(),
    },
    required: ["kind", "handler"],
    otherwise: { concurrency: "maxConcurrent", name: "id", kinds: "kind" },
    example: "{ kind: count, handler }",
  },
  InvalidConfigError,
);

function hasTypedKind(given: unknown): boolean {
  try {
    return typeof given === "object" && given !== null && "kind" in given && isTypedKind(given.kind);
  } catch {
    return false; // reading the options reports the reason
  }
}

function profileOf(options: AgentOptions, random: Random): AgentProfile {
  const {
    id = defaultId(options.kinds, random),
    maxConcurrent = 1,
    handler: _,
    signal: __,
    errorText: ___,
    ...rest
  } = options;
  return { ...rest, id, maxConcurrent };
}

/** `<host>-<kind>-<8 random>` (`client` without a kind), limited to the characters of an id. With 4 random characters,
 *  two of 500 agents would get the same id in 7 % of starts. */
function defaultId(kinds: readonly string[], random: Random): string {
  const [host = "host"] = hostname().split(".");
  const name = `${host}-${kinds[0] ?? "client"}`.replace(/[^A-Za-z0-9_-]+/g, "-");
  return `${name.slice(0, limits.subjectTokenCharactersMax - 9)}-${random.id(8)}`;
}

function errorOf({
  code,
  message,
  field,
}: {
  readonly code: WaggleErrorCode;
  readonly message: string;
  readonly field?: string;
}): WaggleError {
  switch (code) {
    case "WAGGLE_UNREACHABLE":
      return new UnreachableError(message);
    case "WAGGLE_INVALID_CONFIG":
      return new InvalidConfigError(message);
    case "WAGGLE_INVALID_MESSAGE":
      return new InvalidMessageError(message);
    default:
      return new WaggleError(code, message, field === undefined ? {} : { field });
  }
}
