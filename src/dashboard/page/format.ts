// Numbers, durations and times in the texts of the dashboard. Digits have equal widths, so a changing figure
// moves no text.

// Made once: a formatter costs far more than its use.
const wholeNumbers = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `420 ms`, `3.4 s`, `2m 05s`, `3h 20m`, `2d 4h`. @param ms at least 0; less counts as 0 */
export function duration(ms: number): string {
  const rest = Math.max(0, ms);
  if (rest < SECOND) return `${Math.round(rest)} ms`;
  if (rest < 10 * SECOND) return `${(rest / SECOND).toFixed(1)} s`;
  if (rest < MINUTE) return `${Math.floor(rest / SECOND)} s`;
  if (rest < HOUR) return `${Math.floor(rest / MINUTE)}m ${two(Math.floor((rest % MINUTE) / SECOND))}s`;
  if (rest < DAY) return `${Math.floor(rest / HOUR)}h ${two(Math.floor((rest % HOUR) / MINUTE))}m`;
  return `${Math.floor(rest / DAY)}d ${Math.floor((rest % DAY) / HOUR)}h`;
}

/** The largest whole unit only: `5m`, `24h`, `7d`. For windows of budgets and rates. */
export function window(ms: number): string {
  if (ms % DAY === 0) return `${ms / DAY}d`;
  if (ms % HOUR === 0) return `${ms / HOUR}h`;
  if (ms % MINUTE === 0) return `${ms / MINUTE}m`;
  return duration(ms);
}

/** `1,204`; `12.4k` and `3.1M` from 10,000 on. */
export function count(value: number): string {
  if (value >= 1_000_000) return `${(value / 1_000_000).toFixed(1)}M`;
  if (value >= 10_000) return `${(value / 1_000).toFixed(1)}k`;
  return wholeNumbers.format(value);
}

/** All digits: `1,204,311`. */
export function whole(value: number): string {
  return wholeNumbers.format(value);
}

/** `0.31`, `4.2`, `118`: at most three significant digits. */
export function figure(value: number): string {
  if (value === 0) return "0";
  if (Math.abs(value) >= 100) return count(value);
  return String(Number(value.toPrecision(Math.abs(value) >= 10 ? 3 : 2)));
}

/** @param share [0, 1] */
export function percent(share: number): string {
  const value = share * 100;
  return `${value > 0 && value < 1 ? value.toFixed(1) : Math.round(value)} %`;
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const at = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(value) / 10));
  const scaled = value / 2 ** (10 * at);
  return `${at === 0 || scaled >= 100 ? Math.round(scaled) : scaled.toFixed(1)} ${units[at]}`;
}

/** Time of day in the reader's zone: `14:03:07`. */
export function clockTime(at: number): string {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** With milliseconds: `14:03:07.482`. */
export function exactTime(at: number): string {
  return `${clockTime(at)}.${String(Math.floor(at) % SECOND).padStart(3, "0")}`;
}

/** `27 Nov, 14:03:07`. */
export function dateTime(at: number): string {
  return `${days.format(at)}, ${clockTime(at)}`;
}

/** `no task waits` becomes `No task waits.` */
export function asSentence(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}

/** `1 task`, `3 tasks`. */
export function counted(value: number, noun: string): string {
  return `${whole(value)} ${noun}${value === 1 ? "" : "s"}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
