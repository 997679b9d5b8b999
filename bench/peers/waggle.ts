// Waggle through its public SDK. Server and coordinator are processes of their own, started by the benchmark.

import type * as Sdk from "../../dist/src/index.js";
import type { Calls, Client, PeerConfig } from "./peer.ts";

const resource = "bench-resource";

async function swarmOf(config: PeerConfig): Promise<Sdk.Swarm> {
  const { connect } = (await import(config.sdk)) as typeof Sdk;
  const { url, dataFolder, swarm } = config;
  return await connect({ swarm, ...(url === undefined ? { dataFolder } : { nats: url.split(",") }) });
}

/** The agents of a process share the connection of their swarm, and one stand-in. Ids are given, because of 500
 *  random ids two may be the same: the earlier agent would be fenced. */
export async function worker(config: PeerConfig): Promise<void> {
  const { agents = 1, maxConcurrent = 512, kinds = ["noop"] } = config;
  const swarm = await swarmOf(config);
  const start = async (at: number) => {
    const id = `bench-${process.pid}-${at}`;
    const agent = await swarm.agent({ id, kinds: [...kinds], maxConcurrent, handler: () => "ok" });
    void agent.closed.then((error) => endWith(error ?? new Error(`agent ${id} ended`)));
  };
  await Promise.all(Array.from({ length: agents }, (_, at) => start(at)));
}

/** A window with fewer agents or followers would be wrong. */
function endWith(error: Error): never {
  console.error(error);
  process.exit(1);
}

export async function client(config: PeerConfig): Promise<Client> {
  const swarm = await swarmOf(config);
  const { users = 1 } = config;
  let made = 0;
  const request = (payload: string) => {
    made += 1;
    return { kind: "noop", payload, ...(users === 1 ? {} : { user: `user-${made % users}` }) };
  };
  let ended = 0;
  return {
    one: async (payload) => {
      const handle = await swarm.submit(request(payload));
      await handle.result();
      ended += 1;
    },
    burst: async (tasks, payload) => {
      const submit = () => swarm.submit(request(payload));
      const handles = await Promise.all(Array.from({ length: tasks }, submit));
      const acceptedAt = performance.now();
      await Promise.all(handles.map((handle) => handle.result()));
      ended += tasks;
      return acceptedAt;
    },
    calls: {
      /** Tasks of a kind that no agent serves: they wait. */
      park: async (tasks) => await park(swarm, tasks, "x".repeat(config.payloadBytes)),
      /** @returns number of tasks that ended so far; parked tasks do not count */
      ended: async () => ended,
      /** @returns ms of the first slot lease of each of so many fresh connections */
      acquire: async (connections) => await firstAcquires(config, connections),
    },
  };
}

export function followers(config: PeerConfig): Calls {
  const seen: number[] = [];
  return {
    /** So many more connections follow all events. */
    follow: async (connections) => {
      for (let n = 0; n < connections; n += 1) {
        const swarm = await swarmOf(config);
        const at = seen.push(0) - 1;
        swarm.events({ follow: true }).subscribe({
          next: () => {
            seen[at] = (seen[at] ?? 0) + 1;
          },
          error: endWith,
          complete: () => endWith(new Error("the events ended")),
        });
      }
    },
    /** @returns number of events so far, per follower */
    seen: async () => seen,
  };
}

async function park(swarm: Sdk.Swarm, tasks: number, payload: string): Promise<number> {
  const parkers = 1000;
  function* requests() {
    for (let n = 0; n < tasks; n += 1)
      yield { kind: "parked", payload, user: `parker-${n % parkers}`, project: `parked-${n % 10}` };
  }
  let accepted = 0;
  for await (const outcome of swarm.submitMany(requests(), { notify: false, timeoutMs: 120_000 }))
    if (outcome.ok) accepted += 1;
  return accepted;
}

async function firstAcquires(config: PeerConfig, connections: number): Promise<number[]> {
  const operator = await swarmOf(config);
  await operator.setResource(resource, { slots: connections });
  await operator.close();
  const times: number[] = [];
  for (let n = 0; n < connections; n += 1) {
    const swarm = await swarmOf(config);
    const from = performance.now();
    const slot = await swarm.acquire(resource);
    times.push(performance.now() - from);
    await slot.release();
    await swarm.close();
  }
  return times;
}
