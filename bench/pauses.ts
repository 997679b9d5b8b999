// How long submitters wait at three events: a planned change of segment, a hand-over, and the loss of the leader's
// segment. Runs on one nats-server and on three replicas, with two coordinators (`waggle up`), an agent process, and
// tasks at a fixed rate.
//     npm run bench:pauses                       20 of each on one server and on three; exits 1 if a p95 is too long
//     npm run bench:pauses -- --servers 1        one server only
//     npm run bench:pauses -- --only loss --times 5 --live 1000000
//
// The pause is the longest time from a submit to its acknowledgement, of submits that overlap the event. The second
// before each event tells how long submits take otherwise. Three replicas need a server of 2.10 or newer.

import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { connect, type Swarm } from "waggledance";
import { swarmId } from "../src/ids.ts";
import { connectNats } from "../src/transport/nats.ts";
import { type Servers, startReadyServers, startServers } from "../test/chaos/servers.ts";
import { StreamAdmin } from "../test/chaos/stream-admin.ts";
import { findNatsServers, keepsReplicas, type NatsServerBinary } from "../test/support/nats-server.ts";
import { readFlags } from "../test/support/script-flags.ts";
import { Children, stopAtSignals } from "./harness/children.ts";
import { startCoordinator } from "./harness/coordinator.ts";
import { quantile } from "./harness/statistics.ts";

/** Longest p95 allowed, ms, by number of servers. */
const allowedMs = {
  1: { change: 100, "hand-over": 200, loss: 5_000 },
  3: { change: 1_000, "hand-over": 1_500, loss: 5_000 },
} as const;
type Count = keyof typeof allowedMs;
/** `change`: a planned change of segment. `loss`: the stream of the leader's segment is deleted. */
type What = keyof (typeof allowedMs)[Count];
/** Live tasks in the swarm's state, by default. */
const liveTasks: Readonly<Record<What, number>> = { change: 10_000, "hand-over": 10_000, loss: 100_000 };

const USAGE = `npm run bench:pauses -- [--servers 1|3]… [--only change|hand-over|loss]… [--times N] [--rate N]
                            [--live N] [--json]

  --servers  one nats-server, or three with replicas; default both
  --only     planned changes of segment, hand-overs, or losses of the leader's segment; default all
  --times    events of each kind (default 20)
  --rate     tasks a second (default 200)
  --live     live tasks in the swarm's state (default 10000; loss 100000)
  --json     a line of JSON for each kind`;

const { values } = readFlags(USAGE, () =>
  parseArgs({
    options: {
      servers: { type: "string", multiple: true, default: ["1", "3"] },
      times: { type: "string", default: "20" },
      rate: { type: "string", default: "200" },
      only: { type: "string", multiple: true, default: Object.keys(liveTasks) },
      live: { type: "string" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  }),
);
const times = Number(values.times);
const rate = Number(values.rate);

/** Events between two bases: some seconds of load. */
const pace = { WAGGLE_BASE_EVENTS: "2000", WAGGLE_BASE_SYNC: "1ms" };
/** Time before and after a change in which submits count as overlapping, ms. */
const AROUND_MS = 1_000;
const STEP_MS = 5;
const CHANGE_MS_MAX = 120_000;

interface Submit {
  readonly sentMs: number;
  readonly tookMs: number;
}

class Load {
  readonly submits: Submit[] = [];
  readonly #swarm: Swarm;
  /** Instants of submits without an answer yet. */
  readonly #openSince = new Set<number>();
  #isOver = false;
  readonly #done: Promise<void>;

  constructor(swarm: Swarm) {
    this.#swarm = swarm;
    this.#done = this.#run();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }

  /** The longest submit that was under way between two instants, ms. */
  longestMs(fromMs: number, toMs: number): number {
    const overlapping = this.submits.filter(
      ({ sentMs, tookMs }) => sentMs <= toMs && sentMs + tookMs >= fromMs,
    );
    return Math.max(0, ...overlapping.map(({ tookMs }) => tookMs));
  }

  /** Resolves once a submit after the instant was acknowledged, and all before it. */
  async acceptsAfter(sinceMs: number): Promise<void> {
    const oldestMs = () => Math.min(...this.#openSince);
    while (!this.submits.some(({ sentMs }) => sentMs > sinceMs) || oldestMs() < sinceMs) await delay(STEP_MS);
  }

  async #run(): Promise<void> {
    const open = new Set<Promise<void>>();
    const startedMs = performance.now();
    for (let sent = 0; !this.#isOver; await delay(STEP_MS)) {
      for (; sent < ((performance.now() - startedMs) / 1_000) * rate; sent += 1) {
        const one = this.#submit().finally(() => open.delete(one));
        open.add(one);
      }
    }
    await Promise.all(open);
  }

  async #submit(): Promise<void> {
    const sentMs = performance.now();
    this.#openSince.add(sentMs);
    await this.#swarm.submit({ kind: "noop", payload: "x" });
    this.#openSince.delete(sentMs);
    this.submits.push({ sentMs, tookMs: performance.now() - sentMs });
  }
}

/** Starts two coordinators.
 *  @param isChanging whether bases, and so changes of segment, are due every few seconds
 *  @returns instants of their planned changes of segment; the list grows */
async function startCoordinators(
  children: Children,
  { urls, servers, isChanging }: Pick<Measured, "urls"> & { servers: Count; isChanging: boolean },
): Promise<readonly number[]> {
  const changedMs: number[] = [];
  const where = ["--nats", urls.join(","), "--swarm", "bench", "--replicas", String(servers)];
  const start = () =>
    startCoordinator(children, {
      upArguments: [...where, "--leader-timeout", "1s"],
      ...(isChanging ? { env: pace } : {}),
      onLog: ({ msg }) => {
        if (msg === "the journal continues in a new segment") changedMs.push(performance.now());
      },
    });
  await Promise.all([start(), start()]);
  return changedMs;
}

interface Pauses {
  readonly before: number[];
  readonly during: number[];
}

async function changes(load: Load, changedMs: readonly number[]): Promise<Pauses> {
  const pauses: Pauses = { before: [], during: [] };
  const seen = new Set(changedMs);
  while (pauses.during.length < times) {
    const startedMs = performance.now();
    let at: number | undefined;
    for (; at === undefined; at = changedMs.find((ms) => !seen.has(ms))) {
      if (performance.now() - startedMs > CHANGE_MS_MAX) throw new Error("the journal changes no segment");
      await delay(STEP_MS);
    }
    seen.add(at);
    await delay(AROUND_MS);
    pauses.during.push(load.longestMs(at - AROUND_MS, at + AROUND_MS));
    pauses.before.push(load.longestMs(at - 2 * AROUND_MS, at - AROUND_MS));
  }
  return pauses;
}

async function handOvers(load: Load, swarm: Swarm): Promise<Pauses> {
  const pauses: Pauses = { before: [], during: [] };
  while (pauses.during.length < times) {
    await delay(3 * AROUND_MS);
    const askedMs = performance.now();
    await swarm.transferLead();
    await delay(2 * AROUND_MS);
    pauses.during.push(load.longestMs(askedMs, performance.now()));
    pauses.before.push(load.longestMs(askedMs - AROUND_MS, askedMs));
  }
  return pauses;
}

/** The state is written to a new segment from memory. */
async function losses(load: Load, admin: StreamAdmin): Promise<Pauses> {
  const pauses: Pauses = { before: [], during: [] };
  while (pauses.during.length < times) {
    const lostMs = performance.now();
    await admin.removeNewest();
    await load.acceptsAfter(performance.now());
    pauses.during.push(load.longestMs(lostMs, performance.now()));
    await delay(3 * AROUND_MS);
    pauses.before.push(load.longestMs(performance.now() - AROUND_MS, performance.now()));
  }
  return pauses;
}

/** @returns whether the p95 is within the bound */
function report(
  { during, before }: Pauses,
  head: {
    readonly what: What;
    readonly servers: Count;
    readonly version: string;
    /** Tasks in the swarm's state. */
    readonly live: number;
    /** ms */
    readonly allowed: number;
  },
): boolean {
  const figures = {
    ...head,
    rate,
    times: during.length,
    p50: Math.round(quantile(during, 0.5)),
    p95: Math.round(quantile(during, 0.95)),
    max: Math.round(Math.max(...during)),
    otherwiseP50: Math.round(quantile(before, 0.5)),
  };
  const isWithin = figures.p95 <= head.allowed;
  if (values.json) console.log(JSON.stringify({ ...figures, isWithin }));
  else
    console.log(
      `${head.what.padEnd(10)} ${head.servers} × ${head.version}, ${head.live} live: p50 ${figures.p50}, p95 ${figures.p95}, ` +
        `max ${figures.max} ms of ${figures.times} (p95 ≤ ${head.allowed}); otherwise ${figures.otherwiseP50} ms${isWithin ? "" : "  TOO LONG"}`,
    );
  return isWithin;
}

/** @returns whether the p95 is within the bound */
async function measure(
  children: Children,
  binary: NatsServerBinary,
  servers: Count,
  what: What,
): Promise<boolean> {
  const running: Servers =
    servers === 1 ? await startServers(binary.path, 1) : await startReadyServers(binary.path);
  const { urls } = running;
  try {
    const changedMs = await startCoordinators(children, { urls, servers, isChanging: what === "change" });
    await children.startProcess("noop-agent", urls.join(","));
    const swarm = await connect({ nats: [...urls], swarm: "bench" });
    const live = Number(values.live ?? liveTasks[what]);
    const waiting = Array.from({ length: live }, () => ({ kind: "nobody", payload: "x".repeat(100) }));
    for await (const outcome of swarm.submitMany(waiting)) if (!outcome.ok) throw outcome.error;
    const load = new Load(swarm);
    await delay(2 * AROUND_MS);
    const pauses = await pausesOf(what, { load, swarm, changedMs, urls });
    const head = { what, servers, version: binary.version, live, allowed: allowedMs[servers][what] };
    const isWithin = report(pauses, head);
    await load.stop();
    await swarm.close();
    return isWithin;
  } finally {
    await children.stopAll();
    await running.stop();
  }
}

interface Measured {
  readonly load: Load;
  readonly swarm: Swarm;
  /** Instants of planned changes of segment; grows. */
  readonly changedMs: readonly number[];
  readonly urls: readonly string[];
}

async function pausesOf(what: What, { load, swarm, changedMs, urls }: Measured): Promise<Pauses> {
  if (what === "change") return await changes(load, changedMs);
  if (what === "hand-over") return await handOvers(load, swarm);
  const transport = await connectNats({ urls: [...urls], name: "pauses" });
  try {
    return await losses(load, new StreamAdmin(transport, swarmId("bench")));
  } finally {
    await transport.close();
  }
}

/** A sentence about the first wrong flag. */
function wrongFlag(): string | undefined {
  if (!values.servers.every((count) => count === "1" || count === "3")) return "--servers must be 1 or 3";
  if (!values.only.every((what) => what in liveTasks))
    return `--only must be one of ${Object.keys(liveTasks).join(", ")}`;
  const numbers = { "--times": values.times, "--rate": values.rate, "--live": values.live ?? "1" };
  const wrong = Object.entries(numbers).find(([, text]) => !/^[1-9]\d{0,6}$/.test(text));
  return wrong && `${wrong[0]} must be a whole number from 1`;
}

/** @returns the exit code */
async function main(): Promise<number> {
  const wrong = wrongFlag();
  if (wrong !== undefined) {
    console.error(`${wrong}\n\n${USAGE}`);
    return 2;
  }
  const children = new Children((sentence) => console.error(`! ${sentence}`));
  stopAtSignals(children);
  let isAllWithin = true;
  for (const servers of values.servers.map(Number) as Count[]) {
    const binary = findNatsServers().find((server) => servers === 1 || keepsReplicas(server));
    if (binary === undefined) {
      console.error(
        "no nats-server: put one on the PATH or into WAGGLE_NATS_SERVERS; three replicas need 2.10",
      );
      return 3;
    }
    for (const what of values.only as What[])
      isAllWithin = (await measure(children, binary, servers, what)) && isAllWithin;
  }
  return isAllWithin ? 0 : 1;
}

process.exitCode = await main();
