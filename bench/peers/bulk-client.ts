// A client of a system that takes jobs in bulk: jobs of a turn go together, and jobs of a burst.

import type { Client } from "./peer.ts";
import { batchPerTurn } from "./turn-batch.ts";
import type { Waiters } from "./waiters.ts";

export interface BulkClientOptions<Job> {
  readonly open: Waiters["open"];
  readonly jobOf: (id: string, payload: string) => Job;
  /** Resolves when the system has accepted the jobs. */
  readonly add: (jobs: Job[]) => Promise<unknown>;
  /** Maximum number of jobs of a burst per call. Default: all. */
  readonly jobsPerCallMax?: number;
}

export function bulkClient<Job>({
  open,
  jobOf,
  add,
  jobsPerCallMax = Number.POSITIVE_INFINITY,
}: BulkClientOptions<Job>): Client {
  const submission = (payload: string): { readonly job: Job; readonly ended: Promise<void> } => {
    const { id, ended } = open();
    return { job: jobOf(id, payload), ended };
  };
  const addInTurn = batchPerTurn((jobs: readonly Job[]) => void add([...jobs]));
  return {
    one: (payload) => {
      const { job, ended } = submission(payload);
      addInTurn(job);
      return ended;
    },
    burst: async (tasks, payload) => {
      const submissions = Array.from({ length: tasks }, () => submission(payload));
      const adding: Promise<unknown>[] = [];
      for (let from = 0; from < tasks; from += jobsPerCallMax)
        adding.push(add(submissions.slice(from, from + jobsPerCallMax).map(({ job }) => job)));
      await Promise.all(adding);
      const acceptedAt = performance.now();
      await Promise.all(submissions.map(({ ended }) => ended));
      return acceptedAt;
    },
  };
}
