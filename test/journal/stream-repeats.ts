// Repeats calls of a journal until the outcome is known, as a leader does while a server is away. On giving up, the
// error names the last answer and the expectation.

import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import type { AppendOutcome, Segment } from "../../src/journal/journal.ts";
import { limits } from "../../src/limits.ts";

/** A cluster that fails over answers within 10 s on a quiet machine. Beside other suites 40 s were not enough. */
const KNOWN_MS = 90_000;

/** Appends as a leader does while the outcome is unknown: the same bytes at the same position. */
export async function appendSurely(
  segment: Segment,
  bytes: Uint8Array,
  expected: number,
): Promise<AppendOutcome> {
  return await repeat(
    `record ${expected + 1} of segment ${segment.number} is appended`,
    async (): Promise<Attempt<AppendOutcome>> => {
      const outcome = await segment.append(bytes, expected);
      if (outcome.kind === "unknown") return { last: outcome.cause };
      if (outcome.kind !== "refused") return { value: outcome };
      const found = await segment.read(expected + 1).catch(() => undefined);
      if (found === undefined) return { last: "refused, and the record is not found" };
      return { value: Buffer.compare(found.bytes, bytes) === 0 ? { kind: "stored" } : outcome };
    },
  );
}

/** Repeats a call until the server answers it. */
export async function surely<T>(call: () => Promise<T>): Promise<T> {
  return await repeat(`${call} is answered`, async () => {
    try {
      return { value: await call() };
    } catch (error) {
      expect(error).toMatchObject({ code: "WAGGLE_UNREACHABLE" });
      return { last: error };
    }
  });
}

type Attempt<T> = { readonly value: T } | { readonly last: unknown };

/** @throws Error that says what was waited for, and the last answer */
async function repeat<T>(what: string, attempt: () => Promise<Attempt<T>>): Promise<T> {
  const endMs = performance.now() + KNOWN_MS;
  for (;;) {
    const result = await attempt();
    if ("value" in result) return result.value;
    if (performance.now() > endMs) throw new Error(`after ${KNOWN_MS} ms not yet: ${what}. ${result.last}`);
    await delay(limits.appendRetryMs);
  }
}
