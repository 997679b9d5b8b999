// A logger with all messages kept, for tests of texts for people.

import { type Logger, pino } from "pino";

export interface LogLine {
  readonly level: "info" | "warn" | "error" | "fatal";
  readonly msg: string;
  readonly [field: string]: unknown;
}

export function keptLog(): { readonly logger: Logger; readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const logger = pino(
    { base: null, timestamp: false, formatters: { level: (level) => ({ level }) } },
    { write: (line) => lines.push(JSON.parse(line)) },
  );
  return { logger, lines };
}
