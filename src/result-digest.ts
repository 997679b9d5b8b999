// The digest of a result: what the journal keeps where a project journals results as hash, and how a reader checks a
// copy of a result.

import { hash } from "node:crypto";

/** Hash and size of a result's bytes: of text as UTF-8, of base64 decoded. `sha256` has 64 hexadecimal digits. */
export function digestOf({
  result,
  encoding,
}: {
  readonly result: string;
  readonly encoding?: "base64" | undefined;
}): { readonly sha256: string; readonly bytes: number } {
  const bytes = Buffer.from(result, encoding ?? "utf8");
  return { sha256: hash("sha256", bytes, "hex"), bytes: bytes.length };
}
