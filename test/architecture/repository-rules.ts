// Rules about the repository as a whole: documents, the lock file, traces of somebody's machine.

import { posix } from "node:path";
import { fileRule, isCode, type Rule, type Violation } from "./rule.ts";
import { lineAt, type SourceFile, type Tree } from "./source-tree.ts";

const linkRule: Rule = {
  name: "links in documents lead somewhere",
  why: "A dead link tells a reader that the page was left behind, and they stop trusting the rest.",
  mend: "Correct the path or the #heading, or write the page.",
  check: (tree) =>
    tree.files.filter((file) => file.path.endsWith(".md")).flatMap((file) => deadLinks(file, tree)),
};

function deadLinks(file: SourceFile, tree: Tree): Violation[] {
  const prose = file.text.replace(/^```[\s\S]*?^```/gm, blankLines).replace(/`[^`\n]*`/g, blankLines);
  const violations: Violation[] = [];
  for (const match of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
    const target = match[1] ?? "";
    if (/^[a-z]+:/.test(target)) continue;
    const complaint = complaintAbout(file, target, tree);
    if (complaint !== undefined) {
      violations.push({
        path: file.path,
        line: lineAt(prose, match.index),
        found: `${target}: ${complaint}`,
      });
    }
  }
  return violations;
}

function blankLines(code: string): string {
  return code.replace(/[^\n]/g, " ");
}

function complaintAbout(file: SourceFile, target: string, tree: Tree): string | undefined {
  const [path = "", anchor] = target.split("#");
  const wanted = path === "" ? file.path : posix.normalize(posix.join(posix.dirname(file.path), path));
  const folder = `${wanted.replace(/\/$/, "")}/`;
  const page = tree.files.find((other) => other.path === wanted);
  if (page === undefined) {
    const isFolder = tree.files.some((other) => other.path.startsWith(folder));
    return isFolder ? undefined : "no such file";
  }
  if (anchor === undefined || !wanted.endsWith(".md")) return undefined;
  return headingsOf(page).has(anchor) ? undefined : "no such heading";
}

/** Anchors of headings as on code hosts: lower case, without punctuation, dashes for spaces. */
function headingsOf({ text }: SourceFile): ReadonlySet<string> {
  const headings = text.replace(/^```[\s\S]*?^```/gm, "").matchAll(/^#{1,6}\s+(.+)$/gm);
  const anchors = new Set<string>();
  for (const [, heading = ""] of headings) {
    const slug = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replace(/\s/g, "-");
    let unique = slug;
    for (let again = 1; anchors.has(unique); again++) unique = `${slug}-${again}`;
    anchors.add(unique);
  }
  return anchors;
}

const testedRule: Rule = {
  name: "tables of promises name their tests",
  why: "A promise that no test attacks is a hope, and a row whose test was renamed away is worse: it looks kept.",
  mend:
    "Name in the last column, in backticks, the files (….test.ts) or folders under test/ that show it, or the part of " +
    "`npm run chaos -- --part NAME` whose figures stand in docs/results/chaos.json; write the test if there is none.",
  check: (tree) =>
    tree.files
      .filter(({ path }) => path === "docs/failure-modes.md")
      .flatMap((file) =>
        [...file.text.matchAll(/^\|(?! *(?:fault|-)).*$/gm)].flatMap((row) => untested(file, row, tree)),
      ),
};

function untested(file: SourceFile, row: RegExpMatchArray, tree: Tree): Violation[] {
  const shownBy = row[0].split("|").at(-2) ?? "";
  const tests = [...shownBy.matchAll(/`(test\/[^`]+)`/g)].map(([, path = ""]) => path);
  const parts = [...shownBy.matchAll(/`npm run chaos -- --part ([^`]+)`/g)].map(([, part = ""]) => part);
  const place = { path: file.path, line: lineAt(file.text, row.index ?? 0) };
  if (tests.length + parts.length === 0) return [{ ...place, found: "a row without a test" }];
  return [
    ...tests.filter((path) => !isTest(path, tree)).map((path) => `${path}: no such test`),
    ...parts.filter((part) => !isMeasured(part, tree)).map((part) => `${part}: no figures of such a part`),
  ].map((found) => ({ ...place, found }));
}

/** Pages with a list of the folders of src. */
const maps = ["README.md", "docs/architecture.md"];

const folderRule: Rule = {
  name: "each folder of src is on the map",
  why: "A newcomer who opens a folder that the map leaves out cannot tell which job it has.",
  mend: "Add a line with the folder's job to README.md, and to the parts of docs/architecture.md.",
  check: ({ files }) => {
    const folders = new Set(files.flatMap(({ path }) => /^src\/[^/]+\/(?=.*\.ts$)/.exec(path) ?? []));
    return files
      .filter(({ path }) => maps.includes(path))
      .flatMap(({ path, text }) =>
        [...folders]
          .filter((folder) => !new RegExp(`^(?:\\| \`)?${folder}`, "m").test(text))
          .map((folder) => ({ path, found: `nothing of ${folder}` })),
      );
  },
};

const TABLE_ROWS_MAX = 90;

/** Most lines of pages that grow with the work on the project. */
const linesMax: ReadonlyMap<string, number> = new Map([
  ["CHANGELOG.md", 60],
  ["docs/reliability.md", 120],
]);

const pageSizeRule: Rule = {
  name: "pages that grow fit one reading",
  why: "Nobody finds a fault in a table that grows with every fault seen, or a gain in a list of every change.",
  mend: "Join lines and rows that say one thing. Leave details to the tests and pages that they name.",
  check: ({ files }) => files.flatMap((file) => [...tooManyRows(file), ...tooManyLines(file)]),
};

function tooManyLines({ path, text }: SourceFile): Violation[] {
  const lines = text.split("\n").length - 1;
  const max = linesMax.get(path) ?? Number.POSITIVE_INFINITY;
  return lines <= max ? [] : [{ path, found: `${lines} lines of at most ${max}` }];
}

function tooManyRows({ path, text }: SourceFile): Violation[] {
  if (path !== "docs/failure-modes.md") return [];
  const rows = [...text.matchAll(/^\|(?! *(?:fault|-)).*$/gm)];
  return rows.length <= TABLE_ROWS_MAX ? [] : [{ path, found: `${rows.length} rows` }];
}

const CELL_LENGTH_MAX = 200;

/** Tables that no author of the page writes. A long cell is a matter of the named source. */
const generatedTables: ReadonlyMap<string, RegExp> = new Map([
  // Types and descriptions of the schemas in src/protocol, which docs/asyncapi.json has as well.
  ["docs/protocol.md", /^<!-- table \S+ -->$[\s\S]*?^<!-- end -->$/gm],
  // The figures of a claim, for each rule that the claim compares (scripts/results).
  ["docs/results.md", /^[\s\S]*$/g],
]);

const cellRule = fileRule({
  name: `no cell of a table has more than ${CELL_LENGTH_MAX} characters`,
  why: "A cell is read at a glance. A longer text makes its row as high as a screen, and the columns beside it narrow.",
  mend: "Shorten the cell, make two rows of it, or move the text below the table.",
  where: (path) => path.endsWith(".md"),
  checkFile: ({ path, text }) => {
    const generated = generatedTables.get(path);
    const written =
      generated === undefined ? text : text.replace(generated, (part) => part.replace(/[^\n]/g, " "));
    return [...written.matchAll(/^\|.*$/gm)].flatMap(({ 0: row, index }) =>
      row
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim().length)
        .filter((length) => length > CELL_LENGTH_MAX)
        .map((length) => ({ line: lineAt(text, index), found: `a cell of ${length} characters` })),
    );
  },
});

/** Most lines of folders that one person must be able to read in a day, counted together. */
const sizes: readonly { readonly folders: readonly string[]; readonly lines: number }[] = [
  { folders: ["src/coordinator", "src/journal"], lines: 13_500 },
  { folders: ["src/coordinator", "src/journal", "src/requests", "src/views"], lines: 18_000 },
];

const sizeRule: Rule = {
  name: "the coordinator and the journal stay readable in a day",
  why: "Code for rare faults grows case by case, until nobody can read these folders or change them.",
  mend: "Remove a case or merge two parts. A fault in which several faults meet halts the coordinator (docs/fault-model.md).",
  check: ({ files }) =>
    sizes.flatMap(({ folders, lines }) => {
      const inside = files.filter(({ path }) => folders.some((folder) => path.startsWith(`${folder}/`)));
      const counted = inside.reduce((sum, { text }) => sum + text.split("\n").length - 1, 0);
      return counted > lines
        ? [{ path: folders.join(" + "), found: `${counted} lines of at most ${lines}` }]
        : [];
    }),
};

/** A test file, or a folder with tests. */
function isTest(path: string, { files }: Tree): boolean {
  const folder = `${path.replace(/\/$/, "")}/`;
  return files.some(
    (file) => file.path.endsWith(".test.ts") && (file.path === path || file.path.startsWith(folder)),
  );
}

function isMeasured(part: string, { files }: Tree): boolean {
  const results = files.find(({ path }) => path === "docs/results/chaos.json")?.text ?? "";
  return results.includes(`"part": "${part}"`);
}

const drawnRule: Rule = {
  name: "each fault of the simulation has its row",
  why: "Whoever reads what the simulation does to a swarm looks up what becomes of it, and finds nothing.",
  mend: "Name it, in backticks, in a row of docs/failure-modes.md that says what happens then.",
  check: ({ files }) => {
    const kinds = files.find(({ path }) => path === "src/sim/fault/fault.ts")?.text ?? "";
    const [table = ""] = /faultKinds = \{[\s\S]*?\n\}/.exec(kinds) ?? [];
    const page = files.find(({ path }) => path === "docs/failure-modes.md");
    const names = [...table.matchAll(/^ {2}"?([a-z-]+)"?:/gm)].map(([, name = ""]) => name);
    const absent = names.filter((name) => page?.text.includes(`\`${name}\``) === false);
    return absent.map((name) => ({ path: "docs/failure-modes.md", found: `nothing of ${name}` }));
  },
};

const alarmRule: Rule = {
  name: "alarms are quoted as they are logged",
  why: "Whoever is woken by a line looks its words up in that table, and finds nothing where they have changed since.",
  mend: "Quote what src logs, each line between asterisks, with … for what differs from one time to the next.",
  check: ({ files }) => {
    const page = files.find(({ path }) => path === "docs/operations.md");
    if (page === undefined) return [];
    const logged = files
      .filter(({ path }) => /^src\/.*\.ts$/.test(path))
      .map(({ text }) => sentencesIn(text));
    return rowsBelow("## Alarms in the log", page.text).flatMap(({ cell, line }) => {
      const quotes = [...cell.matchAll(/\*([^*]+)\*/g)].map(([, quote = ""]) => quote);
      const absent = quotes.filter((quote) => !logged.some((text) => patternOf(quote).test(text)));
      const found =
        quotes.length === 0 ? ["a row without a quoted line"] : absent.map((quote) => `not in src: ${quote}`);
      return found.map((each) => ({ path: page.path, line, found: each }));
    });
  },
};

/** The text without comments; a string that is broken over lines becomes one line. */
function sentencesIn(text: string): string {
  return text.replace(/^ *(?:\/\/|\/?\*).*$/gm, "").replace(/["`]\s*\+\s*["`]/g, "");
}

function patternOf(quote: string): RegExp {
  const parts = quote.split("…").map((part) => part.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(parts.join(".*"));
}

/** The first cell of each row of the table below a heading. */
function rowsBelow(heading: string, text: string): { readonly cell: string; readonly line: number }[] {
  const at = text.indexOf(`${heading}\n`);
  const [section = ""] = at === -1 ? [] : text.slice(at).split(/\n## /);
  return [...section.matchAll(/^\|(.*?)\|.*$/gm)]
    .slice(2)
    .map((row) => ({ cell: row[1] ?? "", line: lineAt(text, at + (row.index ?? 0)) }));
}

const lockRule = fileRule({
  name: "the lock file names no hosts",
  why: "An address in the lock file ties every installation to the registry somebody happened to use.",
  mend: "Install with the repository's .npmrc (omit-lockfile-registry-resolved=true) and commit the result.",
  where: (path) => posix.basename(path) === "package-lock.json",
  checkFile: ({ text }) =>
    [...text.matchAll(/"resolved":.*/g)].map((match) => ({
      line: lineAt(text, match.index),
      found: match[0],
    })),
});

interface LockFile {
  readonly packages?: Readonly<
    Record<
      string,
      { readonly optionalDependencies?: object; readonly integrity?: string; readonly link?: boolean }
    >
  >;
}

const wholeLockRule = fileRule({
  name: "the lock file is whole",
  why:
    "A package for another platform that was not to be had when the lock file was written is left out of it " +
    "silently, and npm ci then refuses to install anything, on every platform.",
  mend:
    "Take a version whose packages are all to be had, remove node_modules and package-lock.json, and run npm " +
    "install. docs/dependencies.md says which versions are held back for this reason.",
  where: (path) => posix.basename(path) === "package-lock.json",
  checkFile: ({ text }) => {
    const { packages = {} } = JSON.parse(text) as LockFile;
    const names = new Set(Object.keys(packages).map((path) => path.replace(/^.*node_modules\//, "")));
    return Object.entries(packages).flatMap(([path, { optionalDependencies = {}, integrity }]) => [
      ...Object.keys(optionalDependencies)
        .filter((name) => !names.has(name))
        .map((name) => ({ found: `lacks ${name}, which ${path} may need` })),
      ...(path === "" || integrity !== undefined ? [] : [{ found: `has no integrity for ${path}` }]),
    ]);
  },
});

/** Written in parts, so that the rule does not match its own file. */
const foreign: readonly (readonly [pattern: RegExp, what: string])[] = [
  [/(?<![\w.$}])\/(?:work|root|Users|home\/[a-z]\w*)\//g, "a path of one machine"],
  [/\b(?:registry|artifactory|nexus|proxy\.golang)\.[a-z0-9-]+\.[a-z]+/g, "a registry's host"],
];

const foreignRule = fileRule({
  name: "nothing in the repository is about one machine",
  why: "It runs there and nowhere else, and tells strangers what a disk or a network looks like.",
  mend: "Use a relative path, os.tmpdir(), or an environment variable with a documented default.",
  where: (path) => !path.startsWith("test/architecture/"),
  checkFile: ({ text }) =>
    foreign.flatMap(([pattern, what]) =>
      [...text.matchAll(pattern)].map((match) => ({
        line: lineAt(text, match.index),
        found: `has ${what}: ${match[0]}`,
      })),
    ),
});

/** At least one digit and one letter. Code spans and fenced examples are left out. */
const commit = /\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b/g;

const commitRule = fileRule({
  name: "pages name no commits",
  why: "A commit says nothing to a reader without the repository. A version and a date say how old a figure is.",
  mend: "Name the version and the date. Files of results under docs/results keep the commit.",
  where: (path) => path.endsWith(".md"),
  checkFile: ({ text }) => {
    const prose = text.replace(/^```[\s\S]*?^```/gm, blankLines).replace(/`[^`\n]*`/g, blankLines);
    return [...prose.matchAll(commit)].map((match) => ({
      line: lineAt(prose, match.index),
      found: match[0],
    }));
  },
});

const leftoverRule = fileRule({
  name: "no notes to oneself in the code",
  why: "A note in the code is on nobody's list: it is read by everybody and done by nobody.",
  mend: "Do it, or open an issue and leave the code as it is.",
  where: (path) => isCode(path) && !path.startsWith("test/architecture/"),
  checkFile: ({ text }) =>
    [...text.matchAll(/\b(?:TODO|FIXME|XXX|HACK)\b/g)].map((match) => ({
      line: lineAt(text, match.index),
      found: `has ${match[0]}`,
    })),
});

const namedFileRule: Rule = {
  name: "files that comments and documents name are there",
  why: "A reader who is sent to a file that was renamed searches for what is nowhere.",
  mend: "Name the file that holds it now.",
  check: ({ files }) => {
    const names = new Set(files.map(({ path }) => posix.basename(path)));
    const isHistory = (path: string) => path === "CHANGELOG.md" || path.startsWith("docs/adr/");
    return files
      .filter(({ path }) => /^(src|docs|machines|scripts)\//.test(path) && /\.(ts|md)$/.test(path))
      .filter(({ path }) => !isHistory(path))
      .flatMap(({ path, text, code }) =>
        [...text.matchAll(/(?<![\w.-])[a-z0-9][a-z0-9-]*(?:\/[a-z0-9-]+)*\.ts\b/g)]
          // In code, only comments and strings count; imports resolve or fail to compile.
          .filter(({ 0: name, index }) => !isCode(path) || !code.startsWith(name, index))
          .filter(({ 0: name }) => !names.has(posix.basename(name)))
          .map(({ 0: name, index }) => ({ path, line: lineAt(text, index), found: `names ${name}` })),
      );
  },
};

export const repositoryRules: readonly Rule[] = [
  linkRule,
  namedFileRule,
  folderRule,
  testedRule,
  pageSizeRule,
  cellRule,
  sizeRule,
  drawnRule,
  alarmRule,
  lockRule,
  wholeLockRule,
  foreignRule,
  commitRule,
  leftoverRule,
];
