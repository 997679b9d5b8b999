// The benchmark's child processes: started, awaited, and stopped by their process id.

import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Order, PeerConfig, Timing } from "../peers/peer.ts";

const STOP_MS = 10_000;
const ANSWER_MS = 120_000;
const LOOK_MS = 50;

export interface StartOptions {
  /** File for standard output and error. */
  readonly log?: string;
  /** Called for each line of standard error. */
  readonly onLine?: (line: string) => void;
  readonly stopSignal?: NodeJS.Signals;
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly uid?: number;
  readonly gid?: number;
}

/** Owns all child processes. None of them outlives the present process. */
export class Children {
  readonly #stopSignals = new Map<ChildProcess, NodeJS.Signals>();
  readonly #stopping = new Set<ChildProcess>();
  readonly #detached = new Set<() => number | undefined>();
  readonly #warn: (sentence: string) => void;
  #isEnding = false;

  constructor(warn: (sentence: string) => void) {
    this.#warn = warn;
    process.on("exit", () => {
      this.#stopDetached();
      for (const child of this.#stopSignals.keys()) child.kill("SIGKILL");
    });
  }

  /** A signal stops all: what fails now has no meaning. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Stops all children, and lets no other start. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await this.stopAll();
  }

  start(command: string, args: readonly string[], options: StartOptions = {}): ChildProcess {
    const { log, onLine, stopSignal = "SIGTERM", ...rest } = options;
    this.#refuseAtEnd();
    const out = log === undefined ? "ignore" : openSync(log, "a");
    const child = spawn(command, args, {
      stdio: ["ignore", out, onLine === undefined ? out : "pipe"],
      ...rest,
    });
    if (onLine !== undefined && child.stderr !== null)
      createInterface({ input: child.stderr }).on("line", onLine);
    return this.#own(child, stopSignal, [command, ...args.slice(0, 2)].join(" "));
  }

  /** Starts a program of bench/processes on a server. Resolves when the program is ready. */
  async startProcess(name: string, url: string): Promise<ChildProcess> {
    const file = fileURLToPath(new URL(`../processes/${name}.ts`, import.meta.url));
    return await this.#startFork(name, file, [url], ["--import", "tsx"]);
  }

  /** Starts a process of a measured system (bench/peers). Resolves when the process is ready. */
  async startPeer(
    role: "setup" | "worker" | "client" | "followers",
    peer: string,
    config: PeerConfig,
    execArgv: readonly string[] = [],
  ): Promise<PeerProcess> {
    const file = fileURLToPath(new URL("../peers/dist/main.js", import.meta.url));
    const name = `${role} of ${peer}`;
    const child = await this.#startFork(name, file, [role, peer, JSON.stringify(config)], execArgv);
    return new PeerProcess(child, name);
  }

  /** A process that outlives its parent, such as the development broker, is stopped with the children.
   *  @param pidOf undefined once the process was stopped; throws if the process never began */
  ownDetached(pidOf: () => number | undefined): void {
    this.#detached.add(pidOf);
  }

  async stop(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    this.#stopping.add(child);
    const ended = once(child, "exit");
    child.kill(this.#stopSignals.get(child) ?? "SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await ended;
    clearTimeout(timer);
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#stopSignals.keys()].map((child) => this.stop(child)));
    this.#stopDetached();
  }

  #refuseAtEnd(): void {
    if (this.#isEnding) throw new Error("the benchmark is being stopped");
  }

  #stopDetached(): void {
    for (const pidOf of this.#detached) {
      try {
        const pid = pidOf();
        if (pid !== undefined) process.kill(pid, "SIGTERM");
      } catch {
        // The process has ended, or never began.
      }
    }
  }

  async #startFork(
    name: string,
    file: string,
    args: readonly string[],
    execArgv: readonly string[],
  ): Promise<ChildProcess> {
    this.#refuseAtEnd();
    const child = fork(file, args, {
      execArgv: [...execArgv],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    let said = "";
    child.stderr?.on("data", (text: Buffer) => {
      said = `${said}${text}`.slice(-2_000);
    });
    this.#own(child, "SIGTERM", name, () => said);
    const ready = once(child, "message");
    const end = once(child, "exit").then(() => {
      throw new Error(`the ${name} did not start: ${firstError(said)}`);
    });
    await Promise.race([ready, end]);
    end.catch(() => undefined);
    return child;
  }

  #own(child: ChildProcess, signal: NodeJS.Signals, name: string, said = () => ""): ChildProcess {
    this.#stopSignals.set(child, signal);
    child.once("error", (error) => this.#warn(`${name}: ${error.message}`));
    child.once("exit", (code, killedBy) => {
      this.#stopSignals.delete(child);
      const isDone = code === 0 && name.startsWith("setup");
      if (!this.#stopping.has(child) && !isDone && !this.#isEnding)
        this.#warn(`${name} ended with ${code ?? killedBy}. ${firstError(said())}`.trim());
    });
    return child;
  }
}

/** Ctrl-C or SIGTERM stop all children, and remove the folder. The second signal kills the children. */
export function stopAtSignals(children: Children, folder?: string): void {
  let isStopping = false;
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)
    process.on(signal, () => {
      const end = () => {
        if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
        process.exit(code);
      };
      if (isStopping) return end();
      isStopping = true;
      console.error("stopping all processes of the benchmark");
      children.end().then(end, end);
    });
}

/** A process of a measured system. */
export class PeerProcess {
  readonly child: ChildProcess;
  readonly #name: string;
  #orders = 0;

  constructor(child: ChildProcess, name: string) {
    this.child = child;
    this.#name = name;
  }

  get pid(): number {
    return this.child.pid ?? Number.NaN;
  }

  /** @throws Error when the process ends, reports an error, or does not answer */
  async ask(order: Order, timeoutMs = ANSWER_MS): Promise<Timing> {
    this.#orders += 1;
    const id = this.#orders;
    const { child } = this;
    return await new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        clearTimeout(timer);
        child.off("message", onMessage);
        child.off("exit", onExit);
        act();
      };
      const fail = (what: string) => settle(() => reject(new Error(`${this.#name}: ${what}`)));
      const onExit = () => fail("ended");
      const onMessage = (answer: { id?: number; error?: string; timing?: Timing }) => {
        if (answer.id !== id) return;
        const { error, timing } = answer;
        if (timing === undefined) fail(error ?? "answered nothing");
        else settle(() => resolve(timing));
      };
      const timer = setTimeout(
        () => fail(`no answer to ${order.op} within ${timeoutMs / 1000} s`),
        timeoutMs,
      );
      child.on("message", onMessage);
      child.on("exit", onExit);
      if (child.connected) child.send({ id, order });
      else onExit();
    });
  }
}

/** Looks until there is something. @throws Error after the time */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  waitMs = 60_000,
): Promise<NonNullable<T>> {
  const from = performance.now();
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found;
    if (performance.now() - from > waitMs) throw new Error(`${what}: not there after ${waitMs / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

export async function listens(port: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

/** The line of a stack that names the error. */
export function firstError(text: string): string {
  const lines = text.split("\n").map((line) => line.trim());
  return lines.find((line) => /^\w*Error\b/.test(line)) ?? lines.find((line) => line !== "") ?? "";
}
