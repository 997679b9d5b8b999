// The token of the dashboard of `waggle up`, kept in the data folder: a browser stays signed in when `up` is started
// again. Whoever may read the folder has the broker's secret anyway.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { findDataFolder, writePrivately } from "../broker/data-folder.ts";
import type { Random } from "../clock.ts";
import { limits } from "../limits.ts";

const FILE = "dashboard-token";

/** Undefined without a data folder: each start then has a token of its own. @param path of the data folder */
export function keptToken(path: string, random: Random): string | undefined {
  const folder = findDataFolder(path);
  if (folder === undefined) return undefined;
  const file = join(folder.path, FILE);
  const known = readToken(file);
  if (known !== undefined) return known;
  const made = random.id(limits.dashboardTokenCharacters);
  try {
    writePrivately(file, `${made}\n`);
  } catch {
    return undefined; // a folder of another user: each start has a token of its own
  }
  return made;
}

function readToken(file: string): string | undefined {
  try {
    const text = readFileSync(file, "utf8").trim();
    return isToken(text) ? text : undefined;
  } catch {
    return undefined; // absent, or of another user
  }
}

/** Long enough to be a secret, and without characters that a URL encodes. */
export function isToken(text: string): boolean {
  return text.length >= limits.dashboardTokenCharactersMin && /^[A-Za-z0-9_-]+$/.test(text);
}
