// The page of shared resources: the limit and what set it, holders, waiters, α over time, and how long grants took.

import type { StatusResponse } from "../../protocol/schemas.ts";
import type { ActivityBook } from "../activity-book.ts";
import { commandOf } from "../command-text.ts";
import { quantiles } from "../quantiles.ts";
import type { ResourceRow, Resources } from "../wire.ts";

export function resourcesView({ resources, omitted, at }: StatusResponse, book: ActivityBook): Resources {
  return {
    resources: Object.fromEntries(resources.map((row) => [row.resource, resourceRow(row, { book, at })])),
    omitted: omitted?.resources ?? 0,
    windowMs: book.windowMs(at),
  };
}

function resourceRow(
  row: StatusResponse["resources"][number],
  { book, at }: { readonly book: ActivityBook; readonly at: number },
): ResourceRow {
  const { resource, slots, autoTune } = row;
  const record = book.resource(resource);
  const [delayP50Ms, delayP95Ms] = quantiles(record.waits.values, [0.5, 0.95]) ?? [];
  const alphas = [...record.alphas.newest(), { at, alpha: row.alpha }];
  return {
    ...{ resource, slots, setBy: commandOf("resource", "set", resource, "--slots", String(slots)) },
    ...{ maxWaiters: row.maxWaiters, inUse: row.inUse, waiting: row.waiting },
    ...{ waitingWeight: row.waitingWeight, tick: row.tick, grants: row.grants },
    ...{ utilisation: row.utilisation, alpha: row.alpha, isAutoTuned: autoTune, alphaFrom: row.alphaFrom },
    holders: row.holders,
    waiters: row.waiters,
    granted: book.grantsByResource.sumOf(resource),
    refused: book.refusalsByResource.sumOf(resource),
    ...(delayP50Ms === undefined || delayP95Ms === undefined ? {} : { delayP50Ms, delayP95Ms }),
    alphas: { times: alphas.map((each) => each.at), series: { alpha: alphas.map(({ alpha }) => alpha) } },
  };
}
