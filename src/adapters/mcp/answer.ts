// The text of a tool's answer. A model pays for each character, so every text is bounded, and a note tells of a cut.

import { messageOf, WaggleError } from "../../errors.ts";
import { limits } from "../../limits.ts";

/** A tool's answer: blocks of text, in order. */
export type Answer = readonly string[];

/** JSON without line ends, and without undefined values. */
export function record(value: object): string {
  return JSON.stringify(value);
}

export interface LineBounds {
  /** How to get the missing lines: a clause without a full stop. */
  readonly hint: string;
  /** Kept end of the lines. Default `first`. */
  readonly keep?: "first" | "last";
  /** Default `limits.mcpAnswerCharactersMax`. */
  readonly charactersMax?: number;
}

/** Whole lines within the bound, and a note if lines are missing. */
export function boundedLines(
  lines: readonly string[],
  { hint, keep = "first", charactersMax = limits.mcpAnswerCharactersMax }: LineBounds,
): string {
  const ordered = keep === "first" ? lines : lines.toReversed();
  const kept: string[] = [];
  let length = 0;
  for (const line of ordered) {
    length += line.length + 1;
    if (length > charactersMax) break;
    kept.push(line);
  }
  const missing = lines.length - kept.length;
  if (missing === 0) return lines.join("\n");
  if (kept.length === 0) kept.push(`${(ordered[0] ?? "").slice(0, charactersMax)}…`);
  const which = keep === "first" ? "first" : "last";
  const note = `[cut: the ${which} ${kept.length} of ${lines.length} lines; ${hint}]`;
  return (keep === "first" ? [...kept, note] : [note, ...kept.toReversed()]).join("\n");
}

/** A part of a long text, with a note about the next part.
 *  @param from index of the first character, from 0 */
export function textFrom(text: string, from: number): string {
  const end = from + limits.mcpAnswerCharactersMax;
  if (from === 0 && text.length <= end) return text;
  const rest = text.length > end ? `; call result again with "from": ${end} for the next part` : "";
  const last = Math.min(end, text.length);
  return `${text.slice(from, end)}\n[cut: characters ${from} to ${last} of ${text.length}${rest}]`;
}

/** `WAGGLE_UNKNOWN_TASK: …`, for people and models. */
export function errorText(error: unknown): string {
  const text =
    error instanceof WaggleError
      ? `${error.code}: ${error.message}`
      : `WAGGLE_INVARIANT: ${messageOf(error)}; this is a bug`;
  return boundedLines([text], { hint: "the rest is not kept", charactersMax: limits.mcpErrorCharactersMax });
}
