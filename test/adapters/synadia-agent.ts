// A foreign agent for tests, registered with the published client of the NATS service API. The first word of a prompt
// says how the agent behaves, well or badly.

import { type Service, Svcm } from "@nats-io/services";
import { createInbox, headers, type NatsConnection } from "@nats-io/transport-node";

export interface AgentDescription {
  readonly agent: string;
  readonly owner: string;
  readonly session?: string;
  readonly version?: string;
  readonly subject?: string;
  readonly prompt?: Readonly<Record<string, string>>;
  readonly metadata?: Readonly<Record<string, string>>;
  /** Default 200 ms. */
  readonly heartbeatMs?: number;
}

/** A message of the published client. */
interface Asked {
  readonly data: Uint8Array;
  readonly reply?: string;
}

const encoder = new TextEncoder();

export class ForeignAgent {
  /** Prompts as they came. */
  readonly prompts: string[] = [];
  /** Most prompts that were in work at once. */
  peak = 0;
  /** Opens the gate of the prompt `wait NAME`. */
  readonly gates = new Map<string, () => void>();
  readonly #nats: NatsConnection;
  readonly #service: Service;
  readonly #description: AgentDescription;
  #working = 0;
  #heartbeatTimer: NodeJS.Timeout | undefined;
  #isOver = false;

  private constructor(nats: NatsConnection, service: Service, description: AgentDescription) {
    this.#nats = nats;
    this.#service = service;
    this.#description = description;
  }

  static async start(nats: NatsConnection, description: AgentDescription): Promise<ForeignAgent> {
    const { agent, owner, session = "main", version = "0.3" } = description;
    const service = await new Svcm(nats as unknown as ConstructorParameters<typeof Svcm>[0]).add({
      name: "agents",
      version: "1.4.0",
      description: `${agent} of ${owner}`,
      metadata: { agent, owner, session, protocol_version: version, ...description.metadata },
    });
    const started = new ForeignAgent(nats, service, description);
    service.addEndpoint("prompt", {
      subject: description.subject ?? `agents.prompt.${agent}.${owner}.${session}`,
      queue: "agents",
      metadata: { max_payload: "64KB", attachments_ok: "true", ...description.prompt },
      handler: (error, message) => {
        if (error === null) void started.#take({ data: message.data, reply: message.reply ?? "" });
      },
    });
    started.heartbeat();
    return started;
  }

  get id(): string {
    return this.#service.info().id;
  }

  heartbeat(): void {
    const { agent, owner, session = "main", heartbeatMs = 200 } = this.#description;
    const send = () =>
      this.#nats.publish(
        `agents.hb.${agent}.${owner}.${session}`,
        JSON.stringify({
          ...{ agent, owner, session, instance_id: this.id, ts: new Date().toISOString() },
          interval_s: heartbeatMs / 1_000,
        }),
      );
    send();
    this.#heartbeatTimer = setInterval(send, heartbeatMs);
  }

  /** The process goes on without heartbeats. */
  hush(): void {
    clearInterval(this.#heartbeatTimer);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    this.hush();
    for (const open of this.gates.values()) open();
    await this.#service.stop();
  }

  async #take({ data, reply = "" }: Asked): Promise<void> {
    const text = new TextDecoder().decode(data);
    const prompt: string = text.trimStart().startsWith("{") ? JSON.parse(text).prompt : text;
    this.prompts.push(text);
    this.#working += 1;
    this.peak = Math.max(this.peak, this.#working);
    const answer = new Reply(this.#nats, reply);
    try {
      await this.#behave(prompt, answer);
    } finally {
      this.#working -= 1;
    }
  }

  async #behave(prompt: string, answer: Reply): Promise<void> {
    const [word = "", ...rest] = prompt.split(" ");
    if (word === "silent") return;
    if (word === "unacknowledged") return answer.end();
    if (/^\d{3}$/.test(word)) return answer.refuse(word, rest[0]);
    answer.send("status", "ack");
    switch (word) {
      case "silent":
        return;
      case "junk":
        answer.raw("this is no chunk");
        answer.send("response", "and yet an answer");
        break;
      case "late":
        answer.send("response", "a part");
        return answer.refuse(rest[0] ?? "500", rest[1]);
      case "parts":
        answer.send("status", "thinking");
        answer.send("response", "one ");
        answer.send("noise", { of: "a later version" });
        answer.send("response", { text: "two ", cost: 3 });
        answer.send("response", "three");
        break;
      case "files":
        answer.send("response", {
          text: "see",
          attachments: [{ filename: "a.txt", content: Buffer.from("file").toString("base64") }],
        });
        break;
      case "twice":
        answer.send("status", "ack");
        answer.send("response", "once");
        answer.end();
        answer.send("response", "and again");
        break;
      case "huge":
        for (let nth = 0; nth < 10; nth += 1) answer.send("response", "x".repeat(60_000));
        break;
      case "endless":
        while (!this.#isOver) {
          answer.send("response", "on ");
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        return;
      case "wait":
        await new Promise<void>((resolve) => this.gates.set(rest.join(" "), resolve));
        answer.send("response", `waited for ${rest.join(" ")}`);
        break;
      case "ask":
        answer.send("response", `was told ${await answer.ask(rest.join(" "))}`);
        break;
      case "trap":
        answer.send("query", { id: "q", reply_subject: "waggle.v1.default.journal.1", prompt: "Now?" });
        break;
      default:
        answer.send("response", prompt);
    }
    answer.end();
  }
}

/** The messages to one caller. */
class Reply {
  readonly #nats: NatsConnection;
  readonly #to: string;

  constructor(nats: NatsConnection, to: string) {
    this.#nats = nats;
    this.#to = to;
  }

  send(type: string, data: unknown): void {
    this.raw(JSON.stringify({ type, data }));
  }

  raw(text: string): void {
    if (!this.#nats.isClosed()) this.#nats.publish(this.#to, encoder.encode(text));
  }

  end(): void {
    this.raw("");
  }

  refuse(code: string, retryAfterS?: string): void {
    const given = headers();
    given.set("Nats-Service-Error-Code", code);
    given.set("Nats-Service-Error", `refused with ${code}`);
    const body = { error: "refused", retry_after_s: Number(retryAfterS) };
    const data = retryAfterS === undefined ? "" : JSON.stringify(body);
    this.#nats.publish(this.#to, data, { headers: given });
    this.end();
  }

  /** Asks the same question twice; the caller may answer once. */
  async ask(prompt: string): Promise<string> {
    const inbox = createInbox();
    const answers: string[] = [];
    const subscription = this.#nats.subscribe(inbox, {
      callback: (_error, message) => void answers.push(message.string()),
    });
    const query = { id: inbox, reply_subject: inbox, prompt };
    this.send("query", query);
    this.send("query", query);
    while (answers.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    await new Promise((resolve) => setTimeout(resolve, 100));
    subscription.unsubscribe();
    return answers.join(" and ");
  }
}
