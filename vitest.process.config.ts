// Suites of `npm run test:process`: whole swarms of real processes, killed under load.

import { defineConfig } from "vitest/config";
import { shared } from "./vitest.config.ts";

/** These suites measure time, on two cores. */
const timed = ["equal-agents", "herd", "nats-coordinators", "scaling", "standby"].map(
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
      {
        test: {
          ...each,
          name: "timed, one after another",
          include: timed,
          maxWorkers: 1,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...each,
          name: "side by side",
          include: ["test/process/**/*.test.ts"],
          exclude: timed,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
