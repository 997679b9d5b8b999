// Throughput of no-op tasks against a bare NATS round trip (`request` and `respond` of the NATS client, keeping
// nothing). One run has a nats-server, two agent processes, a coordinator, and the client in the present process.
// Rounds alternate, because machines are shared and noisy: only the ratio within a round is meaningful.
//     npm run bench:smoke                    the rounds and the median ratio; exits 1 below 0.35. A quiet machine gives
//                                            much more, so that noise passes and a loss of half does not
//     npm run bench:smoke -- --require 0.6   a higher bound

import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { connect as connectBare, type NatsConnection } from "@nats-io/transport-node";
import { connect, type Swarm } from "waggledance";
import { findNatsServers, startNatsServer } from "../test/support/nats-server.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    "round-ms": { type: "string", default: "3000" },
    concurrency: { type: "string", default: "1024" },
    require: { type: "string", default: "0.35" },
    json: { type: "boolean", default: false },
  },
});
const concurrency = Number(values.concurrency);
const roundMs = Number(values["round-ms"]);
const payload = "x".repeat(100);
const children: ChildProcess[] = [];

async function startProcess(name: string, url: string): Promise<void> {
  const file = fileURLToPath(new URL(`./processes/${name}.ts`, import.meta.url));
  const child = fork(file, [url], { execArgv: ["--import", "tsx"] });
  children.push(child);
  await once(child, "message");
}

/** The command itself, as compiled. */
async function startCoordinator(url: string): Promise<void> {
  const launcher = fileURLToPath(new URL("../bin/waggle.js", import.meta.url));
  const child = spawn(process.execPath, [launcher, "up", "--nats", url, "--swarm", "bench"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  children.push(child);
  await new Promise<void>((resolve, reject) => {
    child.stderr.on("data", (said: Buffer) => said.includes("leading") && resolve());
    child.once("exit", () =>
      reject(new Error("the coordinator ended before it led: run npm run build first")),
    );
  });
}

/** Keeps `concurrency` operations going for the length of a round. @returns operations a second */
async function measure(operate: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  let ended = 0;
  const queue = async () => {
    while (performance.now() - startedAt < roundMs) {
      await operate();
      ended += 1;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, queue));
  return (ended / (performance.now() - startedAt)) * 1000;
}

function bareRoundTrip(connection: NatsConnection): () => Promise<unknown> {
  return () => connection.request("bare.request", payload, { timeout: 10_000 });
}

function task(swarm: Swarm): () => Promise<unknown> {
  return async () => {
    const handle = await swarm.submit({ kind: "noop", payload });
    await handle.result();
  };
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

async function main(): Promise<number> {
  const binary = findNatsServers()[0]?.path;
  if (binary === undefined) throw new Error("no nats-server on the PATH: install one first");
  const server = await startNatsServer({ binary, jetstream: true });
  try {
    await startCoordinator(server.url);
    for (const name of ["noop-agent", "noop-agent", "responder"]) await startProcess(name, server.url);
    const connection = await connectBare({ servers: server.url });
    const swarm = await connect({ nats: server.url, swarm: "bench" });
    await measure(task(swarm)); // warm up both
    await measure(bareRoundTrip(connection));
    const ratios: number[] = [];
    for (let round = 1; round <= Number(values.rounds); round += 1) {
      const bare = await measure(bareRoundTrip(connection));
      const tasks = await measure(task(swarm));
      ratios.push(tasks / bare);
      const figures = {
        round,
        concurrency,
        bare: Math.round(bare),
        tasks: Math.round(tasks),
        ratio: round2(tasks / bare),
      };
      if (values.json) console.log(JSON.stringify(figures));
      else
        console.log(
          `round ${round}: bare ${figures.bare}/s, tasks ${figures.tasks}/s, ratio ${figures.ratio}`,
        );
    }
    await swarm.close();
    await connection.close();
    return conclude(ratios);
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await server.stop();
  }
}

function conclude(ratios: readonly number[]): number {
  const middle = median(ratios);
  const spread = `${round2(Math.min(...ratios))}–${round2(Math.max(...ratios))}`;
  if (values.json)
    console.log(
      JSON.stringify({
        median: round2(middle),
        min: round2(Math.min(...ratios)),
        max: round2(Math.max(...ratios)),
      }),
    );
  else
    console.log(
      `tasks / bare round trips at C = ${concurrency}: median ${round2(middle)} (${spread}, ${ratios.length} rounds)`,
    );
  const required = Number(values.require);
  if (middle >= required) return 0;
  console.error(`the median ratio is below ${required}`);
  return 1;
}

function round2(value: number): number {
  return Math.round(value * 100) / 100;
}

process.exitCode = await main();
