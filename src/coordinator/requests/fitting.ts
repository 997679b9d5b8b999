// What fits a message: the server takes no more than it said, and a message beyond that cannot be sent at all.

import { encode } from "../../protocol/codec.ts";
import type { Transport } from "../../transport/transport.ts";
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

/** Sends an answer, or, where it would be too large, one that says so. */
export function sendFitting(
  transport: Pick<Transport, "publish" | "maxPayloadBytes">,
  subject: string,
  answer: Uint8Array,
): void {
  if (answer.length <= transport.maxPayloadBytes) return transport.publish(subject, answer);
  const sentence = "the answer is larger than the server takes: ask again, for fewer at once";
  transport.publish(subject, encode(codedError("WAGGLE_OUTCOME_UNKNOWN", sentence)));
}
