// Errors for files of the command line: the reason in words, without the codes of the operating system.

import { mkdtemp, readFile, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { fileError } from "../../src/cli/file-error.ts";

it("says the reason in words", async () => {
  const folder = await mkdtemp(join(tmpdir(), "waggle-files-"));
  const file = join(folder, "file");
  await writeFile(file, "");
  const tried = {
    missing: await readFile(join(folder, "none")).catch((error: unknown) => error),
    folder: await readFile(folder).catch((error: unknown) => error),
    below: await stat(join(file, "x")).catch((error: unknown) => error),
    unwritable: await writeFile(join(folder, "none", "x"), "").catch((error: unknown) => error),
  };
  const failure = (does: string, error: unknown) => fileError(does, "x.json", error, "output");
  expect(failure("read", tried.missing).message).toBe("cannot read x.json: there is no such file or folder");
  expect(failure("read", tried.folder).message).toBe(
    "cannot read x.json: it is a folder, and a file is needed",
  );
  expect(failure("read", tried.below).message).toBe(
    "cannot read x.json: a part of its path is a file, and no folder",
  );
  expect(failure("write", tried.unwritable)).toMatchObject({
    code: "WAGGLE_USAGE",
    field: "output",
    message: "cannot write x.json: its folder does not exist",
  });
  expect(failure("read", new Error("odd")).message).toBe("cannot read x.json: odd");
});
