// The environment of the command: streams, variables, folder, signals. Tests pass their own shell; nothing else in
// cli/ uses `process`.

import { setMaxListeners } from "node:events";
import type { Readable } from "node:stream";
import { type ExitCode, exitCodes } from "./exit-code.ts";

/** A stream for people or programs; only terminals have columns. */
export interface OutputStream {
  readonly isTTY?: boolean | undefined;
  /** 0 where the size of the terminal was never set. */
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  write(text: string | Uint8Array, written?: () => void): boolean;
  /** `resize`: of terminals alone. */
  on(event: "error" | "resize", listener: (error: NodeJS.ErrnoException) => void): unknown;
  off?(event: "resize", listener: () => void): unknown;
}

/** Width of the stream's terminal; undefined without a terminal, or if unknown. */
export function knownColumns({ columns = 0 }: OutputStream): number | undefined {
  return columns > 0 ? columns : undefined;
}

export interface Shell {
  readonly stdin: Readable & {
    readonly isTTY?: boolean | undefined;
    /** Only terminals: keys come one by one, and Ctrl-C as a key. */
    setRawMode?(isRaw: boolean): unknown;
  };
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Path of the running script. */
  readonly script: string;
  /** Calls `listener` at each Ctrl-C, SIGTERM and hang-up. Returns a function that stops the calls. */
  onInterrupt(listener: () => void): () => void;
  /** Ends the process at once, without cleanup. */
  exitNow(code: ExitCode): void;
}

export const processShell: Shell = {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
  script: process.argv[1] ?? "",
  onInterrupt(listener) {
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
    for (const signal of signals) process.on(signal, listener);
    return () => {
      for (const signal of signals) process.off(signal, listener);
    };
  },
  exitNow: (code) => process.exit(code),
};

/** First interrupt: `signal` aborts, and the verb finishes. Second interrupt: the process ends. */
export function interruptSignal(shell: Shell): { readonly signal: AbortSignal; readonly stop: () => void } {
  const interrupted = new AbortController();
  setMaxListeners(0, interrupted.signal); // each of many tasks waited for may listen
  const stop = shell.onInterrupt(() => {
    if (interrupted.signal.aborted) shell.exitNow(exitCodes.interrupted);
    interrupted.abort();
  });
  return { signal: interrupted.signal, stop };
}
