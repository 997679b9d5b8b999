// The entry of the stand-in's thread (stand-in.ts). Sends the heartbeats of agents that are late with their own, and
// answers a leader's questions for the logs of their attempts. User code cannot block this thread. Holds no state of
// an agent beside the shared heartbeat and copies of logs. Needs neither schemas nor charts, so it starts fast.

import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { assert, unreachable } from "../assert.ts";
import { systemClock } from "../clock.ts";
import { limits } from "../limits.ts";
import { isInbox } from "../protocol/subjects.ts";
import { connectNats } from "../transport/nats.ts";
import type { Message, Subscription, Transport } from "../transport/transport.ts";
import { HeartbeatSlate, sharedMicros } from "./heartbeat-slate.ts";
import { LogStore } from "./log-store.ts";
import type { StandInOrder, StandInServer, StandInSubjects } from "./stand-in.ts";

class KeptAgent {
  readonly #transport: Transport;
  readonly #subjects: StandInSubjects;
  readonly #questions: Subscription;
  readonly #logs = new LogStore();
  #slate: HeartbeatSlate;
  #sentAt = 0n;
  /** When the agent's own newest heartbeat was sent at a refusal: the agent itself must learn of the refusal. */
  #refusedAfter: bigint | undefined;

  constructor(transport: Transport, subjects: StandInSubjects, memory: SharedArrayBuffer) {
    this.#transport = transport;
    this.#subjects = subjects;
    this.#slate = HeartbeatSlate.over(memory);
    this.#questions = transport.subscribe(subjects.log, (question) => this.#onQuestion(question));
  }

  replaceMemory(memory: SharedArrayBuffer): void {
    this.#slate = HeartbeatSlate.over(memory);
  }

  end(): void {
    this.#questions.unsubscribe();
  }

  log(order: StandInOrder & { type: "log" }): void {
    if (this.#logs.attempt(order.key) === undefined) this.#logs.begin(order.key, order.of);
    this.#logs.append(order.key, order.text, order.droppedBytes);
  }

  logEnded(key: string): void {
    this.#logs.end(key);
  }

  /** Sends a heartbeat if one is due. @returns the time until the next could be due, µs */
  look(): bigint {
    const { sentAt, period } = this.#slate.pace();
    if (period === 0n) return restMicros;
    const lateAt = sentAt + BigInt(Math.ceil(Number(period) * limits.heartbeatLateRatio));
    const ownNext = this.#sentAt + period;
    const dueAt = lateAt > ownNext ? lateAt : ownNext;
    const now = sharedMicros();
    if (dueAt > now) return dueAt - now;
    if (this.#refusedAfter !== sentAt) void this.#send(sentAt);
    this.#sentAt = now;
    return period;
  }

  async #send(ownSentAt: bigint): Promise<void> {
    const heartbeat = this.#slate.read();
    if (heartbeat === undefined) return;
    const slate = this.#slate;
    const sentAt = sharedMicros();
    const { bytes, version, term } = heartbeat;
    const outcome = await this.#transport.request(this.#subjects.heartbeat, bytes, {
      timeoutMs: limits.requestTimeoutMs,
    });
    if (outcome.kind !== "answered") return;
    const answer: unknown = parsed(outcome.data);
    if (isRenewal(answer) && answer.term >= term) slate.confirm(version, sentAt);
    else if (isFinalRefusal(answer)) this.#refusedAfter = ownSentAt;
  }

  /** An agent that is not blocked answers before. The leader takes the first answer. */
  #onQuestion({ data, reply }: Message): void {
    if (reply === undefined || !isInbox(reply)) return;
    const question: unknown = parsed(data);
    if (!isLogQuestion(question)) return;
    systemClock.after(limits.standInLogMs, () => {
      const logs = this.#logs.read(question, this.#transport.maxPayloadBytes / 2);
      if (logs.length > 0) this.#transport.publish(reply, new TextEncoder().encode(JSON.stringify({ logs })));
    });
  }
}

function parsed(data: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(data));
  } catch {
    return undefined; // not a message of the protocol: the agent itself reads and logs such answers
  }
}

function isRenewal(answer: unknown): answer is { readonly term: number } {
  return isObject(answer) && answer["renewed"] === true && Number.isInteger(answer["term"]);
}

function isFinalRefusal(answer: unknown): boolean {
  return (
    isObject(answer) && (answer["code"] === "WAGGLE_FENCED" || answer["code"] === "WAGGLE_UNKNOWN_AGENT")
  );
}

function isLogQuestion(question: unknown): question is Parameters<LogStore["read"]>[0] {
  if (!isObject(question)) return false;
  const { project, task, attempt } = question;
  return (
    typeof project === "string" &&
    typeof task === "string" &&
    (attempt === undefined || Number.isInteger(attempt))
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** Agents are looked at so often while none has a heartbeat to send. */
const restMicros = BigInt(limits.heartbeatMs * 1_000);

async function main(port: MessagePort, server: StandInServer): Promise<void> {
  const early: StandInOrder[] = [];
  const keepEarly = (order: StandInOrder) => void early.push(order);
  port.on("message", keepEarly);
  const transport = await connected(server, () => early.some(({ type }) => type === "close"));
  if (transport === undefined) return port.close();
  const agentById = new Map<number, KeptAgent>();
  let cancelLook: () => void = () => undefined;
  const look = () => {
    let nextMicros = restMicros;
    for (const agent of agentById.values()) {
      const micros = agent.look();
      if (micros < nextMicros) nextMicros = micros;
    }
    cancelLook = systemClock.after(Math.ceil(Number(nextMicros) / 1_000), look);
  };
  const obey = (order: StandInOrder) => {
    switch (order.type) {
      case "agent": {
        const known = agentById.get(order.id);
        if (known !== undefined) return known.replaceMemory(order.memory);
        agentById.set(order.id, new KeptAgent(transport, order.subjects, order.memory));
        cancelLook();
        return look();
      }
      case "log":
        return agentById.get(order.id)?.log(order);
      case "log-ended":
        return agentById.get(order.id)?.logEnded(order.key);
      case "gone":
        agentById.get(order.id)?.end();
        return void agentById.delete(order.id);
      case "close":
        cancelLook();
        port.close();
        return void transport.close();
      default:
        return unreachable(order);
    }
  };
  port.off("message", keepEarly);
  port.on("message", obey);
  for (const order of early) obey(order);
}

/** The agents' own connection has just reached the server, so a failure passes. */
async function connected(server: StandInServer, isOver: () => boolean): Promise<Transport | undefined> {
  while (!isOver()) {
    try {
      return await connectNats({ ...server, name: "waggle-agents" });
    } catch {
      // repeated after a pause: the agents' own connection reports the reason
      await new Promise<void>((resolve) => void systemClock.after(limits.agentRetryMsMax, resolve));
    }
  }
  return undefined;
}

assert(parentPort !== null, "this file is the entry of a thread");
await main(parentPort, workerData);
