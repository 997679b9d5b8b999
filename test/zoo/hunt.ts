// The entry of a bundle with a planted bug: runs seed after seed until the first finding. Prints a line of JSON, a
// `Catch`.

import { type FaultKind, isFaultKind } from "../../src/sim/fault/fault.ts";
import { runSeed } from "../../src/sim/fault/run-seed.ts";

/** The result of a hunt. */
export interface Catch {
  /** Number of seeds run. */
  readonly seeds: number;
  /** Absent without a finding. */
  readonly found?: { readonly seed: number; readonly check: string; readonly sentence: string };
}

interface Ground {
  readonly fromSeed: number;
  readonly seedsMax: number;
  readonly forMs: number;
  readonly without: readonly FaultKind[];
}

async function hunt({ fromSeed, seedsMax, forMs, without }: Ground): Promise<Catch> {
  for (let seeds = 1; seeds <= seedsMax; seeds += 1) {
    const seed = fromSeed + seeds - 1;
    const { findings } = await runSeed({ seed, forMs, without });
    const [first] = findings;
    if (first !== undefined) return { seeds, found: { seed, check: first.check, sentence: first.sentence } };
  }
  return { seeds: seedsMax };
}

const [fromSeed = "1", seedsMax = "1", forMs = "120000", without = ""] = process.argv.slice(2);
const caught = await hunt({
  fromSeed: Number(fromSeed),
  seedsMax: Number(seedsMax),
  forMs: Number(forMs),
  without: without.split(",").filter(isFaultKind),
});
process.stdout.write(`${JSON.stringify(caught)}\n`);
