// A short run of `npm run fuzz`, on real processes.

import { expect, it } from "vitest";
import { type FuzzFigure, fuzz } from "./run.ts";

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
