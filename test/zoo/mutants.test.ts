// Every planted bug can still be planted: its text is in the code, and the result still has the right types. A bug
// without the right types may be no bug: one compared a function with a number.

import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { describe, expect, it } from "vitest";
import { type Mutant, mutated } from "./mutant.ts";
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

  it("has bugs with the right types only", async () => {
    const folder = await mkdtemp(join(tmpdir(), "waggle-zoo-"));
    try {
      await plantAll(folder);
      const tsc = join(root, "node_modules/typescript/bin/tsc");
      const checked = promisify(execFile)(process.execPath, [tsc, "--noEmit", "-p", folder]);
      await checked.catch((error: Error & { stdout: string }) => expect.fail(error.stdout || error.message));
    } finally {
      await rm(folder, { recursive: true });
    }
  }, 180_000);

  it("reports a text that the code no longer contains", () => {
    const [mutant] = mutants;
    if (mutant === undefined) throw new RangeError("the zoo is empty");
    expect(() => mutated(mutant, "other code")).toThrow(/stands 0 times/);
  });
});

/** A copy of the sources, with each bug in a file beside the file it changes. */
async function plantAll(folder: string): Promise<void> {
  for (const part of ["src", "machines"]) await cp(join(root, part), join(folder, part), { recursive: true });
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  await writeFile(join(folder, "package.json"), '{ "type": "module" }');
  const config = {
    extends: join(root, "tsconfig.json"),
    compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
    include: [],
    files: mutants.map(plantedFile),
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
  for (const mutant of mutants) {
    const source = await readFile(join(root, mutant.file), "utf8");
    await writeFile(join(folder, plantedFile(mutant)), mutated(mutant, source));
  }
}

function plantedFile({ file, name }: Mutant): string {
  return file.replace(/\.ts$/, `.${name}.ts`);
}
