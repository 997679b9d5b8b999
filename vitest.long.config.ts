// Suites of `npm run test:long`: whole swarms on the command line, and servers that are killed.

import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { longSuites, shared } from "./vitest.config.ts";

export default defineConfig({
  test: {
    ...shared,
    include: longSuites,
    // Three files wait for elections of servers in most of their time, so two more run beside them.
    maxWorkers: Math.max(6, availableParallelism()),
  },
});
