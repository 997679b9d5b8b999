// A condition that must hold without a break.

import { Subject } from "rxjs";
import { describe, expect, it } from "vitest";
import { lasting } from "../src/lasting.ts";
import { ManualClock } from "./client/manual-clock.ts";

function watched(ms: number) {
  const clock = new ManualClock();
  const holds$ = new Subject<boolean>();
  const startedAt = clock.monotonicMs();
  const emittedAt: number[] = [];
  const watching = holds$
    .pipe(lasting(ms, clock))
    .subscribe(() => emittedAt.push(clock.monotonicMs() - startedAt));
  return { clock, holds$, emittedAt, watching };
}

describe("a condition that must last", () => {
  it("is believed once, when it has held for so long, however often it was said", async () => {
    const { clock, holds$, emittedAt } = watched(1_000);
    holds$.next(true);
    await clock.advance(600);
    holds$.next(true);
    await clock.advance(5_000);
    expect(emittedAt).toEqual([1_000]);
  });

  it("begins anew after a break", async () => {
    const { clock, holds$, emittedAt } = watched(1_000);
    holds$.next(true);
    await clock.advance(999);
    holds$.next(false);
    holds$.next(true);
    await clock.advance(999);
    expect(emittedAt).toEqual([]);
    await clock.advance(1);
    expect(emittedAt).toEqual([1_999]);
  });

  it("leaves no timer when it breaks, or is watched no longer", async () => {
    const { clock, holds$, watching } = watched(1_000);
    holds$.next(true);
    holds$.next(false);
    expect(clock.pendingTimers).toBe(0);
    holds$.next(true);
    watching.unsubscribe();
    expect(clock.pendingTimers).toBe(0);
  });
});
