// Suites of `npm run test:long`: a third of the time, beside `npm test`.

import { defineConfig } from "vitest/config";
import { longSuites, shared } from "./vitest.config.ts";

export default defineConfig({ test: { ...shared, include: longSuites } });
