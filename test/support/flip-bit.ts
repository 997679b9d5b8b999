// Damage as by a disk: flips a bit of a file.

import { readFileSync, writeFileSync } from "node:fs";

/** @param bit index in the byte at `offset`, 0 to 7 */
export function flipBit(path: string, offset: number, bit = 0): void {
  const bytes = readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(offset) ^ (1 << bit), offset);
  writeFileSync(path, bytes);
}
