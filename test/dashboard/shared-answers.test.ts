// One question serves all that ask at about the same time; a failure serves nobody later.

import { expect, it } from "vitest";
import { SharedAnswers } from "../../src/dashboard/shared-answers.ts";
import { ManualClock } from "../support/manual-clock.ts";

it("asks once for all that ask meanwhile, and anew when the answer is old or an action came between", async () => {
  const clock = new ManualClock();
  const shared = new SharedAnswers<number>(clock);
  let asked = 0;
  const ask = async () => {
    asked += 1;
    return asked;
  };
  expect(await Promise.all([shared.get("a", 1_000, ask), shared.get("a", 1_000, ask)])).toEqual([1, 1]);
  expect(await shared.get("b", 1_000, ask)).toBe(2);
  await clock.advance(999);
  expect(await shared.get("a", 1_000, ask)).toBe(1);
  await clock.advance(1);
  expect(await shared.get("a", 1_000, ask)).toBe(3);
  shared.clear();
  expect(await shared.get("a", 1_000, ask)).toBe(4);
});

it("forgets a failure at once, and old keys in the end", async () => {
  const shared = new SharedAnswers<string>(new ManualClock());
  await expect(shared.get("a", 1_000, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await shared.get("a", 1_000, async () => "yes")).toBe("yes");
  for (let at = 0; at < 100; at += 1) await shared.get(`k${at}`, 1_000, async () => "x");
  expect(await shared.get("a", 1_000, async () => "again")).toBe("again");
});
