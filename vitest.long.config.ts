// Suites of `npm run test:long`: whole swarms on the command line, and servers that are killed.

import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { longSuites, shared } from "./vitest.config.ts";

export default defineConfig({
  test: {
    ...shared,
    include: longSuites,
    // Files that wait for servers and processes in most of their time.
    maxWorkers: Math.max(4, availableParallelism()),
  },
});
