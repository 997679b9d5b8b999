// The scanner must not take text for code or code for text: every rule stands on it.

import { expect, test } from "vitest";
import { sourceFile } from "./source-tree.ts";

function codeOf(text: string): string {
  return sourceFile("src/a.ts", text).code;
}

test.each([
  ["line comment", "a; // Date", "a;        "],
  ["block comment", "a; /* Date\nDate */ b;", "a;        \n        b;"],
  ["unfinished comment", "a; /* Date", "a;        "],
  ["string with the other quote", `a("it's"); b;`, `a("    "); b;`],
  ["escaped quote", `a("\\"Date"); b;`, `a("      "); b;`],
  ["slashes in a string", `a("//x"); b;`, `a("   "); b;`],
  ["template", "a(`Date`); b;", "a(`    `); b;"],
  ["code in a template", "a(`x${now({ y })} Date ${b}`);", "a(` ${now({ y })}      ${b}`);"],
  ["template in a template", "a(`x${b(`y${c}`)}z`);", "a(` ${b(` ${c}`)} `);"],
  ["regular expression", `a = /"[/"]x/.test(b); c;`, `a = /      /.test(b); c;`],
  ["division", "a = b / c; d = e / f;", "a = b / c; d = e / f;"],
])("%s", (_, text, code) => {
  expect(codeOf(text)).toBe(code);
});

test("imports of every form", () => {
  const { imports } = sourceFile(
    "src/a.ts",
    [
      'import "./side.ts";',
      'import { a, type B, c as d } from "./values.ts";',
      'import type { E } from "./types.ts";',
      'import { type F } from "./all-types.ts";',
      'import {\n  g,\n} from "./lines.ts";',
      'export { h } from "./passed-on.ts";',
      'const later = import("./later.ts");',
      '// import { no } from "./comment.ts";',
      "const text = 'import { no } from \"./string.ts\"';",
    ].join("\n"),
  );
  expect(imports.map(({ specifier, line }) => `${specifier}:${line}`)).toEqual([
    "./side.ts:1",
    "./values.ts:2",
    "./types.ts:3",
    "./all-types.ts:4",
    "./lines.ts:5",
    "./passed-on.ts:8",
    "./later.ts:9",
  ]);
  expect(imports[1]?.names).toEqual(["a", "B", "d"]);
  expect(imports.map(({ typeOnly }) => typeOnly)).toEqual([false, false, true, true, false, false, false]);
  expect(imports.map(({ reExport }) => reExport)).toEqual([false, false, false, false, false, true, false]);
});
