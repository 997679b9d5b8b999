// How help reads: grouped, with examples before the global options, within the width of the terminal.

import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import { fittedHelp } from "../../src/cli/help.ts";
import { buildProgram } from "../../src/cli/program.ts";
import { durationIn } from "../../src/config/duration.ts";
import { limits } from "../../src/limits.ts";
import { aShell, runIn } from "./shell.ts";

const root = await buildProgram({ shell: aShell(), exitCode: 0, asStarted: (text) => text });
const pathsOf = (command: Command, before: readonly string[] = []): string[][] => [
  [...before],
  ...command.commands.flatMap((each) => pathsOf(each, [...before, each.name()])),
];
const paths = pathsOf(root);

it("lists the verbs in groups", async () => {
  const { stdout } = await runIn(aShell(), "--help");
  const heads = stdout.match(/^[A-Z].*:$/gm);
  expect(heads).toEqual([
    ...["Run:", "Tasks:", "Settings:", "Look:", "Operate:"],
    ...["Examples:", "Exit codes:", "Global options:"],
  ]);
});

it.each([["--help"], ["help"], [], ["--json", "statsu"]])("loads no verb for %s", async (...argv) => {
  const { commands } = await buildProgram({ shell: aShell(), exitCode: 0, asStarted: (text) => text }, argv);
  expect(commands.map((verb) => verb.name())).toEqual(root.commands.map((verb) => verb.name()));
  expect(commands.filter((verb) => verb.options.length > 0 || verb.description() !== "")).toEqual([]);
});

it("loads the verb that comes after a global option", async () => {
  const { code, stdout } = await runIn(aShell(), "--swarm", "acme", "policy", "set", "--help");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Usage: waggle policy set/);
});

describe.each([60, 80, 120])("at %i columns", (columns) => {
  it.each(paths.map((path) => [path.join(" "), path] as const))(
    "help of '%s' has examples before the global options, and fits",
    async (_, path) => {
      const { stdout } = await runIn(aShell({ columns, env: { NO_COLOR: "1" } }), ...path, "--help");
      const example = stdout.indexOf("\nExamples:\n");
      expect(example).toBeGreaterThan(0);
      expect(example).toBeLessThan(stdout.indexOf("\nGlobal options:\n"));
      expect(stdout.slice(example)).toContain(`waggle ${path.join(" ")}`.trimEnd());
      const isQuoted = (line: string) => /^ {6}(?:--[\w-]+ )?'[^']*'(?: \\)?$/.test(line);
      const wide = stdout.split("\n").filter((line) => line.length > columns && !isQuoted(line));
      expect(wide).toEqual([]);
    },
  );
});

it("says the default time of an attempt", async () => {
  const { stdout } = await runIn(aShell({ columns: 200, env: { NO_COLOR: "1" } }), "submit", "--help");
  const said = /--timeout <duration> .*default (\w+)$/m.exec(stdout)?.[1] ?? "";
  expect(durationIn(said)).toBe(limits.attemptTimeoutMs);
});

it("breaks prose as paragraphs, and a term's meaning behind the term", () => {
  const prose = [
    "Figures are means over the seeds, with their confidence interval. With --json it prints one object per rule,",
    "as a record.",
    "",
    "  delay             messages of one node take long, with a heavy tail",
    "  a-rather-long-name-of-a-field  what it means",
  ].join("\n");
  expect(fittedHelp(prose, 60).split("\n")).toEqual([
    "Figures are means over the seeds, with their confidence",
    "interval. With --json it prints one object per rule, as a",
    "record.",
    "",
    "  delay             messages of one node take long, with a",
    "                    heavy tail",
    "  a-rather-long-name-of-a-field  what it means",
  ]);
  expect(fittedHelp(prose, 120)).toBe(prose);
});

it("shows no text in words that name no subject", async () => {
  for (const path of paths) {
    const { stdout } = await runIn(aShell({ columns: 10_000 }), ...path, "--help");
    const own = stdout.replace(/^Faults:\n( {2}.*\n)+/m, "");
    expect(own, path.join(" ")).not.toMatch(
      /\b(?:at first|one object an? |what is said|for so long|somebody|anybody|nobody|whoever|anew|is set for)\b/,
    );
  }
});

it("breaks a long example at a flag, still ready to paste, with the comment below", () => {
  const example = "  $ waggle submit --kind review --text 'how many words' --wait     the result follows";
  expect(fittedHelp(example, 50).split("\n")).toEqual([
    "  $ waggle submit --kind review \\",
    "      --text 'how many words' --wait",
    "      the result follows",
  ]);
});
