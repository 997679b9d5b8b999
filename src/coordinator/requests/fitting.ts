// What fits a message: the server takes no more than it said, and a message beyond that cannot be sent at all.

import { encode } from "../../protocol/codec.ts";
import { codedError } from "./answers.ts";

/** As many rows, from the first, as fit so many bytes of JSON; the others are not even made. */
export function rowsWithin<Row>(
  rows: Iterable<Row>,
  bytesMax: number,
): { readonly rows: Row[]; readonly bytes: number } {
  const fitting: Row[] = [];
  let bytes = 0;
  for (const row of rows) {
    const rowBytes = Buffer.byteLength(JSON.stringify(row)) + 1;
    if (bytes + rowBytes > bytesMax) break;
    bytes += rowBytes;
    fitting.push(row);
  }
  return { rows: fitting, bytes };
}

/** An answer as it can be sent: itself, or, where it would be too large, one that says so. */
export function sendable(answer: Uint8Array, bytesMax: number): Uint8Array {
  if (answer.length <= bytesMax) return answer;
  const sentence = "the answer is larger than the server takes: ask again, for fewer at once";
  return encode(codedError("WAGGLE_OUTCOME_UNKNOWN", sentence));
}
