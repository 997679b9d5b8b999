// Pauses before a stream that does not answer is looked at again.

import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { Retry } from "../../src/journal/retry.ts";

const never = () => () => undefined;

it("pauses of many readers end with the signal that they share, which keeps one listener for all", async () => {
  const closed = new AbortController();
  const pauses = Array.from({ length: 20 }, () =>
    new Retry({ clock: systemClock, signal: closed.signal }, never).pause(),
  );
  expect(getEventListeners(closed.signal, "abort")).toHaveLength(1);
  closed.abort();
  await Promise.all(pauses);
});

it("a pause ends at once where it is worth looking again", async () => {
  let change: () => void = () => undefined;
  const retry = new Retry({ clock: systemClock, signal: new AbortController().signal }, (listener) => {
    change = listener;
    return () => undefined;
  });
  for (let times = 0; times < 20; times += 1) {
    const paused = retry.pause();
    change();
    await paused;
  }
});

it("patience ends with the reason where nothing came of it", async () => {
  const options = { clock: systemClock, signal: new AbortController().signal, patienceMs: 0 };
  await expect(new Retry(options, never).pause(new Error("why"))).rejects.toThrow("why");
});
