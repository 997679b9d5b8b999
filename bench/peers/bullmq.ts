// BullMQ on Redis (appendonly everysec). The client adds the tasks of a turn in bulk, and hears of their ends from
// QueueEvents. Completed jobs are removed at once. The concurrency of a worker is within the range of BullMQ's page
// "Parallelism and concurrency" (100 to 300).

import { type JobsOptions, Queue, QueueEvents, Worker } from "bullmq";
import { bulkClient } from "./bulk-client.ts";
import type { Client, PeerConfig } from "./peer.ts";
import { waiters } from "./waiters.ts";

const jobsPerCallMax = 1000;
/** The default of 10,000 events loses completions of a burst. */
const eventsKept = 200_000;

const connectionTo = ({ port }: PeerConfig) => ({ host: "127.0.0.1", port: port ?? 0 });

export async function worker(config: PeerConfig): Promise<void> {
  const own = new Worker("noop", async () => "ok", {
    connection: connectionTo(config),
    concurrency: config.concurrency ?? 100,
    removeOnComplete: { count: 0 },
  });
  own.on("error", (error) => console.error(error));
  await own.waitUntilReady();
}

export async function client(config: PeerConfig): Promise<Client> {
  const connection = connectionTo(config);
  const queue = new Queue("noop", { connection, streams: { events: { maxLen: eventsKept } } });
  await queue.waitUntilReady();
  const { open, end } = waiters(`c${process.pid}-`);
  const events = new QueueEvents("noop", { connection });
  await events.waitUntilReady();
  events.on("completed", ({ jobId }) => end(jobId));

  interface Job {
    readonly name: string;
    readonly data: { readonly payload: string };
    readonly opts: JobsOptions;
  }
  return bulkClient<Job>({
    open,
    jobOf: (jobId, payload) => ({ name: "noop", data: { payload }, opts: { removeOnComplete: true, jobId } }),
    add: (jobs) => queue.addBulk(jobs),
    jobsPerCallMax,
  });
}
