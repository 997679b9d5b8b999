// Allowed imports. The folders show a task's way through the code only while these rules hold.

import { posix } from "node:path";
import { fileRule, isCode, isProduct, isPure, type Rule, type Violation } from "./rule.ts";
import type { SourceFile, Tree } from "./source-tree.ts";

/** Files directly in src: ids, limits, errors and their like. */
const ground = "src/*";

/** Imports of each folder besides itself and the ground. A new folder must be added here. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  [ground]: [],
  "src/state": [],
  "src/scheduling": ["src/state"],
  "src/core": ["src/state", "src/scheduling"],
  machines: ["src/state"],
  "src/protocol": ["src/state", "src/core"],
  "src/config": [],
  "src/auth": ["src/protocol"],
  "src/transport": [],
  "src/journal": ["src/state", "src/core", "src/protocol", "src/transport"],
  "src/broker": ["src/transport"],
  "src/requests": ["src/state", "src/core", "src/protocol", "src/transport", "src/audit"],
  "src/views": ["src/state", "src/scheduling", "machines", "src/protocol", "src/requests"],
  "src/coordinator": [
    "src/state",
    "src/core",
    "src/scheduling",
    "machines",
    "src/protocol",
    "src/transport",
    "src/journal",
    "src/audit",
    "src/metrics",
    "src/requests",
    "src/views",
  ],
  "src/tracing": [],
  "src/agent": ["src/state", "machines", "src/protocol", "src/transport", "src/tracing"],
  "src/client": [
    "src/state",
    "src/core",
    "src/config",
    "src/protocol",
    "src/transport",
    "src/journal",
    "src/tracing",
    "src/agent",
    "src/broker",
    "src/audit",
  ],
  "src/audit": ["src/state", "src/core", "src/scheduling", "src/protocol", "src/journal"],
  "src/metrics": ["src/state", "src/scheduling"],
  "src/dashboard": [
    "src/state",
    "src/core",
    "machines",
    "src/protocol",
    "src/transport",
    "src/client",
    "src/audit",
  ],
  "src/adapters": ["src/state", "src/protocol", "src/transport", "src/agent", "src/client", "src/audit"],
  "src/sim": [
    "src/state",
    "src/core",
    "src/scheduling",
    "src/protocol",
    "src/transport",
    "src/journal",
    "src/coordinator",
    "src/agent",
    "src/client",
  ],
};

/** Files of public names, each an entry of the package. */
const publicNames = new Set(["src/index.ts", "src/rules.ts", "src/audit.ts"]);
/** The CLI puts the parts together and no file imports it; the public names come from the SDK's side. */
const mayImportAll = new Set(["src/cli", ...publicNames]);

const directionRule: Rule = {
  name: "imports point one way",
  why:
    "The decision is pure and knows nobody; the shell knows the decision; the command line knows the shell. " +
    "An import against that direction lets a clock, a socket or a screen reach a decision, and replay ends.",
  mend:
    "Hand the thing in as an argument (deps come from src/cli), or move it to the folder both may import. " +
    "A folder that is new takes its place in mayImport of test/architecture/import-rules.ts.",
  check: ({ files }) => files.filter((file) => isProduct(file.path)).flatMap(wrongDirections),
};

function wrongDirections(file: SourceFile): Violation[] {
  const from = layerOf(file.path);
  if (mayImportAll.has(from)) return importsOf(file, (to) => from !== to && to === "src/cli", "the CLI");
  const allowed = mayImport[from];
  if (allowed === undefined)
    return [{ path: file.path, found: `${from} has no place in the table of folders` }];
  const legal = new Set([...allowed, from, ground]);
  return importsOf(file, (to) => !legal.has(to), from);
}

function importsOf(file: SourceFile, wrong: (layer: string) => boolean, from: string): Violation[] {
  return file.imports.flatMap(({ specifier, line }) => {
    if (!specifier.startsWith(".")) return [];
    const to = layerOf(resolved(file.path, specifier));
    return wrong(to) ? [{ path: file.path, line, found: `${from} imports ${to} (${specifier})` }] : [];
  });
}

function resolved(path: string, specifier: string): string {
  return posix.join(posix.dirname(path), specifier);
}

/** `src/state/event.ts` → `src/core`, `src/ids.ts` → `src/*`, `machines/task.ts` → `machines`. */
function layerOf(path: string): string {
  const [top = "", second = "", third] = path.split("/");
  if (top !== "src") return top;
  if (third !== undefined) return `${top}/${second}`;
  return publicNames.has(`src/${second}`) ? `src/${second}` : ground;
}

/** The folders of src/coordinator. Each may import the later ones and the files beside them (docs/architecture.md,
 *  "The coordinator"). */
const coordinatorFolders = ["queries", "leader", "following", "taking-lead", "compacting", "recovering"];

const coordinatorRule = fileRule({
  name: "the coordinator's folders rest on one another one way",
  why:
    "Taking the lead need not know the leader, nor compacting the answers. Where two folders know each other, none of " +
    "them can be read alone, and the names of the folders tell nothing.",
  mend:
    "Move the file, or the type that is asked for, to the lower folder, or hand the thing in as an argument. What " +
    "all of them know stands beside the folders and imports from none.",
  where: (path) => path.startsWith("src/coordinator/") && path !== "src/coordinator/coordinator.ts",
  checkFile: ({ path, imports }) => {
    const from = coordinatorLevel(path);
    return imports.flatMap(({ specifier, line }) => {
      const to = specifier.startsWith(".") ? resolved(path, specifier) : "";
      const isDownward = !to.startsWith("src/coordinator/") || coordinatorLevel(to) >= from;
      return isDownward ? [] : [{ line, found: `imports ${specifier}` }];
    });
  },
});

/** 0 for the process itself, then folder by folder; the files beside the folders come last. */
function coordinatorLevel(path: string): number {
  if (path === "src/coordinator/coordinator.ts") return 0;
  const [, , folder = "", file] = path.split("/");
  const at = coordinatorFolders.indexOf(folder);
  if (file === undefined) return coordinatorFolders.length + 1;
  return at === -1 ? Number.POSITIVE_INFINITY : at + 1;
}

const groundOfPureCode = new Set(
  ["ids", "limits", "assert", "errors", "cut-text"].map((name) => `src/${name}.ts`),
);

const pureImportsRule = fileRule({
  name: "state, scheduling and core import nothing but themselves",
  why:
    "They decide, and the same journal must give the same decisions on any machine in ten years. A package " +
    "brings its own clock, randomness and upgrades; another file of src may bring them tomorrow.",
  mend: "Write the few lines needed, or take the value as an argument. Of src only ids, limits, assert, errors, cut-text.",
  where: isPure,
  checkFile: (file) =>
    file.imports.flatMap(({ specifier, line }) => {
      const to = resolved(file.path, specifier);
      const fine = specifier.startsWith(".") && (isPure(to) || groundOfPureCode.has(to));
      return fine ? [] : [{ line, found: `imports ${specifier}` }];
    }),
});

const vendorRule = fileRule({
  name: "@nats-io is imported only by files named nats.ts",
  why:
    "Transport and journal are ports. A vendor's type that leaks through one makes the memory and file " +
    "implementations second class, and the next major version of the client a rewrite.",
  mend: "Extend the port with what you need and implement it in the nats.ts beside it.",
  where: (path) => isProduct(path) && posix.basename(path) !== "nats.ts",
  checkFile: (file) =>
    file.imports.flatMap(({ specifier, line }) =>
      specifier.startsWith("@nats-io/") ? [{ line, found: `imports ${specifier}` }] : [],
    ),
});

const terminalPackages = new Set(["commander", "cli-progress", "picocolors", "pino-pretty", "vega"]);

const terminalRule = fileRule({
  name: "packages for the terminal are imported only by src/cli",
  why: "The SDK is linked into other people's programs: it neither parses their flags nor colours their output.",
  mend: "Return values; let src/cli print them.",
  where: (path) => isProduct(path) && !path.startsWith("src/cli/"),
  checkFile: (file) =>
    file.imports.flatMap(({ specifier, line }) =>
      terminalPackages.has(specifier) ? [{ line, found: `imports ${specifier}` }] : [],
    ),
});

/** Packages that a swarm or a table needs, up to a quarter of a second of CPU each. */
const isHeavy = (specifier: string) =>
  /^(?:rxjs|xstate|@nats-io\/.*|pino-pretty|cli-progress)$/.test(specifier);
/** Files that `waggle demo` loads before its first line. */
const firstLineFiles = ["src/cli/main.ts", "src/cli/demo.ts"];

const firstLineRule: Rule = {
  name: "the demo's first line waits for no heavy package",
  why: "The first line of the first command is due within a second. All verbs and packages together take more.",
  mend: "Import it where it is used: `await import(…)` in the verb's action.",
  check: ({ files }) => {
    const byPath = new Map(files.map((file) => [file.path, file]));
    const loaded = new Set<string>();
    const visit = (path: string): Violation[] => {
      if (loaded.has(path)) return [];
      loaded.add(path);
      return (byPath.get(path)?.imports ?? [])
        .filter(({ late, typeOnly }) => !late && !typeOnly)
        .flatMap(({ specifier, line }) => {
          if (specifier.startsWith(".")) return visit(resolved(path, specifier));
          return isHeavy(specifier) ? [{ path, line, found: `imports ${specifier}` }] : [];
        });
    };
    return firstLineFiles.flatMap(visit);
  },
};

const zodRule = fileRule({
  name: "zod is imported as a namespace",
  why:
    "The name `z` of zod holds all of zod, with its messages in fifty languages. The bundler must keep what one file " +
    "imports so, and every process that uses zod reads 755 KB instead of 206.",
  mend: 'Write `import * as z from "zod"`; the bundler then keeps only the functions in use.',
  where: isProduct,
  checkFile: ({ text, imports }) =>
    imports.flatMap(({ specifier, typeOnly, line }) =>
      specifier === "zod" && !typeOnly && !text.split("\n")[line - 1]?.startsWith("import * as ")
        ? [{ line, found: "imports names of zod" }]
        : [],
    ),
});

const barrels = new Set([...publicNames, "machines/index.ts"]);

const barrelRule = fileRule({
  name: "no barrels",
  why:
    "A file that passes on other files' names hides who depends on whom, loads everything for one name and " +
    "is where import cycles begin.",
  mend: "Import from the file that declares the name. Public names stand in src/index.ts, src/rules.ts and src/audit.ts.",
  where: isProduct,
  checkFile: (file) => {
    if (barrels.has(file.path)) {
      return /^export\s*\*/m.test(file.code) ? [{ found: "passes on everything: name each name" }] : [];
    }
    if (posix.basename(file.path) === "index.ts") return [{ found: "is an index" }];
    return file.imports.flatMap(({ reExport, specifier, line }) =>
      reExport ? [{ line, found: `passes on names of ${specifier}` }] : [],
    );
  },
});

const cycleRule: Rule = {
  name: "no import cycles",
  why:
    "Two files that need each other are one file in two places: neither can be read, tested or moved alone, " +
    "and at run time one of them sees the other half-loaded.",
  mend: "Move what both need to a third file, or hand one to the other as an argument. Types count too.",
  check: cyclesIn,
};

function cyclesIn({ files }: Tree): Violation[] {
  const byPath = new Map(files.filter((file) => isCode(file.path)).map((file) => [file.path, file]));
  const done = new Set<string>();
  const violations: Violation[] = [];

  const visit = (path: string, trail: readonly string[]) => {
    const at = trail.indexOf(path);
    if (at !== -1) {
      violations.push({ path, found: `${[...trail.slice(at), path].join(" → ")}` });
      return;
    }
    const file = byPath.get(path);
    if (file === undefined || done.has(path)) return;
    for (const { specifier } of file.imports) {
      if (specifier.startsWith(".")) visit(resolved(path, specifier), [...trail, path]);
    }
    done.add(path);
  };
  for (const path of byPath.keys()) visit(path, []);
  return violations;
}

export const importRules: readonly Rule[] = [
  directionRule,
  coordinatorRule,
  pureImportsRule,
  vendorRule,
  terminalRule,
  firstLineRule,
  zodRule,
  barrelRule,
  cycleRule,
];
