// Damage as a disk does it: one bit of a file is another than was written.

import { readFileSync, writeFileSync } from "node:fs";

/** @param bit of the byte at `offset`, 0 to 7 */
export function flipBit(path: string, offset: number, bit = 0): void {
  const bytes = readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(offset) ^ (1 << bit), offset);
  writeFileSync(path, bytes);
}
