// Damages the store of a stopped nats-server, like a power failure or a bad disk. Relies only on the location
// of a stream's messages: `jetstream/<account>/streams/<stream>/msgs/*.blk`.

import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { SwarmId } from "../../src/ids.ts";
import { segmentNumberIn } from "../../src/journal/stream/settings.ts";
import type { SeededRandom } from "../../src/sim/random.ts";

const TRUNCATED_BYTES_MAX = 64 * 1024;

export type Damage = "truncate" | "flip" | "drop-index";

export interface Done {
  /** The damage and the file, for the log. */
  readonly sentence: string;
  /** Restores the messages, because some servers do not start with some damage. */
  readonly undo: () => void;
}

/** @throws Error when the stream has no messages in the store */
export function damageStream(
  storeFolder: string,
  stream: string,
  damage: Damage,
  random: SeededRandom,
): Done {
  const blocks = blocksOf(storeFolder, stream);
  const last = blocks.at(-1);
  if (last === undefined) throw new Error(`${storeFolder} has no messages of ${stream}`);
  const file = damage === "flip" ? random.pick(blocks) : last;
  const before = readFileSync(file);
  const sentence = damageFile(file, damage, random);
  dropIndices(storeFolder, stream);
  return { sentence, undo: () => writeFileSync(file, before) };
}

function damageFile(file: string, damage: Damage, random: SeededRandom): string {
  switch (damage) {
    case "truncate": {
      const { size } = statSync(file);
      const bytes = Math.min(size, 1 + random.below(Math.min(size, TRUNCATED_BYTES_MAX)));
      truncateSync(file, size - bytes);
      return `cut ${bytes} bytes off the end of ${file}`;
    }
    case "flip":
      return `flipped a bit at ${flipBit(file, random)} of ${file}`;
    case "drop-index":
      return `removed the indices beside ${file}`;
  }
}

/** Streams of a swarm's journal with messages in the store, in order of segments. */
export function segmentStreams(storeFolder: string, swarm: SwarmId): string[] {
  const accounts = join(storeFolder, "jetstream");
  const streams = readdirSync(accounts).flatMap((account) => {
    const folder = join(accounts, account, "streams");
    return existsSync(folder) ? readdirSync(folder) : [];
  });
  const numberOf = (stream: string) => segmentNumberIn(stream, swarm) ?? 0;
  return streams
    .filter((stream) => numberOf(stream) > 0 && blocksOf(storeFolder, stream).length > 0)
    .sort((one, other) => numberOf(one) - numberOf(other));
}

/** Files with the stream's messages, oldest first. */
export function blocksOf(storeFolder: string, stream: string): string[] {
  const folder = messagesFolder(storeFolder, stream);
  return readdirSync(folder)
    .filter((name) => name.endsWith(".blk"))
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))
    .map((name) => join(folder, name));
}

/** Without the index files, the server reads the messages and finds the damage. */
function dropIndices(storeFolder: string, stream: string): void {
  const folder = messagesFolder(storeFolder, stream);
  for (const name of readdirSync(folder))
    if (!name.endsWith(".blk")) rmSync(join(folder, name), { recursive: true });
}

/** @returns the byte's offset */
function flipBit(file: string, random: SeededRandom): number {
  const { size } = statSync(file);
  if (size === 0) throw new Error(`${file} is empty`);
  const offset = random.below(size);
  const open = openSync(file, "r+");
  try {
    const byte = Buffer.alloc(1);
    readSync(open, byte, 0, 1, offset);
    byte[0] = (byte[0] ?? 0) ^ (1 << random.below(8));
    writeSync(open, byte, 0, 1, offset);
  } finally {
    closeSync(open);
  }
  return offset;
}

function messagesFolder(storeFolder: string, stream: string): string {
  const accounts = join(storeFolder, "jetstream");
  for (const account of readdirSync(accounts)) {
    const folder = join(accounts, account, "streams", stream, "msgs");
    try {
      readdirSync(folder);
      return folder;
    } catch {
      // a different account, or a file
    }
  }
  throw new Error(`${accounts} has no stream ${stream}`);
}
