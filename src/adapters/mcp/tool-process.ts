// The process of an MCP server, as a transport of the client library. Not the library's own: a command may be a
// pipeline of several processes, and all processes must end with the server, or with this process.

import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import {
  type JSONRPCMessage,
  ReadBuffer,
  serializeMessage,
  type Transport,
} from "@modelcontextprotocol/client";
import { guardedCommand } from "../../agent/exec.ts";
import { tailOf } from "../../cut-text.ts";
import { limits } from "../../limits.ts";

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

export class ToolProcess implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #command: string;
  readonly #onStderr: (chunk: Uint8Array) => void;
  readonly #read = new ReadBuffer({ maxBufferSize: limits.mcpMessageBytesMax });
  #child: Child | undefined;
  #stderrTail = "";
  #ended: Promise<void> | undefined;
  #hasExited = false;
  #end = "";

  constructor(command: string, onStderr: (chunk: Uint8Array) => void) {
    this.#command = command;
    this.#onStderr = onStderr;
  }

  /** How the process ended, with its last lines of stderr; empty while it runs. */
  get end(): string {
    return this.#end;
  }

  async start(): Promise<void> {
    const child: ChildProcess = spawn("sh", ["-c", guardedCommand, "sh", this.#command], {
      detached: true,
      stdio: ["pipe", "pipe", "pipe", "pipe"],
    });
    if (child.pid === undefined) {
      const [error] = await once(child, "error");
      throw error;
    }
    this.#child = child as Child;
    for (const stream of child.stdio) stream?.on("error", (error) => this.onerror?.(error));
    this.#child.stdout.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#child.stderr.on("data", (chunk: Uint8Array) => this.#keepErrors(chunk));
    child.once("exit", () => this.#killGroup());
    this.#ended = once(child, "close").then(([code, signal]) => {
      const said = this.#stderrTail.trim();
      this.#end = `${signal === null ? `exit ${code}` : `killed by ${signal}`}${said === "" ? "" : `: ${said}`}`;
      this.onclose?.();
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#child ?? {};
    if (stdin === undefined || !stdin.writable) throw new Error("the MCP server has ended");
    if (!stdin.write(serializeMessage(message)))
      await Promise.race([once(stdin, "drain").catch(() => undefined), this.#ended]);
  }

  /** Closes standard input; processes that go on get TERM, then KILL. Resolves when the process has ended. */
  async close(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    child.stdin.end();
    const signals = (["SIGTERM", "SIGKILL"] as const).map((signal, at) =>
      setTimeout(() => this.#signalGroup(signal), (at + 1) * limits.execKillGraceMs),
    );
    await this.#ended;
    for (const timer of signals) clearTimeout(timer);
  }

  #receive(chunk: Buffer): void {
    try {
      this.#read.append(chunk);
    } catch (error) {
      this.onerror?.(error as Error); // one message is larger than the bound: nothing after it can be read
      void this.close();
      return;
    }
    for (;;) {
      try {
        const message = this.#read.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        this.onerror?.(error as Error); // a line that is no message: the next line may be one
      }
    }
  }

  #keepErrors(chunk: Uint8Array): void {
    this.#stderrTail = tailOf(
      this.#stderrTail + Buffer.from(chunk).toString(),
      limits.errorCharactersMax / 2,
    );
    this.#onStderr(chunk);
  }

  /** Descendants of the command may outlive it, and hold its output open. */
  #killGroup(): void {
    this.#signalGroup("SIGKILL");
    this.#hasExited = true;
  }

  #signalGroup(signal: NodeJS.Signals): void {
    const { pid } = this.#child ?? {};
    if (pid === undefined || this.#hasExited) return; // the pid may be reused by now
    try {
      process.kill(-pid, signal);
    } catch (error) {
      // ESRCH: the whole group is gone, as after every end. EPERM: the rest of the group runs as another user.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") this.onerror?.(error as Error);
    }
  }
}
