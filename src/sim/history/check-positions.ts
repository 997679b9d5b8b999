// Every answer names the journal's last batch at the time of the answer. The batch must be in the final journal, with
// the same term. No leader answers from before the newest batch known when the request left (P5, P8, P12).

import type { JournalPoint } from "../../protocol/journal-point.ts";
import type { CommittedLog } from "./committed-log.ts";
import type { Observation } from "./observation.ts";
import { type Violation, violation } from "./violation.ts";

export function checkPositions(observations: readonly Observation[], log: CommittedLog): Violation[] {
  return observations.flatMap((observed) => {
    const at = observed.kind === "assigned" ? undefined : observed.at;
    const wrong = at === undefined ? undefined : missing(at, log);
    return wrong === undefined ? [] : [violation("P12", "positions", observed, wrong)];
  });
}

/** Answers of leaders must be at least as new as the newest batch known when the request left. */
export function checkFreshness(observations: readonly Observation[], known: KnownWhenSent): Violation[] {
  return observations.flatMap((observed) => {
    if (observed.kind === "notified" || observed.kind === "assigned") return [];
    if (observed.at === undefined || observed.stale === true) return [];
    const knownIdx = known.idx(observed);
    if (observed.at.idx >= knownIdx) return [];
    const sentence = `is answered from batch ${observed.at.idx}, though batch ${knownIdx} was known before the request`;
    return [violation("P5", "freshness", observed, sentence)];
  });
}

function missing({ term, idx }: JournalPoint, log: CommittedLog): string | undefined {
  if (idx === 0 && term === 0) return undefined; // a standby of an empty journal
  const batch = log.at(idx);
  if (batch === undefined) return `names batch ${idx}, but the journal ends with ${log.lastIdx}`;
  if (batch.term !== term)
    return `names batch ${idx} of term ${term}, but the journal's is of term ${batch.term}`;
  return undefined;
}

/** The newest batch that any leader's answer had named before a request left. */
export class KnownWhenSent {
  readonly #heard: readonly { readonly ms: number; readonly idx: number }[];

  constructor(observations: readonly Observation[]) {
    const heard: { ms: number; idx: number }[] = [];
    for (const observed of observations) {
      if (observed.kind === "assigned" || observed.at === undefined || observed.heardMs === undefined)
        continue;
      if (observed.kind !== "notified" && observed.stale === true) continue;
      heard.push({ ms: observed.heardMs, idx: observed.at.idx });
    }
    heard.sort((a, b) => a.ms - b.ms);
    let idx = 0;
    for (const each of heard) {
      idx = Math.max(idx, each.idx);
      each.idx = idx;
    }
    this.#heard = heard;
  }

  /** 0 if no batch was known. */
  idx({ sentMs }: { readonly sentMs: number }): number {
    let low = 0;
    let high = this.#heard.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#heard[middle]?.ms ?? 0) < sentMs) low = middle + 1;
      else high = middle;
    }
    return this.#heard[low - 1]?.idx ?? 0;
  }
}
