// Durations as written by users, in flags, variables and files.

const unitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 24 * 3_600_000,
};

const DURATION_PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g;
const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;

/** `500ms`, `30s`, `5m`, `2h`, `1d`, `1h30m` in whole milliseconds; undefined if the text is no duration. */
export function durationIn(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  let ms = 0;
  for (const [, amount, unit] of text.matchAll(DURATION_PART))
    ms += Number(amount) * (unitsMs[unit ?? ""] ?? 0);
  return Math.round(ms);
}
