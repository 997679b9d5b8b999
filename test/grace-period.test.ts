// What lasts is believed; what was only waited for is not.

import { expect, it } from "vitest";
import { GracePeriod } from "../src/grace-period.ts";
import { ManualClock } from "./support/manual-clock.ts";

it("is over once it has lasted, however few looked", async () => {
  const clock = new ManualClock();
  const gracePeriod = new GracePeriod(clock, 5_000);
  expect(gracePeriod.isBelieved()).toBe(false);
  await clock.advance(4_999);
  expect(gracePeriod.isBelieved()).toBe(false);
  await clock.advance(1);
  expect(gracePeriod.isBelieved()).toBe(true);
});

it("begins anew where it had passed", async () => {
  const clock = new ManualClock();
  const gracePeriod = new GracePeriod(clock, 5_000);
  expect(gracePeriod.isBelieved()).toBe(false);
  await clock.advance(5_000);
  gracePeriod.renew();
  expect(gracePeriod.isBelieved()).toBe(false);
});

it("is over after the required number of looks, if each look takes the planned time or longer", async () => {
  const clock = new ManualClock();
  const gracePeriod = new GracePeriod(clock, 5_000, 5);
  for (let looks = 1; looks < 5; looks += 1) {
    expect(gracePeriod.isBelieved()).toBe(false);
    await clock.advance(looks % 2 === 0 ? 1_250 : 20_000);
  }
  expect(gracePeriod.isBelieved()).toBe(true);
});

it("counts little of a look with a late answer, after any number of looks", async () => {
  const clock = new ManualClock();
  const gracePeriod = new GracePeriod(clock, 5_000, 6);
  for (let looks = 0; looks < 10; looks += 1) {
    expect(gracePeriod.isBelieved()).toBe(false);
    await clock.advance(100);
  }
  await clock.advance(20_000); // nobody answered
  expect(gracePeriod.isBelieved()).toBe(false); // after 0.9 s and a fifth of 5 s
  for (let looks = 0; looks < 3; looks += 1) {
    await clock.advance(1_000);
    expect(gracePeriod.isBelieved()).toBe(false);
  }
  await clock.advance(100);
  expect(gracePeriod.isBelieved()).toBe(true);
});
