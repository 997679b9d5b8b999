// Kinds in a snapshot, the swarm's learned records, and the orders of idle and of served kinds. `queues` is counted
// again.

import type { Kind } from "../../ids.ts";
import { isKindLearnt, isKindUsed } from "../../state/kind-rows.ts";
import type { KindRow, SwarmState } from "../../state/state.ts";
import { addNew, type Fields, known, refuse } from "./checked-fields.ts";
import type { Row } from "./line.ts";
import { Places, placesIn } from "./places.ts";
import { readKindSettings } from "./settings.ts";
import { readRecord } from "./values.ts";

export function* kindRows(state: SwarmState): Generator<Row> {
  const idle = placesIn(state.idleKinds);
  const served = placesIn(state.onlineByKind.keys());
  for (const { kind, settings, tokensMean, estimateMeans, tick } of state.kindByName.values())
    yield [
      "kind",
      { kind, settings, tokensMean, estimateMeans, tick, idle: idle.get(kind), served: served.get(kind) },
    ];
  for (const [kind, record] of state.recordByKind) yield ["record", { kind, record }];
}

export class KindReader {
  readonly #state: SwarmState;
  readonly #idle = new Places<KindRow>("idle kinds");
  readonly #served = new Places<KindRow>("served kinds");

  constructor(state: SwarmState) {
    this.#state = state;
  }

  readKind(fields: Fields): void {
    const row: KindRow = {
      kind: fields.text("kind"),
      settings: readKindSettings(fields),
      tick: fields.whole("tick"),
      queues: 0,
    };
    if (fields.has("tokensMean")) row.tokensMean = fields.amount("tokensMean");
    if (fields.has("estimateMeans")) row.estimateMeans = fields.within("estimateMeans", readMeans);
    this.#idle.put(fields.optionalWhole("idle"), row);
    this.#served.put(fields.optionalWhole("served"), row);
    addNew(this.#state.kindByName, row.kind, row, "kind");
  }

  readRecord(fields: Fields): void {
    const kind = fields.text<Kind>("kind");
    known(this.#state.kindByName, kind, "kind");
    addNew(this.#state.recordByKind, kind, fields.within("record", readRecord), "record of kind");
  }

  /** Lists the online agents by the kinds they serve; in steps. */
  *listOnline(): Generator<undefined, void> {
    const { kindByName, onlineByKind, agentById } = this.#state;
    const online = [...agentById.values()].filter((agent) => agent.online);
    const served = new Set<KindRow>();
    for (const { kindRows } of online) {
      for (const row of kindRows) served.add(row);
      yield;
    }
    for (const { kind } of this.#served.inOrder(served.size, (row) => served.has(row)))
      onlineByKind.set(kind, new Map());
    online.sort((a, b) => a.joinedOrder - b.joinedOrder);
    for (const [at, agent] of online.entries()) {
      if (agent.joinedOrder === online[at - 1]?.joinedOrder)
        refuse(`two agents joined at ${agent.joinedOrder}`);
      for (const kind of agent.kinds) onlineByKind.get(kind)?.set(agent.id, agent);
      yield;
    }
    for (const row of kindByName.values())
      if (served.has(row) !== onlineByKind.has(row.kind))
        refuse(`kind ${row.kind} is served by no agent, or not listed as served`);
  }

  /** After all rows that use kinds were read. */
  listIdle(): void {
    const { kindByName, idleKinds } = this.#state;
    const isIdle = (row: KindRow) => !isKindUsed(this.#state, row);
    const idle = [...kindByName.values()].filter(isIdle);
    for (const row of this.#idle.inOrder(idle.length, isIdle)) {
      if (!isKindLearnt(this.#state, row)) refuse(`kind ${row.kind} is kept without a reason`);
      idleKinds.add(row.kind);
    }
  }
}

function readMeans(fields: Fields): NonNullable<KindRow["estimateMeans"]> {
  return { estimated: fields.amount("estimated"), used: fields.amount("used") };
}
