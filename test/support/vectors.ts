// Reads test vectors: one JSON object per line. The folder is test/vectors, or VECTORS_DIR if set, so that the same
// tests can run further vectors of the same format.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = process.env.VECTORS_DIR ?? fileURLToPath(new URL("../vectors", import.meta.url));

/** @param name of the file, `load-function.jsonl` */
export function readVectors<Vector>(name: string): Vector[] {
  return readFileSync(join(folder, name), "utf8")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line) as Vector);
}
