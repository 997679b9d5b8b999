// The log: lines for people on a terminal, JSON otherwise, on stderr. Verbs that only report events (up, agent) have
// no further output: with --json their log is the data, and goes to stdout. The log never holds payloads, results,
// credentials, or URLs with a user part.

import pino, { type LogFn, type Logger } from "pino";
import type { LogLevel } from "../config/schema.ts";
import { InvariantError, messageOf, WaggleError } from "../errors.ts";
import type { Output } from "./output.ts";

export interface LoggerOptions {
  readonly level: LogLevel;
  /** With --json the log goes to stdout. Default false. */
  readonly isData?: boolean;
}

export async function createLogger(
  output: Output,
  { level, isData = false }: LoggerOptions,
): Promise<Logger> {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    hooks: { logMethod: withCommandAsStarted(output) },
    serializers: { err: loggedError },
  };
  if (output.json && isData) return pino(options, { write: (line: string) => output.raw(line) });
  if (output.json || !output.isNoteTerminal || level === "silent")
    return pino(options, { write: (line: string) => output.note(line.trimEnd()) });
  return pino(options, await prettyStream(output));
}

/** Messages are Waggle's own sentences, which may advise a command. */
function withCommandAsStarted({ asStarted }: Output) {
  return function logMethod(this: Logger, args: Parameters<LogFn>, method: LogFn): void {
    const adapted = args.map((arg: unknown) => (typeof arg === "string" ? asStarted(arg) : arg));
    method.apply(this, adapted as typeof args);
  };
}

/** A sentence and a code say what to do about an expected error. A stack is logged for a bug alone. */
function loggedError(error: unknown): unknown {
  if (!(error instanceof WaggleError) || error instanceof InvariantError)
    return error instanceof Error ? pino.stdSerializers.err(error) : error;
  const { name, code, message, field, cause } = error;
  return {
    ...{ type: name, code, message },
    ...(field === undefined ? {} : { field }),
    ...(cause === undefined ? {} : { cause: messageOf(cause) }),
  };
}

async function prettyStream(output: Output) {
  // Loaded where a log is shown: most verbs show none.
  const { default: pretty } = await import("pino-pretty");
  return pretty({
    colorize: output.noteColors.isColorSupported,
    translateTime: "SYS:HH:MM:ss",
    singleLine: true,
    ignore: fieldsInTheSentence,
    destination: 2,
    sync: true,
  });
}

/** For programs; the message says the same. */
const fieldsInTheSentence = "event,idx,tasks,swarm,coordinator";
