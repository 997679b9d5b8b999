// Suites of `npm run test:process`: whole swarms of real processes, killed under load.

import { defineConfig } from "vitest/config";
import { shared } from "./vitest.config.ts";

/** Measures CPU time within bounds that other work on the machine exceeds. .ci/run runs the suite before all others. */
const calm = ["test/process/scaling.test.ts"];
/** These suites measure time, on two cores. */
const timed = ["equal-agents", "herd", "nats-coordinators", "standby"].map(
  (name) => `test/process/${name}.test.ts`,
);

const each = {
  ...shared,
  // Each begins with a fresh heap.
  isolate: true,
  testTimeout: 300_000,
} as const;

export default defineConfig({
  test: {
    ...shared,
    projects: [
      { test: { ...each, name: "calm", include: calm, sequence: { groupOrder: 0 } } },
      {
        test: {
          ...each,
          name: "timed",
          include: timed,
          maxWorkers: 1, // one after another
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...each,
          name: "side by side",
          include: ["test/process/**/*.test.ts"],
          exclude: [...calm, ...timed],
          // They wait for two thirds of their time.
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
