// One thread of a simulation: runs what it is handed, one after another. Entry point of its own (package.json,
// "./simulation-thread"). Not here: who hands out (seed-threads.ts).

import { parentPort, workerData } from "node:worker_threads";
import { assert } from "../../assert.ts";
import { type RunRequest, runOnce } from "./simulate.ts";
import type { TraceRequest } from "./trace-rows.ts";

const port = parentPort;
assert(port !== null, "a thread of a simulation is started by one");
const { trace } = workerData as { readonly trace?: readonly TraceRequest[] };
port.on("message", (request: RunRequest) => port.postMessage(runOnce(request, trace)));
