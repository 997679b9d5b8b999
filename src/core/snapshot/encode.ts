// Writes a swarm's state as the lines of a snapshot (docs/base.md), one row per line, so that a writer holds few lines
// at a time. Derived values are left out; maps and sets keep their order. The state must not change until the last line
// was taken.

import type { SwarmState } from "../../state/state.ts";
import { affinityRows } from "./affinities.ts";
import { agentRows } from "./agents.ts";
import { grantRows } from "./grants.ts";
import { holdRows } from "./holds.ts";
import { kindRows } from "./kinds.ts";
import { type Row, sealedLine } from "./line.ts";
import { projectRows } from "./projects.ts";
import { queueRows } from "./queues.ts";
import { rateRows, reservedTypeRows } from "./rates.ts";
import { resourceRows, slotLeaseRows } from "./slot-leases.ts";
import { headerRow } from "./swarm.ts";
import { taskRows } from "./tasks.ts";

/** @returns lines without line breaks, for `decodeState` */
export function* encodeState(state: SwarmState): Generator<string> {
  let number = 0;
  for (const row of rowsOf(state)) {
    number += 1;
    yield sealedLine(number, row);
  }
}

/** The rows of a state's snapshot. */
export function* rowsOf(state: SwarmState): Generator<Row> {
  for (const rows of partsOf(state)) yield* rows;
}

/** In the order of line.ts. */
function partsOf(state: SwarmState): readonly Iterable<Row>[] {
  return [
    [headerRow(state)],
    kindRows(state),
    resourceRows(state),
    rateRows(state),
    grantRows(state),
    projectRows(state),
    reservedTypeRows(state),
    agentRows(state),
    slotLeaseRows(state),
    holdRows(state),
    affinityRows(state),
    queueRows(state),
    taskRows(state),
    [["end", {}]],
  ];
}
