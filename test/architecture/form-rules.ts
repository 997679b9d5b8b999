// Form of files, beyond the linter's checks.

import { posix } from "node:path";
import { fileRule, isCode, isProduct, type Rule } from "./rule.ts";
import { lineAt, type SourceFile } from "./source-tree.ts";

const headerRule = fileRule({
  name: "every file opens by saying what it is",
  why: "A reader decides from the first lines whether this is the file they want.",
  mend: "One to six lines of comment on top: what this is, what it is not, the one thing to know.",
  where: isCode,
  checkFile: ({ text }) => {
    const first = text.replace(/^#!.*\n/, "").trimStart();
    return first.startsWith("//") || first.startsWith("/*") ? [] : [{ line: 1, found: "opens with code" }];
  },
});

const COMMENT_COLUMNS = 120;

/** The formatter breaks code, but not comments. */
const commentWidthRule = fileRule({
  name: "no line of a comment is longer than a window is wide",
  why: "Two files stand side by side when code is reviewed, and a comment that runs out of the window is not read.",
  mend: `Break it before column ${COMMENT_COLUMNS + 1}.`,
  where: isCode,
  checkFile: ({ text }) =>
    text.split("\n").flatMap((line, at) => {
      const isTooWide = /^\s*(?:\/\/|\/?\*)/.test(line) && [...line].length > COMMENT_COLUMNS;
      return isTooWide ? [{ line: at + 1, found: `has ${[...line].length} columns` }] : [];
    }),
});

const defaultExportRule = fileRule({
  name: "no default exports",
  why: "A default export has another name in each file that imports it: it cannot be searched for.",
  mend: "Export a name. Only configuration files, whose tools ask for a default, have one.",
  where: (path) => isCode(path) && !path.endsWith(".config.ts"),
  checkFile: (file) => matches(file, /\bexport\s+default\b|\bas\s+default\b/g, "has a default export"),
});

const mutableModuleRule = fileRule({
  name: "no mutable state at module level",
  why:
    "It is shared by everything in the process that imports the file: two swarms, two tests, a coordinator and " +
    "its standby. Nobody owns it and nobody can reset it.",
  mend: "Put it in an object that somebody creates and hands on, or make it a const.",
  where: isProduct,
  checkFile: (file) => matches(file, /^(?:export\s+)?(?:let|var)\s+\w+/gm, "declares"),
});

const consoleRule = fileRule({
  name: "nobody prints but the command line",
  why: "Standard output belongs to the program that links us; on the command line it carries data for pipes.",
  mend: "Take a logger in `deps` (pino, silent by default), or return the value to src/cli.",
  // A file called …-main.ts is a process of its own, and its standard output is its log.
  where: (path) => isProduct(path) && !path.startsWith("src/cli/") && !path.endsWith("-main.ts"),
  checkFile: (file) => matches(file, /\bconsole\.\w+|\bprocess\.std(?:out|err)\b/g, "prints with"),
});

/** The linter sees promises of our own code and of packages, not those of Node's ambient modules. */
const floatingRule = fileRule({
  name: "promises of Node's own modules do not float",
  why: "A floating promise is a lost message, and the linter's rule cannot see the types of node: modules.",
  mend: "Await it, return it, or say `void` and why an error may be lost.",
  where: isCode,
  checkFile: (file) => {
    const names = file.imports
      .filter(({ specifier }) => /^node:(.*\/promises|events)$/.test(specifier))
      .flatMap((imported) => imported.names.filter((name) => isPromising(imported.specifier, name)));
    if (names.length === 0) return [];
    return matches(file, new RegExp(`^\\s*(?:${names.join("|")})\\(`, "gm"), "nobody waits for");
  },
});

function isPromising(specifier: string, name: string): boolean {
  return specifier === "node:events" ? name === "once" : name !== "setInterval";
}

const limitNames = "(?:Ms|Bytes|Max|Min|Characters|Depth|Seconds|Retries)";
/** `timeoutMs: 5_000`, `const depthMax = 64`, `retries = 3`; 0 and 1 mean "none" and "one", not an amount. */
const namedLimit = new RegExp(
  `\\b\\w*${limitNames}\\s*(?::\\s*number\\s*)?[:=]\\s*(?![01]\\b[^_.\\d*])\\d[\\d_.]*`,
  "g",
);
const timerLimit =
  /\bset(?:Timeout|Interval)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*,\s*(?![01]\s*\))\d[\d_.]*\s*\)/g;

/** Numbers without a choice, each with its reason. */
const factsNotLimits: Readonly<Record<string, string>> = {
  escapedCharacterBytesMax: "JSON writes a control character as six bytes",
};

const limitsRule = fileRule({
  name: "every bound stands in src/limits.ts",
  why:
    "Bounds depend on each other (a lease outlives a heartbeat, a batch fits a message), and whoever runs a " +
    "swarm asks what they are. In one file they have reasons and their relations are asserted.",
  mend: "Add it to src/limits.ts with its unit last and its reason, and use limits.<name>.",
  where: (path) => /^src\/.*\.ts$/.test(path) && path !== "src/limits.ts" && !path.startsWith("src/sim/"),
  checkFile: (file) => [
    ...matches(file, namedLimit, "sets").filter(
      ({ found }) => !Object.keys(factsNotLimits).some((name) => found.includes(name)),
    ),
    ...matches(file, timerLimit, "waits by"),
  ],
});

function matches(file: SourceFile, pattern: RegExp, verb: string) {
  return [...file.code.matchAll(pattern)].map((match) => {
    const found = match[0];
    const offset = match.index + (found.length - found.trimStart().length);
    return { line: lineAt(file.code, offset), found: `${verb} ${found.trim()}` };
  });
}

const kebabCase = /^\.?[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*$/;

const kebabRule: Rule = fileRule({
  name: "files and folders are kebab-case",
  why: "One spelling on every file system; a name typed in an import is never wrong by its capitals.",
  mend: "Rename it: lower case, words joined by dashes.",
  where: (path) => /^(src|machines|test|bench|scripts|examples|bin)\//.test(path),
  checkFile: ({ path }) =>
    path
      .split("/")
      .filter((part) => !kebabCase.test(part) && !keptNames.has(posix.basename(part)))
      .map((part) => ({ found: `has the part ${part}` })),
});

/** Names that other tools require. */
const keptNames = new Set(["README.md", "Dockerfile"]);

export const formRules: readonly Rule[] = [
  headerRule,
  commentWidthRule,
  defaultExportRule,
  mutableModuleRule,
  consoleRule,
  floatingRule,
  limitsRule,
  kebabRule,
];
