// The demo's work, checked with wc, sha256sum, and by eye.

import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { count, demoWork, exportsOf, headingsOf, outline } from "../../src/cli/demo/work.ts";

const texts = {
  empty: "",
  "one line without an end": "a b c",
  "blank runs": "\n\n  a\tb \v c\f d\r\n",
  "words in other scripts": "größe → 数据\u00a0x\u2003y — z\n",
  "bytes that are no UTF-8": Buffer.from("caf\xe9 \xff b\n", "latin1"),
  "a control character alone": "a \u0001 b\n",
};

describe("count", () => {
  it.each(Object.entries(texts))("agrees with wc on %s", (_, text) => {
    const file = join(mkdtempSync(join(tmpdir(), "waggle-wc-")), "text");
    writeFileSync(file, text);
    const env = { ...process.env, LC_ALL: "C.UTF-8" };
    const printed = execFileSync("wc", ["-l", "-w", "-c", file], { encoding: "utf8", env });
    const [lines, words, bytes] = printed.trim().split(/\s+/).map(Number);
    expect(count(Buffer.from(text))).toEqual({ lines, words, bytes });
  });
});

describe("digest", () => {
  it("is SHA-256 in hex", () => {
    const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    expect(demoWork.digest("a", Buffer.from("abc"))).toEqual({ sha256: abc });
  });
});

describe("outline of Markdown", () => {
  it("takes the titles of headings", () => {
    expect(headingsOf("# One\ntext\n## Two ##\n   ### Three\n#\n###### Six #6\n")).toEqual([
      "One",
      "Two",
      "Three",
      "",
      "Six #6",
    ]);
  });

  it("are underlined ones, too", () => {
    expect(headingsOf("Title\n===\n\nOf two\nlines\n---\n# Three\n")).toEqual([
      "Title",
      "Of two lines",
      "Three",
    ]);
  });

  it("are not made by a rule, a list, a table or front matter", () => {
    const markdown =
      "---\ntitle: x\n---\n\n---\n- item\n---\n| a |\n---\n\n    code\n---\ntext\n\n---\ntext\n- item\n---\n";
    expect(headingsOf(markdown)).toEqual([]);
  });

  it("are found soon where front matter never ends", () => {
    expect(headingsOf(`---\r\n${"x\r\n".repeat(5_000)}\r\n# One`)).toEqual(["One"]);
  });

  it("takes no lookalike of a heading", () => {
    expect(headingsOf("#hashtag\n####### seven\n    # indented code\ntext # not\n")).toEqual([]);
  });

  it("skips fenced code, whatever the fence holds", () => {
    const markdown =
      "````md\n# no\n```\n# no\n````\n# yes\n~~~\n# no\n```\n~~~ not the end\n# no\n~~~\n# also\n";
    expect(headingsOf(markdown)).toEqual(["yes", "also"]);
  });

  it("does not take code within a line for a fence", () => {
    expect(headingsOf("```inline``` code\n# yes\n")).toEqual(["yes"]);
  });
});

describe("outline of TypeScript and JavaScript", () => {
  it("finds every form of export", () => {
    const source = `
      export const a = 1;
      export async function b() {}
      export function* c() {}
      export abstract class D {}
      export interface E {}
      export type F = string;
      export declare const g: number;
      export const enum H {}
      export { i, type J, k as l } from "./x.ts";
      export * as m from "./y.ts";
      export * from "./z.ts";
      export const { n, o: p, q = 2, ...r } = s;
      export default class T {}
    `;
    const names = ["D", "E", "F", "H", "J", "a", "b", "c", "default", "g", "i", "l", "m", "n", "p", "q", "r"];
    expect(exportsOf(source)).toEqual(names);
  });

  it("is not misled by comments, strings, templates and regular expressions", () => {
    const source = [
      "// export const no1 = 1",
      "/* \nexport const no2 = 2\n */",
      "const text = `\nexport const no3 = 3;\n`;",
      "const quote = /[\"'`]/g;",
      'const said = "it\'s // fine";',
      "export const yes = 1;",
      "exported.const = 2; reexport = 3;",
    ].join("\n");
    expect(exportsOf(source)).toEqual(["yes"]);
  });

  it("looks at names of files, and at nothing else", () => {
    expect(outline("a.md", Buffer.from("# T\nexport const a = 1;"))).toEqual({
      headings: ["T"],
      exports: [],
    });
    expect(outline("a.mts", Buffer.from("# T\nexport const a = 1;"))).toEqual({
      headings: [],
      exports: ["a"],
    });
    expect(outline("a.txt", Buffer.from("# T\nexport const a = 1;"))).toEqual({ headings: [], exports: [] });
  });
});
