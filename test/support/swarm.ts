// A swarm in one process for tests: the production coordinator over the memory transport and a memory journal. Test
// nodes speak the wire message by message.

import { type Logger, pino } from "pino";
import type { JournalVerifier } from "../../src/audit/verifying/audit-check.ts";
import { type Clock, type Random, systemClock, systemRandom } from "../../src/clock.ts";
import { baseMakerHere } from "../../src/coordinator/compacting/make-next-segment.ts";
import {
  type Coordinator,
  type ProbedCoordinator,
  type Role,
  startProbedCoordinator,
} from "../../src/coordinator/coordinator.ts";
import type { CompactionOptions } from "../../src/coordinator/leader/leader.ts";
import { type SwarmId, swarmId } from "../../src/ids.ts";
import type { Journal } from "../../src/journal/journal.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import type { CoordinatorMetrics } from "../../src/metrics/coordinator-metrics.ts";
import type { ProcessFigures } from "../../src/process-watch.ts";
import { encode } from "../../src/protocol/codec.ts";
import type { AgentPush, Assignment } from "../../src/protocol/schemas.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import type { Transport } from "../../src/transport/transport.ts";
import type { ManualClock } from "./manual-clock.ts";
import { WatchedJournal } from "./watched-journal.ts";

export const subjects = subjectsOf(swarmId("test"));

export interface TestSwarm {
  readonly hub: MemoryHub;
  readonly store: MemoryJournalStore;
  readonly coordinator: ProbedCoordinator;
  readonly client: WireNode;
  /** The journal as every reader sees it; a broken invariant fails the test in `stop`. */
  readonly watched: WatchedJournal;
  /** Transport of each coordinator, by its id: to cut and heal. */
  readonly transportById: ReadonlyMap<string, Transport>;
  agent(id: string, options?: Partial<JoinOptions>): Promise<WireAgent>;
  /** Submits tasks of the test agent's kind, in one message of the client. */
  submit(...ids: readonly string[]): ReturnType<WireNode["submit"]>;
  /** A further coordinator on the same journal. */
  startAnother(
    id: string,
    journal?: Journal,
    more?: {
      readonly leaderTimeoutMs?: number;
      readonly clock?: Clock;
      readonly metrics?: CoordinatorMetrics;
      readonly logger?: Logger;
    },
  ): Promise<ProbedCoordinator>;
  stop(): Promise<void>;
}

export interface TestSwarmOptions {
  /** Default `test`, the swarm of the subjects below. */
  readonly swarm?: SwarmId;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly store?: MemoryJournalStore;
  readonly hub?: MemoryHub;
  readonly journal?: Journal;
  readonly logger?: Logger;
  /** For every coordinator. Default 0: a turn runs although a test's clock stands still. */
  readonly turnSpacingMs?: number;
  /** For the first coordinator. */
  readonly leaderTimeoutMs?: number;
  /** For the first coordinator. */
  readonly metrics?: CoordinatorMetrics;
  /** For the first coordinator. Default: nobody watches the process. */
  readonly processFigures?: () => ProcessFigures;
  /** For every coordinator. Default: segments are never changed as planned. */
  readonly compaction?: Omit<CompactionOptions, "maker">;
  /** For every coordinator. Default: tokens follow from the journal. */
  readonly tokenKey?: Uint8Array;
  /** For every coordinator. Default: the journal is not verified in the background. */
  readonly verifier?: JournalVerifier;
}

/** A held attempt; `project` is the default project unless named. */
interface HeldName {
  readonly project?: string;
  readonly task: string;
  readonly attempt: number;
}

function named(held: readonly HeldName[]): object[] {
  return held.map((each) => ({ project: "default", ...each }));
}

interface JoinOptions {
  /** Default `_`: none. */
  readonly group: string;
  readonly incarnation: string;
  readonly kinds: readonly string[];
  readonly maxConcurrent: number;
  readonly role: string;
  readonly type: string;
  readonly prefetch: number;
  readonly held: readonly HeldName[];
  readonly seen: number;
}

export const silentLogger = pino({ level: "silent" });

/** Every wait is as short as the jitter allows. */
export const noJitter: Random = { ...systemRandom, next: () => 0 };

const roleByCoordinator = new WeakMap<Coordinator, Role>();

/** Current or final role of a coordinator of a test swarm. */
export function roleOf(coordinator: Coordinator): Role {
  const role = roleByCoordinator.get(coordinator);
  if (role === undefined) throw new Error("no test swarm started this coordinator");
  return role;
}

/** Stops a swarm or a coordinator. Lets time pass for a coordinator unable to write the last record. */
export async function stopped(running: { stop(): Promise<void> }, clock: ManualClock): Promise<void> {
  const ended = running.stop();
  await clock.advance(limits.handOverMs);
  await ended;
}

/** Starts a coordinator. Waits until it leads and its first batch is committed. */
export async function startTestSwarm(options: TestSwarmOptions = {}): Promise<TestSwarm> {
  const swarmClock = options.clock ?? systemClock;
  const hub = options.hub ?? new MemoryHub({ clock: swarmClock });
  const store = options.store ?? new MemoryJournalStore({ clock: swarmClock });
  const watched = new WatchedJournal(store);
  const running: ProbedCoordinator[] = [];
  const transportById = new Map<string, Transport>();
  const startAnother: TestSwarm["startAnother"] = async (
    id,
    journal = new MemoryJournal(store),
    more = {},
  ) => {
    const random = options.random ?? systemRandom;
    const transport = hub.connect();
    transportById.set(id, transport);
    const logger = options.logger ?? silentLogger;
    const deps = {
      id,
      swarm: options.swarm ?? swarmId("test"),
      transport,
      journal,
      clock: swarmClock,
      random,
      logger,
      turnSpacingMs: options.turnSpacingMs ?? 0,
      ...more,
    };
    const maker = baseMakerHere({ journal, clock: swarmClock });
    const compaction =
      options.compaction === undefined ? {} : { compaction: { ...options.compaction, maker } };
    const verifying = options.verifier === undefined ? {} : { verifier: options.verifier };
    const sealing = options.tokenKey === undefined ? {} : { tokenKey: options.tokenKey };
    const coordinator = await startProbedCoordinator({ ...deps, ...compaction, ...verifying, ...sealing });
    coordinator.role$.subscribe((role) => roleByCoordinator.set(coordinator, role));
    running.push(coordinator);
    return coordinator;
  };
  const { leaderTimeoutMs, metrics, processFigures } = options;
  const ofFirst = {
    ...(leaderTimeoutMs === undefined ? {} : { leaderTimeoutMs }),
    ...(metrics === undefined ? {} : { metrics }),
    ...(processFigures === undefined ? {} : { processFigures }),
  };
  const coordinator = await startAnother("c1", options.journal ?? new MemoryJournal(store), ofFirst);
  const term = await coordinator.whenLeading();
  while (coordinator.probe.settledState?.term !== term) await new Promise((resolve) => setImmediate(resolve));
  const client = new WireNode(hub.connect());
  return {
    hub,
    store,
    coordinator,
    client,
    watched,
    transportById,
    startAnother,
    agent: async (id, join = {}) => {
      const agent = new WireAgent(hub.connect(), id, join);
      await agent.join();
      return agent;
    },
    submit: (...ids) => client.submit(ids.map((id) => ({ id, kind: "count" }))),
    stop: async () => {
      await Promise.all(running.map((each) => each.stop()));
      watched.settled();
    },
  };
}

/** Any node with a connection: JSON requests, and a log of the messages of a subject. */
export class WireNode {
  readonly transport: Transport;

  constructor(transport: Transport) {
    this.transport = transport;
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the answer holds
  async ask(subject: string, message: unknown): Promise<any> {
    const bytes = message instanceof Uint8Array ? message : encode(message);
    const outcome = await this.transport.request(subject, bytes, { timeoutMs: 5_000 });
    if (outcome.kind !== "answered") throw new Error(`${subject}: ${outcome.kind}`);
    return JSON.parse(Buffer.from(outcome.data).toString());
  }

  submit(tasks: readonly object[], more: object = {}, project = "default") {
    return this.ask(subjects.project(project, "submit"), { tasks, ...more });
  }

  status() {
    return this.ask(subjects.query("_", "status"), {});
  }

  explain(task: string) {
    return this.ask(subjects.query("_", "explain"), { task });
  }

  task(task: string) {
    return this.ask(subjects.query("_", "task"), { task });
  }

  /** All messages of a subject, and a way to wait for the next. */
  listen<Message>(subject: string): Listening<Message> {
    const listening = new Listening<Message>();
    this.transport.subscribe(subject, (message) =>
      listening.push(JSON.parse(Buffer.from(message.data).toString())),
    );
    return listening;
  }
}

export class Listening<Message> {
  readonly all: Message[] = [];
  /** Called with each message at its arrival. */
  onPush: ((message: Message) => void) | undefined;
  #taken = 0;
  #wake: (() => void) | undefined;

  push(message: Message): void {
    this.all.push(message);
    this.onPush?.(message);
    this.#wake?.();
  }

  /** The next message not yet taken; waits for a message. */
  async next(): Promise<Message> {
    while (this.all.length <= this.#taken) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#taken += 1;
    return this.all[this.#taken - 1] as Message;
  }
}

/** An agent under full control of a test. */
export class WireAgent extends WireNode {
  readonly id: string;
  readonly group: string;
  readonly joinMessage: Omit<JoinOptions, "group">;
  readonly pushes: Listening<AgentPush>;
  readonly #assigned: Assignment[] = [];

  constructor(transport: Transport, id: string, { group = "_", ...options }: Partial<JoinOptions>) {
    super(transport);
    this.id = id;
    this.group = group;
    const joinMessage = { incarnation: `${id}-1`, kinds: ["count"], maxConcurrent: 4, ...options };
    this.joinMessage = joinMessage as JoinOptions;
    this.pushes = this.listen<AgentPush>(subjects.assign(group, id));
  }

  /** Joins after the newest session of the id. */
  async join() {
    const { held, ...rest } = this.joinMessage;
    const join = { ...rest, ...(held === undefined ? {} : { held: named(held) }) };
    const subject = subjects.agent(this.group, this.id, "join");
    const answer = await this.ask(subject, join);
    return answer.newest === undefined ? answer : await this.ask(subject, { ...join, after: answer.newest });
  }

  /** Waits for the next assignment. */
  async assignment(): Promise<Assignment> {
    while (this.#assigned.length === 0) {
      const push = await this.pushes.next();
      if (push.type === "assign") this.#assigned.push(...push.assignments);
    }
    return this.#assigned.shift() as Assignment;
  }

  /** The next push of a type, passing over others. */
  async push<Type extends AgentPush["type"]>(type: Type): Promise<Extract<AgentPush, { type: Type }>> {
    for (;;) {
      const push = await this.pushes.next();
      if (push.type === type) return push as Extract<AgentPush, { type: Type }>;
    }
  }

  report({ project, task, attempt, token }: Assignment, outcome: string, more: object = {}) {
    const results = [{ project, task, attempt, token, outcome, ...more }];
    return this.ask(subjects.agent(this.group, this.id, "result"), {
      incarnation: this.joinMessage.incarnation,
      results,
    });
  }

  complete(assignment: Assignment, result = "done") {
    return this.report(assignment, "completed", { result });
  }

  heartbeat(held: readonly HeldName[], seen: number, more: object = {}) {
    const heartbeat = {
      incarnation: this.joinMessage.incarnation,
      status: "busy",
      inFlight: held.length,
      held: named(held),
      seen,
      ...more,
    };
    return this.ask(subjects.agent(this.group, this.id, "heartbeat"), heartbeat);
  }
}
