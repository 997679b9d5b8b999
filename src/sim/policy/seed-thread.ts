// A thread of a simulation, which performs runs one after another. A separate entry point (package.json,
// "./simulation-thread"). seed-threads.ts distributes the runs.

import { parentPort, workerData } from "node:worker_threads";
import { assert } from "../../assert.ts";
import { type RunRequest, runOnce } from "./simulate.ts";
import type { TraceRequest } from "./trace-rows.ts";

const port = parentPort;
assert(port !== null, "a thread of a simulation is started by one");
const { trace } = workerData as { readonly trace?: readonly TraceRequest[] };
port.on("message", (request: RunRequest) => port.postMessage(runOnce(request, trace)));
