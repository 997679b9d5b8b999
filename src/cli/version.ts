// The package's own folder and version, found by the package's own name: the same from `src` in a test and from `dist`.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";

const packageFile = createRequire(import.meta.url).resolve("waggledance/package.json");

/** The folder of package.json, absolute. */
export const packageFolder = dirname(packageFile);

export function packageVersion(): string {
  return (JSON.parse(readFileSync(packageFile, "utf8")) as { readonly version: string }).version;
}
