// The version in package.json, which stands at the top of the tree, above src/ and above dist/ alike.

import { readFileSync } from "node:fs";

export function packageVersion(): string {
  for (const levels of ["../..", "../../.."]) {
    const version = versionAt(new URL(`${levels}/package.json`, import.meta.url));
    if (version !== undefined) return version;
  }
  return "unknown";
}

function versionAt(file: URL): string | undefined {
  try {
    const { name, version } = JSON.parse(readFileSync(file, "utf8")) as { name?: string; version?: string };
    return name === "waggledance" ? version : undefined;
  } catch {
    return undefined; // no package.json at this level: try the next level
  }
}
