// When the log says that the journal acknowledges nothing.

import { pino } from "pino";
import { expect, it } from "vitest";
import { UnacknowledgedLog } from "../../src/coordinator/leader/unacknowledged-log.ts";
import { limits } from "../../src/limits.ts";

const cause = new Error("JetStream did not answer within 2 s");

function linesOf(causes: readonly { readonly atMs: number; readonly sentMs: number }[]): object[] {
  let now = 0;
  const lines: string[] = [];
  const logger = pino({ base: null, timestamp: false }, { write: (line) => void lines.push(line) });
  const log = new UnacknowledgedLog({ clock: { monotonicMs: () => now }, logger });
  for (const { atMs, sentMs } of causes) {
    now = atMs;
    log.notice(cause, sentMs);
  }
  return lines.map((line) => JSON.parse(line));
}

it("is not said while a server may fail over", () => {
  expect(linesOf([{ atMs: limits.unacknowledgedMs, sentMs: 1 }])).toEqual([]);
});

it("is logged with the server's words, once and then each minute", () => {
  const lines = linesOf([6_000, 8_000, 65_000, 66_000].map((atMs) => ({ atMs, sentMs: 0 })));
  expect(lines).toMatchObject([
    { level: 40, forMs: 6_000, err: { message: cause.message } },
    { level: 40, forMs: 66_000 },
  ]);
});

it("is said of another batch soon after only where a minute has passed", () => {
  const causes = [
    { atMs: 6_000, sentMs: 0 },
    { atMs: 20_000, sentMs: 12_000 },
  ];
  expect(linesOf(causes)).toHaveLength(1);
});
