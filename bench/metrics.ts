// What metrics cost when nobody reads them: the leader's processor time per task at a fixed rate, of a coordinator with
// `--metrics` over one without. Both swarms run on servers of their own, and take turns within a round, so that other
// load on the machine affects both alike.
//
//     npm run bench:metrics          eleven rounds of 2 × 8 s; exits 1 if the median ratio is above 1.05
//     npm run bench:metrics -- --rounds 3 --rate 500

import type { ChildProcess } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { connect, type Swarm } from "waggledance";
import { findNatsServers, startNatsServer } from "../test/support/nats-server.ts";
import { readFlags } from "../test/support/script-flags.ts";
import { Children, stopAtSignals } from "./harness/children.ts";
import { startCoordinator } from "./harness/coordinator.ts";
import { processorMs } from "./harness/processor.ts";
import { median } from "./harness/statistics.ts";
import { SteadyLoad } from "./harness/steady-load.ts";

const USAGE = `npm run bench:metrics -- [--rounds N] [--seconds N] [--rate N] [--require RATIO]

  --rounds   rounds, each with and without metrics (default 11)
  --seconds  length of each half of a round (default 8)
  --rate     tasks a second (default 2000)
  --require  largest median ratio (default 1.05)`;

const { values } = readFlags(USAGE, () =>
  parseArgs({
    options: {
      rounds: { type: "string", default: "11" },
      seconds: { type: "string", default: "8" },
      rate: { type: "string", default: "2000" },
      require: { type: "string", default: "1.05" },
      help: { type: "boolean", default: false },
    },
  }),
);
const rate = Number(values.rate);

const SETTLE_MS = 1_000;
const WARM_UP_MS = 10_000;

interface Measured {
  readonly coordinator: ChildProcess;
  readonly swarm: Swarm;
}

/** @throws Error without a nats-server */
async function startSwarm(children: Children, upArguments: readonly string[]): Promise<Measured> {
  const binary = findNatsServers()[0]?.path;
  if (binary === undefined) throw new Error("no nats-server on the PATH: install one first");
  const { url, stop } = await startNatsServer({ binary, jetstream: true });
  stops.push(stop);
  const where = ["--nats", url, "--swarm", "bench"];
  const coordinator = await startCoordinator(children, { upArguments: [...where, ...upArguments] });
  await children.startProcess("noop-agent", url);
  const swarm = await connect({ nats: url, swarm: "bench" });
  stops.push(() => swarm.close());
  return { coordinator, swarm };
}

/** @returns the leader's processor time per task, µs */
async function usPerTask({ coordinator, swarm }: Measured, seconds: number): Promise<number> {
  const load = new SteadyLoad(swarm, rate);
  await delay(SETTLE_MS);
  const [fromMs, fromEnded] = [processorMs(coordinator), load.ended];
  await delay(seconds * 1_000);
  const us = ((processorMs(coordinator) - fromMs) * 1_000) / (load.ended - fromEnded);
  await load.stop();
  return us;
}

const stops: (() => Promise<unknown>)[] = [];

async function main(): Promise<number> {
  const children = new Children((sentence) => console.error(`! ${sentence}`));
  stopAtSignals(children);
  try {
    const plain = await startSwarm(children, []);
    const measuring = await startSwarm(children, ["--metrics", "127.0.0.1:0"]);
    for (const each of [plain, measuring]) await usPerTask(each, WARM_UP_MS / 1_000);
    const ratios: number[] = [];
    for (let round = 1; round <= Number(values.rounds); round += 1) {
      const order = round % 2 === 1 ? [plain, measuring] : [measuring, plain]; // either comes first as often
      const spent = new Map<Measured, number>();
      for (const each of order) spent.set(each, await usPerTask(each, Number(values.seconds)));
      const [without = Number.NaN, having = Number.NaN] = [spent.get(plain), spent.get(measuring)];
      ratios.push(having / without);
      console.log(
        `round ${round}: ${without.toFixed(0)} → ${having.toFixed(0)} µs of the leader's CPU per task, ratio ${(having / without).toFixed(3)}`,
      );
    }
    const middle = median(ratios);
    console.log(
      `the leader's CPU per task with metrics over none, at ${rate} tasks/s: median ${middle.toFixed(3)} ` +
        `(${Math.min(...ratios).toFixed(3)}–${Math.max(...ratios).toFixed(3)}, ${ratios.length} rounds)`,
    );
    if (middle > Number(values.require)) console.error(`the median ratio is above ${values.require}`);
    return middle > Number(values.require) ? 1 : 0;
  } finally {
    for (const stop of stops.reverse()) await stop();
    await children.stopAll();
  }
}

process.exitCode = await main();
