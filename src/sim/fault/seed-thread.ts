// A thread of the fault simulator: runs seeds on request, in sequence. Entry point of a worker (package.json,
// "./torture-thread"). seed-threads.ts hands out the seeds.

import { parentPort } from "node:worker_threads";
import { assert } from "../../assert.ts";
import { runSeed, type SeedRequest } from "./run-seed.ts";

const port = parentPort;
assert(port !== null, "a thread of the simulator is started by one");
port.on("message", async (request: SeedRequest) => port.postMessage(await runSeed(request)));
