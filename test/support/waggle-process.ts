// The command as run by a user: `node bin/waggle.js …` in a fresh folder, as a real process.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { stopBroker } from "../../src/broker/stop-broker.ts";

export const launcher = fileURLToPath(new URL("../../bin/waggle.js", import.meta.url));

/** A command as printed by hints in tests: as started. @param line as after `waggle` */
export const asHinted = (line: string) => `\`node ${launcher} ${line}\``;

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A folder to run the command in, with a choice of broker. */
export class Workplace {
  readonly folder: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #processes: RunningWaggle[] = [];

  private constructor(folder: string, env: NodeJS.ProcessEnv) {
    this.folder = folder;
    this.#env = env;
  }

  /** @param natsServer a server's binary for `up` on the PATH; undefined: `up` takes the development broker
   *  @param env variables besides the environment of the test process */
  static async make(natsServer?: string, env: NodeJS.ProcessEnv = {}): Promise<Workplace> {
    const folder = await mkdtemp(join(tmpdir(), "waggle-process-"));
    const path = [
      dirname(process.execPath),
      ...(natsServer === undefined ? [] : [dirname(natsServer)]),
      "/bin",
    ];
    const { NATS_URL: _url, NATS_CONTEXT: _context, ...kept } = process.env;
    // Variables of npm would make hints say `npx waggle`.
    const rest = Object.fromEntries(Object.entries(kept).filter(([name]) => !name.startsWith("npm_")));
    return new Workplace(folder, {
      ...rest,
      ...env,
      HOME: folder,
      PATH: path.join(delimiter),
      NO_COLOR: "1",
    });
  }

  /** Starts a long-running verb. `up` serves no dashboard, unless `--dashboard` asks for it: few tests look at one, and
   *  each is a process more. */
  start(...given: string[]): RunningWaggle {
    const args = given.filter((arg) => arg !== "--dashboard");
    if (args[0] === "up" && args.length === given.length) args.push("--no-dashboard");
    const child = spawn(process.execPath, [launcher, ...args], { cwd: this.folder, env: this.#env });
    const running = new RunningWaggle(child);
    this.#processes.push(running);
    return running;
  }

  /** Runs a verb to the end. */
  async run(...args: string[]): Promise<Finished> {
    return await this.start(...args).finished;
  }

  /** Runs a verb to the end within the process of the test, which saves the start of a process. For tests of what a
   *  verb prints and changes. Not for verbs that start a broker or wait for Ctrl-C. */
  async runVerb(...args: string[]): Promise<Finished> {
    // Loaded where it is used: most suites start processes alone.
    const { aShell, runIn } = await import("../cli/shell.ts");
    return await runIn(aShell({ env: this.#env, cwd: this.folder, script: launcher }), ...args);
  }

  /** Runs a program in TypeScript to its end. @param file absolute path */
  async program(file: string): Promise<Finished> {
    const child = spawn(process.execPath, ["--import", import.meta.resolve("tsx"), file], {
      cwd: this.folder,
      env: this.#env,
    });
    const running = new RunningWaggle(child);
    this.#processes.push(running);
    return await running.finished;
  }

  get dataFolder(): string {
    return join(this.folder, ".waggle");
  }

  /** Kills started processes, stops the broker, removes the folder. The verb `down` would first ask the killed
   *  coordinators for their status, and wait for an answer. */
  async clear(): Promise<void> {
    for (const running of this.#processes) running.child.kill("SIGKILL");
    await Promise.all(this.#processes.map((running) => running.finished));
    // A test may leave a record that nobody can read. CI finds the processes that are left running.
    await stopBroker(this.dataFolder).catch(() => undefined);
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A process, the output so far, and the exit. */
export class RunningWaggle {
  readonly child: ChildProcess;
  readonly finished: Promise<Finished>;
  #stdout = "";
  #stderr = "";
  readonly #listeners = new Set<() => void>();

  constructor(child: ChildProcess) {
    this.child = child;
    this.#collect(child.stdout, (text) => {
      this.#stdout += text;
    });
    this.#collect(child.stderr, (text) => {
      this.#stderr += text;
    });
    this.finished = once(child, "close").then(([code]) => ({
      code: code as number | null,
      stdout: this.#stdout,
      stderr: this.#stderr,
    }));
  }

  get said(): string {
    return `${this.#stdout}${this.#stderr}`;
  }

  /** Resolves when either stream contains the text. Rejects if the process ends first. */
  async says(text: string | RegExp): Promise<void> {
    const hasSaid = () => (typeof text === "string" ? this.said.includes(text) : text.test(this.said));
    await new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!hasSaid()) return;
        this.#listeners.delete(look);
        resolve();
      };
      this.#listeners.add(look);
      void this.finished.then(({ code }) => {
        if (!hasSaid()) reject(new Error(`ended with ${code} without saying ${text}:\n${this.said}`));
      });
      look();
    });
  }

  async kill(signal: NodeJS.Signals): Promise<Finished> {
    this.child.kill(signal);
    return await this.finished;
  }

  #collect(stream: ChildProcess["stdout"], add: (text: string) => void): void {
    if (stream === null) return;
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => {
      add(text);
      for (const look of this.#listeners) look();
    });
  }
}
