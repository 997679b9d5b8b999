// docs/protocol.md and docs/asyncapi.json agree with the schemas.

import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";

it("the protocol's documents are as generated", () => {
  const { status, stderr } = spawnSync("npx", ["tsx", "scripts/protocol.ts", "--check"], {
    encoding: "utf8",
  });
  expect(stderr.split("\n").filter((line) => line.includes("stale"))).toEqual([]);
  expect(status).toBe(0);
});
