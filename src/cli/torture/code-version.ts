// The version of the code that runs seeds: a seed repeats its run only on the same code. The package's version alone
// does not suffice, for it stays the same between releases. Only files that a simulation imports count: the rest of the
// command line changes no seed.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { packageVersion } from "../version.ts";

/** The module of the threads that run seeds, in the build. */
const entry = createRequire(import.meta.url).resolve("waggledance/torture-thread");
/** Hex digits of the hash to show and keep. */
const HASH_DIGITS = 12;

/**
 * The package's version and a hash of the files that run: `0.1.0+1f0c5a9be2d4`. Dependencies count only through the
 * package's version.
 */
export function codeVersion(file = entry): string {
  const hash = createHash("sha256");
  const textByPath = importedBy(file);
  for (const path of [...textByPath.keys()].sort())
    hash.update(`${relative(dirname(file), path)}\0${textByPath.get(path)}\0`);
  return `${packageVersion()}+${hash.digest("hex").slice(0, HASH_DIGITS)}`;
}

/** The file and all its direct and indirect imports, by path, with their texts. */
function importedBy(file: string): ReadonlyMap<string, string> {
  const textByPath = new Map<string, string>();
  const waiting = [file];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (textByPath.has(path)) continue;
    const text = readFileSync(path, "utf8");
    textByPath.set(path, text);
    for (const [, specifier = ""] of text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.{1,2}\/[^"]+)"/g))
      waiting.push(join(dirname(path), specifier));
  }
  return textByPath;
}
