// The answer to `query.slots`: the requests that wait for a resource, in the order of this moment.

import { type AgentId, type Instant, instant, type ResourceName, type SlotHandle } from "../ids.ts";
import { limits } from "../limits.ts";
import type { SlotStanding, SlotWaitsResponse } from "../protocol/explain-schemas.ts";
import { codedError } from "../requests/answers.ts";
import { rankWaiters } from "../scheduling/explain-slots.ts";
import { alphaSettingsAt } from "../scheduling/slot-planner.ts";
import { nearMisses } from "../state/near-miss.ts";
import type { SwarmState } from "../state/state.ts";
import { rowsWithin } from "./fitting.ts";

export interface SlotQuestion {
  readonly resource: string;
  readonly agent?: AgentId | undefined;
  readonly handle?: string | undefined;
}

export interface SlotMoment {
  /** Journal time; on a standby, the wall clock. */
  readonly now: Instant;
  readonly isStale: boolean;
  /** Limit of the whole answer. */
  readonly bytesMax: number;
}

export function slotWaitsOf(
  state: SwarmState,
  { resource, agent, handle }: SlotQuestion,
  { now, isStale, bytesMax }: SlotMoment,
): SlotWaitsResponse {
  const row = state.resourceByName.get(resource as ResourceName);
  if (row === undefined) return unknownResource(state, resource);
  const at = instant(Math.max(state.at, now));
  const { alpha, tick, maxQueueDepth, maxOldestAge, standings } = rankWaiters(state, row, at);
  const last = agent === undefined ? standings.length : lastOf(standings, { agent, handle });
  if (agent !== undefined && last === 0) return notWaiting(state, { resource, agent, handle });
  const wanted = standings.slice(0, last).map(sent);
  const { rows } = rowsWithin(wanted, Math.min(limits.explainedAgentsBytesMax, bytesMax / 2));
  const omitted = wanted.length - rows.length;
  return {
    ok: true,
    term: state.term,
    idx: state.idx,
    at,
    ...(isStale ? { stale: true } : {}),
    resource,
    slots: row.settings.slots,
    inUse: row.inUse,
    waiting: row.waiting.size,
    alpha,
    alphaFrom: alphaSettingsAt(state, row).from,
    tick,
    maxQueueDepth,
    maxOldestAge,
    waiters: rows,
    ...(omitted === 0 ? {} : { omitted: { waiters: omitted } }),
  };
}

/** Place of the agent's last request, or of one of its requests; 0 if it does not wait. */
function lastOf(
  standings: ReturnType<typeof rankWaiters>["standings"],
  wanted: { readonly agent: AgentId; readonly handle: string | undefined },
): number {
  const found = standings.findLast(
    ({ agent, handle }) =>
      agent === wanted.agent && (wanted.handle === undefined || handle === wanted.handle),
  );
  return found?.place ?? 0;
}

function sent({
  as,
  holder,
  label,
  project,
  user,
  tokens,
  waitsFor,
  limitTicks,
  ...standing
}: ReturnType<typeof rankWaiters>["standings"][number]): SlotStanding {
  return {
    ...standing,
    ...(as === undefined ? {} : { as }),
    ...(holder === undefined ? {} : { holder }),
    ...(label === undefined ? {} : { label }),
    ...(project === undefined ? {} : { project }),
    ...(user === undefined ? {} : { user }),
    ...(tokens === 0 ? {} : { tokens }),
    ...(waitsFor === undefined ? {} : { waitsFor }),
    ...(limitTicks === undefined ? {} : { limitTicks }),
    needs: standing.needs.map((need) => ({ ...need })),
  };
}

function unknownResource(state: SwarmState, resource: string): SlotWaitsResponse {
  const near = nearMisses(resource as ResourceName, state.resourceByName.keys());
  const hint =
    near.length === 0 ? "`waggle resource list` lists the resources" : `did you mean ${near.join(" or ")}?`;
  return codedError("WAGGLE_UNKNOWN_RESOURCE", `there is no resource ${resource}; ${hint}`, {
    field: "resource",
  });
}

function notWaiting(state: SwarmState, { resource, agent, handle }: SlotQuestion): SlotWaitsResponse {
  const leases = agent === undefined ? undefined : state.slotsByAgent.get(agent);
  const held = handle === undefined ? undefined : leases?.get(handle as SlotHandle);
  const request = handle === undefined ? "no request" : `no request ${handle}`;
  const sentence =
    held?.state === "held"
      ? `request ${handle} of agent ${agent} waits no more: it holds its slots`
      : `agent ${agent} has ${request} that waits for ${resource}; \`waggle explain --resource ${resource}\` lists all`;
  return codedError("WAGGLE_UNKNOWN_HANDLE", sentence, { field: handle === undefined ? "agent" : "handle" });
}
