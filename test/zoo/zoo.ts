// `npm run zoo`: plants each bug in turn and counts the seeds until the simulator finds the bug. Exits 1 when a bug is
// not found, or when the unchanged code has a finding. A seed that fails on the unchanged code, too, does not count as
// a find.

import { spawn } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { UsageError } from "../../src/cli/usage-error.ts";
import { isFaultKind } from "../../src/sim/fault/fault.ts";
import { readFlags } from "../support/script-flags.ts";
import { bundle } from "./bundle.ts";
import type { Catch } from "./hunt.ts";
import type { Mutant } from "./mutant.ts";
import { mutants } from "./mutants.ts";

const USAGE = `npm run zoo -- [--only NAME[,NAME…]] [--seeds N] [--from N] [--for MINUTES] [--without FAULTS]
                   [--threads N] [--json] | --list

  --only     bugs to plant, by name; \`none\` is the unchanged code
  --seeds    maximum number of seeds per bug (default 500)
  --from     first seed (default 1)
  --for      virtual minutes per seed until every fault heals (default 2)
  --without  faults to leave out, separated by commas
  --threads  bugs hunted at once (default: one per core)
  --json     one JSON line per bug
  --list     print the bugs and their consequences

Exit code 1 if a bug was not found, or if the unchanged code has a finding.

  $ npm run zoo -- --seeds 100                          every bug, some 25 minutes on 2 cores
  $ npm run zoo -- --only accepts-seq-0,none            one bug, and the unchanged code
  $ npm run zoo -- --only ignores-a-rival --from 101 --seeds 400
  $ npm run zoo -- --list`;

/** Bundles lie here, where Node finds their packages. */
const cageFolder = resolve(import.meta.dirname, "../../node_modules/.cache/zoo");
/** The unchanged code. */
const untouched: Mutant = {
  name: "none",
  breaks: "Nothing: the unchanged code.",
  file: "src/sim/fault/run-seed.ts",
  edits: [],
};
/** A bug can make a seed run for ever. */
const HUNT_MS_MAX = 15 * 60_000;

interface Hunted {
  readonly name: string;
  readonly breaks: string;
  readonly seconds: number;
  /** Undefined when the hunt ended without a result. */
  readonly caught: Catch | undefined;
}

const { values } = readFlags(USAGE, () =>
  parseArgs({
    options: {
      only: { type: "string" },
      seeds: { type: "string", default: "500" },
      from: { type: "string", default: "1" },
      for: { type: "string", default: "2" },
      without: { type: "string", default: "" },
      threads: { type: "string", default: String(availableParallelism()) },
      json: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  }),
);

if (values.list) {
  for (const { name, breaks } of mutants) console.log(`${name.padEnd(34)} ${breaks}`);
} else {
  try {
    checkFlags();
    process.exitCode = (await visit(chosen(values.only))) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`${error.message}. See npm run zoo -- --help`);
    process.exitCode = 2;
  }
}

/** A hunt of no seeds would find nothing and look like success. @throws UsageError */
function checkFlags(): void {
  const isCount = (text: string) => /^\d{1,9}$/.test(text);
  if (!isCount(values.seeds) || Number(values.seeds) === 0)
    throw new UsageError("--seeds must be a whole number from 1");
  if (!isCount(values.from)) throw new UsageError("--from must be a whole number from 0");
  if (!(Number(values.for) > 0)) throw new UsageError("--for must be a number of minutes");
  if (!/^[1-9]\d?$/.test(values.threads))
    throw new UsageError("--threads must be a whole number from 1 to 99");
  const unknown = values.without.split(",").find((name) => name !== "" && !isFaultKind(name));
  if (unknown !== undefined) throw new UsageError(`--without: there is no fault ${unknown}`);
}

/** @returns whether every planted bug was found, and nothing in the unchanged code */
async function visit(animals: readonly Mutant[]): Promise<boolean> {
  await mkdir(cageFolder, { recursive: true });
  await bundle("test/zoo/hunt.ts", cageOf(untouched), untouched);
  const waiting = [...animals];
  const all: Hunted[] = [];
  const keep = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const hunted = await hunt(next);
      all.push(hunted);
      print(hunted, all.length, animals.length);
    }
  };
  await Promise.all(Array.from({ length: Number(values.threads) }, keep));
  await rm(cageFolder, { recursive: true, force: true });
  return sumUp(all);
}

async function hunt(mutant: Mutant): Promise<Hunted> {
  const { name, breaks } = mutant;
  if (mutant !== untouched) await bundle("test/zoo/hunt.ts", cageOf(mutant), mutant);
  const startedMs = performance.now();
  const caught = await huntFrom(Number(values.from), Number(values.seeds), mutant);
  return { name, breaks, seconds: (performance.now() - startedMs) / 1_000, caught };
}

/** Continues after seeds that fail on the unchanged code, too. */
async function huntFrom(from: number, seedsMax: number, mutant: Mutant): Promise<Catch | undefined> {
  let seeds = 0;
  while (seeds < seedsMax) {
    const caught = await run(mutant, from + seeds, seedsMax - seeds);
    if (caught === undefined) return undefined;
    seeds += caught.seeds;
    if (caught.found === undefined) break;
    if (mutant === untouched) return { seeds, found: caught.found };
    const same = await run(untouched, caught.found.seed, 1);
    if (same === undefined) return undefined;
    if (same.found === undefined) return { seeds, found: caught.found };
  }
  return { seeds };
}

function cageOf({ name }: Mutant): string {
  return join(cageFolder, `${name}.mjs`);
}

function run(mutant: Mutant, from: number, seeds: number): Promise<Catch | undefined> {
  const forMs = String(Number(values.for) * 60_000);
  const args = [cageOf(mutant), String(from), String(seeds), forMs, values.without];
  const child = spawn(process.execPath, ["--enable-source-maps", ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    timeout: HUNT_MS_MAX,
  });
  let text = "";
  child.stdout.on("data", (part: Buffer) => {
    text += part.toString();
  });
  return new Promise((resolveCatch) =>
    child.on("close", () => {
      const last = text.trim().split("\n").at(-1) ?? "";
      resolveCatch(last === "" ? undefined : (JSON.parse(last) as Catch));
    }),
  );
}

function print({ name, breaks, seconds, caught }: Hunted, done: number, all: number): void {
  if (values.json) return console.log(JSON.stringify({ name, breaks, seconds, ...caught }));
  const how =
    caught === undefined
      ? "the hunt ended without a result"
      : caught.found === undefined
        ? `not found in ${caught.seeds} seeds`
        : `${caught.seeds} seeds: ${caught.found.check} (seed ${caught.found.seed}): ${caught.found.sentence}`;
  console.log(
    `${`${done}/${all}`.padStart(6)}  ${name.padEnd(34)} ${seconds.toFixed(0).padStart(4)} s  ${how}`,
  );
}

function sumUp(all: readonly Hunted[]): boolean {
  const planted = all.filter(({ name }) => name !== "none");
  const seeds = planted.flatMap(({ caught }) => (caught?.found === undefined ? [] : [caught.seeds]));
  const median = seeds.toSorted((a, b) => a - b)[Math.floor(seeds.length / 2)] ?? 0;
  const isClean = ({ name, caught }: Hunted) =>
    name !== "none" || (caught !== undefined && caught.found === undefined);
  if (!values.json)
    console.log(`\n${seeds.length} of ${planted.length} found, the median within ${median} seeds.`);
  return seeds.length === planted.length && all.every(isClean);
}

function chosen(only: string | undefined): readonly Mutant[] {
  if (only === undefined) return [untouched, ...mutants];
  return only.split(",").map((name) => {
    const mutant = [untouched, ...mutants].find((each) => each.name === name);
    if (mutant === undefined)
      throw new UsageError(
        `there is no bug ${name}; there are ${mutants.map((each) => each.name).join(", ")}`,
      );
    return mutant;
  });
}
