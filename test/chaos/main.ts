// `npm run chaos`: real coordinators, agents, clients and nats-servers under load, with repeated faults. Their
// observations are recorded and judged against the journal. The simulator (src/sim/fault) draws more faults in
// less time, but only from its model; chaos tests the real programs. `USAGE` describes the options. Figures are
// kept in .chaos/, so that a stopped part continues; --fresh begins anew. --report adds the figures to
// docs/results/chaos.json and writes docs/reliability.md. Exit code 1: findings.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { durationIn } from "../../src/config/duration.ts";
import { limits } from "../../src/limits.ts";
import { findNatsServers, keepsReplicas, type NatsServerBinary } from "../support/nats-server.ts";
import { readFlags } from "../support/script-flags.ts";
import { codeUnderTest } from "./code-under-test.ts";
import { type FieldPlan, NotBegunError } from "./field.ts";
import { runLeg, shownViolations } from "./leg.ts";
import { type Part, parts } from "./parts.ts";
import { Progress } from "./progress.ts";
import { publish, rowsOf } from "./published.ts";
import { Reaper } from "./reaper.ts";
import { tablesOf, writeReport } from "./report.ts";
import { tooSlow } from "./required.ts";
import { type Servers, startReadyServers, startServers } from "./servers.ts";
import { shortRounds, shortServer } from "./short-form.ts";
import { type PartKey, recoveriesIn, Tally } from "./tally.ts";

const ROOT = ".chaos";
const LEGS = "legs.json";
const SHORT_LEGS = "short.json";
const PUBLISHED = "docs/results/chaos.json";
const PAGE = "docs/reliability.md";

const USAGE = `npm run chaos -- [--part NAME]… [--server VERSION] [--rounds N | --minutes N] [--short] [--list] [--report] …

Strikes real coordinators, agents, clients and nats-servers under load, and judges what all of them were told. It goes on
behind the last leg that was judged (.chaos/legs.json) when it is called again; --fresh begins anew. Servers: the one on the
PATH, and those that WAGGLE_NATS_SERVERS names, with colons between. Ends with 1 when anything was found, 2 for wrong flags.

  --part            this part, or several; without it all
  --server          nats-server of this version, like 2.10; without it each that is there
  --rounds          so many of each part (default: what --list says)
  --minutes         so long, of parts that go by time: soak (default 60)
  --rate            tasks a second (default 100; soak 200)
  --leader-timeout  T (default 1s)
  --seed            of what is drawn (default 1)
  --short           a few rounds of each part, within five minutes, for CI; fails also where all come back much too late
  --fresh           begin a part anew that was stopped
  --keep            leave the records of clean legs in .chaos/ too
  --list            the parts
  --report          write the figures, of chosen parts and servers, into docs/reliability.md; runs nothing

  $ npm run chaos -- --part leader-kills --server 2.10 --rounds 200
  $ npm run chaos -- --part stream-leader --server 2.15 --leader-timeout 3s
  $ npm run chaos -- --short
  $ npm run chaos -- --report
  $ npm run chaos -- --part soak --minutes 60`;

const { values } = readFlags(USAGE, () =>
  parseArgs({
    options: {
      part: { type: "string", multiple: true },
      server: { type: "string" },
      rounds: { type: "string" },
      minutes: { type: "string" },
      rate: { type: "string" },
      "leader-timeout": { type: "string", default: "1s" },
      seed: { type: "string", default: "1" },
      short: { type: "boolean", default: false },
      fresh: { type: "boolean", default: false },
      keep: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      report: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  }),
);

process.setMaxListeners(100); // each child is killed at exit
const interrupted = new AbortController();
process.on("SIGTERM", () => process.exit(143)); // with all started processes
process.on("SIGINT", () => {
  if (interrupted.signal.aborted) process.exit(130);
  console.error("\nending after this round; once more ends at once");
  interrupted.abort();
});

/** The request is unknown or contradictory. */
class UsageError extends Error {}

/** In the form of `waggle up`. */
function leaderTimeout(): number {
  const ms = durationIn(values["leader-timeout"]);
  const { leaderTimeoutMsMin: min, leaderTimeoutMsMax: max } = limits;
  if (ms === undefined || ms < min || ms > max)
    throw new UsageError(`--leader-timeout: must be a duration from ${min} ms to ${max / 1_000} s, like 1s`);
  return ms;
}

function wholeNumber(flag: string, said: string): number {
  const number = Number(said);
  if (!Number.isInteger(number) || number < 1)
    throw new UsageError(`--${flag}: must be a whole number, at least 1`);
  return number;
}

async function main(): Promise<number> {
  if (values.list) return list();
  if (values.report) return report();
  const commit = codeUnderTest();
  const parts = chosenParts();
  const chosen = parts.flatMap((part) => runsOf(part, parts)); // before any server starts: a wrong flag is refused at once
  if (values.short) rmSync(join(ROOT, SHORT_LEGS), { force: true });
  const tally = new Tally(join(ROOT, values.short ? SHORT_LEGS : LEGS));
  const reaper = await Reaper.start();
  let found = 0;
  for (const run of chosen) {
    if (interrupted.signal.aborted) break;
    found += await runPart({ ...run, tally, reaper, commit });
  }
  console.log(`\n${tablesOf(rowsOf(tally.all))}`);
  return found === 0 ? 0 : 1;
}

/** The requested rounds of a part on one server. */
interface Run {
  readonly part: Part;
  readonly server: NatsServerBinary;
  readonly key: PartKey;
  readonly rounds: number;
  readonly ratePerSecond: number;
}

function runsOf(part: Part, ofAll: readonly Part[]): Run[] {
  const leaderTimeoutMs = leaderTimeout();
  const rounds = roundsOf(part);
  const ratePerSecond =
    values.rate === undefined ? (part.ratePerSecond ?? 100) : wholeNumber("rate", values.rate);
  return chosenServers(part, ofAll).map((server) => {
    const key = { part: part.name, server: server.version, leaderTimeoutMs };
    return { part, server, key, rounds, ratePerSecond };
  });
}

interface RunContext extends Run {
  readonly tally: Tally;
  readonly reaper: Reaper;
  readonly commit: string;
}

/** @returns the number of legs with findings and, in the short form, the number of figures far above the bound */
async function runPart(run: RunContext): Promise<number> {
  const { part, server, key, rounds, tally, reaper } = run;
  if (values.fresh) tally.forget(key);
  const progress = new Progress(`${part.name} on ${server.version}`, rounds, roundsDone(run));
  const servers =
    part.servers === 1
      ? await startServers(server.path, 1, {
          reaper,
          ...(part.room === undefined ? {} : { room: part.room }),
        })
      : await startReadyServers(server.path, reaper);
  let found = 0;
  try {
    while (roundsDone(run) < rounds && !interrupted.signal.aborted) {
      const { isClean, isHopeless } = await runOneLeg(run, servers, progress);
      if (!isClean) found += 1;
      if (isHopeless) break;
    }
  } finally {
    progress.stop();
    await servers.stop();
  }
  const slow = values.short ? tooSlow(recoveriesIn(tally.of(key)), key.leaderTimeoutMs) : [];
  for (const sentence of slow) console.error(`  ${sentence}`);
  return found + slow.length;
}

function roundsDone({ tally, key }: RunContext): number {
  return tally.of(key).reduce((sum, { rounds }) => sum + rounds, 0);
}

/** @returns whether the leg had findings, and whether the next leg would get no further */
async function runOneLeg(
  run: RunContext,
  servers: Servers,
  progress: Progress,
): Promise<{ readonly isClean: boolean; readonly isHopeless: boolean }> {
  const { part, key, rounds, tally, commit } = run;
  const plan = planOf(run, servers);
  const firstRound = roundsDone(run);
  const options = {
    part,
    plan,
    firstRound,
    rounds: Math.min(part.roundsPerLeg, rounds - firstRound),
    onRound: (round: number) => progress.at(round),
    keepsEvidence: values.keep,
    signal: interrupted.signal,
  };
  const result = await runLeg(options).catch((error: unknown) => {
    if (!(error instanceof NotBegunError)) throw error;
    progress.say(`  ${error.message}; the same command goes on with new servers`);
    return undefined;
  });
  if (result === undefined) return { isClean: false, isHopeless: true };
  tally.add(key, result, { commit, endedOn: new Date().toISOString().slice(0, "2026-11-22".length) });
  const shown = shownViolations(result);
  for (const sentence of result.troubles) progress.say(`  ${sentence}`);
  for (const sentence of shown) progress.say(`  ${sentence}`);
  if (shown.length > 0) progress.say(`  see ${plan.folder}`);
  return { isClean: shown.length === 0, isHopeless: result.stuck !== undefined && result.rounds === 0 };
}

function planOf({ part, key, ratePerSecond, tally, reaper }: RunContext, servers: Servers): FieldPlan {
  const leg = tally.of(key).length + 1;
  return {
    swarm: `chaos-${process.pid}-${leg}`,
    folder: join(ROOT, `${part.name}-${key.server}`, `leg-${leg}`),
    seed: `${values.seed}/${part.name}/${leg}`,
    servers,
    leaderTimeoutMs: key.leaderTimeoutMs,
    coordinators: 3,
    agents: 3,
    clients: 2,
    ratePerSecond,
    payloadBytes: part.payloadBytes ?? 100,
    recordsEvery: part.recordsEvery ?? 1,
    proxied: part.proxied ?? "nobody",
    samplesMemory: part.samplesMemory === true,
    reaper,
    ...(part.rememberMs === undefined ? {} : { rememberMs: part.rememberMs }),
  };
}

function chosenParts(): readonly Part[] {
  const wanted = values.part ?? (values.short ? Object.keys(shortRounds) : parts.map(({ name }) => name));
  return wanted.map((name) => {
    const part = parts.find((each) => each.name === name);
    if (part === undefined) throw new UsageError(`no part is called ${name}; there are ${names()}`);
    return part;
  });
}

function roundsOf(part: Part): number {
  const { rounds, minutes, short: isShort } = values;
  if (minutes !== undefined && part.isTimed === true) return wholeNumber("minutes", minutes);
  if (rounds !== undefined) return wholeNumber("rounds", rounds);
  if (minutes !== undefined)
    throw new UsageError(`--minutes: ${part.name} goes by rounds; say --rounds, or choose --part soak`);
  return isShort ? (shortRounds[part.name] ?? 1) : part.rounds;
}

function chosenServers(part: Part, ofAll: readonly Part[]): readonly NatsServerBinary[] {
  const found = [...findNatsServers()].sort((a, b) =>
    a.version.localeCompare(b.version, "en", { numeric: true }),
  );
  const { server: wanted } = values;
  const chosen = wanted === undefined ? found : found.filter(({ version }) => isOfVersion(version, wanted));
  if (found.length === 0)
    throw new UsageError("there is no nats-server on the PATH, and none is named in WAGGLE_NATS_SERVERS");
  if (chosen.length === 0) {
    const there = found.map(({ version }) => version).join(", ");
    throw new UsageError(
      `there is no nats-server ${wanted}, only ${there}; name more in WAGGLE_NATS_SERVERS`,
    );
  }
  const able = part.servers === 1 ? chosen : chosen.filter(keepsReplicas);
  if (able.length === 0) {
    console.error(`${part.name}: left out, because three replicas need nats-server 2.10 or newer`);
    return [];
  }
  return values.short ? [shortServer(part, ofAll, able)] : able;
}

/** @param wanted a whole version or its beginning: `2.10` */
function isOfVersion(version: string, wanted: string): boolean {
  return `${version}.`.startsWith(`${wanted}.`);
}

function list(): number {
  for (const { name, about, rounds, servers } of parts)
    console.log(
      `${name.padEnd(14)} ${about} (${rounds} rounds, ${servers === 1 ? "one server" : "three servers"})`,
    );
  return 0;
}

function report(): number {
  if (values.short)
    throw new UsageError("--report: the few rounds of --short are not for the page; leave out --short");
  const file = join(ROOT, LEGS);
  const isChosen = ({ part, server }: PartKey) =>
    (values.part?.includes(part) ?? true) &&
    (values.server === undefined || isOfVersion(server, values.server));
  const rows = rowsOf(new Tally(file).all.filter(isChosen));
  if (rows.length === 0)
    throw new UsageError(
      `--report: ${file} has no figures of these parts, so ${PAGE} is left as it is; run a part first, ` +
        "like npm run chaos -- --part leader-kills",
    );
  const { all, replaced } = publish(PUBLISHED, rows);
  writeReport(PAGE, all);
  console.log(
    `${PUBLISHED} and ${PAGE} have ${all.length} rows: ${rows.length} new, of which ${replaced} replace older ones`,
  );
  return 0;
}

function names(): string {
  return parts.map(({ name }) => name).join(", ");
}

try {
  process.exit(await main());
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`${error.message}. See npm run chaos -- --help`);
  process.exit(2);
}
