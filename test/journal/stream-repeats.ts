// Repeats calls of a journal until their outcome is known, as a leader does while a server is away.

import { setTimeout as delay } from "node:timers/promises";
import { expect } from "vitest";
import type { AppendOutcome, Segment } from "../../src/journal/journal.ts";
import { limits } from "../../src/limits.ts";

/** Appends as a leader does while the outcome is unknown: the same bytes at the same position. */
export async function appendSurely(
  segment: Segment,
  bytes: Uint8Array,
  expected: number,
): Promise<AppendOutcome> {
  for (;;) {
    const outcome = await segment.append(bytes, expected);
    if (outcome.kind === "refused") {
      const found = await segment.read(expected + 1).catch(() => undefined);
      if (found !== undefined && Buffer.compare(found.bytes, bytes) === 0) return { kind: "stored" };
      if (found !== undefined) return outcome;
    } else if (outcome.kind !== "unknown") return outcome;
    await delay(limits.appendRetryMs);
  }
}

/** Repeats a call until the server answers it. */
export async function surely<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      expect(error).toMatchObject({ code: "WAGGLE_UNREACHABLE" });
      await delay(limits.appendRetryMs);
    }
  }
}
