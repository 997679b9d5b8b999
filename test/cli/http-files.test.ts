// The files of --http-url-file and --http-header-file, right and wrong. Errors never repeat a key.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { headersIn, urlIn } from "../../src/cli/http-files.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "waggle-http-files-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const written = (text: string) => {
  writeFileSync(join(folder, "file"), text);
  return "file";
};

it("reads a URL on one line", () => {
  expect(urlIn(written("https://models.example/run?key=k3y\n"), folder)).toBe(
    "https://models.example/run?key=k3y",
  );
});

it("reads one header per line, without comments", () => {
  const file = written("# keys\nAuthorization: Bearer k3y\r\n\nX-Team:a b \n");
  expect(headersIn(file, folder)).toEqual({ Authorization: "Bearer k3y", "X-Team": "a b" });
});

it.each(["", "ftp://x", "https://a b", "k3y"])(
  "refuses a file with %j as URL, without repeating it",
  (text) => {
    const read = () => urlIn(written(text), folder);
    expect(read).toThrow(/has no URL/);
    if (text !== "") expect(read).not.toThrow(text);
  },
);

it.each(["k3y", "Bad Name: k3y", "Name: k3y\0", ": k3y"])(
  "refuses the line %j, without repeating it",
  (line) => {
    const read = () => headersIn(written(`Fine: yes\n${line}\n`), folder);
    expect(read).toThrow(/line 2 of file is no header/);
    expect(read).not.toThrow(/k3y/);
  },
);
