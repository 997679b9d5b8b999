// `npm run build`: types of src and machines, their modules bundled into few files, and the dashboard's page, all in
// dist. Never in place: compiler and bundler write to a folder beside dist, then a rename replaces each changed file. A
// process that runs from dist may load a file late (a worker thread, a verb). The process then finds the file whole.
// Nothing is built while sources and dist are as the last build left them (build-record.ts).

import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildModules, isChunk } from "./build-modules.ts";
import { areUnchanged, hashOfSources, RECORD, readRecord, writtenNow } from "./build-record.ts";
import { buildPage } from "./dashboard-page.ts";

export interface Build {
  /** False if the compiler or a bundler found errors. Files without errors are in dist all the same. */
  readonly ok: boolean;
  /** Output of the compiler and of the bundlers. */
  readonly printed: string;
}

/** @param root the folder of package.json, absolute */
export function build(root: string): Build {
  removeAbandoned(root);
  const dist = join(root, "dist");
  const sources = hashOfSources(root);
  const last = readRecord(dist);
  if (last?.sources === sources && areUnchanged(dist, last)) {
    removeOthers(dist, Object.keys(last.written));
    return { ok: true, printed: "" };
  }
  // Beside dist, at the same depth: renames need the same file system, source maps hold relative paths.
  const draft = mkdtempSync(join(root, DRAFT));
  try {
    const parts = [compileTypes(root, draft), buildModules(root, draft), buildPage(root, draft)];
    const ok = parts.every((part) => part.ok);
    replaceFiles(draft, dist, ok ? sources : undefined);
    return { ok, printed: parts.map(({ printed }) => printed).join("") };
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
/** Chunks of older builds stay for the processes that started from them, which may load a chunk late. */
const OLD_CHUNK_MS = 86_400_000;

function removeAbandoned(root: string): void {
  for (const name of readdirSync(root).filter((name) => name.startsWith(DRAFT))) {
    const stats = statSync(join(root, name), { throwIfNoEntry: false });
    if (stats !== undefined && Date.now() - stats.mtimeMs > ABANDONED_MS)
      rmSync(join(root, name), { recursive: true, force: true });
  }
}

/** Types of all modules, which the published types are a part of. */
function compileTypes(root: string, draft: string): Build {
  copyTypes(join(root, "dist"), draft);
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const options = ["--outDir", draft, "--tsBuildInfoFile", join(draft, BUILD_INFO)];
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [compiler, "-p", "tsconfig.build.json", ...options],
    { cwd: root, encoding: "utf8" },
  );
  for (const file of filesIn(draft).filter((file) => isTypes(file) && !hasSource(root, file)))
    rmSync(join(draft, file));
  return { ok: status === 0, printed: `${stdout}${stderr}` };
}

/** Copies the types of the last build, so that the compiler writes only changed files. The compiler's notes are
 *  copied first and replaced last. A concurrent build may leave newer files, which are then compiled again. */
function copyTypes(dist: string, draft: string): void {
  if (!existsSync(join(dist, BUILD_INFO))) return;
  copyFileSync(join(dist, BUILD_INFO), join(draft, BUILD_INFO));
  for (const file of filesIn(dist).filter(isTypes)) {
    mkdirSync(dirname(join(draft, file)), { recursive: true });
    copyFileSync(join(dist, file), join(draft, file));
  }
}

/** Moves the draft's files to dist, and removes the files that this build did not make. Unchanged files are not
 *  touched, so a chunk keeps the time of the first build that made the chunk.
 *  @param sources their hash, for the record of a build without errors */
function replaceFiles(draft: string, dist: string, sources: string | undefined): void {
  const isNew = (file: string) => !existsSync(join(dist, file));
  const files = filesIn(draft).filter((file) => file !== BUILD_INFO);
  // New files first: a changed file may import a new file.
  for (const file of [...files.filter(isNew), ...files.filter((file) => !isNew(file)), BUILD_INFO]) {
    const target = join(dist, file);
    if (!existsSync(join(draft, file)) || isSame(join(draft, file), target)) continue;
    mkdirSync(dirname(target), { recursive: true });
    renameSync(join(draft, file), target);
  }
  removeOthers(dist, files);
  if (sources === undefined) return;
  const record = { sources, written: writtenNow(dist, files) };
  writeFileSync(join(draft, RECORD), JSON.stringify(record));
  renameSync(join(draft, RECORD), join(dist, RECORD));
}

/** Removes the files that a build did not make, except chunks that a process may still load. */
function removeOthers(dist: string, made: readonly string[]): void {
  const kept = new Set([...made, BUILD_INFO, RECORD]);
  for (const file of filesIn(dist).filter((file) => !kept.has(file) && !isInUse(join(dist, file), file)))
    rmSync(join(dist, file), { force: true });
}

function isInUse(path: string, file: string): boolean {
  const stats = isChunk(file) ? statSync(path, { throwIfNoEntry: false }) : undefined;
  return stats !== undefined && Date.now() - stats.mtimeMs < OLD_CHUNK_MS;
}

function isSame(one: string, other: string): boolean {
  return existsSync(other) && readFileSync(one).equals(readFileSync(other));
}

function isTypes(file: string): boolean {
  return file.endsWith(".d.ts");
}

/** Each `.d.ts` comes from the `.ts` of the same name. */
function hasSource(root: string, file: string): boolean {
  return existsSync(join(root, file.replace(/\.d\.ts$/, ".ts")));
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
