// Reads a recorded trace: a heading, then one request per line, `TIMESTAMP,ContextTokens,GeneratedTokens`, as
// the Azure LLM inference traces are published. trace.ts replays traces.

import { InvalidValueError } from "../../errors.ts";
import type { TraceRequest } from "./trace-rows.ts";

const HEADING = "TIMESTAMP,ContextTokens,GeneratedTokens";
const TIME = /^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?$/;

/** The requests in order of time, counted from the first request.
 *
 *  @throws InvalidValueError naming the first invalid line, from 1; nothing is replayed then */
export function parseTrace(text: string): TraceRequest[] {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  const heading = (lines[0] ?? "").replaceAll(/\s/g, "");
  if (heading !== HEADING) refuse(1, `the first line must be the heading ${HEADING}`);
  const rows = lines.slice(1).flatMap((line, at) => (line.trim() === "" ? [] : [parseRow(line, at + 2)]));
  if (rows.length < 2) refuse(lines.length, "a trace has two requests or more");
  const earliest = rows.reduce((least, { time }) => Math.min(least, time), Number.POSITIVE_INFINITY);
  return rows
    .map(({ time, ...tokens }) => ({ ...tokens, arrivesAt: Math.round(time - earliest) }))
    .sort((a, b) => a.arrivesAt - b.arrivesAt);
}

function parseRow(line: string, number: number) {
  const cells = line.split(",").map((cell) => cell.trim());
  const [stamp = "", context = "", generated = ""] = cells;
  if (cells.length !== 3) refuse(number, `3 values with commas between are wanted, not ${cells.length}`);
  return {
    time: timeOf(stamp, number),
    contextTokens: tokensOf(context, "ContextTokens", number),
    generatedTokens: tokensOf(generated, "GeneratedTokens", number),
  };
}

/** Published without a time zone: read as UTC. */
function timeOf(stamp: string, line: number): number {
  const isZoned = /(?:Z|[+-]\d{2}:?\d{2})$/.test(stamp.slice(10));
  const time = TIME.test(stamp) ? Date.parse(`${stamp.replace(" ", "T")}${isZoned ? "" : "Z"}`) : Number.NaN;
  if (Number.isNaN(time) || !isOnACalendar(stamp))
    refuse(line, `'${stamp}' is no time like 2023-11-16 18:15:46.68`);
  return time;
}

/** JavaScript reads 30 February as 2 March, and 24:00 as the next day. */
function isOnACalendar(stamp: string): boolean {
  const day = stamp.slice(0, 10);
  return stamp.slice(11, 13) !== "24" && new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
}

function tokensOf(text: string, name: string, line: number): number {
  const tokens = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(tokens)) return tokens;
  return refuse(line, `${name} must be a whole number from 0, not '${text}'`);
}

function refuse(line: number, sentence: string): never {
  throw new InvalidValueError(`line ${line} of the trace: ${sentence}`, { field: `line ${line}` });
}
