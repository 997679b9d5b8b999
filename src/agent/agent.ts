// An agent as a program has it: a handler, run for what the swarm assigns, until it is drained or stopped.
// It puts together the runner, which calls the handler here, and the session, which talks to the leader: in a
// thread of its own over a connection of its own, or in this thread over a transport that is given.

import { hostname } from "node:os";
import { type Logger, pino } from "pino";
import { z } from "zod";
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
import { type AgentId, agentId, type SwarmId } from "../ids.ts";
import { limits } from "../limits.ts";
import { agentIdSchema, groupIdSchema, joinRequestSchema, labelsSchema } from "../protocol/schemas.ts";
import type { Transport } from "../transport/transport.ts";
import type { Handler } from "./handler.ts";
import type { AgentProfile, SessionLink, SessionNotice } from "./link.ts";
import { abortSignal, callback, readerOf } from "./options.ts";
import { Runner, type RunnerCounts } from "./runner.ts";
import { AgentSession } from "./session.ts";
import { type AcquireOptions, type Slot, Slots } from "./slots.ts";
import { linkThread, logLevels, type ThreadStart } from "./thread-link.ts";
import { handlerOf, type TypedHandler } from "./typed-handler.ts";
import { isTypedKind, type TypedKind } from "./typed-kind.ts";

export interface AgentOptions {
  /** 1–64 characters of `[A-Za-z0-9_-]`, used by one process at a time: a later one with the same id fences
   *  the earlier. Default: `<host>-<kind>-<4 random>`, forgotten a day after it left; a minute
   *  after, if it only ever acquired slots. */
  readonly id?: string;
  /** What it can do, at most 256; none for an agent that only acquires slots. */
  readonly kinds: readonly string[];
  readonly handler: Handler;
  /** Handlers that run at once, 1 to `limits.maxConcurrentMax`. Default 1. */
  readonly maxConcurrent?: number;
  /** Attempts it takes beyond that, so that the next is at hand when one ends. Default 0. */
  readonly prefetch?: number;
  /** Tasks that ask for a role go only to agents that have it. */
  readonly role?: string;
  /** What it is, for people and rate limits: `claude-sonnet`, `gpu-a100`. */
  readonly type?: string;
  /** Agents that share a credential: 1–64 characters of `[A-Za-z0-9_-]`. Its messages travel on `agent.<group>.<id>.…`,
   *  so that a server can permit them to that credential alone. Default: the connection's, else none. */
  readonly group?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Stops the agent, as `stop()` does. */
  readonly signal?: AbortSignal;
}

/** Options of an agent that serves one kind, made by `defineKind`. */
export interface TypedAgentOptions<Kind extends TypedKind> extends Omit<AgentOptions, "kinds" | "handler"> {
  readonly kind: Kind;
  readonly handler: TypedHandler<Kind>;
}

/** Where the swarm is. A server: the session runs in a thread of its own, over a connection of its own, so that
 *  a handler that blocks costs no lease. A transport: it runs in this thread and leaves the transport open. */
export type AgentConnection =
  | { readonly kind: "server"; readonly server: Omit<ThreadStart["server"], "name"> }
  | { readonly kind: "transport"; readonly transport: Transport };

export interface AgentDeps {
  readonly swarm: SwarmId;
  readonly connection: AgentConnection;
  /** Of this thread; one with a connection of its own uses the system's. */
  readonly clock?: Clock;
  readonly random?: Random;
  /** Default: silent. Never told payloads, results or credentials. */
  readonly logger?: Logger;
}

export interface Agent extends AsyncDisposable {
  readonly id: AgentId;
  /** Acquires slots of resources for this agent, all of them or none: contends with every other agent of the swarm.
   *  A resource mentioned twice is two slots.
   *  @throws InvalidMessageError naming the field
   *  @throws BackpressureError when as many wait for the resource as may
   *  @throws WaggleError `WAGGLE_UNKNOWN_RESOURCE`, `WAGGLE_ABOVE_CAPACITY`, `WAGGLE_ACQUIRE_ORDER`,
   *    `WAGGLE_ACQUIRE_TIMED_OUT`
   *  @throws NoLeaderError when no leader answered for `limits.askTimeoutMs`, 30 s; a wait that one has answered
   *    outlasts its absence
   *  @throws UnreachableError when the agent has ended; the reason of `options.signal` */
  acquire(resources: string | readonly string[], options?: AcquireOptions): Promise<Slot>;
  /** Releases by handle what was acquired, here or elsewhere in this agent's name. Idempotent. Resolves when that is
   *  on the record; where no leader hears of it within 5 s it resolves all the same, and goes on in the background.
   *  @throws WaggleError `WAGGLE_UNKNOWN_HANDLE` */
  releaseHandle(handle: string): Promise<void>;
  /** Takes nothing new, finishes what it has, leaves. With no leader there it goes on trying while there are
   *  results to hand over, and says so in the log; with none it ends within about six seconds. */
  drain(): Promise<void>;
  /** Aborts what runs, has it run elsewhere, leaves. Within about five seconds, leader or not. What had begun counts
   *  as an attempt: a task with `maxAttempts: 1` does not run again. */
  stop(): Promise<void>;
  /** Resolves when the agent has ended, with the error when nobody asked it to: `WAGGLE_FENCED` when another
   *  process joined under its id. Never rejects. */
  readonly closed: Promise<WaggleError | undefined>;
  /** `ready` has nothing in flight, `busy` has something, `offline` is not joined at the moment. */
  status(): AgentStatus;
  isDraining(): boolean;
  counts(): RunnerCounts;
}

/** Resolves when a leader has accepted the agent; waits for one if there is none.
 *  @throws InvalidConfigError naming the option
 *  @throws UnreachableError when there is no server
 *  @throws the reason of `signal` */
export async function startAgent(given: AgentOptions, deps: AgentDeps): Promise<Agent> {
  const options = readAgentOptions(given);
  options.signal?.throwIfAborted();
  const profile = profileOf(options, deps.random ?? systemRandom);
  const agent = new LinkedAgent(options, profile, deps);
  await agent.joined;
  return agent;
}

class LinkedAgent implements Agent {
  readonly id: AgentId;
  readonly joined: Promise<void>;
  readonly closed: Promise<WaggleError | undefined>;
  readonly #runner: Runner;
  readonly #slots: Slots;
  readonly #link: SessionLink;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = () => this.#link.tell({ type: "stop" });
  #status: AgentStatus = "offline";
  #isDraining = false;
  #hasJoined!: () => void;
  #hasClosed!: (error: WaggleError | undefined) => void;

  constructor(options: AgentOptions, profile: AgentProfile, deps: AgentDeps) {
    const { clock = systemClock, random = systemRandom, logger = pino({ level: "silent" }) } = deps;
    const log = logger.child({ agent: profile.id });
    this.id = agentId(profile.id);
    this.closed = new Promise((resolve) => {
      this.#hasClosed = resolve;
    });
    this.joined = this.#untilJoined(options.signal);
    this.#slots = new Slots({ clock, tell: (order) => this.#link.tell(order) });
    this.#runner = new Runner({
      slots: this.#slots,
      handler: options.handler,
      maxConcurrent: profile.maxConcurrent,
      clock,
      log,
      tell: (order) => this.#link.tell(order),
    });
    this.#link = linkSession(profile, { ...deps, clock, random, logger: log }, (notice) =>
      this.#obey(notice),
    );
    this.#signal = options.signal;
    this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  async acquire(resources: string | readonly string[], options?: AcquireOptions): Promise<Slot> {
    return await this.#slots.acquire(resources, options);
  }

  async releaseHandle(handle: string): Promise<void> {
    await this.#slots.releaseHandle(handle);
  }

  async drain(): Promise<void> {
    this.#link.tell({ type: "drain" });
    await this.closed;
  }

  async stop(): Promise<void> {
    this.#link.tell({ type: "stop" });
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
        // A session that ended as it should has said so before; one whose thread died has not.
        this.#runner.abortAll("stopping");
        this.#status = "offline";
        this.#signal?.removeEventListener("abort", this.#onAbort);
        return this.#hasClosed(notice.error === undefined ? undefined : errorOf(notice.error));
      default:
        return unreachable(notice);
    }
  }
}

function linkSession(
  profile: AgentProfile,
  deps: Required<AgentDeps>,
  notify: (notice: SessionNotice) => void,
): SessionLink {
  const { connection, swarm, clock, random, logger: log } = deps;
  if (connection.kind === "server") {
    const server = { ...connection.server, name: `waggle-agent-${profile.id}` };
    const logLevel = logLevels.find((level) => log.isLevelEnabled(level)) ?? "silent";
    return linkThread({ server, swarm, profile, logLevel }, { log, notify });
  }
  const session = new AgentSession({
    swarm,
    profile,
    transport: connection.transport,
    clock,
    random,
    log,
    notify,
  });
  session.start();
  return session;
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
    return false; // refused when it is read, with the reason
  }
}

function profileOf(options: AgentOptions, random: Random): AgentProfile {
  const {
    id = defaultId(options.kinds, random),
    maxConcurrent = 1,
    handler: _,
    signal: __,
    ...rest
  } = options;
  return { ...rest, id, maxConcurrent };
}

/** `<host>-<kind>-<4 random>` (`client` where there is no kind), of the characters an id may have. */
function defaultId(kinds: readonly string[], random: Random): string {
  const [host = "host"] = hostname().split(".");
  const name = `${host}-${kinds[0] ?? "client"}`.replace(/[^A-Za-z0-9_-]+/g, "-");
  return `${name.slice(0, limits.subjectTokenCharactersMax - 5)}-${random.id(4)}`;
}

function errorOf({
  code,
  message,
}: {
  readonly code: WaggleErrorCode;
  readonly message: string;
}): WaggleError {
  switch (code) {
    case "WAGGLE_UNREACHABLE":
      return new UnreachableError(message);
    case "WAGGLE_INVALID_CONFIG":
      return new InvalidConfigError(message);
    case "WAGGLE_INVALID_MESSAGE":
      return new InvalidMessageError(message);
    default:
      return new WaggleError(code, message);
  }
}
