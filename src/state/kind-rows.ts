// What the swarm knows of each kind: rows that come with the first use of a kind, and go with what keeps them. Names
// of kinds are the submitters': without that, a table of them would grow for ever.
// Kept as long as tasks queue, an agent that is online serves the kind, or something is set for it; what was learnt is
// kept beyond that, for the `limits.idleKindsMax` kinds that fell idle last.
// The one thing to know: queues and online agents hold rows, so whoever lets go of one says so afterwards (`noteKind`).

import type { Kind } from "../ids.ts";
import { limits } from "../limits.ts";
import type { KindRow, SwarmState } from "./state.ts";

/** The row of a kind, made when it is not there. Whoever asks for it uses it, or notes it once it does not. */
export function kindRowOf(state: SwarmState, kind: Kind): KindRow {
  const known = state.kindByName.get(kind);
  if (known !== undefined) return known;
  const row: KindRow = { kind, settings: undefined, tick: 0, queues: 0 };
  state.kindByName.set(kind, row);
  return row;
}

/** Lists a kind as idle, or not, or drops it, after what keeps its row has changed. */
export function noteKind(state: SwarmState, row: KindRow): void {
  if (isKindUsed(state, row)) {
    state.idleKinds.delete(row.kind);
    return;
  }
  if (!isKindLearnt(state, row)) {
    state.kindByName.delete(row.kind);
    return;
  }
  state.idleKinds.add(row.kind);
  if (state.idleKinds.size > limits.idleKindsMax) forgetLongestIdle(state);
}

/** Whether its row must stay: its tick counts for somebody, or an operator's word would be forgotten. */
export function isKindUsed(state: SwarmState, row: KindRow): boolean {
  return row.queues > 0 || row.settings !== undefined || state.onlineByKind.has(row.kind);
}

/** Whether anything is known of it that its next tasks would be missing. */
export function isKindLearnt(state: SwarmState, row: KindRow): boolean {
  const { kind, tokensMean, estimateMeans } = row;
  return tokensMean !== undefined || estimateMeans !== undefined || state.recordByKind.has(kind);
}

function forgetLongestIdle(state: SwarmState): void {
  for (const kind of state.idleKinds) {
    state.idleKinds.delete(kind);
    state.kindByName.delete(kind);
    state.recordByKind.delete(kind);
    return;
  }
}
