// Loaded before a process under test (`node --import`) to sample memory: collects garbage once per minute and
// writes down the memory in use. Resident memory alone says little, because V8 collects at any time. Plain
// JavaScript, because coordinators run without a loader, as for users. The parent sets the output file:
// IN_USE_FILE.

import { appendFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const EVERY_MS = Number(process.env.IN_USE_EVERY_MS ?? 60_000);

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

function note() {
  collectGarbage();
  collectGarbage(); // the second collection frees buffers of the first
  const { heapUsed, external } = process.memoryUsage(); // `external` has the buffers within
  appendFileSync(process.env.IN_USE_FILE, `${process.pid} ${heapUsed + external}\n`);
}

setInterval(note, EVERY_MS).unref();
