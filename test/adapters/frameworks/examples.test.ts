// The examples of the adapters, each in a process of its own, in a folder where `waggle up` runs.

import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Workplace } from "../../support/waggle-process.ts";

const folder = new URL("../../../examples/adapters/", import.meta.url);

let workplace: Workplace;

beforeAll(async () => {
  workplace = await Workplace.make();
  await workplace.start("up").says("leading");
});
afterAll(async () => {
  await workplace?.clear();
});

const greeted = (...prompts: string[]) => prompts.map((prompt) => `${prompt}: Hello, bee.`);

it.each([
  [
    "ai.ts",
    "gpt-4o",
    4,
    ["scout", "dance", "forage", "return"].flatMap((prompt) => [`${prompt}: Hello, `, `${prompt}: bee.`]),
  ],
  ["anthropic.ts", "claude-haiku-5", 3, greeted("scout", "dance", "forage")],
  ["langchain.ts", "fake", 5, Array(5).fill("Hello, bee.")],
  ["openai-agents.ts", "gpt-4o-mini", 3, greeted("scout", "dance", "forage")],
  ["openai.ts", "gpt-4o", 3, greeted("scout", "dance", "forage")],
])("%s", async (name, resource, grants, lines) => {
  const before = await rowOf(resource);
  const { code, stdout, stderr } = await workplace.program(fileURLToPath(new URL(name, folder)));
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.trim().split("\n").toSorted()).toEqual(lines.toSorted());
  const { inUse, grants: after } = await rowOf(resource);
  expect({ inUse, grants: after - before.grants }).toEqual({ inUse: 0, grants });
});

it("runs every example there is", () => {
  const programs = readdirSync(folder).filter((name) => name.endsWith(".ts"));
  expect(programs).toEqual(["ai.ts", "anthropic.ts", "langchain.ts", "openai-agents.ts", "openai.ts"]);
});

async function rowOf(resource: string): Promise<{ readonly inUse: number; readonly grants: number }> {
  const { resources } = JSON.parse((await workplace.run("status", "--json")).stdout);
  return (
    resources.find((each: { resource: string }) => each.resource === resource) ?? { inUse: 0, grants: 0 }
  );
}
