// The page of shared resources: the limit and what set it, holders, waiters, α over time, and how long grants took.

import type { Swarm } from "../../client/swarm.ts";
import { limits } from "../../limits.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import type { ActivityBook } from "../activity-book.ts";
import { commandOf } from "../command-text.ts";
import { quantiles } from "../quantiles.ts";
import type { ResourceRow, Resources } from "../wire.ts";
import { holdBadge } from "./holds.ts";

/** Asks for the order of the waiting requests where any wait. */
export async function resourcesView(
  { resources, omitted, at }: StatusResponse,
  book: ActivityBook,
  swarm: Pick<Swarm, "explainSlots">,
): Promise<Resources> {
  const contended = resources.filter(({ waiting }) => waiting > 0).slice(0, limits.dashboardRankedResources);
  const ranked = await Promise.all(contended.map(async ({ resource }) => await waitersOf(swarm, resource)));
  const waitersByName = new Map(contended.map(({ resource }, place) => [resource, ranked[place]]));
  const rows = resources.map((row) => {
    const waiters = waitersByName.get(row.resource) ?? row.waiters;
    return [row.resource, { ...resourceRow(row, { book, at }), waiters }] as const;
  });
  return {
    resources: Object.fromEntries(rows),
    omitted: omitted?.resources ?? 0,
    windowMs: book.windowMs(at),
  };
}

/** In the order of the next grants; undefined if the answer does not come. */
async function waitersOf(
  swarm: Pick<Swarm, "explainSlots">,
  resource: string,
): Promise<ResourceRow["waiters"] | undefined> {
  try {
    const { waiters } = await swarm.explainSlots(resource, { timeoutMs: limits.dashboardAskMs });
    return waiters
      .slice(0, limits.dashboardRowsShown)
      .map(({ agent, handle, place, waitedMs, load, depthTerm, ageTerm, by, ...asked }) => ({
        ...{ agent, handle, forMs: waitedMs, order: place },
        ...{ load, backlogTerm: depthTerm, waitedTerm: ageTerm, by },
        ...{ as: asked.as, label: asked.label, project: asked.project, user: asked.user },
        ...{ tokens: asked.tokens, waitsFor: asked.waitsFor },
      }));
  } catch {
    return undefined; // older coordinators have no such answer; the status has the oldest few
  }
}

function resourceRow(
  row: StatusResponse["resources"][number],
  { book, at }: { readonly book: ActivityBook; readonly at: number },
): Omit<ResourceRow, "waiters"> {
  const { resource, slots, autoTune } = row;
  const record = book.resource(resource);
  const [delayP50Ms, delayP95Ms] = quantiles(record.waits.values, [0.5, 0.95]) ?? [];
  const alphas = [...record.alphas.newest(), { at, alpha: row.alpha }];
  return {
    ...holdBadge(row.onHold && { on: "resource", ...row.onHold }),
    ...{ resource, slots, setBy: commandOf("resource", "set", resource, "--slots", String(slots)) },
    ...{ maxWaiters: row.maxWaiters, inUse: row.inUse, waiting: row.waiting },
    ...{ waitingWeight: row.waitingWeight, tick: row.tick, grants: row.grants },
    ...{ utilisation: row.utilisation, alpha: row.alpha, isAutoTuned: autoTune, alphaFrom: row.alphaFrom },
    holders: row.holders,
    granted: book.grantsByResource.sumOf(resource),
    delayed: book.delayedByResource.sumOf(resource),
    ...(delayP50Ms === undefined || delayP95Ms === undefined ? {} : { delayP50Ms, delayP95Ms }),
    alphas: { times: alphas.map((each) => each.at), series: { alpha: alphas.map(({ alpha }) => alpha) } },
  };
}
