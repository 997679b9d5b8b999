// Suites of `npm test`: all but test/process (vitest.process.config.ts: kills real processes for minutes) and the two
// lists below (vitest.long.config.ts, vitest.searches.config.ts). CI runs all.

import { availableParallelism } from "node:os";
import { defineConfig, type ViteUserConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.ts";
import { SkippedSuitesReporter } from "./test/support/skipped-suites-reporter.ts";

/** Set by .ci/run, which adds up the results of several runs. */
const report = process.env.WAGGLE_TEST_REPORT;

/** Whole swarms on the command line, and servers that are killed: they wait for half of their time. Shorter suites
 *  cover the same code. */
export const longSuites = [
  "test/cli/swarm.test.ts",
  "test/cli/broker-lifecycle.test.ts",
  "test/cli/demo.test.ts",
  "test/adapters/mcp-server.test.ts",
  "test/adapters/mcp-tool.test.ts",
  "test/adapters/nats-service.test.ts",
  "test/adapters/synadia.test.ts",
  "test/adapters/a2a.test.ts",
  "test/journal/nats-cluster.test.ts",
  "test/broker/start-and-stop.test.ts",
  "test/bench/scripts-help.test.ts",
  "test/chaos/main.test.ts",
  "test/dashboard/verb.test.ts",
  "test/dashboard/browser/pages.test.ts",
  "test/dashboard/browser/markup.test.ts",
  "test/ground/one-server.test.ts",
  "test/ground/three-oldest.test.ts",
  "test/ground/three-newest.test.ts",
  "test/security/violations.test.ts",
  "test/security/expired.test.ts",
];

/** Searches over many seeds, in virtual time: they compute, and no real time decides what they find. */
export const searchSuites = [
  "test/sim/fault/world.test.ts",
  "test/sim/fault/world-end.test.ts",
  "test/sim/fault/shrink.test.ts",
  "test/sim/fault/run-seed.test.ts",
  "test/sim/fault/verify-journals.test.ts",
  "test/sim/fault/replay-journals.test.ts",
  "test/sim/fault/engine-versions.test.ts",
  "test/sim/requirements.test.ts",
  "test/scheduling/planner-oracle.test.ts",
  "test/zoo/zoo.test.ts",
  "test/cli/torture.test.ts",
];

/** They need packages of their own (vitest.adapters.config.ts). */
export const frameworkSuites = "test/adapters/frameworks";

export const shared = {
  globalSetup: "test/support/global-setup.ts",
  reporters: [
    "default",
    new SkippedSuitesReporter(),
    ...(report === undefined ? [] : [["json", { outputFile: report }] as ["json", { outputFile: string }]]),
  ],
  environment: "node",
  sequence: { sequencer: LongestFirst },
  // Loading the modules again for each file took two fifths of the time. So a suite undoes what it does to its process.
  isolate: false,
  // Tests wait for servers and timers for half of their time: on two cores four files at once.
  maxWorkers: Math.max(4, availableParallelism()),
  // Integration suites start servers and child processes on machines of two cores, often under other
  // load: a limit is for hanging tests, not for slow tests.
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // vitest's own limit is a second.
  expect: { poll: { timeout: 30_000 } },
} satisfies ViteUserConfig["test"];

export default defineConfig({
  test: {
    ...shared,
    include: ["test/**/*.test.ts"],
    exclude: [
      "**/node_modules/**", // of test/adapters, as soon as its frameworks are installed
      "test/process/**",
      `${frameworkSuites}/**`,
      ...longSuites,
      ...searchSuites,
    ],
  },
});
