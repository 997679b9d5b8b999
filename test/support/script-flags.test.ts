// Scripts with wrong flags print their usage. Not here: the work of the scripts.

import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";

function script(file: string, ...argv: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--import", "tsx", file, ...argv], {
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

describe.each([
  ["zoo", "test/zoo/zoo.ts"],
  ["chaos", "test/chaos/main.ts"],
  ["model", "test/model/main.ts"],
])("npm run %s", (name, file) => {
  it.each(["nope", "--nope"])("%s is refused with its usage", (word) => {
    const { status, stderr } = script(file, word);
    expect(status).toBe(2);
    expect(stderr).toContain(word);
    expect(stderr).toContain(`npm run ${name} -- [`);
    expect(stderr).not.toMatch(/^ +at /m);
  });

  it("--help is its usage", () => {
    expect(script(file, "--help")).toMatchObject({
      status: 0,
      stdout: expect.stringContaining(`npm run ${name} -- [`),
    });
  });
});
