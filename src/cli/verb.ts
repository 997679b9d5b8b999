// The frame of every verb: settings, streams, a log, a signal that aborts at Ctrl-C, errors and exit codes. A verb's
// own file holds only the verb.

import type { Command } from "commander";
import type { Logger } from "pino";
import type { LogLevel } from "../config/schema.ts";
import { loadSettings, type SettingNames, type Settings } from "../config/settings.ts";
import { WaggleError } from "../errors.ts";
import { type ExitCode, exitCodes, InterruptedError } from "./exit-code.ts";
import { createLogger } from "./logger.ts";
import { Output, OutputError } from "./output.ts";
import { reportError } from "./report-error.ts";
import { interruptSignal, type Shell } from "./shell.ts";

export interface VerbContext {
  readonly settings: Settings;
  /** As given on the command line, for printed commands that the user can copy. */
  readonly flags: GlobalFlags;
  readonly output: Output;
  readonly logger: Logger;
  readonly shell: Shell;
  /** Aborts at the first Ctrl-C. At the second the process ends. */
  readonly signal: AbortSignal;
}

/** Flags of every verb. */
export interface GlobalFlags extends SettingNames {
  readonly config?: string;
  readonly json?: boolean;
  readonly insecure?: boolean;
  readonly verbose?: boolean;
}

/** A program under construction: its shell, and the exit code of its verb. */
export interface Program {
  readonly shell: Shell;
  exitCode: ExitCode;
  /** Puts the command as it was started in the place of `waggle`; set while the program is built. */
  asStarted: (text: string) => string;
}

export interface VerbOptions {
  /** When no setting says otherwise. Default: silent. */
  readonly logLevel?: LogLevel;
  /** With --json the log is the verb's output. Default false. */
  readonly logIsData?: boolean;
}

/** Runs a verb. Every error becomes one line on stderr and an exit code. */
export async function runVerb(
  program: Program,
  command: Command,
  run: (context: VerbContext) => Promise<ExitCode | undefined>,
  options: VerbOptions = {},
): Promise<void> {
  const { shell, asStarted } = program;
  const flags = command.optsWithGlobals<GlobalFlags>();
  const output = new Output(shell, { json: flags.json === true, asStarted });
  const interrupted = interruptSignal(shell);
  try {
    const settings = loadSettings({ flags: withoutLists(flags), env: shell.env, cwd: shell.cwd });
    const level = flags.verbose === true ? "debug" : (settings.logLevel ?? options.logLevel ?? "silent");
    const logger = await createLogger(output, { level, isData: options.logIsData === true });
    program.exitCode =
      (await run({ settings, flags, output, logger, shell, signal: interrupted.signal })) ?? exitCodes.ok;
    await output.flushed();
    if (output.failure !== undefined) throw new OutputError(output.failure);
  } catch (error) {
    const wasInterrupted = interrupted.signal.aborted && isAbort(error);
    const shown = wasInterrupted && !(error instanceof WaggleError) ? new InterruptedError() : error;
    const code = reportError(shown, output, { verbose: flags.verbose === true, command });
    program.exitCode = wasInterrupted ? exitCodes.interrupted : code;
  } finally {
    interrupted.stop();
  }
}

/** A list is a filter that shares its name with a setting: `tasks --user ann,bob`. */
function withoutLists(flags: GlobalFlags): GlobalFlags {
  return Object.fromEntries(Object.entries(flags).filter(([, value]) => !Array.isArray(value)));
}

/** Whether the abort signal is the error, or the cause of an error with unknown outcome. */
function isAbort(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === "AbortError" || isAbort(error.cause);
}
