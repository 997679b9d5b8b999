// Sends malformed input to a running swarm: `waggle up` with the development broker and the dashboard. Fails when a
// process ends or the coordinator does not answer, and reports the resident memory of each process.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { connect as dial, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { clientAnswer } from "../../src/transport/mutual-proof.ts";
import { connectNats, type NatsTransport } from "../../src/transport/nats.ts";
import { Fuzzer, httpPaths } from "./inputs.ts";

export interface FuzzCounts {
  readonly broker: number;
  readonly coordinator: number;
  readonly dashboard: number;
  readonly seed: number;
}

export interface FuzzFigure {
  readonly target: "broker" | "coordinator" | "dashboard";
  readonly inputs: number;
  /** Resident memory after a tenth of the inputs, and at the end; MiB. */
  readonly tenthMiB: number;
  readonly endMiB: number;
}

const bin = resolve(import.meta.dirname, "../../bin/waggle.js");

/** @throws Error when a process ended, or did not answer */
export async function fuzz(counts: FuzzCounts, onFigure: (figure: FuzzFigure) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "waggle-fuzz-"));
  // A PATH without a nats-server: `up` starts the development broker.
  const env = { PATH: folder, HOME: folder };
  const up = spawn(process.execPath, [bin, "up", "--json"], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    const dashboard = await dashboardUrl(createInterface({ input: up.stdout }));
    up.stdout.resume();
    const broker = JSON.parse(readFileSync(join(folder, ".waggle", "broker.json"), "utf8")) as Broker;
    const pids = { broker: broker.pid, coordinator: up.pid ?? 0, dashboard: childOf(up.pid ?? 0) };
    const port = Number(new URL(broker.url).port);
    const transport = await connectNats({
      urls: [broker.url],
      credentials: { kind: "secret", secret: broker.secret },
      name: "fuzz",
    });
    const fuzzer = new Fuzzer(counts.seed);
    const watch = async (target: FuzzFigure["target"], send: () => Promise<void>) => {
      const inputs = counts[target];
      let tenthMiB = 0;
      const batch = Math.max(1, Math.min(BATCH, Math.floor(inputs / 10)));
      for (let sent = 0; sent < inputs; sent += batch) {
        for (let at = 0; at < Math.min(batch, inputs - sent); at += 1) await send();
        await checkAnswers(transport);
        if (tenthMiB === 0 && sent + batch >= inputs / 10) tenthMiB = residentMiB(pids[target]);
      }
      onFigure({ target, inputs, tenthMiB, endMiB: residentMiB(pids[target]) });
    };
    const lines = new Lines(fuzzer, { port, secret: broker.secret });
    await watch("broker", () => lines.send());
    await lines.close();
    await watch("coordinator", () => sendMessage(fuzzer, transport));
    await watch("dashboard", () => sendRequest(fuzzer, dashboard));
    await transport.close();
  } finally {
    up.kill("SIGTERM");
    if (up.exitCode === null && up.signalCode === null) await once(up, "exit");
    const down = spawn(process.execPath, [bin, "down"], { cwd: folder, env, stdio: "ignore" });
    await once(down, "exit");
    rmSync(folder, { recursive: true, force: true });
  }
}

const BATCH = 1_000;

interface Broker {
  readonly url: string;
  readonly secret: string;
  readonly pid: number;
}

async function dashboardUrl(lines: AsyncIterable<string>): Promise<string> {
  for await (const line of lines) {
    const { type, url } = JSON.parse(line) as { readonly type?: string; readonly url?: string };
    if (type === "dashboard" && url !== undefined) return url;
  }
  throw new Error("waggle up ended without a dashboard");
}

/** Lines of the protocol, over connections that the broker may close at any time. Every second connection logs in. */
class Lines {
  readonly #fuzzer: Fuzzer;
  readonly #broker: { readonly port: number; readonly secret: string };
  #socket: Socket | undefined;
  #opened = 0;

  constructor(fuzzer: Fuzzer, broker: { readonly port: number; readonly secret: string }) {
    this.#fuzzer = fuzzer;
    this.#broker = broker;
  }

  async send(): Promise<void> {
    this.#socket ??= await this.#open();
    const socket = this.#socket;
    if (!socket.write(this.#fuzzer.protocolLine())) await eitherOf(socket, "drain", "close");
    // The broker's verdict arrives in a later turn.
    if (this.#fuzzer.below(8) === 0) await new Promise((done) => setImmediate(done));
    if (socket.destroyed || socket.readableEnded) this.#socket = undefined;
  }

  async close(): Promise<void> {
    this.#socket?.destroy();
  }

  async #open(): Promise<Socket> {
    this.#opened += 1;
    const { port, secret } = this.#broker;
    const socket = dial({ host: "127.0.0.1", port });
    socket.on("error", () => socket.destroy());
    socket.once("close", () => {
      if (this.#socket === socket) this.#socket = undefined;
    });
    let info = "";
    socket.once("data", (data) => {
      info = String(data);
    });
    await eitherOf(socket, "data", "close");
    if (info === "") throw new Error("the broker closed a connection without INFO");
    socket.resume();
    if (this.#opened % 2 === 0) return socket;
    const { nonce } = JSON.parse(info.slice("INFO ".length)) as { readonly nonce: string };
    socket.write(
      `CONNECT {"auth_token":"${clientAnswer({ secret, nonce, challenge: "" })}","headers":true}\r\n`,
    );
    return socket;
  }
}

async function eitherOf(socket: Socket, ...events: readonly string[]): Promise<void> {
  if (socket.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      for (const event of events) socket.off(event, done);
      resolve();
    };
    for (const event of events) socket.on(event, done);
  });
}

const inbound = [
  ...["project.p.submit", "project.p.cancel", "project.p.await", "project.p.retry", "project.p.reschedule"],
  ...[
    "project._.query.status",
    "project.p.query.tasks",
    "project.p.query.explain",
    "project._.query.journal",
  ],
  ...["project.p.query.task", "project._.query.settings", "project._.query.slots", "operator.pause"],
  ...["operator.project", "operator.policy", "operator.hold", "operator.resource", "operator.drain"],
  ...["join", "leave", "heartbeat", "progress", "result", "acquire", "release"].map(
    (verb) => `agent._.a1.${verb}`,
  ),
  "coordinator",
].map((rest) => `waggle.v1.default.${rest}`);

const replies = [
  undefined,
  "_INBOX.fuzz.1",
  "$JS.API.STREAM.PURGE.x",
  "waggle.v1.default.journal.1",
  "_INBOX.>",
];

async function sendMessage(fuzzer: Fuzzer, transport: NatsTransport): Promise<void> {
  const reply = fuzzer.one(replies);
  if (reply?.includes(">") === true) return; // not a subject: this client refuses to send it
  transport.publish(fuzzer.one(inbound), fuzzer.message(), reply);
}

/** Any status is an answer; so is a connection that the server closes on a malformed request. */
async function sendRequest(fuzzer: Fuzzer, url: string): Promise<void> {
  const { port } = new URL(url);
  await new Promise<void>((done) => {
    const sent = request({
      host: "127.0.0.1",
      port,
      method: fuzzer.one(["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]),
      path: fuzzer.one(httpPaths),
      headers: {
        host: fuzzer.one([`127.0.0.1:${port}`, "evil.example"]),
        cookie: "token=%00",
        origin: "null",
      },
    });
    sent.on("response", (response) => response.resume().once("close", done));
    sent.on("error", () => done());
    sent.end(fuzzer.one([Buffer.alloc(0), fuzzer.message()]));
  });
}

/** The coordinator's answer, over the broker. A flood may cost it some seconds. */
async function checkAnswers(transport: NatsTransport): Promise<void> {
  const data = Buffer.from('{"v":1}');
  for (let tries = 0; tries < 6; tries += 1) {
    const { kind } = await transport.request("waggle.v1.default.project._.query.status", data, {
      timeoutMs: 10_000,
    });
    if (kind === "answered") return;
  }
  throw new Error("the coordinator does not answer");
}

function residentMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
}

function childOf(parent: number): number {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const found = pids.find((pid) => parentOf(pid) === parent);
  if (found === undefined) throw new Error("the dashboard has no process");
  return Number(found);
}

function parentOf(pid: string): number {
  try {
    return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  } catch {
    return 0; // ended meanwhile
  }
}
