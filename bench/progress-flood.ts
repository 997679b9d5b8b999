// The effect of an agent that reports progress 10,000 times a second on tasks of other users: p99 from submit to
// result, with the flood over without. Within a round, seconds with and without the flood alternate, so that other load
// on the machine affects both alike. Real processes on a real nats-server.
//
//     npm run bench:progress-flood                     seven rounds; exits 1 if the median ratio is above 2, or if more
//                                                      reports are passed on than the limit allows
//     npm run bench:progress-flood -- --rate 50000     a larger flood
//     npm run bench:progress-flood -- --verb result    a flood of heartbeat, join, result or release

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { connect, type Swarm } from "waggledance";
import { limits } from "../src/limits.ts";
import { findNatsServers, startNatsServer } from "../test/support/nats-server.ts";
import { readFlags } from "../test/support/script-flags.ts";
import { Children, stopAtSignals } from "./harness/children.ts";
import { startCoordinator } from "./harness/coordinator.ts";
import { processorMs } from "./harness/processor.ts";
import { median, quantile } from "./harness/statistics.ts";

const USAGE = `npm run bench:progress-flood -- [--rounds N] [--seconds N] [--rate N] [--verb VERB] [--tasks N] [--require RATIO]

  --rounds   rounds (default 7)
  --seconds  seconds of a round with the flood, and as many without (default 5)
  --rate     messages of the flood per second (default 10000)
  --verb     the flood: progress, heartbeat, join, result or release (default progress)
  --tasks    tasks of other users per second (default 200)
  --require  largest median ratio of p99 (default 2)`;

const { values } = readFlags(USAGE, () =>
  parseArgs({
    options: {
      rounds: { type: "string", default: "7" },
      seconds: { type: "string", default: "5" },
      rate: { type: "string", default: "10000" },
      verb: { type: "string", default: "progress" },
      tasks: { type: "string", default: "200" },
      require: { type: "string", default: "2" },
      help: { type: "boolean", default: false },
    },
  }),
);
const seconds = Number(values.seconds);

/** A second of tasks at a steady rate, whether or not those before have ended. @returns each one's time, ms */
async function latencies(swarm: Swarm): Promise<number[]> {
  const took: number[] = [];
  const running: Promise<void>[] = [];
  const startedAt = performance.now();
  const stepMs = 1_000 / Number(values.tasks);
  const one = async () => {
    const from = performance.now();
    const handle = await swarm.submit({ kind: "noop", payload: "x" });
    await handle.result();
    took.push(performance.now() - from);
  };
  for (let n = 0; n * stepMs < 1_000; n += 1) {
    const waitMs = startedAt + n * stepMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    running.push(one());
  }
  await Promise.all(running);
  return took;
}

interface Round {
  /** Ms. */
  readonly calm: readonly number[];
  readonly flooded: readonly number[];
  /** The coordinator's processor time, ms. */
  readonly calmMs: number;
  readonly floodedMs: number;
  /** Reports per second that reached the client of the flooding agent's task. */
  readonly passedOnASecond: number;
}

async function takeTurns(swarm: Swarm, flooding: ChildProcess, coordinator: ChildProcess): Promise<Round> {
  const calm: number[] = [];
  const flooded: number[] = [];
  let [calmMs, floodedMs] = [0, 0];
  const before = await setRate(flooding, 0);
  for (let second = 0; second < seconds; second += 1) {
    const atFirst = processorMs(coordinator);
    calm.push(...(await latencies(swarm)));
    const inBetween = processorMs(coordinator);
    await setRate(flooding, Number(values.rate));
    flooded.push(...(await latencies(swarm)));
    await setRate(flooding, 0);
    calmMs += inBetween - atFirst;
    floodedMs += processorMs(coordinator) - inBetween;
  }
  const passedOnASecond = ((await setRate(flooding, 0)) - before) / seconds;
  return { calm, flooded, calmMs, floodedMs, passedOnASecond };
}

/** @returns number of reports that reached the client of the task so far */
async function setRate(flooding: ChildProcess, ratePerSecond: number): Promise<number> {
  flooding.send({ ratePerSecond, verb: values.verb });
  const [{ passedOn }] = (await once(flooding, "message")) as [{ passedOn: number }];
  return passedOn;
}

async function main(): Promise<number> {
  const binary = findNatsServers()[0]?.path;
  if (binary === undefined) throw new Error("no nats-server on the PATH: install one first");
  const children = new Children((sentence) => console.error(`! ${sentence}`));
  stopAtSignals(children);
  const server = await startNatsServer({ binary, jetstream: true });
  try {
    const upArguments = ["--nats", server.url, "--swarm", "bench"];
    const coordinator = await startCoordinator(children, { upArguments });
    await children.startProcess("noop-agent", server.url);
    const flooding = await children.startProcess("flooding-agent", server.url);
    const swarm = await connect({ nats: server.url, swarm: "bench" });
    await latencies(swarm); // warm up
    const ratios: number[] = [];
    let passedOnMax = 0;
    for (let round = 1; round <= Number(values.rounds); round += 1) {
      const { calm, flooded, calmMs, floodedMs, passedOnASecond } = await takeTurns(
        swarm,
        flooding,
        coordinator,
      );
      const [calmP99, floodedP99] = [quantile(calm, 0.99), quantile(flooded, 0.99)];
      ratios.push(floodedP99 / calmP99);
      passedOnMax = Math.max(passedOnMax, passedOnASecond);
      console.log(
        `round ${round}: p50 ${quantile(calm, 0.5).toFixed(1)} → ${quantile(flooded, 0.5).toFixed(1)} ms, ` +
          `p99 ${calmP99.toFixed(1)} → ${floodedP99.toFixed(1)} ms, ratio ${(floodedP99 / calmP99).toFixed(2)}, ` +
          `coordinator ${Math.round(calmMs / seconds)} → ${Math.round(floodedMs / seconds)} ms of CPU a second, ` +
          `${passedOnASecond.toFixed(0)} reports/s passed on`,
      );
    }
    await swarm.close();
    return conclude(ratios, passedOnMax);
  } finally {
    await children.stopAll();
    await server.stop();
  }
}

/** Reports that one running attempt saves up in a calm second and gets in the next, with tolerance at the cut of a
 *  second. */
const PASSED_ON_MAX = 2.5 * limits.progressPerAttemptMax;

/** On a slow machine a ratio hides the cost of a flood; the number of passed reports shows the bound on any machine. */
function conclude(ratios: readonly number[], passedOnMax: number): number {
  const middle = median(ratios);
  const spread = `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`;
  console.log(
    `others' p99 with ${values.rate} ${values.verb} messages/s over without: median ${middle.toFixed(2)} (${spread}, ${ratios.length} rounds)`,
  );
  if (middle > Number(values.require)) console.error(`the median ratio is above ${values.require}`);
  if (passedOnMax > PASSED_ON_MAX)
    console.error(`${passedOnMax.toFixed(0)} reports/s were passed on, of at most ${PASSED_ON_MAX}`);
  return middle > Number(values.require) || passedOnMax > PASSED_ON_MAX ? 1 : 0;
}

process.exitCode = await main();
