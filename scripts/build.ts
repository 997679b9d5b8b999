// `npm run build`: compiles src and machines to dist, and bundles the dashboard's page to dist/dashboard. Never in
// place: compiler and bundler write to a folder beside dist, then a rename replaces each changed file. A process that
// runs from dist may load a file late (a worker thread, a child process). The process then finds the old or the new
// file, always whole.

import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildPage, isOfPage } from "./dashboard-page.ts";

export interface Build {
  /** False if the compiler found errors. Files without errors are in dist all the same. */
  readonly ok: boolean;
  /** Output of the compiler. */
  readonly printed: string;
}

/** @param root the folder of package.json, absolute */
export function build(root: string): Build {
  removeAbandoned(root);
  const dist = join(root, "dist");
  // Beside dist, at the same depth: renames need the same file system, source maps hold relative paths.
  const draft = mkdtempSync(join(root, DRAFT));
  try {
    copyDist(dist, draft);
    const compiler = join(root, "node_modules/typescript/bin/tsc");
    const options = ["--outDir", draft, "--tsBuildInfoFile", join(draft, BUILD_INFO)];
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [compiler, "-p", "tsconfig.build.json", ...options],
      { cwd: root, encoding: "utf8" },
    );
    const page = buildPage(root, draft);
    replaceFiles(draft, { root, dist });
    return { ok: status === 0 && page.ok, printed: `${stdout}${stderr}${page.printed}` };
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** The pattern is in .gitignore. */
const DRAFT = ".dist-";
/** The compiler's record of sources and outputs, the start of an incremental build. */
const BUILD_INFO = ".tsbuildinfo";
/** A build takes seconds. An older folder belongs to a killed build. */
const ABANDONED_MS = 600_000;

function removeAbandoned(root: string): void {
  for (const name of readdirSync(root).filter((name) => name.startsWith(DRAFT))) {
    const stats = statSync(join(root, name), { throwIfNoEntry: false });
    if (stats !== undefined && Date.now() - stats.mtimeMs > ABANDONED_MS)
      rmSync(join(root, name), { recursive: true, force: true });
  }
}

/** Copies the output of the last build, so that the compiler writes only changed files. The compiler's notes are
 *  copied first and replaced last. A concurrent build may leave newer files, which are then compiled again. */
function copyDist(dist: string, draft: string): void {
  if (!existsSync(join(dist, BUILD_INFO))) return;
  copyFileSync(join(dist, BUILD_INFO), join(draft, BUILD_INFO));
  cpSync(dist, draft, { recursive: true, filter: (path) => !path.endsWith(BUILD_INFO) });
}

/** Copies the draft's files with a source to dist. Unchanged files are not touched. */
function replaceFiles(draft: string, { root, dist }: { readonly root: string; readonly dist: string }): void {
  const isNew = (file: string) => !existsSync(join(dist, file));
  // The bundler names its files itself.
  const ofPage = new Set(filesIn(draft).filter(isOfPage));
  const isMade = (file: string) => (isOfPage(file) ? ofPage.has(file) : hasSource(root, file));
  const files = filesIn(draft).filter((file) => file !== BUILD_INFO && isMade(file));
  // New files first: a changed file may import a new file.
  for (const file of [...files.filter(isNew), ...files.filter((file) => !isNew(file)), BUILD_INFO]) {
    const target = join(dist, file);
    if (!existsSync(join(draft, file)) || isSame(join(draft, file), target)) continue;
    mkdirSync(dirname(target), { recursive: true });
    renameSync(join(draft, file), target);
  }
  for (const file of filesIn(dist))
    if (file !== BUILD_INFO && !isMade(file)) rmSync(join(dist, file), { force: true });
}

function isSame(one: string, other: string): boolean {
  return existsSync(other) && readFileSync(one).equals(readFileSync(other));
}

/** Each `.js`, `.js.map` and `.d.ts` comes from the `.ts` of the same name. */
function hasSource(root: string, file: string): boolean {
  return existsSync(join(root, file.replace(/(?:\.js|\.js\.map|\.d\.ts)$/, ".ts")));
}

/** Paths relative to the folder; none without a folder. */
function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { ok, printed } = build(fileURLToPath(new URL("..", import.meta.url)));
  if (printed !== "") process.stdout.write(printed);
  process.exitCode = ok ? 0 : 1;
}
