// What `npm run test:long` runs: the suites that take a third of the time, beside `npm test`.

import { defineConfig } from "vitest/config";
import { longSuites, shared } from "./vitest.config.ts";

export default defineConfig({ test: { ...shared, include: longSuites } });
