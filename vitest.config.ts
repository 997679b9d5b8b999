// What `npm test` runs: everything but test/process, whose suites kill real processes for minutes
// (vitest.process.config.ts). Both share the settings below.

import { availableParallelism } from "node:os";
import { defineConfig, type ViteUserConfig } from "vitest/config";
import { SkippedSuitesReporter } from "./test/support/skipped-suites-reporter.ts";

/** Set by .ci/run, which adds up the results of several runs. */
const report = process.env.WAGGLE_TEST_REPORT;

export const shared = {
  globalSetup: "test/support/global-setup.ts",
  reporters: [
    "default",
    new SkippedSuitesReporter(),
    ...(report === undefined ? [] : [["json", { outputFile: report }] as ["json", { outputFile: string }]]),
  ],
  environment: "node",
} satisfies ViteUserConfig["test"];

export default defineConfig({
  test: {
    ...shared,
    include: ["test/**/*.test.ts"],
    exclude: ["test/process/**"],
    // Tests wait for servers and timers for half of their time: on two cores four files at once.
    maxWorkers: Math.max(4, availableParallelism()),
    // Integration suites start servers and child processes on machines of two cores, which may have more to do: a
    // limit is for what hangs, not for what is slow.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
