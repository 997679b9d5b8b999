// Which code ran a seed: a seed takes the same course only on the same code. Not the version of the package alone, for
// between two releases it stays the same; and of the code only what a simulation imports, for what the rest of the
// command line prints changes no seed.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { packageVersion } from "../version.ts";

/** What runs a seed: TypeScript here, JavaScript where it is built. */
const entry = join(import.meta.dirname, `../../sim/fault/run-seed${extname(fileURLToPath(import.meta.url))}`);
/** Hex digits of the hash that are shown and kept. */
const HASH_DIGITS = 12;

/** Of the package, and a hash of the files that run: `0.1.0+1f0c5a9be2d4`. Packages count by the package's version. */
export function codeVersion(file = entry): string {
  const hash = createHash("sha256");
  const textByPath = importedBy(file);
  for (const path of [...textByPath.keys()].sort())
    hash.update(`${relative(dirname(file), path)}\0${textByPath.get(path)}\0`);
  return `${packageVersion()}+${hash.digest("hex").slice(0, HASH_DIGITS)}`;
}

/** The file and all that it imports by path, with their texts. Types are among them in TypeScript, where nobody hunts
 *  seeds for long. */
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
