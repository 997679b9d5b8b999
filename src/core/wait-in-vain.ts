// Requests for slots that would wait in vain, because a resource is on hold. The agent learns it at once, and may have
// another way. An attempt that has held no slot yet waits for a second at most, and its task then waits in the queue.
// There the task takes no capacity of the agent, and may go elsewhere. Not here: the order of grants
// (scheduling/slot-planner.ts).

import type { AgentId, Instant, ResourceName } from "../ids.ts";
import { limits } from "../limits.ts";
import type { Event } from "../state/event.ts";
import { attemptOf, phaseOf } from "../state/hold-rows.ts";
import { slotsAwaitedBy } from "../state/slot-rows.ts";
import type { HoldRow, OpenAttempt, SlotLeaseRow, SwarmState } from "../state/state.ts";

interface Request {
  readonly agent: AgentId;
  readonly holder?: string | undefined;
  readonly needs: SlotLeaseRow["needs"];
  readonly deadline?: Instant | undefined;
}

/** The first hold that outlasts a request. */
export function holdInVain(state: SwarmState, request: Request, at: Instant): HoldRow | undefined {
  const { resource: holds } = state.holds;
  if (holds.size === 0) return undefined;
  const until = waitsUntil(state, request, at);
  if (until === undefined) return undefined;
  for (const name of request.needs.keys()) {
    const hold = holds.get(name);
    if (hold !== undefined && phaseOf(hold) === "held" && hold.until >= until) return hold;
  }
  return undefined;
}

/** How long a request may wait for a hold: until its own deadline, or the end of the attempt that asks. Undefined: for
 *  ever. */
function waitsUntil(
  state: SwarmState,
  { agent, holder, deadline }: Request,
  at: Instant,
): Instant | undefined {
  const attempt = attemptOf(state, { agent, holder });
  const isFirst = attempt !== undefined && attempt.hasHeldSlots === undefined;
  const ends = [deadline, attempt?.timeoutTimer?.dueAt, isFirst ? at + limits.retryBackoffMs : undefined];
  const known = ends.filter((end) => end !== undefined);
  return known.length === 0 ? undefined : (Math.min(...known) as Instant);
}

/** The reaction to a hold: the ends of the waits that the hold outlasts. */
export function endWaitsInVain(state: SwarmState, event: Event, at: Instant): Event[] {
  if (event.type !== "HoldPlaced" || event.on !== "resource") return [];
  const row = state.resourceByName.get(event.name as ResourceName);
  return [...(row?.waiting.values() ?? [])]
    .filter((slotLease) => holdInVain(state, slotLease, at) !== undefined)
    .map(({ agent, incarnation, handle }) => {
      const reason = "on-hold";
      return { type: "SlotWaitEnded", agent, incarnation, handles: [handle], reason };
    });
}

/** The resource on hold whose slots an attempt waits for. */
export function awaitedOnHold(state: SwarmState, attempt: OpenAttempt): ResourceName | undefined {
  if (state.holds.resource.size === 0) return undefined;
  return slotsAwaitedBy(state, attempt)
    .flatMap(({ needs }) => [...needs.keys()])
    .find((name) => state.holds.resource.has(name));
}
