// The URL and the headers of an endpoint in files, so that no list of processes and no shell history shows the keys
// in them.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { UsageError } from "./usage-error.ts";

/** A URL on one line. @throws UsageError */
export function urlIn(file: string, cwd: string): string {
  const url = readText(file, { cwd, field: "--http-url-file" }).trim();
  if (/^https?:\/\/\S+$/.test(url)) return url;
  throw new UsageError(`${file} has no URL: one line is required, like https://models.example/run?key=…`, {
    field: "--http-url-file",
  });
}

/** One header per line, `Name: value`; empty lines and lines that begin with # are left out. Errors never repeat a
 *  value. @throws UsageError */
export function headersIn(file: string, cwd: string): Readonly<Record<string, string>> {
  const field = "--http-header-file";
  const headers: Record<string, string> = {};
  for (const [at, line] of readText(file, { cwd, field }).split(/\r?\n/).entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e]*?)[ \t]*$/.exec(line) ?? [];
    if (name === undefined || value === undefined)
      throw new UsageError(
        `line ${at + 1} of ${file} is no header: one per line is required, like Authorization: Bearer TOKEN`,
        { field },
      );
    headers[name] = value;
  }
  return headers;
}

function readText(file: string, { cwd, field }: { readonly cwd: string; readonly field: string }): string {
  try {
    return readFileSync(resolve(cwd, file), "utf8");
  } catch (cause) {
    throw new UsageError(`cannot read ${file}: ${(cause as Error).message}`, { cause, field });
  }
}
