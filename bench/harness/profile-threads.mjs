// Preloaded into an agent process by `npm run bench:profile`: its threads write profiles, too.

import { syncBuiltinESMExports } from "node:module";
import workerThreads from "node:worker_threads";

const { Worker } = workerThreads;
const profiling = process.execArgv.filter((argument) => argument.startsWith("--cpu-prof"));

workerThreads.Worker = class extends Worker {
  constructor(file, options) {
    super(file, { ...options, execArgv: [...(options?.execArgv ?? []), ...profiling] });
  }
};
syncBuiltinESMExports();
