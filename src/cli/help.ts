// The layout of help: usage, description, flags, examples, and the global options last. Help fits terminals down to
// 60 columns: long descriptions move below their flag, and long examples are broken at flags. Not here: the words
// (each verb's file).

import { type Command, type Help, Option } from "commander";
import { brokenAt } from "./format.ts";

/** With fewer columns a description reads better below its flag. */
const BESIDE_WIDTH_MIN = 40;
const INDENT = 2;
/** Indent of a description below its flag, and of a continued example. */
const BELOW = 6;

const helpOption = new Option("-h, --help", "print help");

/** For `Command.configureHelp`. `globalOptionsHelp` prints the global options. */
export const helpLayout: Partial<Help> = {
  showGlobalOptions: false,
  visibleOptions: (command) => (command.parent === null ? [] : [...command.options, helpOption]),
  subcommandTerm: (command) => {
    const names = command.registeredArguments.map((argument) =>
      argument.required ? ` <${argument.name()}>` : ` [${argument.name()}]`,
    );
    return command.parent?.parent == null ? command.name() : `${command.name()}${names.join("")}`;
  },
  formatItem(term, termWidth, description, helper) {
    const start = `${" ".repeat(INDENT)}${term}`;
    if (description === "") return start;
    const width = helper.helpWidth ?? Number.POSITIVE_INFINITY;
    const besideAt = INDENT + termWidth + INDENT;
    const isBeside = width - besideAt >= BESIDE_WIDTH_MIN || besideAt <= BELOW * 3;
    const at = isBeside ? besideAt : BELOW;
    const lines = brokenAt(description, width - at).map((line) => `${" ".repeat(at)}${line}`);
    return isBeside ? `${start.padEnd(at)}${lines.join("\n").trimStart()}` : [start, ...lines].join("\n");
  },
};

/** The global options, for the end of each help text. */
export function globalOptionsHelp({ command }: { readonly command: Command }): string {
  const root = command.parent?.parent ?? command.parent ?? command;
  const helper = command.createHelp();
  const helpWidth = command.configureOutput().getOutHelpWidth?.();
  helper.prepareContext(helpWidth === undefined ? {} : { helpWidth });
  const isRoot = command === root;
  const options = isRoot
    ? [...root.options, helpOption]
    : root.options.filter(({ long }) => long !== "--version");
  const termWidth = Math.max(...options.map((option) => helper.optionTerm(option).length));
  const items = options.map((option) =>
    helper.formatItem(helper.optionTerm(option), termWidth, helper.optionDescription(option), helper),
  );
  return ["", "Global options:", ...items].join("\n");
}

/** Breaks lines that are wider than the terminal, as far as words allow. */
export function fittedHelp(text: string, width: number): string {
  return paragraphs(text)
    .flatMap((lines) => {
      if (lines.every((line) => line.length <= width)) return lines;
      const line = lines.join(" ");
      return line.startsWith("  $ ") ? fittedExample(line, width) : fittedProse(line, width);
    })
    .join("\n");
}

/** Consecutive lines of prose are one paragraph; every other line is its own paragraph. */
function paragraphs(text: string): string[][] {
  const isProse = (line = "") => /^[^ ].*[^:]$/.test(line);
  const found: string[][] = [];
  for (const line of text.split("\n")) {
    const last = found.at(-1);
    if (last !== undefined && isProse(line) && isProse(last.at(-1))) last.push(line);
    else found.push([line]);
  }
  return found;
}

/** A term and its description: `  delay     messages take long`; otherwise leading spaces. */
const PROSE_START = /^(?: +\S+ {2,}| *)/;

function fittedProse(line: string, width: number): string[] {
  const [start = ""] = line.match(PROSE_START) ?? [];
  const indent = start.length <= width / 3 ? start.length : BELOW;
  const [first = ""] = brokenAt(line, width);
  if (first === line) return [line];
  const rest = brokenAt(line.slice(first.length + 1), width - indent);
  return [first, ...rest.map((part) => `${" ".repeat(indent)}${part}`)];
}

/** A flag with its value, or a word; quoted text is never broken. */
const COMMAND_PARTS = /(?:^ +|--[\w-]+ (?=[^-@<>|]))?(?:'[^']*'|"[^"]*"|[^ '"])+(?: |$)/g;

/** The comment behind a command goes below it; a command still too long goes on behind a backslash. */
function fittedExample(line: string, width: number): string[] {
  const [, command = line, comment] = line.match(/^( {2}\$ .*?\S)(?: {2,}([^ ].*))?$/) ?? [];
  const below = " ".repeat(BELOW);
  const comments = comment === undefined ? [] : brokenAt(comment, width - BELOW);
  const commands: string[] = [];
  for (const part of command.match(COMMAND_PARTS) ?? [command]) {
    const last = commands.at(-1);
    if (last === undefined || `${last}${part}`.trimEnd().length + INDENT > width)
      commands.push(last === undefined ? part : `${below}${part}`);
    else commands[commands.length - 1] = `${last}${part}`;
  }
  const shown = commands.map((part, at) =>
    at < commands.length - 1 ? `${part.trimEnd()} \\` : part.trimEnd(),
  );
  return [...shown, ...comments.map((part) => `${below}${part}`)];
}
