// The shell of a command line in a test: keeps the output, and simulates a terminal.

import { Readable } from "node:stream";
import { run } from "../../src/cli/run.ts";
import type { OutputStream, Shell } from "../../src/cli/shell.ts";

export class CapturedStream implements OutputStream {
  readonly isTTY: boolean;
  readonly columns: number | undefined;
  text = "";
  #onError: ((error: NodeJS.ErrnoException) => void)[] = [];

  constructor(columns?: number) {
    this.isTTY = columns !== undefined;
    this.columns = columns;
  }

  write(text: string | Uint8Array, written?: () => void): boolean {
    this.text += typeof text === "string" ? text : Buffer.from(text).toString("latin1");
    written?.();
    return true;
  }

  on(_event: "error", listener: (error: NodeJS.ErrnoException) => void): this {
    this.#onError.push(listener);
    return this;
  }

  fail(code: string): void {
    for (const listener of this.#onError) listener(Object.assign(new Error(code), { code }));
  }
}

export interface FakeShell extends Shell {
  readonly stdout: CapturedStream;
  readonly stderr: CapturedStream;
  /** Ctrl-C. */
  interrupt(): void;
  readonly exits: number[];
}

export function aShell(
  options: {
    readonly stdin?: string | Buffer;
    readonly env?: Shell["env"];
    readonly cwd?: string;
    readonly script?: string;
    readonly columns?: number;
  } = {},
): FakeShell {
  const listeners = new Set<() => void>();
  const exits: number[] = [];
  let cameEarly = false;
  return {
    stdin: Readable.from([Buffer.from(options.stdin ?? "")]),
    stdout: new CapturedStream(options.columns),
    stderr: new CapturedStream(options.columns),
    env: options.env ?? {},
    cwd: options.cwd ?? "/nowhere",
    script: options.script ?? "/usr/bin/waggle",
    onInterrupt(listener) {
      listeners.add(listener);
      if (cameEarly) listener();
      return () => listeners.delete(listener);
    },
    exitNow: (code) => void exits.push(code),
    // A real process without a listener ends at once; here the listener is called when it comes.
    interrupt: () => {
      cameEarly = listeners.size === 0;
      for (const listener of listeners) listener();
    },
    exits,
  };
}

/** Runs a command line without a swarm. */
export async function runIn(shell: FakeShell, ...argv: string[]) {
  const code = await run(argv, shell);
  return { code, stdout: shell.stdout.text, stderr: shell.stderr.text };
}
