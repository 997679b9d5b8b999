// Numbers and times for people. Not here: durations (audit/describe.ts).

const KIB = 1024;
const byteUnits = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** `512 B`, `1.4 MiB`. */
export function formatBytes(bytes: number): string {
  let amount = bytes;
  let unit = 0;
  while (amount >= KIB && unit < byteUnits.length - 1) {
    amount /= KIB;
    unit += 1;
  }
  return `${unit === 0 ? amount : amount.toFixed(1)} ${byteUnits[unit]}`;
}

/** A share of 1 as `97 %`. */
export function formatShare(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** `14:03:22.250` in local time; on another day than `now` with the date: `2026-11-20 14:03:22.250`. */
export function formatTime(at: number, now: number = Date.now()): string {
  const date = new Date(at);
  const two = (part: number) => String(part).padStart(2, "0");
  const ms = String(date.getMilliseconds()).padStart(3, "0");
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
  if (date.toDateString() === new Date(now).toDateString()) return time;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

const LABEL_WIDTH = 12;

/** A labelled paragraph: `broker      NATS at …`, broken between words where the terminal ends. */
export function labelled(label: string, text: string, columns: number | undefined): string {
  const lines = columns === undefined ? [text] : brokenAt(text, columns - LABEL_WIDTH);
  return lines.map((line, at) => `${(at === 0 ? label : "").padEnd(LABEL_WIDTH)}${line}`).join("\n");
}

/** A paragraph indented by two, broken between words where the terminal ends. */
export function indented(text: string, columns: number | undefined): string {
  const lines = columns === undefined ? [text] : brokenAt(text, columns - 2);
  return lines.map((line) => `  ${line}`).join("\n");
}

const HANGING = 4;

/** A line broken between words where the terminal ends; the lines after the first are indented. */
export function hanging(text: string, columns: number | undefined): string[] {
  if (columns === undefined) return [text];
  const [first = ""] = brokenAt(text, columns);
  const rest = text.slice(first.length + 1);
  if (rest === "") return [first];
  return [first, ...brokenAt(rest, columns - HANGING).map((line) => `${" ".repeat(HANGING)}${line}`)];
}

/** Breaks between words, but not between a number and its unit: `12 running`, `40 ms`. */
const BREAKS = /(?<!(?:^|[\s(])[\d.,]+) /;

/** Lines of at most so many characters; a longer word stands alone. */
export function brokenAt(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(BREAKS)) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/** Width of help without a terminal. */
export const HELP_COLUMNS = 100;
