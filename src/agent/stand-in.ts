// Keeps agents in the swarm while their own thread is blocked by user code. When an agent is late with its
// heartbeat, a thread with its own connection (thread.ts) sends the newest heartbeat of the agent
// (heartbeat-slate.ts). So leases and membership last as long as the process lives. An attempt costs no message
// between the threads. All agents of a connection share one stand-in. Its thread starts with the first agent that
// joins and ends with the last agent.
//
// Node 20 loads no TypeScript in a thread, so the compiled entry runs, found by the package's own name.

import { Buffer } from "node:buffer";
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { messageOf } from "../errors.ts";
import { limits } from "../limits.ts";
import type { NatsOptions } from "../transport/nats.ts";
import { HeartbeatSlate } from "./heartbeat-slate.ts";
import type { AttemptKey, SessionLog, WrittenText } from "./link.ts";
import type { LoggedAttempt } from "./log-store.ts";

/** Connection of the thread. Plain values, because they are copied. */
export type StandInServer = Omit<NatsOptions, "signal" | "onError" | "name">;

/** Subjects of an agent. */
export interface StandInSubjects {
  readonly heartbeat: string;
  /** Leaders ask for the logs of attempts there. */
  readonly log: string;
}

/** To the thread. `id` names the agent. */
export type StandInOrder =
  | {
      readonly type: "agent";
      readonly id: number;
      readonly subjects: StandInSubjects;
      readonly memory: SharedArrayBuffer;
    }
  | ({ readonly type: "log"; readonly id: number; readonly of: LoggedAttempt } & WrittenText)
  | { readonly type: "log-ended"; readonly id: number; readonly key: AttemptKey }
  | { readonly type: "gone"; readonly id: number }
  | { readonly type: "close" };

export class StandIn {
  readonly #server: StandInServer;
  readonly #log: SessionLog;
  readonly #joined = new Set<number>();
  #thread: Worker | undefined;
  #agents = 0;

  constructor(server: StandInServer, log: SessionLog) {
    this.#server = server;
    this.#log = log;
  }

  /** One agent's side of the stand-in. */
  memberFor(subjects: StandInSubjects): StandInMember {
    this.#agents += 1;
    return new StandInMember(this.#agents, subjects, {
      send: (order) => this.#send(order),
      end: (id) => this.#end(id),
    });
  }

  #send(order: Exclude<StandInOrder, { type: "gone" | "close" }>): void {
    this.#joined.add(order.id);
    this.#thread ??= this.#start();
    this.#thread.postMessage(order);
  }

  #end(id: number): void {
    if (!this.#joined.delete(id)) return;
    const isLast = this.#joined.size === 0;
    this.#thread?.postMessage(isLast ? { type: "close" } : { type: "gone", id });
    if (isLast) this.#thread = undefined;
  }

  #start(): Worker {
    const thread = new Worker(createRequire(import.meta.url).resolve("waggledance/agent-thread"), {
      workerData: this.#server,
      name: "waggle-agents",
      execArgv: [],
    });
    thread.unref();
    thread.once("error", (error) =>
      this.#log.error(
        { why: messageOf(error) },
        "the thread that renews leases has ended: a blocking handler now loses its leases",
      ),
    );
    return thread;
  }
}

interface StandInThread {
  readonly send: (order: Exclude<StandInOrder, { type: "gone" | "close" }>) => void;
  readonly end: (id: number) => void;
}

/** One agent of the stand-in, as the agent uses it. */
export class StandInMember {
  readonly #id: number;
  readonly #subjects: StandInSubjects;
  readonly #thread: StandInThread;
  #slate: HeartbeatSlate | undefined;
  #version = 0;

  constructor(id: number, subjects: StandInSubjects, thread: StandInThread) {
    this.#id = id;
    this.#subjects = subjects;
    this.#thread = thread;
  }

  /** The heartbeat to send from now on when this thread is late. @param term highest term that the agent knows */
  write(heartbeat: string, term: number): void {
    this.#version = this.#slateFor(Buffer.byteLength(heartbeat)).write(heartbeat, term);
  }

  /** The agent sent a message that the leader counts as a sign of life. @param periodMs until the next */
  noteSent(periodMs: number): void {
    this.#slate?.noteSent(periodMs);
  }

  /** Nothing is sent until the next `write`: no leader has accepted the agent. */
  rest(): void {
    this.#slate?.write("", 0);
  }

  /** Age of the newest heartbeat that the stand-in sent for the last `write` and a leader confirmed, ms. */
  confirmedAgeMs(): number | undefined {
    return this.#slate?.confirmedAgeMs(this.#version);
  }

  log(of: LoggedAttempt, written: WrittenText): void {
    this.#thread.send({ type: "log", id: this.#id, of, ...written });
  }

  logEnded(key: AttemptKey): void {
    this.#thread.send({ type: "log-ended", id: this.#id, key });
  }

  end(): void {
    this.#slate = undefined;
    this.#thread.end(this.#id);
  }

  #slateFor(bytes: number): HeartbeatSlate {
    const before = this.#slate;
    if (before !== undefined && before.capacityBytes >= bytes) return before;
    this.#slate = HeartbeatSlate.ofSize(Math.max(limits.slateBytes, 2 * bytes));
    const { memory } = this.#slate;
    if (before !== undefined) {
      const { period } = before.pace();
      this.#slate.noteSent(Number(period) / 1_000);
    }
    this.#thread.send({ type: "agent", id: this.#id, subjects: this.#subjects, memory });
    return this.#slate;
  }
}
