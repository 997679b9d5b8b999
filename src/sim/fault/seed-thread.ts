// One thread of the fault simulator: runs the seeds that it is handed, one after another. Entry point of its own
// (package.json, "./torture-thread"). Not here: who hands out (seed-threads.ts).

import { parentPort } from "node:worker_threads";
import { assert } from "../../assert.ts";
import { runSeed, type SeedRequest } from "./run-seed.ts";

const port = parentPort;
assert(port !== null, "a thread of the simulator is started by one");
port.on("message", async (request: SeedRequest) => port.postMessage(await runSeed(request)));
