// Suites of `npm run test:searches`: searches over many seeds, in virtual time.

import { defineConfig } from "vitest/config";
import { searchSuites, shared } from "./vitest.config.ts";

const timeoutMs = 600_000;

export default defineConfig({
  test: {
    ...shared,
    include: searchSuites,
    maxWorkers: 2,
    // CI runs them at the lowest priority, beside suites that need the processor first.
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
  },
});
