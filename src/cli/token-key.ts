// The key of the attempts' tokens, in a file that only the coordinators' user may read.

import { readFileSync, statSync } from "node:fs";
import { InvalidConfigError } from "../errors.ts";
import { limits } from "../limits.ts";

const field = "tokenKeyFile";

/** The content of the file, without white space around it. @throws InvalidConfigError */
export function tokenKeyIn(path: string): Uint8Array {
  let key: string;
  let mode: number;
  try {
    key = readFileSync(path, "utf8").trim();
    mode = statSync(path).mode;
  } catch (cause) {
    throw new InvalidConfigError(`${field}: cannot read ${path}: ${(cause as Error).message}`, {
      cause,
      field,
    });
  }
  if (process.platform !== "win32" && (mode & 0o077) !== 0)
    throw new InvalidConfigError(
      `${field}: other users may read or change ${path}, and could make tokens: run \`chmod 600 ${path}\``,
      { field },
    );
  const bytes = new TextEncoder().encode(key);
  if (bytes.length >= limits.tokenKeyBytesMin) return bytes;
  throw new InvalidConfigError(
    `${field}: ${path} has ${bytes.length} bytes, and a key has at least ${limits.tokenKeyBytesMin}: make one with ` +
      `\`umask 077; openssl rand -base64 48 > ${path}\`, the same for all coordinators of the swarm`,
    { field },
  );
}
