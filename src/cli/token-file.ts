// A token in a file, so that no list of processes shows it.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { limits } from "../limits.ts";
import { UsageError } from "./usage-error.ts";

/** A secret in a file, on one line. @throws UsageError */
export function tokenIn(file: string, cwd: string): string {
  let token: string;
  try {
    token = readFileSync(resolve(cwd, file), "utf8").trim();
  } catch (cause) {
    throw new UsageError(`cannot read ${file}: ${(cause as Error).message}`, {
      cause,
      field: "--token-file",
    });
  }
  if (token.length >= limits.a2aTokenCharactersMin && /^[!-~]+$/.test(token)) return token;
  throw new UsageError(
    `${file} has no token: at least ${limits.a2aTokenCharactersMin} printable characters without spaces are required`,
    { field: "--token-file" },
  );
}
