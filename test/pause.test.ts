// Pauses end in time, at once when they are cut short, and leave nothing behind.

import { describe, expect, it } from "vitest";
import { pause } from "../src/pause.ts";
import { ManualClock } from "./client/manual-clock.ts";

describe("a pause", () => {
  it("lasts as long as it should", async () => {
    const clock = new ManualClock();
    let isOver = false;
    const paused = pause(clock, 10).then(() => {
      isOver = true;
    });
    await clock.advance(9);
    expect(isOver).toBe(false);
    await clock.advance(1);
    await paused;
  });

  it("ends early at an abort, and clears the timer", async () => {
    const clock = new ManualClock();
    const cut = new AbortController();
    const paused = pause(clock, 10, cut.signal);
    cut.abort();
    await paused;
    expect(clock.pendingTimers).toBe(0);
  });

  it("does not begin when it was cut short before", async () => {
    const clock = new ManualClock();
    const paused = pause(clock, 10, AbortSignal.abort());
    expect(clock.pendingTimers).toBe(0);
    await paused;
  });
});
