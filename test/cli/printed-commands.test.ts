// Commands that messages, the dashboard and the documentation tell people to run: verb and flags exist.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { expect, it } from "vitest";
import { buildProgram } from "../../src/cli/program.ts";
import { aShell } from "./shell.ts";

const root = await buildProgram({ shell: aShell(), exitCode: 0, asStarted: (text) => text });

const filesIn = (folder: string, end: string) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(end))
    .map((name) => join(folder, name));

interface Printed {
  readonly file: string;
  /** After `waggle `. */
  readonly line: string;
}

/** In quotes, as `waggle up --nats URL`. */
function quoted(file: string, text: string): Printed[] {
  return [...text.matchAll(/["'`]waggle ((?:\$\{[^}]*\}|[^"'`\n\\])+)/g)].map(([, line = ""]) => ({
    file,
    line,
  }));
}

/** At the beginning of a line of a block, as typed in a terminal. */
function typed(file: string, text: string): Printed[] {
  return [...text.matchAll(/^(?:\$ )?waggle (.+)$/gm)].map(([, line = ""]) => ({ file, line }));
}

const printed = [
  ...filesIn("src", ".ts").flatMap((file) => quoted(file, readFileSync(file, "utf8"))),
  ...["README.md", ...filesIn("docs", ".md")].flatMap((file) => {
    const text = readFileSync(file, "utf8");
    return [...quoted(file, text), ...typed(file, text)];
  }),
];

/** The verb of a line, and the flags up to a pipe, a comment or the arguments of another program. */
function parts(line: string): { readonly verb: Command | undefined; readonly flags: readonly string[] } {
  const [own = ""] = line.split(/\s(?:[|#>&]|--\s)|\s{3,}/);
  const [first = "", second = ""] = own.split(/\s+/);
  const named = root.commands.find((each) => each.name() === first);
  const verb = named?.commands.find((each) => each.name() === second) ?? named;
  return { verb, flags: own.match(/(?<=^|\s)--[a-z][a-z0-9-]*/g) ?? [] };
}

it("finds the commands", () => {
  expect(printed.length).toBeGreaterThan(200);
});

it("tells people only flags that the verb has", () => {
  const wrong = printed.flatMap(({ file, line }) => {
    const { verb, flags } = parts(line);
    if (verb === undefined) return []; // prose: "waggle assigns …"
    const known = new Set(
      [...root.options, ...verb.options].map(({ long }) => long).concat("--help", "--version"),
    );
    return flags.filter((flag) => !known.has(flag)).map((flag) => `${file}: ${flag} of waggle ${line}`);
  });
  expect(wrong).toEqual([]);
});
