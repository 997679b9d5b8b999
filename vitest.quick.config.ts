// Suites of `npm run test:quick`: the pure parts, and parts over the memory transport. Starts no process and compiles
// nothing.

import { defineConfig } from "vitest/config";
import { longSuites, searchSuites, shared } from "./vitest.config.ts";

export default defineConfig({
  test: {
    ...shared,
    globalSetup: [],
    include: [
      "test/{audit,client,config,core,machines,protocol,scenarios,scheduling,state,vectors}/**/*.test.ts",
    ],
    exclude: [
      ...longSuites,
      ...searchSuites,
      // Searches over thousands of random histories, and long vectors.
      "test/**/*property.test.ts",
      "test/core/{snapshot-damage,crowded}.test.ts",
      "test/vectors/live-slots.test.ts",
      "test/scheduling/{assignments,explain,fairness,starvation}.test.ts",
      "test/state/{clock-queue,near-miss,task-rows}.test.ts",
      // These suites start processes and brokers.
      "test/client/connect.test.ts",
      "test/protocol/docs.test.ts",
    ],
  },
});
