// Where bytes are not UTF-8. Decoding them all the same would put U+FFFD in the place of letters, without a word.

import { isUtf8 } from "node:buffer";

/** Number of the first line that is not UTF-8, from 1; undefined if all lines are UTF-8. */
export function lineNotUtf8(bytes: Uint8Array): number | undefined {
  if (isUtf8(bytes)) return undefined;
  const LINE_FEED = 0x0a;
  for (let number = 1, from = 0; ; number += 1) {
    const end = bytes.indexOf(LINE_FEED, from);
    if (end < 0 || !isUtf8(bytes.subarray(from, end))) return number;
    from = end + 1;
  }
}
