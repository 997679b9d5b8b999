// What `status` says of resources: slots, who holds them, who waits. For people and for dashboards.

import type { Instant } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { ResourceStatus } from "../../protocol/slot-schemas.ts";
import { rounded } from "../../scheduling/rounded.ts";
import { alphaAt, alphaSettingsAt } from "../../scheduling/slot-planner.ts";
import { utilisationOf } from "../../state/slot-rows.ts";
import type { ResourceRow, SlotLeaseRow, SwarmState } from "../../state/state.ts";
import { thousandthsPerWeight } from "../../state/weight.ts";

export function* resourceStatuses(state: SwarmState, now: Instant): Generator<ResourceStatus> {
  for (const row of state.resourceByName.values()) yield resourceStatusOf(state, row, now);
}

function resourceStatusOf(state: SwarmState, row: ResourceRow, now: Instant): ResourceStatus {
  const { autoTune, from } = alphaSettingsAt(state, row);
  const { resource, settings, inUse, tick, grants, waiting, holdings } = row;
  return {
    resource,
    slots: settings.slots,
    maxWaiters: settings.maxWaiters,
    inUse,
    waiting: waiting.size,
    waitingWeight: row.waitingWeightThousandths / thousandthsPerWeight,
    tick,
    grants,
    utilisation: rounded(utilisationOf(row, now)),
    alpha: alphaAt(state, row),
    autoTune,
    alphaFrom: from,
    holders: firstOf(holdings.values(), (slot) => partyOf(slot, slot.grantedAt, now)),
    waiters: firstOf(waiting.values(), (slot) => partyOf(slot, slot.requestedAt, now)),
  };
}

function partyOf({ agent, handle }: SlotLeaseRow, since: Instant | undefined, at: Instant) {
  return { agent: agent as string, handle: handle as string, forMs: Math.max(0, at - (since ?? at)) };
}

/** The oldest; how many there are in all is counted beside them. */
function firstOf<Item, Row>(items: Iterable<Item>, rowOf: (item: Item) => Row): Row[] {
  const rows: Row[] = [];
  for (const item of items) {
    if (rows.length === limits.slotPartiesShownMax) break;
    rows.push(rowOf(item));
  }
  return rows;
}
