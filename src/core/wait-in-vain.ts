// Requests for slots that cannot be granted in time, because a resource is on hold for longer. The agent learns it at
// once, and may have another way. Not here: the order of grants (scheduling/slot-planner.ts).

import type { AgentId, Instant, ResourceName } from "../ids.ts";
import type { Event } from "../state/event.ts";
import { attemptOf, phaseOf } from "../state/hold-rows.ts";
import { slotLeasesOf } from "../state/slot-rows.ts";
import type { HoldRow, OpenAttempt, SlotLeaseRow, SwarmState } from "../state/state.ts";

interface Request {
  readonly agent: AgentId;
  readonly holder?: string | undefined;
  readonly needs: SlotLeaseRow["needs"];
  readonly deadline?: Instant | undefined;
}

/** The first hold that outlasts a request. */
export function holdInVain(state: SwarmState, request: Request): HoldRow | undefined {
  const { resource: holds } = state.holds;
  if (holds.size === 0) return undefined;
  const until = waitsUntil(state, request);
  if (until === undefined) return undefined;
  for (const name of request.needs.keys()) {
    const hold = holds.get(name);
    if (hold !== undefined && phaseOf(hold) === "held" && hold.until >= until) return hold;
  }
  return undefined;
}

/** When a request ends at the latest: at its own deadline, or with the attempt that asks. Undefined: never. */
function waitsUntil(state: SwarmState, request: Request): Instant | undefined {
  const { agent, holder, deadline } = request;
  const attemptEnd = attemptOf(state, { agent, holder })?.timeoutTimer?.dueAt;
  if (deadline === undefined || attemptEnd === undefined) return deadline ?? attemptEnd;
  return Math.min(deadline, attemptEnd) as Instant;
}

/** The reaction to a hold: the ends of the waits that the hold outlasts. */
export function endWaitsInVain(state: SwarmState, event: Event): Event[] {
  if (event.type !== "HoldPlaced" || event.on !== "resource") return [];
  const row = state.resourceByName.get(event.name as ResourceName);
  return [...(row?.waiting.values() ?? [])]
    .filter((slotLease) => holdInVain(state, slotLease) !== undefined)
    .map(({ agent, incarnation, handle }) => ({
      ...({ type: "SlotWaitEnded", reason: "on-hold" } as const),
      ...{ agent, incarnation, handles: [handle] },
    }));
}

/** The resource on hold whose slots an attempt waits for. */
export function awaitedOnHold(state: SwarmState, attempt: OpenAttempt): ResourceName | undefined {
  if (state.holds.resource.size === 0) return undefined;
  const own = slotLeasesOf(state, attempt.agent).filter(
    (slotLease) => slotLease.state === "waiting" && attemptOf(state, slotLease) === attempt,
  );
  return own.flatMap(({ needs }) => [...needs.keys()]).find((name) => state.holds.resource.has(name));
}
