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
  /** Resident memory after each tenth of the inputs; MiB. */
  readonly residentMiB: readonly number[];
}

/** The growth after the first tenth: the lowest of the last three tenths over the lowest of the second to fourth; MiB.
 *  Garbage lets resident memory swing upwards, and a leak raises its lowest value. */
export function growthMiB({ residentMiB }: FuzzFigure): number {
  return Math.min(...residentMiB.slice(-3)) - Math.min(...residentMiB.slice(1, 4));
}

const bin = resolve(import.meta.dirname, "../../bin/waggle.js");

/** @param onTenth called after each tenth of a target's inputs, with the tenths so far
 *  @throws Error when a process ended, or did not answer */
export async function fuzz(
  counts: FuzzCounts,
  onFigure: (figure: FuzzFigure) => void,
  onTenth: (figure: FuzzFigure) => void = () => undefined,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "waggle-fuzz-"));
  // A PATH without a nats-server: `up` starts the development broker.
  // Small bounds of V8's heap: resident memory shows what is kept and not garbage, and a leak ends the process.
  const env = { PATH: folder, HOME: folder, NODE_OPTIONS: "--max-semi-space-size=2 --max-old-space-size=80" };
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
      const resident: number[] = [];
      const batch = Math.max(1, Math.min(BATCH, Math.floor(inputs / 10)));
      for (let sent = 0; sent < inputs; sent += batch) {
        for (let at = 0; at < Math.min(batch, inputs - sent); at += 1) await send();
        await checkAnswers(transport);
        if (sent + batch < (inputs / 10) * (resident.length + 1)) continue;
        resident.push(residentMiB(pids[target]));
        onTenth({ target, inputs: sent + batch, residentMiB: resident });
      }
      onFigure({ target, inputs, residentMiB: resident });
    };
    const place = { port, secret: broker.secret };
    const lines = new RawSender(place, (nth) => nth % 2 === 1);
    await watch("broker", async () => {
      await lines.write(fuzzer.protocolLine());
      if (fuzzer.below(8) === 0) await lines.look();
    });
    lines.close();
    const messages = new RawSender(place, () => true);
    await watch("coordinator", async () => {
      await messages.write(publication(fuzzer));
      if (fuzzer.below(8) === 0) await messages.look();
    });
    messages.close();
    const browser = await signedIn(dashboard);
    await watch("dashboard", () => sendRequest(fuzzer, browser));
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

/** Bytes over connections that the broker may close at any time. */
class RawSender {
  readonly #broker: BrokerAddress;
  /** Whether the nth connection, from 1, logs in. */
  readonly #logsIn: (nth: number) => boolean;
  #socket: Socket | undefined;
  #opened = 0;

  constructor(broker: BrokerAddress, logsIn: (nth: number) => boolean) {
    this.#broker = broker;
    this.#logsIn = logsIn;
  }

  async write(bytes: Buffer): Promise<void> {
    this.#socket ??= await this.#open();
    const socket = this.#socket;
    if (!socket.write(bytes)) await eitherOf(socket, "drain", "close");
  }

  /** Forgets a connection that the broker has closed: its verdict arrives in a later turn. */
  async look(): Promise<void> {
    await new Promise((done) => setImmediate(done));
    const socket = this.#socket;
    if (socket?.readableEnded === true) socket.destroy();
    if (socket?.destroyed === true) this.#socket = undefined;
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
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
    if (!this.#logsIn(this.#opened)) return socket;
    const [line = ""] = info.split("\r\n"); // a late reader finds the broker's -ERR behind the line
    const { nonce } = JSON.parse(line.slice("INFO ".length)) as { readonly nonce: string };
    socket.write(
      `CONNECT {"auth_token":"${clientAnswer({ secret, nonce, challenge: "" })}","headers":true}\r\n`,
    );
    return socket;
  }
}

interface BrokerAddress {
  readonly port: number;
  readonly secret: string;
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
    "project._.query.records",
  ],
  ...["project.p.query.task", "project._.query.settings", "project._.query.slots", "operator.pause"],
  ...["operator.project", "operator.policy", "operator.hold", "operator.resource", "operator.drain"],
  ...["join", "leave", "heartbeat", "progress", "result", "acquire", "release"].map(
    (verb) => `agent._.a1.${verb}`,
  ),
  "coordinator",
].map((rest) => `waggle.v1.default.${rest}`);

const replies = [
  "",
  "_INBOX.fuzz.1",
  "$JS.API.STREAM.PURGE.x",
  "waggle.v1.default.journal.1",
  "_INBOX.>",
  "_INBOX.*",
];

/** A right publish of a message that may be wrong. Client libraries would refuse some of the subjects. */
function publication(fuzzer: Fuzzer): Buffer {
  const message = fuzzer.message();
  const subject = fuzzer.below(100) === 0 ? `waggle.v1.default.${fuzzer.subject()}` : fuzzer.one(inbound);
  const words = ["PUB", subject, fuzzer.one(replies), message.length].filter((word) => word !== "");
  return Buffer.concat([Buffer.from(`${words.join(" ")}\r\n`), message, Buffer.from("\r\n")]);
}

/** A browser that is signed in to the dashboard. */
interface Browser {
  readonly port: string;
  readonly cookie: string;
  readonly changeToken: string;
}

/** @param url as printed */
async function signedIn(url: string): Promise<Browser> {
  const { port, origin } = new URL(url);
  const entered = await fetch(url, { redirect: "manual" });
  const cookie = (entered.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const session = await fetch(`${origin}/api/session`, { headers: { cookie } });
  const { changeToken } = (await session.json()) as { readonly changeToken: string };
  return { port, cookie, changeToken };
}

/** Half of the requests are signed in. Any status is an answer; so is a connection that the server closes on a
 *  malformed request. */
async function sendRequest(fuzzer: Fuzzer, { port, cookie, changeToken }: Browser): Promise<void> {
  const own = `127.0.0.1:${port}`;
  const isSignedIn = fuzzer.below(2) === 0;
  const ofBrowser = { host: own, cookie, origin: `http://${own}`, "x-waggle-token": changeToken };
  const ofStranger = { host: fuzzer.one([own, "evil.example"]), cookie: "token=%00", origin: "null" };
  await new Promise<void>((done) => {
    const sent = request({
      host: "127.0.0.1",
      port,
      method: fuzzer.one(["GET", "GET", "POST", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]),
      path: fuzzer.one(httpPaths),
      headers: isSignedIn ? { ...ofBrowser, "content-type": "application/json" } : ofStranger,
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
