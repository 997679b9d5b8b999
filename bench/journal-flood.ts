// The effect of a client that asks for 1,000 pages of the journal per second. Measured are the submits of a second
// client, the server's memory and consumers, and a follower of the journal. Real processes on real nats-servers. Usage:
// `USAGE`.

import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { connect as connectNats, type NatsConnection } from "@nats-io/transport-node";
import { connect, type Swarm } from "waggledance";
import { findNatsServers, type NatsServerBinary, startNatsServer } from "../test/support/nats-server.ts";
import { readFlags } from "../test/support/script-flags.ts";
import { Children, stopAtSignals } from "./harness/children.ts";
import { startCoordinator } from "./harness/coordinator.ts";
import { residentMiB } from "./harness/machine.ts";
import { median, quantile } from "./harness/statistics.ts";
import type { Flooded } from "./processes/journal-flooder.ts";

const USAGE = `npm run bench:journal-flood -- [--server VERSION] [--rate N] [--seconds N] [--mebibytes N] [--json]

Floods a swarm with questions for pages of its journal, on each nats-server that is there: the one on the PATH, and those
that WAGGLE_NATS_SERVERS names, with colons between. Prints each figure beside its requirement. Run npm run build first.
Ends with 1 when a requirement is not met, 2 for wrong flags.

  --server     nats-server of this version, like 2.10; without it each that is there
  --rate       questions a second (default 1000)
  --seconds    length of the flood (default 30)
  --mebibytes  size of the journal (default 100)
  --json       one object per server, one per line`;

const { values } = readFlags(USAGE, () =>
  parseArgs({
    options: {
      server: { type: "string" },
      rate: { type: "string", default: "1000" },
      seconds: { type: "string", default: "30" },
      mebibytes: { type: "string", default: "100" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  }),
);

const required = {
  submitRatioMax: 2,
  lostMax: 0,
  serverGrowthMiBMax: 256,
  consumersMax: 8,
  /** Ratio of p50 two seconds after the flood to p50 before the flood. */
  afterRatioMax: 2,
};
const QUIET_MS = 10_000;
const SETTLE_MS = 2_000;
const SUBMIT_EVERY_MS = 10;
const LOOK_EVERY_MS = 50;
const FILL_PAYLOAD = "x".repeat(4 * 1024);
const FILL_AT_ONCE = 16;
const STREAM = "WAGGLE_bench";

interface Figures {
  readonly server: string;
  readonly quietMs: number;
  readonly floodedMs: number;
  readonly floodedP99Ms: number;
  readonly afterMs: number;
  readonly ratio: number;
  readonly afterRatio: number;
  readonly submitted: number;
  readonly lost: number;
  readonly serverGrowthMiB: number;
  readonly consumers: number;
  readonly flooded: Flooded;
}

async function setRate(flooder: ChildProcess, ratePerSecond: number, lastIdx: number): Promise<Flooded> {
  flooder.send({ ratePerSecond, lastIdx });
  const [met] = (await once(flooder, "message")) as [Flooded];
  return met;
}

/** Submits until the stream has its size. @returns the newest batch */
async function fill(swarm: Swarm, nats: NatsConnection): Promise<number> {
  const bytesWanted = Number(values.mebibytes) * 1024 ** 2;
  let lastIdx = 0;
  while ((await streamInfo(nats)).state.bytes < bytesWanted) {
    const one = async () => {
      for (let n = 0; n < 50; n += 1) {
        const handle = await swarm.submit({ kind: "parked", payload: FILL_PAYLOAD });
        lastIdx = Math.max(lastIdx, handle.ack?.idx ?? 0);
      }
    };
    await Promise.all(Array.from({ length: FILL_AT_ONCE }, one));
  }
  return lastIdx;
}

async function streamInfo(nats: NatsConnection) {
  const answer = await nats.request(`$JS.API.STREAM.INFO.${STREAM}`, "", { timeout: 30_000 });
  return answer.json() as { readonly state: { readonly bytes: number; readonly consumer_count: number } };
}

/** Submits of other clients, one every 10 ms, until stopped. */
class Submitter {
  readonly ids: string[] = [];
  readonly #swarm: Swarm;
  #tookMs: number[] = [];
  #isOver = false;
  readonly #running: Promise<void>;

  constructor(swarm: Swarm) {
    this.#swarm = swarm;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      const from = performance.now();
      const submitted = this.#swarm.submit({ kind: "parked", payload: "x" });
      const handle = await submitted.catch(() => undefined); // no answer within the SDK's time
      const took = performance.now() - from;
      this.#tookMs.push(took);
      if (handle !== undefined) this.ids.push(handle.id);
      await pause(Math.max(0, SUBMIT_EVERY_MS - took));
    }
  }

  /** Durations of the submits since the last call. @returns ms */
  taken(): number[] {
    const taken = this.#tookMs;
    this.#tookMs = [];
    return taken;
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }
}

/** Maximum of all measurements. */
class Watch {
  readonly #timer: NodeJS.Timeout;
  most = 0;

  constructor(look: () => number | Promise<number>) {
    this.#timer = setInterval(async () => {
      this.most = Math.max(this.most, await look());
    }, LOOK_EVERY_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

async function measure({ path, version }: NatsServerBinary, children: Children): Promise<Figures> {
  const server = await startNatsServer({ binary: path, jetstream: true });
  try {
    await startCoordinator(children, { upArguments: ["--nats", server.url, "--swarm", "bench"] });
    const flooder = await children.startProcess("journal-flooder", server.url);
    const nats = await connectNats({ servers: server.url });
    const swarm = await connect({ nats: server.url, swarm: "bench" });
    const lastIdx = await fill(swarm, nats);

    const following = new AbortController();
    const followed = new Set<string>();
    const follow = async () => {
      const events = swarm.events({ from: lastIdx + 1, follow: true, types: ["TaskSubmitted"] });
      for await (const { event } of events) {
        if (event.type === "TaskSubmitted") followed.add(event.task.id);
        if (following.signal.aborted) return;
      }
    };
    const followEnded = follow();

    const submitter = new Submitter(swarm);
    await pause(SETTLE_MS);
    submitter.taken();
    await pause(QUIET_MS);
    const quiet = submitter.taken();

    const before = residentMiB(server.pid);
    const memory = new Watch(() => residentMiB(server.pid));
    const consumers = new Watch(async () => (await streamInfo(nats)).state.consumer_count);
    await setRate(flooder, Number(values.rate), lastIdx);
    await pause(Number(values.seconds) * 1_000);
    const flooded = submitter.taken();
    await setRate(flooder, 0, lastIdx);
    await pause(SETTLE_MS);
    submitter.taken();
    await pause(QUIET_MS / 2);
    const after = submitter.taken();
    memory.stop();
    consumers.stop();
    await submitter.end();
    const met = await setRate(flooder, 0, lastIdx);

    const lost = () => submitter.ids.filter((id) => !followed.has(id)).length;
    for (let waits = 0; lost() > 0 && waits < 100; waits += 1) await pause(100);
    following.abort();
    const figures = {
      server: version,
      quietMs: median(quiet),
      floodedMs: median(flooded),
      floodedP99Ms: quantile(flooded, 0.99),
      afterMs: median(after),
      ratio: median(flooded) / median(quiet),
      afterRatio: median(after) / median(quiet),
      submitted: submitter.ids.length,
      lost: lost(),
      serverGrowthMiB: memory.most - before,
      consumers: consumers.most,
      flooded: met,
    };
    await swarm.close();
    await followEnded.catch(() => undefined); // the connection is closed
    await nats.close();
    return figures;
  } finally {
    await children.stopAll();
    await server.stop();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

interface Row {
  readonly figure: string;
  readonly cameOut: string;
  readonly required: string;
  readonly isMet: boolean;
}

function rowsOf(found: Figures): readonly Row[] {
  const row = (figure: string, cameOut: number, most: number, digits: number, unit = ""): Row => ({
    figure,
    cameOut: `${cameOut.toFixed(digits)}${unit}`,
    required: `at most ${most}${unit}`,
    isMet: cameOut <= most,
  });
  const { submitRatioMax, lostMax, serverGrowthMiBMax, consumersMax, afterRatioMax } = required;
  const p50 = (ms: number) => `${ms.toFixed(2)} ms`;
  return [
    row(
      `submit p50, flooded over quiet (${p50(found.floodedMs)} over ${p50(found.quietMs)})`,
      found.ratio,
      submitRatioMax,
      2,
    ),
    row(`submits that a follower missed, of ${found.submitted}`, found.lost, lostMax, 0),
    row("growth of the server's memory", found.serverGrowthMiB, serverGrowthMiBMax, 0, " MiB"),
    row("consumers of the journal, the most", found.consumers, consumersMax, 0),
    row(
      `submit p50 from 2 s after the flood on, over quiet (${p50(found.afterMs)})`,
      found.afterRatio,
      afterRatioMax,
      2,
    ),
  ];
}

function show(found: Figures, rows: readonly Row[]): void {
  if (values.json) return console.log(JSON.stringify({ ...found, isMet: rows.every(({ isMet }) => isMet) }));
  const { asked, pages, bytes, refused, failed } = found.flooded;
  console.log(
    `\nnats-server ${found.server}: ${asked} questions in ${values.seconds} s over ${values.mebibytes} MiB: ${pages} pages ` +
      `(${(bytes / 1024 ** 2).toFixed(0)} MiB), ${refused} refused, ${failed} without an answer; submit p99 ${found.floodedP99Ms.toFixed(1)} ms`,
  );
  for (const { figure, cameOut, required: most, isMet } of rows)
    console.log(`  ${figure}: ${cameOut}, required: ${most}${isMet ? "" : "  NOT MET"}`);
}

function chosenServers(): readonly NatsServerBinary[] {
  const found = findNatsServers();
  const chosen = found.filter(({ version }) => `${version}.`.startsWith(`${values.server ?? version}.`));
  if (chosen.length > 0) return chosen;
  const there = found.map(({ version }) => version).join(", ") || "none";
  console.error(`there is no nats-server ${values.server ?? ""} (found: ${there})\n\n${USAGE}`);
  process.exit(2);
}

function requireNumbers(): void {
  for (const flag of ["rate", "seconds", "mebibytes"] as const) {
    if (Number(values[flag]) > 0) continue;
    console.error(`--${flag}: must be a number above 0, not ${values[flag]}\n\n${USAGE}`);
    process.exit(2);
  }
}

async function main(): Promise<number> {
  requireNumbers();
  const children = new Children((sentence) => console.error(`! ${sentence}`));
  stopAtSignals(children);
  let isMet = true;
  for (const server of chosenServers()) {
    const found = await measure(server, children);
    const rows = rowsOf(found);
    show(found, rows);
    isMet &&= rows.every((row) => row.isMet);
  }
  return isMet ? 0 : 1;
}

process.exit(await main());
