// Cost of writing a swarm's state as a snapshot and of reading the snapshot, by the number of live tasks.
//     npm run bench:snapshot               100,000 and 1,000,000 tasks; exits 1 if a requirement is not met
//     npm run bench:snapshot -- --tasks N  only N tasks
//
// Meanwhile the lines lie in a file, in chunks as in a stream. So the reader does not read the written objects, and the
// measured process holds one chunk at a time. Heap is in use after a collection. The peak of the whole process is the
// resident set.

import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { decodeState } from "../src/core/snapshot/decode.ts";
import { encodeState } from "../src/core/snapshot/encode.ts";
import type { SwarmState } from "../src/state/state.ts";
import { readFlags } from "../test/support/script-flags.ts";
import { LoadedSwarm } from "./loaded-swarm.ts";

const smallCount = 100_000;
const taskCounts = [smallCount, 1_000_000];
const chunkBytes = 512 * 1024;
const bytesPerCharacterMax = 3;
/** Requirements for reading, for each of the two sizes. */
const secondsAllowed = { small: 3, large: 20 };
const residentMiBAllowed = 4_096;

interface Time {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

interface Figures {
  readonly tasks: number;
  readonly lines: number;
  readonly mebibytes: number;
  readonly encoding: Time;
  readonly decoding: Time;
  /** Longest time of the encoder for one chunk. */
  readonly longestChunkMs: number;
  readonly stateMiB: number;
  readonly decodedMiB: number;
}

function measure(tasks: number, file: number): Figures {
  const { chunks, ...written } = write(tasks, file);
  const before = heapMiB();
  let lines = 0;
  let decoded: SwarmState | undefined;
  const decoding = timed(() => {
    const counted = function* () {
      for (const line of linesOf(chunks, file)) {
        lines += 1;
        yield line;
      }
    };
    decoded = decodeState(counted());
  });
  const decodedMiB = heapMiB() - before;
  const mebibytes = chunks.reduce((sum, bytes) => sum + bytes, 0) / 1024 ** 2;
  return { tasks: decoded?.taskById.size ?? 0, lines, mebibytes, decoding, decodedMiB, ...written };
}

/** Writes a swarm with so many tasks. @returns with the figures the bytes of each chunk */
function write(tasks: number, file: number) {
  const before = heapMiB();
  const swarm = new LoadedSwarm({ agents: 1_000, users: 10_000, projects: 100, queued: tasks });
  swarm.fill();
  swarm.start();
  const stateMiB = heapMiB() - before;
  const chunks: number[] = [];
  const bytes = Buffer.alloc(bytesPerCharacterMax * chunkBytes);
  let waiting = "";
  let longestChunkMs = 0;
  let since = performance.now();
  const cut = () => {
    const length = bytes.write(waiting);
    writeSync(file, bytes, 0, length);
    chunks.push(length);
    waiting = "";
    longestChunkMs = Math.max(longestChunkMs, performance.now() - since);
    since = performance.now();
  };
  const encoding = timed(() => {
    for (const line of encodeState(swarm.state)) {
      if (waiting.length + line.length > chunkBytes) cut();
      waiting += `${line}\n`;
    }
    cut();
  });
  return { chunks, stateMiB, encoding, longestChunkMs };
}

function* linesOf(chunks: readonly number[], file: number): Generator<string> {
  const bytes = Buffer.alloc(Math.max(...chunks));
  let at = 0;
  for (const length of chunks) {
    readSync(file, bytes, 0, length, at);
    at += length;
    yield* bytes.toString("utf8", 0, length).trimEnd().split("\n");
  }
}

/** Elapsed time and processor time. With other work on the machine, the second is more reliable. */
function timed(work: () => void): Time {
  const since = performance.now();
  const cpuSince = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(cpuSince);
  return { seconds: (performance.now() - since) / 1_000, cpuSeconds: (user + system) / 1e6 };
}

function heapMiB(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 1024 ** 2;
}

function print(figures: Figures): boolean {
  const { tasks, lines, mebibytes, encoding, decoding, longestChunkMs, stateMiB, decodedMiB } = figures;
  const residentMiB = process.resourceUsage().maxRSS / 1024;
  console.log(`${tasks} live tasks, ${lines} lines, ${mebibytes.toFixed(0)} MiB`);
  console.log(`  written in ${shown(encoding)}, a chunk in at most ${longestChunkMs.toFixed(0)} ms`);
  console.log(`  read in ${shown(decoding)}`);
  console.log(`  heap: the state ${stateMiB.toFixed(0)} MiB, the one read ${decodedMiB.toFixed(0)} MiB`);
  console.log(
    `  resident at most so far, all of this and the snapshot included: ${residentMiB.toFixed(0)} MiB`,
  );
  const allowed = tasks > 2 * smallCount ? secondsAllowed.large : secondsAllowed.small;
  const isMet = decoding.seconds <= allowed && residentMiB <= residentMiBAllowed;
  console.log(
    `  required: read within ${allowed} s and ${residentMiBAllowed} MiB: ${isMet ? "met" : "MISSED"}`,
  );
  return isMet;
}

function shown({ seconds, cpuSeconds }: Time): string {
  return `${seconds.toFixed(2)} s (${cpuSeconds.toFixed(2)} s of processor time)`;
}

const USAGE = `npm run bench:snapshot -- [--tasks N]

  --tasks  live tasks of the state (default: 100,000 and then 1,000,000)`;

const { values } = readFlags(USAGE, () =>
  parseArgs({ options: { tasks: { type: "string" }, help: { type: "boolean", default: false } } }),
);
const chosen = values.tasks === undefined ? taskCounts : [Number(values.tasks)];
if (!chosen.every((tasks) => Number.isSafeInteger(tasks) && tasks > 0)) {
  console.error("--tasks takes a whole number above 0");
  process.exitCode = 2;
} else {
  const met = chosen.map((tasks) => print(withFile((file) => measure(tasks, file))));
  process.exitCode = met.every(Boolean) ? 0 : 1;
}

function withFile<Value>(use: (file: number) => Value): Value {
  const folder = mkdtempSync(join(tmpdir(), "waggle-bench-"));
  const file = openSync(join(folder, "snapshot"), "w+");
  try {
    return use(file);
  } finally {
    closeSync(file);
    rmSync(folder, { recursive: true });
  }
}
