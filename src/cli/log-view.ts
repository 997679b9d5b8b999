// Logs of attempts for people: the last lines of each attempt, or one line for an empty log.

import type { AttemptLog } from "../client/attempt-logs.ts";
import { counted } from "../count-text.ts";
import { hanging } from "./format.ts";
import { type Output, printable, printableText } from "./output.ts";

type View = Pick<Output, "columns" | "colors">;

const LINES_MAX = 20;

/** Empty where all attempts wrote nothing. */
export function logsBlock(logs: readonly AttemptLog[], { colors, columns }: View): string {
  const attemptsByReason = new Map<string, number[]>();
  for (const { attempt, missing } of logs)
    if (missing !== undefined)
      attemptsByReason.set(missing, [...(attemptsByReason.get(missing) ?? []), attempt]);
  const missing = [...attemptsByReason].map(([reason, attempts]) =>
    hanging(`no log of attempt ${attempts.join(", ")}: ${printable(reason)}`, columns)
      .map(colors.dim)
      .join("\n"),
  );
  const written = logs.filter(({ text }) => text !== "").map((log) => logText(log, { colors }));
  return [...missing, ...written].join("\n\n");
}

function logText(
  { attempt, agent, text, droppedBytes }: AttemptLog,
  { colors }: Pick<View, "colors">,
): string {
  // Progress bars overwrite their line with a carriage return; keep the last text, like a terminal.
  const lines = text
    .replace(/\r?\n$/, "")
    .split(/\r?\n/)
    .map((line) => line.slice(line.lastIndexOf("\r") + 1));
  const shown = lines.slice(-LINES_MAX);
  const hidden = lines.length - shown.length;
  const notes = [
    ...(droppedBytes === 0 ? [] : [`${counted(droppedBytes, "earlier byte")} no longer kept`]),
    ...(hidden === 0 ? [] : [`${counted(hidden, "earlier line")} with --json`]),
  ];
  return [
    `${colors.bold(`log of attempt ${attempt}`)} at ${printable(agent)}`,
    ...(notes.length === 0 ? [] : [`  ${colors.dim(`… ${notes.join("; ")}`)}`]),
    ...shown.map((line) => `  ${printableText(line)}`),
  ].join("\n");
}
