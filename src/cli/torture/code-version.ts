// Which code ran a seed: a seed takes the same course only on the same code. Not the version of the package alone, for
// between two releases it stays the same.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { packageVersion } from "../version.ts";

/** `src`, or `dist/src` where it is built. */
const codeFolder = join(import.meta.dirname, "../..");
/** Hex digits of the hash that are shown and kept. */
const HASH_DIGITS = 12;

/** Of the package, and a hash of the files that run: `0.1.0+1f0c5a9be2d4`. */
export function codeVersion(folder = codeFolder): string {
  const hash = createHash("sha256");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(isCode).sort();
  for (const file of files)
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(folder, file)))
      .update("\0");
  return `${packageVersion()}+${hash.digest("hex").slice(0, HASH_DIGITS)}`;
}

/** Not declarations, nor maps: they run nowhere. */
function isCode(file: string): boolean {
  return (extname(file) === ".js" || extname(file) === ".ts") && !file.endsWith(".d.ts");
}
