// docs/lifecycle.md is generated; this is the check that fails when a chart changed and the page did not.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { lifecyclePage } from "../../scripts/lifecycle.ts";

it("docs/lifecycle.md is what the charts say: npm run docs:lifecycle", () => {
  expect(readFileSync(new URL("../../docs/lifecycle.md", import.meta.url), "utf8")).toBe(lifecyclePage());
});
