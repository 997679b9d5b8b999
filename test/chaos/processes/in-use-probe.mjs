// Loaded before a process under test (`node --import`), where its memory is sampled: collects once a minute all that is
// garbage and writes down what is in use then. Resident memory alone says little, V8 collects when it likes. Plain
// JavaScript, because coordinators run as users run them, without a loader. The parent says where: IN_USE_FILE.

import { appendFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const EVERY_MS = Number(process.env.IN_USE_EVERY_MS ?? 60_000);

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

function note() {
  collectGarbage();
  collectGarbage(); // buffers of the first are given back along with the second
  const { heapUsed, external } = process.memoryUsage(); // `external` has the buffers within
  appendFileSync(process.env.IN_USE_FILE, `${process.pid} ${heapUsed + external}\n`);
}

setInterval(note, EVERY_MS).unref();
