// graphile-worker on PostgreSQL, with the batching of its page "Performance". More jobs at once and a longer local
// queue than on that page (24 and 500) are faster on two cores. It has no results: workers report completed jobs over
// a socket.

import { EventEmitter } from "node:events";
import { Logger, makeWorkerUtils, run, type WorkerEvents, WorkerPreset } from "graphile-worker";
import { bulkClient } from "./bulk-client.ts";
import { doneReporter, listenForDone } from "./done-socket.ts";
import type { Client, PeerConfig } from "./peer.ts";
import { waiters } from "./waiters.ts";

const logger = new Logger(() => () => undefined);

interface Job {
  readonly identifier: "noop";
  readonly payload: { readonly id: string; readonly payload: string };
}

export async function setup({ url = "" }: PeerConfig): Promise<void> {
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  await utils.migrate();
  await utils.release();
}

export async function worker(config: PeerConfig): Promise<void> {
  const { url = "", socket, concurrency = 100, localQueue = 1000 } = config;
  const report = doneReporter(socket);
  const events = new EventEmitter() as WorkerEvents;
  events.on("job:complete", ({ job }) => report((job.payload as Job["payload"]).id));
  await run({
    events,
    logger,
    noHandleSignals: true,
    preset: {
      extends: [WorkerPreset],
      worker: {
        connectionString: url,
        concurrentJobs: concurrency,
        maxPoolSize: concurrency + 1,
        localQueue: { size: localQueue },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
    taskList: { noop: async () => undefined },
  });
}

export async function client({ url = "", socket }: PeerConfig): Promise<Client> {
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  const { open, end } = waiters();
  await listenForDone(socket, end);
  return bulkClient<Job>({
    open,
    jobOf: (id, payload) => ({ identifier: "noop", payload: { id, payload } }),
    add: (jobs) => utils.addJobs(jobs),
  });
}
