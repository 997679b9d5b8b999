import { defineConfig } from "vitest/config";
export default defineConfig({ root: import.meta.dirname, test: { isolate: false, testTimeout: 20000, include: ["test/**/*.test.ts"], pool: "forks" } });
