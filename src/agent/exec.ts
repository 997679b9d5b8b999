// A handler that runs a command for each attempt: payload on stdin, result on stdout, verdict by exit code.
// - 0 → completed, with stdout · 65 (EX_DATAERR) → invalid input
// - 75 (EX_TEMPFAIL), 126 and 127 (the shell cannot run the command) → infrastructure
// - any other → failed, with the end of stderr
// Exit 75 with `retry-after: N` as the last line of stderr or of stdout puts the agent on hold for N seconds. The forms
// are those of the HTTP header: digits, possibly with a fraction, or a date. Other text names no time, and is logged.
//
// Used tokens: numbers on descriptor 4, one per line, which are added up (`echo 1200 >&4`). Other lines count
// nothing, and the log reports them at the end of the attempt.
//
// Each attempt has its own session and process group, which ends as a whole. An aborted attempt gets TERM, then
// KILL. When the command has ended, KILL ends its remaining processes. When this process is gone, even by kill
// -9, a watcher in the group sends KILL. The watcher is a shell that reads from a pipe; this process holds the
// only write end. The watcher starts before the command, so no moment is unguarded. A shell around both waits
// for the command, then ends and reaps the watcher, because a container may have no init to reap it. On Linux,
// processes that left the group end as well (marked-processes.ts).

import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import * as z from "zod";
import { tailOf } from "../cut-text.ts";
import { InvalidConfigError } from "../errors.ts";
import { limits } from "../limits.ts";
import { textEmitter } from "./chunk-buffer.ts";
import { execEnvironment } from "./exec-environment.ts";
import {
  type Handler,
  type HandlerContext,
  type HandlerTask,
  InfrastructureError,
  InvalidInputError,
} from "./handler.ts";
import { type HoldScopeOption, holdScope, type InfrastructureErrorOptions } from "./hold-options.ts";
import { killMarked, MARK_VARIABLE } from "./marked-processes.ts";
import { readerOf, text } from "./options.ts";
import { textOrBase64 } from "./result-text.ts";
import { retryAfterMs } from "./retry-after.ts";

export interface ExecOptions {
  /** Command line for `sh -c`. */
  readonly command: string;
  /** Working directory. Default: this process's. */
  readonly cwd?: string;
  /** Environment. Default: PATH, HOME, LANG, TMPDIR and `WAGGLE_…` of this process. These are added:
   *  `WAGGLE_TASK_ID`, `WAGGLE_ATTEMPT`, `WAGGLE_KIND`, `WAGGLE_PROJECT`, `WAGGLE_USER`, `WAGGLE_RUN`, and
   *  `WAGGLE_TOKENS_FD` (always 4). For a task with a trace also `TRACEPARENT` and `TRACESTATE`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** What exit code 75 puts on hold. Default `agent`. */
  readonly holdScope?: HoldScopeOption;
}

const readOptions = readerOf<ExecOptions>(
  {
    each: { command: text.min(1), cwd: text.min(1), env: z.record(text, text.optional()), holdScope },
    required: ["command"],
    example: '{ command: "wc -w" }',
  },
  InvalidConfigError,
);

/** A handler that runs `command` for each attempt: payload on stdin, result on stdout. Exit code 0 completes,
 *  65 means invalid input, 75, 126 and 127 mean infrastructure, any other fails. Exit code 75 with a last line
 *  `retry-after: SECONDS`, or an HTTP date, on stderr or stdout puts the agent on hold for that time. Requires a
 *  POSIX `sh`.
 *  @throws InvalidConfigError naming the option */
export function execHandler(given: ExecOptions): Handler {
  const options = readOptions("execHandler", given);
  return async (task, context) => {
    context.signal.throwIfAborted();
    const mark = randomUUID();
    const child = await launch(options, task, mark);
    const { holdScope } = options;
    const run = new CommandRun(child, context, { mark, isStreamed: task.stream, holdScope });
    return await run.outcome(task.bytes());
  };
}

/** A shell script. `$1` is the command; all of its processes end with this process. Descriptor 3 is the pipe, closed
 *  for the command itself. TERM is for the command: the outer shell continues until the command has ended. When this
 *  process is gone, the watcher ends the outer shell (`$$`) first. Otherwise the outer shell would end the watcher as
 *  soon as the command is gone, and processes that the search missed would go on. */
const guarded = ({ atLoss = "", variables = "" } = {}) => `trap : TERM
{ trap '' TERM; read -r _; kill -KILL $$; ${atLoss}kill -KILL 0; } <&3 >/dev/null 2>&1 4>&- &
${variables}sh -c "$1" 3<&-
code=$?
{ kill -KILL $!; wait; } 2>/dev/null
exit $code`;

export const guardedCommand = guarded();

/** As `guardedCommand`. `$2` is the mark of the command and its processes, which ends those outside the group. The
 *  shell and the watcher have no mark. */
export const markedCommand = guarded({
  atLoss: `for round in 1 2 3 4 5; do
  left=$(grep -lsF "${MARK_VARIABLE}=$2" /proc/[0-9]*/environ | tr -dc '0-9\\n')
  [ -n "$left" ] || break
  kill -KILL $left
done; `,
  variables: `${MARK_VARIABLE}="$2" `,
});

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** @throws InfrastructureError when the system cannot start a process */
async function launch(
  { command, cwd, env = execEnvironment(process.env) }: ExecOptions,
  task: HandlerTask,
  mark: string,
): Promise<Child> {
  try {
    const child = spawn("sh", ["-c", markedCommand, "sh", command, mark], {
      detached: true,
      stdio: ["pipe", "pipe", "pipe", "pipe", "pipe"],
      env: { ...env, ...taskEnvironment(task) },
      ...(cwd === undefined ? {} : { cwd }),
    });
    if (child.pid === undefined) await failed(child);
    return child as Child;
  } catch (cause) {
    throw new InfrastructureError(`the shell could not be started: ${(cause as Error).message}`, {
      cause,
      scope: "agent",
    });
  }
}

/** Rejects with the reason why a child has no process. */
async function failed(child: ChildProcess): Promise<never> {
  const [error] = await once(child, "error");
  throw error;
}

function taskEnvironment(task: HandlerTask): Record<string, string> {
  return {
    WAGGLE_TASK_ID: task.id,
    WAGGLE_ATTEMPT: String(task.attempt),
    WAGGLE_KIND: task.kind,
    WAGGLE_PROJECT: task.project,
    WAGGLE_USER: task.user,
    WAGGLE_TOKENS_FD: "4",
    ...(Object.keys(task.attributes).length === 0
      ? {}
      : { WAGGLE_ATTRIBUTES: JSON.stringify(task.attributes) }),
    ...(task.traceparent === undefined ? {} : { TRACEPARENT: task.traceparent }),
    ...(task.tracestate === undefined ? {} : { TRACESTATE: task.tracestate }),
  };
}

/** The last line of an output that ends with text. */
const RETRY_AFTER = /(?:^|\n)retry-after:([^\n]*)$/i;

interface RunOptions {
  /** Finds processes of the command outside its group. */
  readonly mark: string;
  readonly isStreamed: boolean;
  readonly holdScope: HoldScopeOption | undefined;
}

class CommandRun {
  readonly #child: Child;
  readonly #mark: string;
  readonly #context: HandlerContext;
  readonly #emitText: ((bytes: Uint8Array) => void) | undefined;
  readonly #holdScope: HoldScopeOption | undefined;
  readonly #startedMs = performance.now();
  readonly #stdout: Uint8Array[] = [];
  #stdoutBytes = 0;
  #stderrTail = Buffer.alloc(0);
  #tokensLine = "";
  readonly #unreadable = { lines: 0, first: "" };
  #timer: NodeJS.Timeout | undefined;
  #hasExited = false;
  #isBeyondUs = false;

  constructor(child: Child, context: HandlerContext, { mark, isStreamed, holdScope: scope }: RunOptions) {
    this.#child = child;
    this.#mark = mark;
    this.#context = context;
    this.#emitText = isStreamed ? textEmitter(context.emit) : undefined;
    this.#holdScope = scope;
  }

  /** @throws InvalidInputError, InfrastructureError or Error, depending on the exit code */
  async outcome(payload: Uint8Array): Promise<string | Uint8Array> {
    const { signal } = this.#context;
    const terminate = () => this.#terminate();
    signal.addEventListener("abort", terminate, { once: true });
    try {
      const exit = await this.#exit(payload);
      signal.throwIfAborted();
      return this.#verdict(exit);
    } finally {
      signal.removeEventListener("abort", terminate);
      clearTimeout(this.#timer);
    }
  }

  async #exit(payload: Uint8Array): Promise<Exit> {
    const child = this.#child;
    child.stdout.on("data", (chunk: Uint8Array) => this.#keepOutput(chunk));
    child.stderr.on("data", (chunk: Uint8Array) => this.#keepErrors(chunk));
    const said = child.stdio[4] as Readable;
    said.setEncoding("latin1");
    said.on("data", (text: string) => this.#countTokens(text));
    for (const stream of child.stdio) stream?.on("error", ignore);
    child.stdin.end(payload);
    child.once("exit", () => this.#cleanUp());
    const [code, killedBy] = await once(child, "close");
    if (this.#tokensLine !== "") this.#countTokens("\n");
    this.#warnOfUnreadable();
    return { code, signal: killedBy };
  }

  /** The command has ended: its remaining processes, including the watcher, must not outlive the attempt. Processes
   *  that cannot be ended may hold the output open; they get a moment to finish. */
  #cleanUp(): void {
    this.#signalGroup("SIGKILL");
    const { pid: firstPid } = this.#child;
    const tookMs = performance.now() - this.#startedMs;
    if (firstPid !== undefined) killMarked({ mark: this.#mark, firstPid, tookMs });
    this.#hasExited = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      for (const stream of this.#child.stdio) stream?.destroy();
    }, limits.execKillGraceMs);
  }

  #verdict({ code, signal }: Exit): string | Uint8Array {
    if (this.#stdoutBytes > limits.payloadBytesMax) {
      throw new Error(`the command wrote more than ${limits.payloadBytesMax} bytes to stdout`);
    }
    if (code === 0) return textOrBase64(Buffer.concat(this.#stdout, this.#stdoutBytes));
    const said = this.#lastWords();
    switch (code) {
      case 65:
        throw new InvalidInputError(said === "" ? "the command reports invalid input (exit 65)" : said);
      case 75: {
        const why = said.replace(RETRY_AFTER, "").trim();
        throw new InfrastructureError(
          why === "" ? "the command reports a temporary failure (exit 75)" : why,
          this.#holdOptions(),
        );
      }
      case 126:
        throw new InfrastructureError(
          `the shell found the command but cannot run it (exit 126): ${said}`,
          ofThisAgent,
        );
      case 127:
        throw new InfrastructureError(`the shell did not find the command (exit 127): ${said}`, ofThisAgent);
      default:
        throw new CommandError(describeExit({ code, signal }), said);
    }
  }

  /** As the last line of stderr says, or else of stdout. */
  #holdOptions(): InfrastructureErrorOptions {
    const scope = this.#holdScope === undefined ? {} : { scope: this.#holdScope };
    const stdout = Buffer.concat(this.#stdout, this.#stdoutBytes).subarray(-limits.stderrTailBytes);
    for (const end of [this.#stderrTail, stdout]) {
      const said = RETRY_AFTER.exec(end.toString().trimEnd())?.[1];
      if (said === undefined) continue;
      const waitMs = retryAfterMs({ "retry-after": said }, Date.now());
      if (waitMs !== undefined) return { ...scope, retryAfterMs: waitMs };
      const read = JSON.stringify(said.trim().slice(0, limits.retryAfterCharactersShown));
      const sentence =
        `not taken as a time: the command's last line has retry-after: ${read}; expected seconds, as with ` +
        "`retry-after: 30`, or an HTTP date";
      this.#context.logger.warn(sentence);
      this.#context.log.write(`${sentence}\n`);
    }
    return scope;
  }

  #keepOutput(chunk: Uint8Array): void {
    this.#stdoutBytes += chunk.length;
    if (this.#stdoutBytes > limits.payloadBytesMax) return this.#terminate();
    this.#stdout.push(chunk);
    this.#emitText?.(chunk);
  }

  #keepErrors(chunk: Uint8Array): void {
    this.#context.log.write(chunk);
    const all = Buffer.concat([this.#stderrTail, chunk]);
    this.#stderrTail = all.subarray(Math.max(0, all.length - limits.stderrTailBytes));
  }

  #countTokens(text: string): void {
    const lines = (this.#tokensLine + text).split("\n");
    this.#tokensLine = (lines.pop() ?? "").slice(0, limits.tokensLineCharactersMax);
    for (const line of lines) {
      if (/^\s*\d{1,15}\s*$/.test(line)) this.#context.reportTokens(Number(line));
      else {
        if (this.#unreadable.lines === 0) this.#unreadable.first = line;
        this.#unreadable.lines += 1;
      }
    }
  }

  /** Once per attempt, however much is written. */
  #warnOfUnreadable(): void {
    const { lines, first } = this.#unreadable;
    if (lines === 0) return;
    const read = JSON.stringify(first.slice(0, limits.tokensLineCharactersMax));
    const more = lines === 1 ? "" : `, the first of ${lines} invalid lines`;
    this.#context.logger.warn(
      `not counted as tokens: the command wrote ${read} to descriptor 4${more}; expected one whole number ` +
        "per line, as with `echo 1200 >&4`",
    );
  }

  /** The end of stderr, short enough to be stored with the attempt after a prefix. */
  #lastWords(): string {
    return tailOf(this.#stderrTail.toString().trim(), limits.errorCharactersMax / 2);
  }

  #terminate(): void {
    if (this.#hasExited || this.#timer !== undefined) return;
    this.#signalGroup("SIGTERM");
    this.#timer = setTimeout(() => this.#signalGroup("SIGKILL"), limits.execKillGraceMs);
  }

  #signalGroup(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined || this.#hasExited) return; // the pid may be reused by now
    try {
      process.kill(-pid, signal);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EPERM") this.#warnOfWhatGoesOn(pid);
      else if (code !== "ESRCH") throw error; // ESRCH: the whole group is gone
    }
  }

  /** The remaining processes run as a different user. Logged once per attempt. */
  #warnOfWhatGoesOn(group: number): void {
    if (this.#isBeyondUs) return;
    this.#isBeyondUs = true;
    this.#context.logger.warn(
      `processes left by the command (process group ${group}) run as a different user; this process cannot end them, ` +
        "and they continue",
    );
  }
}

/** Also a command's exit has a code, `exit 3`, for reports without error text. */
class CommandError extends Error {
  readonly code: string;

  constructor(exit: string, said: string) {
    super(said === "" ? exit : `${exit}: ${said}`);
    this.code = exit;
  }
}

/** A missing program is this machine's matter: it says nothing about other agents of the type. */
const ofThisAgent: InfrastructureErrorOptions = { scope: "agent" };

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Shells report 128 + n for a command ended by signal n. */
function describeExit({ code, signal }: Exit): string {
  const name = Object.entries(constants.signals).find(([, number]) => code === 128 + number)?.[0] ?? signal;
  return name === null || name === undefined ? `exit ${code}` : `killed by ${name}`;
}

/** A command may ignore its input, so a broken pipe means nothing. The exit code is the verdict. */
function ignore(): void {
  return;
}
