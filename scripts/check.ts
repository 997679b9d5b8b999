// `npm run check`: all checks of a finished change, the same here and in CI. After a failed stage the others still run,
// so that a single run shows all faults.
//   npm run check -- lint types     only the named stages
//   npm run check -- --skip tests   all but the named stage (may be repeated)

import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { readFlags } from "../test/support/script-flags.ts";

interface Stage {
  readonly name: string;
  readonly command: readonly [program: string, ...args: string[]];
}

/** Cheapest first. */
const stages: readonly Stage[] = [
  { name: "format", command: ["biome", "format", "."] },
  { name: "lint", command: ["biome", "check", "--formatter-enabled=false", "--error-on-warnings", "."] },
  { name: "types", command: ["tsc", "--noEmit"] },
  // With the types of a browser instead of Node's.
  { name: "page-types", command: ["tsc", "--noEmit", "-p", "src/dashboard/page"] },
  { name: "architecture", command: ["vitest", "run", "test/architecture"] },
  { name: "dead-code", command: ["knip"] },
  { name: "tests", command: ["vitest", "run"] },
  { name: "long-tests", command: ["vitest", "run", "--config", "vitest.long.config.ts"] },
  // Other versions of Node: npm run test:adapters.
  { name: "adapters", command: ["npm", "run", "--silent", "test:adapters", "--", "--node", "20"] },
  { name: "searches", command: ["vitest", "run", "--config", "vitest.searches.config.ts"] },
  { name: "build", command: ["npm", "run", "--silent", "build"] },
];

interface Outcome {
  readonly stage: Stage;
  readonly passed: boolean;
  readonly seconds: string;
}

function run(stage: Stage): Outcome {
  const [program, ...args] = stage.command;
  console.log(`\n── ${stage.name}: ${stage.command.join(" ")}`);
  const startedAt = performance.now();
  const { status, error } = spawnSync(program, args, { stdio: "inherit" });
  if (error) console.error(`${program} could not be started: ${error.message}. Run npm ci first.`);
  return { stage, passed: status === 0, seconds: ((performance.now() - startedAt) / 1000).toFixed(1) };
}

const USAGE = `npm run check -- [STAGE…] [--skip STAGE]…

Runs all stages, or the named ones: ${stages.map(({ name }) => name).join(", ")}.

  --skip  leave a stage out; repeatable

Exits 1 if a stage fails; the later stages run all the same.`;

function chosenStages(): readonly Stage[] {
  const { positionals, values } = readFlags(USAGE, () =>
    parseArgs({
      allowPositionals: true,
      options: {
        skip: { type: "string", multiple: true, default: [] },
        help: { type: "boolean", default: false },
      },
    }),
  );
  const known = stages.map(({ name }) => name);
  const unknown = [...positionals, ...values.skip].filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    console.error(`no stage is called ${unknown.join(", ")}; there are ${known.join(", ")}`);
    process.exit(2);
  }
  return stages.filter(
    ({ name }) => (positionals.length === 0 || positionals.includes(name)) && !values.skip.includes(name),
  );
}

const outcomes = chosenStages().map(run);

console.log("");
for (const { stage, passed, seconds } of outcomes) {
  console.log(`${passed ? "ok    " : "FAILED"}  ${stage.name.padEnd(14)}${seconds.padStart(6)} s`);
}
process.exitCode = outcomes.every(({ passed }) => passed) ? 0 : 1;
