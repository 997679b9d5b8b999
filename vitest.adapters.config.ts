// Suites of `npm run test:adapters`: the adapters with the real frameworks, which scripts/test-adapters.ts installs.

import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { frameworkSuites, shared } from "./vitest.config.ts";

/** Where a file of src/ finds the frameworks, as an installed package does. */
const entry = (path: string) => fileURLToPath(new URL(`test/adapters/node_modules/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^ai$/, replacement: entry("ai/dist/index.js") },
      { find: /^@openai\/agents$/, replacement: entry("@openai/agents/dist/index.mjs") },
    ],
  },
  test: { ...shared, include: [`${frameworkSuites}/*.test.ts`] },
});
