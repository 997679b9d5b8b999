// `npm run bench`: Waggle beside its peers, in turn, in one run (docs/performance.md). Starts all servers itself and
// stops them by their process ids.

import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, tmpdir, totalmem } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import {
  fullWindows,
  growthCases,
  limitMsOf,
  type MainCase,
  mainCasesFor,
  orderOf,
  planOf,
  quickWindows,
  rampOf,
} from "./harness/cases.ts";
import { Children, stopAtSignals } from "./harness/children.ts";
import { type BenchFlags, readFlags, usage } from "./harness/flags.ts";
import { type Growth, measureGrowth } from "./harness/growth.ts";
import { Pace } from "./harness/pace.ts";
import { unfitForPage, writeReport } from "./harness/page.ts";
import { codeNameOf, newestNatsServer, preparePeers } from "./harness/prepare.ts";
import { type Figure, Figures, type Run } from "./harness/record.ts";
import { flagsOrExitCode } from "./harness/refusing.ts";
import { type Measuring, measureInTurn } from "./harness/rounds.ts";
import { MissingServerError, serverVersions } from "./harness/servers.ts";
import { type System, Systems, systemKinds } from "./harness/systems.ts";
import { asText, conditionsOf, tablesOf } from "./harness/tables.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
/** Maximum wait for calm before a window, by default. */
const CALM_SECONDS = 20;
process.exitCode = await main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<number> {
  const flags = flagsOrExitCode(readFlags(argv), usage);
  if (typeof flags === "number") return flags;
  const wrong = wrongPath(flags);
  if (wrong !== undefined) {
    console.error(wrong);
    return 2;
  }
  const run = flags.from === undefined ? await measureAll(flags) : readRun(flags.from);
  if (run === undefined) {
    console.error(`--from: ${flags.from} is no run that --out wrote`);
    return 2;
  }
  if (flags.json) console.log(JSON.stringify(run));
  else console.log([conditionsOf(run), ...tablesOf(run).map(asText)].join("\n\n"));
  if (flags.out !== undefined) writeFileSync(flags.out, JSON.stringify(run));
  const unfit = unfitForPage(run);
  if (flags.report && unfit === undefined) console.error(`written: ${writeReport(run, root).join(", ")}`);
  if (flags.report && unfit !== undefined) console.error(`! --report wrote nothing: the run ${unfit}`);
  return run.figures.length === 0 || (flags.report && unfit !== undefined) ? 1 : 0;
}

function readRun(path: string): Run | undefined {
  try {
    const run = JSON.parse(readFileSync(path, "utf8")) as Partial<Run> | null;
    const isRun = Array.isArray(run?.figures) && Array.isArray(run.leftOut) && run.machine !== undefined;
    return isRun ? (run as Run) : undefined;
  } catch {
    return undefined;
  }
}

/** Tells before the run what would fail at its end. */
function wrongPath({ from, out, beside }: BenchFlags): string | undefined {
  if (from !== undefined && !existsSync(from)) return `--from: there is no file ${from}`;
  if (out !== undefined && !existsSync(dirname(resolve(out))))
    return `--out: there is no folder ${dirname(resolve(out))}`;
  const unbuilt = beside.find((path) => !existsSync(join(path, "dist", "src", "index.js")));
  return unbuilt && `--beside: ${unbuilt} has no dist; run npm run build there`;
}

async function measureAll(flags: BenchFlags): Promise<Run> {
  preparePeers(root);
  const children = new Children((sentence) => say(`! ${sentence}`));
  const say = (line: string) => {
    if (!children.isEnding) console.error(line);
  };
  const folder = mkdtempSync(join(tmpdir(), "waggle-bench-"));
  chmodSync(folder, 0o711); // PostgreSQL's user enters it
  stopAtSignals(children, folder);
  const natsServer = newestNatsServer();
  const context = { children, folder, natsServer };
  const systems = new Systems({ ...context, checkout: root });
  const figures: Figure[] = [];
  const leftOut: { system: string; reason: string }[] = [];
  const plan = planOf({ ...flags, systems: [...flags.only, ...flags.beside] });
  const pace = new Pace({
    plan,
    calmMs: (flags.calmSeconds ?? CALM_SECONDS) * 1000,
    ...(flags.calmSeconds === undefined ? { limitMs: limitMsOf(plan) } : {}),
    say,
  });
  const measuring: Measuring = {
    rounds: flags.rounds,
    pace,
    say,
    add: (figure) => figures.push(figure),
    failed: new Set(),
  };
  const startedAt = new Date().toISOString();
  const [loadBefore = 0] = loadavg();
  const stops: (() => Promise<void>)[] = [() => systems.stopServers()];
  try {
    const chosen = mainCasesFor(flags.cases);
    if (chosen.length > 0) {
      pace.begin("start");
      const started: System[] = [];
      const start = async (name: string, starting: Promise<System>) => {
        try {
          started.push(await starting);
          say(`${name} is up`);
        } catch (error) {
          const reason = error instanceof Error ? error.message : String(error);
          leftOut.push({ system: name, reason });
          say(`! ${name} is left out: ${reason}`);
          if (!(error instanceof MissingServerError) && flags.only.length === 1) throw error;
        }
      };
      for (const name of flags.only) await start(name, systems.start(systemKinds[name], name));
      for (const path of flags.beside) {
        const other = new Systems({
          ...context,
          folder: mkdtempSync(join(folder, "beside-")),
          checkout: resolve(path),
        });
        stops.push(() => other.stopServers());
        const name = `waggle of ${basename(resolve(path))}`;
        await start(name, other.start(systemKinds.waggle, name));
      }
      await measureMain(chosen, started, measuring, flags.quick, figures);
      for (const system of started) await system.stop();
    }
    const growth: Growth = { systems, quick: flags.quick, ...measuring, leftOut };
    for (const name of growthCases.filter((each) => flags.cases.includes(each))) {
      pace.begin(name);
      await measureGrowth(name, growth);
    }
  } finally {
    for (const stop of stops) await stop();
    await children.stopAll();
    rmSync(folder, { recursive: true, force: true });
  }
  const [loadAfter = 0] = loadavg();
  return {
    startedAt,
    endedAt: new Date().toISOString(),
    ...codeNameOf(root),
    rounds: flags.rounds,
    quick: flags.quick,
    node: process.version,
    servers: serverVersions(natsServer),
    machine: {
      cores: cpus().length,
      model: cpus()[0]?.model.trim() ?? "unknown",
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      system: `${process.platform} ${release()}`,
      load: [loadBefore, loadAfter],
    },
    leftOut,
    figures,
  };
}

async function measureMain(
  chosen: readonly MainCase[],
  systems: readonly System[],
  measuring: Measuring,
  isQuick: boolean,
  figures: readonly Figure[],
): Promise<void> {
  const ms = isQuick ? quickWindows : fullWindows;
  const { pace } = measuring;
  pace.begin("warm-up");
  await measureInTurn(
    "warm-up",
    systems.map((system) => ({ system, order: warmUpOf(system.name, ms.warmMs) })),
    { ...measuring, rounds: 1, add: () => undefined },
  );
  for (const name of chosen) {
    pace.begin(name);
    const maxima = new Figures({ figures });
    const turns = systems.map((system) => {
      const maxPerSecond = maxima.spread("c1024", system.name, "ratePerSecond")?.median;
      const order = orderOf(name, {
        ms,
        system: system.name,
        ...(maxPerSecond === undefined ? {} : { maxPerSecond }),
      });
      return { system, order, ramp: rampOf(name, order, ms) };
    });
    await measureInTurn(name, turns, measuring);
  }
}

function warmUpOf(system: string, ms: number) {
  return { op: "closed", concurrency: system === "append" ? 1 : 1024, ms } as const;
}
