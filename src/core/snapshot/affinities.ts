// Affinities in a snapshot, used longest ago first.

import type { AgentId, Instant, ProjectId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { affinityKey } from "../../state/affinity-rows.ts";
import type { AffinityRow, SwarmState } from "../../state/state.ts";
import { addNew, type Fields, refuse } from "./checked-fields.ts";
import type { Row } from "./line.ts";

export function* affinityRows({ affinityByKey }: SwarmState): Generator<Row> {
  for (const { project, affinity, agent, usedAt } of affinityByKey.values())
    yield ["affinity", { project, affinity, agent, usedAt }];
}

export class AffinityReader {
  readonly #state: SwarmState;
  #newestAt = 0 as Instant;

  constructor(state: SwarmState) {
    this.#state = state;
  }

  readAffinity(fields: Fields): void {
    const row: AffinityRow = {
      project: fields.text<ProjectId>("project"),
      affinity: fields.text("affinity"),
      agent: fields.text<AgentId>("agent"),
      usedAt: fields.whole<Instant>("usedAt", { max: this.#state.at }),
    };
    const { affinityByKey } = this.#state;
    if (row.usedAt < this.#newestAt) refuse(`affinity ${row.affinity} stands out of order`);
    if (affinityByKey.size >= limits.affinitiesMax) refuse("more affinities than are remembered");
    this.#newestAt = row.usedAt;
    addNew(affinityByKey, affinityKey(row.project, row.affinity), row, "affinity");
  }
}
