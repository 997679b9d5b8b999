// How full a stream is, and what gives it more room, in words: which stream, its figures, and the command.

import type { JournalUsage } from "../journal.ts";
import type { StreamReport } from "./api.ts";

const MEBIBYTE = 1024 ** 2;

export function usageOf(
  { bytes, config }: Pick<StreamReport, "bytes" | "config">,
  stream: string,
): JournalUsage {
  const bytesMax = config["max_bytes"];
  if (typeof bytesMax !== "number" || bytesMax <= 0) return { bytes, bytesMax: undefined };
  return { bytes, bytesMax, remedy: remedyOf(stream, bytesMax) };
}

/** A clause. @param answer of the server
 *  @param usage of the stream, where it is known */
export function fullText(stream: string, answer: string, usage?: JournalUsage): string {
  const has =
    usage?.bytesMax === undefined ? "" : `, which holds ${inMiB(usage.bytes)} of ${inMiB(usage.bytesMax)}`;
  return `there is no room in the stream ${stream}${has} (${answer})`;
}

/** A command. */
export function twiceTheRoom(stream: string, bytesMax: number): string {
  return moreRoom(stream, 2 * bytesMax);
}

/** A command. */
export function moreRoom(stream: string, bytesMax: number): string {
  return `nats stream edit ${stream} --max-bytes ${bytesMax}`;
}

function remedyOf(stream: string, bytesMax: number): string {
  return `give it more room, where the server has it: \`${twiceTheRoom(stream, bytesMax)}\``;
}

function inMiB(bytes: number): string {
  return `${(bytes / MEBIBYTE).toFixed(1)} MiB`;
}
