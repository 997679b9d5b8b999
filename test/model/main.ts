// `npm run model`: searches the model of segments for schedules that break a promise.

import { parseArgs } from "node:util";
import { readFlags } from "../support/script-flags.ts";
import { type Rule, rules } from "./coordinator.ts";
import { runSeed, type Setting, searchDeviations } from "./search.ts";

const USAGE = `npm run model -- [--seeds N] [--from N] [--store one|remote|three] [--profile inside|outside] [--without RULE]… [--loses-seals] [--trace SEED] [--depth N]

Runs the model of the journal's segments (test/model) through drawn schedules, and checks its promises. Ends with 1 when
a schedule breaks one, 2 for wrong flags.

  --seeds    schedules to draw (default 1000)
  --from     the first seed (default 0)
  --store    one server that may lose power; remote, reached through other servers; or three replicas (default one)
  --profile  faults inside the fault model or any (default inside)
  --without  leave a rule out, to see what it is for: 
             ${rules.join("\n             ")}
  --loses-seals
             behind other servers a power loss may also take a claim, an Opened or a seal
  --trace    print one seed step by step
  --depth    instead of seeds: every schedule with so many deviations from the quiet run
  --steps    steps in which faults strike (default 500; with --depth 60)

Examples:
  npm run model -- --seeds 20000 --store three
  npm run model -- --without ask-the-others --seeds 100
  npm run model -- --depth 2`;

const { values } = readFlags(USAGE, () =>
  parseArgs({
    options: {
      seeds: { type: "string", default: "1000" },
      from: { type: "string", default: "0" },
      store: { type: "string", default: "one" },
      profile: { type: "string", default: "inside" },
      without: { type: "string", multiple: true, default: [] },
      "loses-seals": { type: "boolean", default: false },
      trace: { type: "string" },
      depth: { type: "string" },
      steps: { type: "string" },
      help: { type: "boolean", default: false },
    },
  }),
);

process.exitCode = main();

function main(): number {
  const setting = settingOf();
  if (setting === undefined) return 2;
  if (values.trace !== undefined) return trace(setting, Number(values.trace));
  if (values.depth !== undefined) return deviations(setting, Number(values.depth));
  return seeds(setting, Number(values.from), Number(values.seeds));
}

function settingOf(): Setting | undefined {
  const { store, profile, without } = values;
  const unknown = without.find((rule) => !(rules as readonly string[]).includes(rule));
  const numbers = [values.seeds, values.from, values.trace ?? "0", values.depth ?? "0", values.steps ?? "0"];
  const isFine =
    (store === "one" || store === "remote" || store === "three") &&
    (profile === "inside" || profile === "outside");
  if (!isFine || unknown !== undefined || numbers.some((number) => !/^\d+$/.test(number))) {
    console.error(
      `${unknown === undefined ? "a flag has no such value" : `there is no rule ${unknown}`}\n\n${USAGE}`,
    );
    return undefined;
  }
  const steps = Number(values.steps ?? (values.depth === undefined ? 500 : 60));
  return { store, profile, without: without as Rule[], losesSeals: values["loses-seals"], steps };
}

function trace(setting: Setting, seed: number): number {
  const { trace: lines, violations } = runSeed(setting, seed, true);
  console.log(lines.join("\n"));
  return violations.length === 0 ? 0 : 1;
}

function deviations(setting: Setting, depth: number): number {
  const { found, schedules } = searchDeviations(setting, depth, 10);
  for (const { schedule, violations } of found)
    console.log(`${schedule}: ${violations[0]?.kind}: ${violations[0]?.sentence}`);
  console.log(`${schedules} schedules, ${found.length} failed`);
  return found.length === 0 ? 0 : 1;
}

function seeds(setting: Setting, from: number, count: number): number {
  let failed = 0;
  for (let seed = from; seed < from + count; seed += 1) {
    const [first] = runSeed(setting, seed).violations;
    if (first === undefined) continue;
    failed += 1;
    console.log(`seed ${seed}: ${first.kind} at step ${first.step}: ${first.sentence}`);
  }
  console.log(`${count} seeds, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}
