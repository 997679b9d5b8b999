import { defineConfig } from "vitest/config";
export default defineConfig({ root: "/work/wt/chain", test: { isolate: false, testTimeout: 20000, include: ["test/**/*.test.ts"], pool: "forks" } });
