// A short run of `npm run fuzz`, on real processes.

import { expect, it } from "vitest";
import { type FuzzFigure, fuzz, growthMiB } from "./run.ts";

it.runIf(process.platform === "linux")("survives malformed input", { timeout: 120_000 }, async () => {
  const figures: FuzzFigure[] = [];
  await fuzz({ broker: 3_000, coordinator: 3_000, dashboard: 300, seed: 33 }, (figure) =>
    figures.push(figure),
  );
  expect(figures.map(({ target }) => target)).toEqual(["broker", "coordinator", "dashboard"]);
  for (const { residentMiB } of figures) {
    expect(residentMiB).toHaveLength(10);
    expect(Math.min(...residentMiB)).toBeGreaterThan(10);
  }
});

it("takes a rising floor for growth, and no swing of garbage", () => {
  const figure = (residentMiB: number[]): FuzzFigure => ({
    target: "broker",
    inputs: 1_000_000,
    residentMiB,
  });
  expect(growthMiB(figure([70, 71, 70, 74, 73, 78, 81, 85, 71, 78]))).toBe(1);
  expect(growthMiB(figure([70, 72, 74, 76, 78, 80, 82, 84, 86, 88]))).toBe(12);
});
