// `npm run fuzz`: sends malformed input to a development broker, a live coordinator and its dashboard. Exits 1 when a
// process ends or does not answer, or when its memory grows.

import { parseArgs } from "node:util";
import { readFlags } from "../support/script-flags.ts";
import { type FuzzFigure, fuzz, growthMiB } from "./run.ts";

const USAGE = `npm run fuzz -- [--broker N] [--coordinator N] [--dashboard N] [--seed N]

  --broker       lines of the protocol, before and after the challenge (default 1000000)
  --coordinator  messages at its subjects (default 1000000)
  --dashboard    HTTP requests (default 100000)
  --seed         of the inputs (default 1)

  $ npm run fuzz -- --broker 20000 --coordinator 20000 --dashboard 2000 --seed 7`;

const { values } = readFlags(USAGE, () =>
  parseArgs({
    options: {
      broker: { type: "string", default: "1000000" },
      coordinator: { type: "string", default: "1000000" },
      dashboard: { type: "string", default: "100000" },
      seed: { type: "string", default: "1" },
      help: { type: "boolean", default: false },
    },
  }),
);
const counts = {
  broker: Number(values.broker),
  coordinator: Number(values.coordinator),
  dashboard: Number(values.dashboard),
  seed: Number(values.seed),
};
if (Object.values(counts).some((each) => !Number.isSafeInteger(each) || each < 0)) {
  process.stderr.write(`${USAGE}\n`);
  process.exit(2);
}
/** A run of fewer inputs says nothing about memory: a process has not reached its usual size. */
const JUDGED_INPUTS = 50_000;
const GROWTH_MIB_MAX = 8;

function judge(figure: FuzzFigure): void {
  const { target, inputs, residentMiB } = figure;
  process.stdout.write(`${target}: ${inputs} inputs; MiB after each tenth: ${residentMiB.join(" ")}\n`);
  if (inputs < JUDGED_INPUTS || growthMiB(figure) <= GROWTH_MIB_MAX) return;
  process.stdout.write(`${target}: memory grew by ${growthMiB(figure)} MiB\n`);
  process.exitCode = 1;
}

await fuzz(counts, judge, ({ target, inputs, residentMiB }) => {
  process.stderr.write(`${target}: ${inputs} of ${counts[target]} inputs, ${residentMiB.at(-1)} MiB\n`);
});
