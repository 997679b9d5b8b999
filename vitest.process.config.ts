// What `npm run test:process` runs: whole swarms of real processes that are killed in mid-load.
// One file at a time: each measures time against processes of its own, on two cores.

import { defineConfig } from "vitest/config";
import { shared } from "./vitest.config.ts";

export default defineConfig({
  test: {
    ...shared,
    // These measure time and memory, so each begins with a fresh heap.
    isolate: true,
    include: ["test/process/**/*.test.ts"],
    maxWorkers: 1,
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 60_000,
  },
});
