// Flags of `npm run bench`. Not here: the measurements.

import { parseArgs } from "node:util";
import { type CaseName, caseNames, growthCases, mainCases } from "./cases.ts";
import { type Read, refusing } from "./refusing.ts";
import { mainSystems, type SystemName, systemKinds } from "./systems.ts";

export interface BenchFlags {
  readonly cases: readonly CaseName[];
  readonly only: readonly SystemName[];
  readonly rounds: number;
  readonly quick: boolean;
  readonly json: boolean;
  readonly report: boolean;
  /** Absent: a bounded wait, within the time of the run. */
  readonly calmSeconds?: number;
  readonly beside: readonly string[];
  readonly out?: string;
  readonly from?: string;
}

export const usage = `usage: npm run bench -- [options]

Measures Waggle beside its peers: all systems in turn, in one run. Real servers run on loopback
ports of their own. A system whose server is not installed is left out.

  --cases <names>      cases, separated by commas. Default: ${mainCases.join(",")}
                       Growth: ${growthCases.join(",")};
                       'growth' stands for all of them
  --only <names>       systems, separated by commas. Default: all that follow up to waggle.
                       ${Object.keys(systemKinds).join(", ")}
  --beside <folder>    another checkout of Waggle, built, in turn with the present one; repeatable
  --rounds <number>    rounds of each case, from 1 to 99. Default 5, with --quick 3
  --quick              short windows, for a first look: half of the time
  --calm <seconds>     maximum wait before each window until other programs use less than 0.1 core.
                       Default 20, as long as the run ends within 30 minutes. Windows under
                       foreign load are marked and do not count
  --json               print the run as one JSON object instead of tables
  --out <file>         also write the run to this file
  --report             also write the measured part of docs/performance.md, its charts, and the run in
                       docs/results; cases of growth alone write the part on growth
  --from <file>        do not measure: read a run that --out wrote
  -h, --help           print help

Examples:
  $ npm run bench
  $ npm run bench -- --quick --cases c1024 --only bare,js-queue,waggle
  $ npm run bench -- --cases growth
  $ npm run bench -- --beside ../waggle-before --only waggle --cases c1024,c1
  $ npm run bench -- --report
  $ npm run bench -- --from run.json --report
  $ WAGGLE_NATS_SERVERS=/opt/nats/nats-server npm run bench       the newest of these and the PATH

Servers on Debian: apt-get install --no-install-recommends nats-server redis-server postgresql rabbitmq-server`;

/** @returns the flags, "help", or a sentence about the wrong flag */
export function readFlags(argv: readonly string[]): Read<BenchFlags> {
  return refusing(() => {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        cases: { type: "string", default: mainCases.join(",") },
        only: { type: "string", default: mainSystems.join(",") },
        beside: { type: "string", multiple: true, default: [] },
        rounds: { type: "string" },
        quick: { type: "boolean", default: false },
        calm: { type: "string" },
        json: { type: "boolean", default: false },
        out: { type: "string" },
        report: { type: "boolean", default: false },
        from: { type: "string" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    if (values.help) return "help";
    const { quick, json, report, beside, out, from } = values;
    const rounds = values.rounds ?? (quick ? "3" : "5");
    if (!/^[1-9]\d?$/.test(rounds)) return { refused: `--rounds is a number from 1 to 99, not '${rounds}'` };
    if (values.calm !== undefined && !/^\d{1,4}$/.test(values.calm))
      return { refused: `--calm is a number of seconds from 0 to 9999, not '${values.calm}'` };
    const cases = [
      ...new Set(listOf(values.cases).flatMap((name) => (name === "growth" ? growthCases : [name]))),
    ];
    const only = listOf(values.only);
    if (cases.length === 0) return { refused: "--cases names no case" };
    if (only.length === 0) return { refused: "--only names no system" };
    const unknownCase = cases.find((name) => !caseNames.includes(name as CaseName));
    if (unknownCase !== undefined)
      return { refused: `no case is called '${unknownCase}'; there are ${caseNames.join(", ")}, growth` };
    const unknownSystem = only.find((name) => !(name in systemKinds));
    if (unknownSystem !== undefined)
      return {
        refused: `no system is called '${unknownSystem}'; there are ${Object.keys(systemKinds).join(", ")}`,
      };
    return {
      cases: cases as CaseName[],
      only: only as SystemName[],
      rounds: Number(rounds),
      quick,
      json,
      report,
      beside,
      ...(values.calm === undefined ? {} : { calmSeconds: Number(values.calm) }),
      ...(out === undefined ? {} : { out }),
      ...(from === undefined ? {} : { from }),
    };
  });
}

function listOf(names: string): string[] {
  return names.split(",").filter((name) => name !== "");
}
