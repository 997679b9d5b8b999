// docs/lifecycle.md is generated. The check fails after a change of a chart without a new page.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { lifecyclePage } from "../../scripts/lifecycle.ts";

it("docs/lifecycle.md is current: npm run docs:lifecycle", () => {
  expect(readFileSync(new URL("../../docs/lifecycle.md", import.meta.url), "utf8")).toBe(lifecyclePage());
});
