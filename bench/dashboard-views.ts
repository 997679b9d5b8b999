// What 32 live views cost the leader: its processor time per task at a fixed rate, with all views of the dashboard open
// over none. Within a round, seconds with and without views alternate, so that other load on the machine affects both
// alike. Real processes on a real nats-server.
//
//     npm run bench:dashboard-views          eleven rounds of 2 × 8 s; exits 1 if the median ratio is above 1.1
//     npm run bench:dashboard-views -- --rounds 3 --rate 500

import type { ChildProcess } from "node:child_process";
import { get, type IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { limits } from "../src/limits.ts";
import { readFlags } from "../test/support/script-flags.ts";
import { startWatchedSwarm } from "./harness/dashboard.ts";
import { processorMs } from "./harness/processor.ts";
import { median } from "./harness/statistics.ts";
import { SteadyLoad } from "./harness/steady-load.ts";

const USAGE = `npm run bench:dashboard-views -- [--rounds N] [--seconds N] [--rate N] [--views N] [--require RATIO]

  --rounds   rounds, each with and without views (default 11)
  --seconds  length of each half of a round (default 8)
  --rate     tasks a second (default 2000)
  --views    open live views, of all pages in turn (default ${limits.dashboardLiveViewsMax})
  --require  largest median ratio (default 1.1)`;

const { values } = readFlags(USAGE, () =>
  parseArgs({
    options: {
      rounds: { type: "string", default: "11" },
      seconds: { type: "string", default: "8" },
      rate: { type: "string", default: "2000" },
      views: { type: "string", default: String(limits.dashboardLiveViewsMax) },
      require: { type: "string", default: "1.1" },
      help: { type: "boolean", default: false },
    },
  }),
);
const seconds = Number(values.seconds);
const rate = Number(values.rate);

const pages = [
  "overview",
  "agents",
  "tasks",
  "fairness",
  "resources",
  "budgets",
  "events",
  "system",
] as const;
/** From the change of the views to the measurement: the first viewer makes the dashboard read 500 batches. */
const SETTLE_MS = 2_000;
const WARM_UP_MS = 15_000;

/** Open streams of a dashboard. */
class Viewers {
  readonly #streams: IncomingMessage[] = [];
  readonly #origin: string;
  readonly #cookie: string;

  private constructor(origin: string, cookie: string) {
    this.#origin = origin;
    this.#cookie = cookie;
  }

  /** Signs in. */
  static async of(url: string): Promise<Viewers> {
    const { headers } = await answerOf(url, {});
    const [cookie = ""] = headers["set-cookie"]?.[0]?.split(";") ?? [];
    return new Viewers(new URL(url).origin, cookie);
  }

  async open(count: number): Promise<void> {
    for (let at = 0; at < count; at += 1) {
      const address = `${this.#origin}/api/live?view=${pages[at % pages.length]}`;
      const stream = await answerOf(address, { cookie: this.#cookie });
      if (stream.statusCode !== 200) throw new Error(`a live view was refused with ${stream.statusCode}`);
      stream.resume();
      this.#streams.push(stream);
    }
  }

  close(): void {
    for (const stream of this.#streams.splice(0)) stream.destroy();
  }
}

async function answerOf(address: string, headers: Record<string, string>): Promise<IncomingMessage> {
  return await new Promise((resolve, reject) => {
    get(address, { headers }, resolve).on("error", reject);
  });
}

interface Measured {
  /** The leader's processor time per task, ms. */
  readonly perTaskMs: number;
  readonly tasksASecond: number;
  /** The dashboard's processor time per second, ms. */
  readonly dashboardMs: number;
}

interface Parts {
  readonly load: SteadyLoad;
  readonly coordinator: ChildProcess;
  readonly dashboard: ChildProcess;
}

async function measure({ load, coordinator, dashboard }: Parts): Promise<Measured> {
  await delay(SETTLE_MS);
  const [leaderFrom, dashboardFrom, endedFrom] = [
    processorMs(coordinator),
    processorMs(dashboard),
    load.ended,
  ];
  await delay(seconds * 1_000);
  const ended = load.ended - endedFrom;
  return {
    perTaskMs: (processorMs(coordinator) - leaderFrom) / ended,
    tasksASecond: ended / seconds,
    dashboardMs: (processorMs(dashboard) - dashboardFrom) / seconds,
  };
}

async function main(): Promise<number> {
  const { swarm, coordinator, dashboard, url, stop } = await startWatchedSwarm("noop-agent");
  try {
    const viewers = await Viewers.of(url);
    const parts = { load: new SteadyLoad(swarm, rate), coordinator, dashboard };
    await delay(WARM_UP_MS);
    const ratios: number[] = [];
    for (let round = 1; round <= Number(values.rounds); round += 1) {
      const isFirst = round % 2 === 1; // either half comes first as often
      if (!isFirst) await viewers.open(Number(values.views));
      const first = await measure(parts);
      if (isFirst) await viewers.open(Number(values.views));
      else viewers.close();
      const second = await measure(parts);
      viewers.close();
      const [without, having] = isFirst ? [first, second] : [second, first];
      ratios.push(having.perTaskMs / without.perTaskMs);
      console.log(
        `round ${round}: ${us(without)} → ${us(having)} µs of the leader's CPU per task, ratio ${(ratios.at(-1) ?? 0).toFixed(3)}; ` +
          `${Math.round(without.tasksASecond)} and ${Math.round(having.tasksASecond)} tasks/s; ` +
          `dashboard ${Math.round(without.dashboardMs)} → ${Math.round(having.dashboardMs)} ms/s`,
      );
    }
    await parts.load.stop();
    const middle = median(ratios);
    console.log(
      `the leader's CPU per task with ${values.views} live views over none, at ${rate} tasks/s: median ${middle.toFixed(3)} ` +
        `(${Math.min(...ratios).toFixed(3)}–${Math.max(...ratios).toFixed(3)}, ${ratios.length} rounds)`,
    );
    if (middle > Number(values.require)) console.error(`the median ratio is above ${values.require}`);
    return middle > Number(values.require) ? 1 : 0;
  } finally {
    await stop();
  }
}

function us({ perTaskMs }: Measured): string {
  return (perTaskMs * 1_000).toFixed(0);
}

process.exitCode = await main();
