// Looks in the storage of snapshots for as long as it takes to believe that something is not there: a server that has
// just taken over may answer from before, and know nothing of what was put last.

import type { Clock } from "../../clock.ts";
import { Endurance } from "../../endurance.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";

/** @param look resolves with what it finds, if anything
 *  @returns undefined when nothing was found for `limits.readBackPatienceMs`, with an answer each time
 *  @throws what `look` throws: where nobody answers, nothing is known */
export async function lookFor<T>(look: () => Promise<T | undefined>, clock: Clock): Promise<T | undefined> {
  const patience = new Endurance(clock, limits.readBackPatienceMs, limits.lossLooksMin);
  for (;;) {
    const found = await look();
    if (found !== undefined || patience.isBelieved()) return found;
    await pause(clock, limits.appendRetryMs);
  }
}
