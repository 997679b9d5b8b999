// Instants as people write them, in flags, options and lines of tasks alike: an ISO 8601 time, or a duration from now.

import { durationIn } from "./duration.ts";

const TIME = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;

/** `2026-11-20T18:00:00Z`, `+5m` from now or `-10m` before now; undefined for any other text, and for a day that does
 *  not exist. */
export function timeIn(text: string, now: number): Date | undefined {
  const isRelative = text.startsWith("+") || text.startsWith("-");
  if (!isRelative) return TIME.test(text) && isOnACalendar(text) ? new Date(text) : undefined;
  const ms = durationIn(text.slice(1));
  if (ms === undefined) return undefined;
  return new Date(text.startsWith("+") ? now + ms : now - ms);
}

/** `14:30` or `14:30:05`: the next moment at which the clock of this machine shows that time, today or tomorrow. */
export function nextClockTime(text: string, now: number): Date | undefined {
  const [, hours, minutes, seconds = 0] = (CLOCK_TIME.exec(text) ?? []).map(Number);
  if (hours === undefined || minutes === undefined) return undefined;
  const at = new Date(now);
  at.setHours(hours, minutes, Number.isNaN(seconds) ? 0 : seconds, 0);
  if (at.getTime() <= now) at.setDate(at.getDate() + 1);
  return at;
}

const CLOCK_TIME = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/;

/** JavaScript takes 30 February for 2 March, and 24:00 for the next day. */
function isOnACalendar(text: string): boolean {
  const [year = 0, month = 0, day = 0] = text.slice(0, 10).split("-").map(Number);
  const date = new Date(Date.UTC(year, month - 1, day));
  const isADay = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return isADay && !text.includes("T24") && !Number.isNaN(Date.parse(text));
}
