// Loads an optional package at run time. Only the conveniences of an adapter need one: the adapters themselves know
// the frameworks by the shapes of their values.
//
// A linked checkout (`npm link`) resolves names in its own folder, and the user's packages are elsewhere. So the
// folder of the running program counts too, and then the working directory.

import { readFile, realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { MissingPackageError } from "../errors.ts";

/** @param name a variable for the compiler, which must not look for the package
 *  @throws MissingPackageError; what the package throws when it is loaded */
export async function importPeer<Module>(name: string, whatFor: string): Promise<Module> {
  try {
    return (await import(name)) as Module;
  } catch (cause) {
    if (!isMissing(cause, name)) throw cause;
    const entry = await entryElsewhere(name);
    if (entry !== undefined) return (await import(pathToFileURL(entry).href)) as Module;
    const sentence = `${whatFor} needs the package ${name}, which is not installed: run \`npm install ${name}\``;
    throw new MissingPackageError(sentence, { cause });
  }
}

/** False for an installed package that lacks a package of its own. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "ERR_MODULE_NOT_FOUND" && message.includes(`'${name}'`);
}

async function entryElsewhere(name: string): Promise<string | undefined> {
  const program = process.argv[1];
  const folders =
    program === undefined ? [] : [dirname(program), dirname(await realpath(program).catch(() => program))];
  for (const folder of [...folders, process.cwd()]) {
    const entry = await entryAbove(folder, name);
    if (entry !== undefined) return entry;
  }
  return undefined;
}

/** The main module of the nearest package of the name, as Node finds it from a folder. */
async function entryAbove(folder: string, name: string): Promise<string | undefined> {
  const home = join(folder, "node_modules", name);
  const text = await readFile(join(home, "package.json"), "utf8").catch(() => undefined);
  if (text === undefined)
    return dirname(folder) === folder ? undefined : await entryAbove(dirname(folder), name);
  const { exports, module, main = "index.js" } = JSON.parse(text) as Manifest;
  return resolve(home, targetOf(exports) ?? module ?? main);
}

interface Manifest {
  readonly exports?: unknown;
  readonly module?: string;
  readonly main?: string;
}

const conditions: ReadonlySet<string> = new Set([".", "node", "import", "module-sync", "default"]);

/** The file of `import name`: of conditions, the first that holds. */
function targetOf(exports: unknown): string | undefined {
  if (typeof exports === "string") return exports;
  if (typeof exports !== "object" || exports === null) return undefined;
  for (const [condition, target] of Object.entries(exports)) {
    const found = conditions.has(condition) ? targetOf(target) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}
