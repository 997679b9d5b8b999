// Every planted bug can still be planted: its text is in the code, and the result is still a program.

import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { transform } from "esbuild";
import { describe, expect, it } from "vitest";
import { mutated } from "./mutant.ts";
import { mutants } from "./mutants.ts";

const root = resolve(import.meta.dirname, "../..");

describe("the bug zoo", () => {
  it("has at least thirty-five bugs with different names", () => {
    expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
    expect(mutants.length).toBeGreaterThanOrEqual(35);
  });

  it.each(mutants.map((mutant) => [mutant.name, mutant] as const))("%s can be planted", async (_, mutant) => {
    const source = await readFile(resolve(root, mutant.file), "utf8");
    const changed = mutated(mutant, source);
    const [before, after] = await Promise.all(
      [source, changed].map((text) => transform(text, { loader: "ts", target: "node20" })),
    );
    expect(after?.code).not.toBe(before?.code);
  });

  it("reports a text that the code no longer contains", () => {
    const [mutant] = mutants;
    if (mutant === undefined) throw new RangeError("the zoo is empty");
    expect(() => mutated(mutant, "other code")).toThrow(/stands 0 times/);
  });
});
