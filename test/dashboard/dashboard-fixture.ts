// A dashboard for tests: over real HTTP, on a real coordinator with the memory transport.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pastTurns } from "../../src/audit/past-turns.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { type Clock, systemClock, systemRandom } from "../../src/clock.ts";
import type { Changes } from "../../src/dashboard/changes.ts";
import {
  type DashboardOptions,
  type RunningDashboard,
  startDashboard,
} from "../../src/dashboard/dashboard.ts";
import type { ApiError, LiveMessageName, Session } from "../../src/dashboard/wire.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import type { ProcessFigures } from "../../src/process-watch.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { silentLogger, startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

const processFigures: ProcessFigures = {
  ...{ windowMs: 10_000, loopLagP99Ms: 1.5, loopLagMaxMs: 250 },
  ...{ rssBytes: 3e8, heapUsedBytes: 1e8, heapTotalBytes: 2e8 },
};

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the answer holds
  readonly json: any;
}

export interface RequestOf {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
}

export class Fixture {
  readonly test: TestSwarm;
  readonly swarm: Swarm;
  readonly running: RunningDashboard;
  /** Of the dashboard. */
  readonly transport: Transport;
  readonly #folder: string;
  #cookie = "";
  #token = "";

  private constructor(
    { test, swarm, running, transport }: Pick<Fixture, "test" | "swarm" | "running" | "transport">,
    folder: string,
  ) {
    this.test = test;
    this.swarm = swarm;
    this.running = running;
    this.transport = transport;
    this.#folder = folder;
  }

  /** @param more.changes default: every change is permitted, over the same connection */
  static async start(
    options: Partial<DashboardOptions> = {},
    more: { readonly clock?: Clock; readonly changes?: Changes } = {},
  ): Promise<Fixture> {
    const { clock = systemClock } = more;
    const test = await startTestSwarm({ processFigures: () => processFigures });
    const transport = test.hub.connect();
    const swarm = await connect({ swarm: "test", transport, user: "ann" });
    const folder = await mkdtemp(join(tmpdir(), "waggle-dashboard-"));
    await writeFile(join(folder, "index.html"), "<!doctype html><title>the page</title>");
    await writeFile(join(folder, "app.js"), "export {};");
    const running = await startDashboard(
      {
        changes: more.changes ?? { swarm, refusals: {} },
        ...{ swarm, transport, subjects, clock, random: systemRandom, logger: silentLogger },
        ...{
          pastTurns: async (moment) =>
            await pastTurns({ journal: new MemoryJournal(test.store), clock }, moment),
          assetsFolder: folder,
          version: "0.0.0",
          project: "default",
          user: "ann",
          broker: { url: "memory" },
        },
      },
      { host: "127.0.0.1", port: 0, mayMove: false, names: [], isReadOnly: false, ...options },
    );
    const fixture = new Fixture({ test, swarm, running, transport }, folder);
    const entered = await fixture.get(new URL(running.url).pathname);
    fixture.#cookie = (entered.headers["set-cookie"]?.[0] ?? "").split(";")[0] ?? "";
    fixture.#token = ((await fixture.get("/api/session")).json as Session).changeToken ?? "";
    return fixture;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.running.port}`;
  }

  get cookie(): string {
    return this.#cookie;
  }

  /** Headers of a change that the page itself sends. */
  get changeHeaders(): Record<string, string> {
    return { origin: this.origin, "x-waggle-token": this.#token, "content-type": "application/json" };
  }

  /** Signed in, unless the headers say otherwise. */
  async get(path: string, { method = "GET", headers = {}, body }: RequestOf = {}): Promise<Answer> {
    const all = { cookie: this.#cookie, ...headers };
    const sent = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    return await new Promise((resolve, reject) => {
      const asked = httpRequest(
        { host: "127.0.0.1", port: this.running.port, path, method, headers: sent as Record<string, string> },
        (response) => {
          const parts: Buffer[] = [];
          response.on("data", (part: Buffer) => parts.push(part));
          response.on("error", reject);
          response.on("end", () => {
            const text = Buffer.concat(parts).toString();
            const isJson = (response.headers["content-type"] ?? "").startsWith("application/json");
            const { statusCode = 0, headers: of } = response;
            resolve({ status: statusCode, headers: of, text, json: isJson ? JSON.parse(text) : undefined });
          });
        },
      );
      asked.on("error", reject);
      if (body !== undefined) asked.write(typeof body === "string" ? body : JSON.stringify(body));
      asked.end();
    });
  }

  async act(verb: string, body: unknown): Promise<Answer> {
    return await this.get(`/api/actions/${verb}`, { method: "POST", headers: this.changeHeaders, body });
  }

  /** The error of an answer, with its HTTP status. */
  async refusal(path: string, request: RequestOf = {}): Promise<{ status: number } & ApiError["error"]> {
    const { status, json } = await this.get(path, request);
    return { status, ...(json as ApiError).error };
  }

  live(query: string, headers: Readonly<Record<string, string>> = {}): Live {
    return new Live(this, `/api/live?${query}`, headers);
  }

  async stop(): Promise<void> {
    await this.running.close();
    await this.swarm.close();
    await this.test.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

export interface LiveMessage {
  readonly name: LiveMessageName;
  readonly id: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the message holds
  readonly data: any;
}

/** One open stream, as a browser's EventSource reads it. */
export class Live {
  readonly messages: LiveMessage[] = [];
  readonly ended: Promise<void>;
  #status: number | undefined;
  #headers: IncomingHttpHeaders = {};
  #rest = "";
  #destroy: () => void = () => undefined;
  readonly #waiting = new Set<() => void>();

  constructor({ running, cookie }: Fixture, path: string, headers: Readonly<Record<string, string>>) {
    this.ended = new Promise((resolve) => {
      const asked = httpRequest(
        { host: "127.0.0.1", port: running.port, path, headers: { cookie, ...headers } },
        (response) => {
          this.#status = response.statusCode;
          this.#headers = response.headers;
          this.#wake();
          response.setEncoding("utf8");
          response.on("data", (text: string) => this.#read(text));
          response.on("close", resolve);
          response.on("error", () => resolve());
        },
      );
      this.#destroy = () => asked.destroy();
      asked.on("error", () => resolve());
      asked.end();
    });
  }

  async opened(): Promise<{ readonly status: number; readonly headers: IncomingHttpHeaders }> {
    await this.#until(() => this.#status !== undefined);
    return { status: this.#status ?? 0, headers: this.#headers };
  }

  /** The first message of a name that fits, also an earlier one. */
  async says(
    name: LiveMessageName,
    fits: (data: LiveMessage["data"]) => boolean = () => true,
  ): Promise<LiveMessage> {
    const find = () => this.messages.find((message) => message.name === name && fits(message.data));
    await this.#until(() => find() !== undefined);
    return find() as LiveMessage;
  }

  close(): void {
    this.#destroy();
  }

  async #until(isTrue: () => boolean): Promise<void> {
    if (isTrue()) return;
    await new Promise<void>((resolve, reject) => {
      const names = () => this.messages.map(({ name }) => name).join(", ");
      void this.ended.then(() => {
        if (!isTrue()) reject(new Error(`the stream ended after ${names()}`));
      });
      const look = () => {
        if (!isTrue()) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
    });
  }

  #read(text: string): void {
    this.#rest += text;
    const frames = this.#rest.split("\n\n");
    this.#rest = frames.pop() ?? "";
    for (const frame of frames) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(frame)?.[1];
      const name = field("event");
      if (name === undefined) continue;
      this.messages.push({
        name: name as LiveMessageName,
        id: field("id"),
        data: JSON.parse(field("data") ?? "null"),
      });
    }
    this.#wake();
  }

  #wake(): void {
    for (const look of this.#waiting) look();
  }
}
