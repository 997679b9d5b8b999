// One process of a measured system: a worker whose handler does nothing, the client that submits tasks and takes
// times, or followers of all events. Started by the benchmark: main.js setup|worker|client|followers PEER CONFIG

import type { Calls, Client, Order, Peer, PeerConfig, Timing } from "./peer.ts";

const [role, peerName, json] = process.argv.slice(2);
const config = JSON.parse(json ?? "") as PeerConfig;
const payload = "x".repeat(config.payloadBytes);
process.on("disconnect", () => process.exit(0));
process.on("SIGTERM", () => process.exit(0));

const peer = (await import(`./${peerName}.js`)) as Peer;
if (role === "setup") await peer.setup?.(config);
if (role === "worker") await peer.worker?.(config);
if (role === "client") {
  const client = await peer.client(config);
  answer((order) => perform(client, order));
}
if (role === "followers") {
  const calls = peer.followers?.(config) ?? {};
  answer(async (order) => {
    if (order.op !== "call") throw new Error(`followers submit no tasks: ${order.op}`);
    return await call(calls, order);
  });
}
process.send?.("ready");
if (role === "setup") process.exit(0);

function answer(act: (order: Order) => Promise<Timing>): void {
  process.on("message", ({ id, order }: { id: number; order: Order }) => {
    act(order).then(
      (timing) => process.send?.({ id, timing }),
      (error: unknown) =>
        process.send?.({ id, error: error instanceof Error ? error.message : String(error) }),
    );
  });
}

async function perform(client: Client, order: Order): Promise<Timing> {
  switch (order.op) {
    case "closed":
      return await closed(client, order);
    case "burst":
      return await burst(client, order);
    case "open":
      return await open(client, order);
    case "call":
      return await call(client.calls ?? {}, order);
  }
}

async function call(calls: Calls, { name, amount }: Extract<Order, { op: "call" }>): Promise<Timing> {
  const from = performance.now();
  const value = await calls[name]?.(amount);
  const ms = performance.now() - from;
  return { tasks: amount, ms, ratePerSecond: (amount / ms) * 1000, value };
}

/** Keeps `concurrency` tasks in flight. Latencies of tasks that end after the window count, and their time, too. */
async function closed(
  client: Client,
  { concurrency, ms }: Extract<Order, { op: "closed" }>,
): Promise<Timing> {
  const latencies: number[] = [];
  const from = performance.now();
  const submitInTurn = async () => {
    for (let now = performance.now(); now - from < ms; ) {
      await client.one(payload);
      const then = performance.now();
      latencies.push(then - now);
      now = then;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, submitInTurn));
  return timing(latencies, performance.now() - from);
}

async function burst(client: Client, { tasks }: Extract<Order, { op: "burst" }>): Promise<Timing> {
  const from = performance.now();
  const acceptedAt = await client.burst?.(tasks, payload);
  if (acceptedAt === undefined) await Promise.all(Array.from({ length: tasks }, () => client.one(payload)));
  const ms = performance.now() - from;
  const accepted = acceptedAt === undefined ? {} : { acceptedMs: acceptedAt - from };
  return { tasks, ms, ratePerSecond: (tasks / ms) * 1000, ...accepted };
}

/** Submits at a fixed rate, whatever comes back. A late submission counts as a longer latency. */
async function open(client: Client, { ratePerSecond, ms }: Extract<Order, { op: "open" }>): Promise<Timing> {
  const latencies: number[] = [];
  const total = Math.floor((ratePerSecond * ms) / 1000);
  const from = performance.now();
  await new Promise<void>((resolve, reject) => {
    let sent = 0;
    const timer = setInterval(() => {
      const due = Math.min(total, Math.floor(((performance.now() - from) * ratePerSecond) / 1000));
      for (; sent < due; sent += 1) {
        const dueAt = from + (sent / ratePerSecond) * 1000;
        client.one(payload).then(() => {
          if (latencies.push(performance.now() - dueAt) === total) resolve();
        }, reject);
      }
      if (sent === total) clearInterval(timer);
    }, 1);
  });
  return timing(latencies, performance.now() - from);
}

function timing(latencies: readonly number[], ms: number): Timing {
  const sorted = Float64Array.from(latencies).sort();
  const tasks = sorted.length;
  const at = (share: number) => sorted[Math.min(tasks - 1, Math.floor(tasks * share))] ?? Number.NaN;
  return { tasks, ms, ratePerSecond: (tasks / ms) * 1000, p50: at(0.5), p99: at(0.99), max: at(1) };
}
