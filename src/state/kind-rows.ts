// The swarm's knowledge of each kind. A row is made at a kind's first use and dropped when nothing needs it. Submitters
// name kinds, so a table without eviction would grow for ever. A row stays while tasks queue, an online agent serves
// the kind, or an operator set something for the kind. Learned values stay longer, for the `limits.idleKindsMax` kinds
// idle for the shortest time. The one thing to know: queues and online agents hold rows. After releasing a row, code
// must call `noteKind`.

import type { Kind } from "../ids.ts";
import { limits } from "../limits.ts";
import type { KindRow, SwarmState } from "./state.ts";

/** The row of a kind, made when absent. The caller uses the row, or calls `noteKind` after its use. */
export function kindRowOf(state: SwarmState, kind: Kind): KindRow {
  const known = state.kindByName.get(kind);
  if (known !== undefined) return known;
  const row: KindRow = { kind, settings: undefined, tick: 0, queues: 0 };
  state.kindByName.set(kind, row);
  return row;
}

/** Lists a kind as idle or as used, or drops the row, after a change of the reasons to keep the row. */
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

/** Whether the row must stay: a queue or an online agent uses its tick, or it holds an operator's settings. */
export function isKindUsed(state: SwarmState, row: KindRow): boolean {
  return row.queues > 0 || row.settings !== undefined || state.onlineByKind.has(row.kind);
}

/** Whether anything was learned that the kind's next tasks would miss. */
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
