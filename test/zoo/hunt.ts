// The entry that is bundled with a planted bug: runs seed after seed until one of them finds something. Prints one line
// of JSON, a `Catch`.

import { runSeed } from "../../src/sim/fault/run-seed.ts";

/** What a hunt came to. */
export interface Catch {
  /** Seeds that were run. */
  readonly seeds: number;
  /** Absent when nothing was found. */
  readonly found?: { readonly seed: number; readonly check: string; readonly sentence: string };
}

async function hunt(fromSeed: number, seedsMax: number, forMs: number): Promise<Catch> {
  for (let seeds = 1; seeds <= seedsMax; seeds += 1) {
    const seed = fromSeed + seeds - 1;
    const { findings } = await runSeed({ seed, forMs, without: [] });
    const [first] = findings;
    if (first !== undefined) return { seeds, found: { seed, check: first.check, sentence: first.sentence } };
  }
  return { seeds: seedsMax };
}

const [fromSeed = 1, seedsMax = 1, forMs = 120_000] = process.argv.slice(2).map(Number);
process.stdout.write(`${JSON.stringify(await hunt(fromSeed, seedsMax, forMs))}\n`);
