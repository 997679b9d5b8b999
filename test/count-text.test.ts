// Counts as people read them.

import { expect, it } from "vitest";
import { counted, formatCount } from "../src/count-text.ts";

it("groups the digits of counts as toLocaleString does", () => {
  const powers = Array.from({ length: 16 }, (_, exponent) => 10 ** exponent);
  const counts = powers.flatMap((power) => [power - 1, power, power + 1, -power, 1.25 * power]);
  for (const count of [...counts, 2 ** 53 - 1, 2 ** 60, 0.5, Number.POSITIVE_INFINITY])
    expect(formatCount(count)).toBe(count.toLocaleString("en-US"));
});

it("one of a thing has no plural", () => {
  expect(counted(1, "task")).toBe("1 task");
  expect(counted(0, "task")).toBe("0 tasks");
  expect(counted(12_345, "task")).toBe("12,345 tasks");
});
