// Holds: by a refused attempt, by an operator, and their end. Not here: the rules for refused attempts
// (scheduling/hold.ts).

import { InvalidValueError } from "../errors.ts";
import type { AgentId, Instant, ResourceName } from "../ids.ts";
import { limits } from "../limits.ts";
import type { Event, HoldEndReason } from "../state/event.ts";
import type { HoldProbe, HoldTarget, Refusal, SlotRefusal } from "../state/hold.ts";
import { findHold, holdsProbedBy, holdsProbedByLease, judgingAttempt, phaseOf } from "../state/hold-rows.ts";
import { nearMisses } from "../state/near-miss.ts";
import { findSlotLease } from "../state/slot-rows.ts";
import type { HoldRow, OpenAttempt, SlotLeaseRow, SwarmState } from "../state/state.ts";
import type { CommandOf, Reply, ReportedRefusal, ReportedSlotRefusal } from "./command.ts";
import { answered, type Decision } from "./decision.ts";

/** A reported refusal as the journal keeps it. A time that has passed is no time: the agent's clock may be wrong. */
export function refusalAt({ on, ...time }: ReportedRefusal, at: Instant): Refusal {
  return { ...(on === undefined ? {} : { on }), ...untilAt(time, at) };
}

/** As `refusalAt`. */
export function slotRefusalAt({ resource, reason, ...time }: ReportedSlotRefusal, at: Instant): SlotRefusal {
  return {
    ...(resource === undefined ? {} : { resource }),
    ...(reason === undefined ? {} : { reason }),
    ...untilAt(time, at),
  };
}

function untilAt(
  { forMs, until }: { readonly forMs?: number; readonly until?: Instant },
  at: Instant,
): { readonly until?: Instant } {
  const end = forMs === undefined ? until : at + forMs;
  const isFuture = end !== undefined && end > at;
  return isFuture ? { until: (at + bounded(end - at)) as Instant } : {};
}

/** The ends of the holds that an attempt probed. @param attempt still open, and not refused */
export function endsOfProbed(state: SwarmState, attempt: OpenAttempt): readonly Event[] {
  return holdsProbedBy(state, attempt).map((hold) => ended(hold, "probed"));
}

/** The ends of the holds that a released slot lease probed, unless the end of an attempt judges the lease.
 *  @param lease still held @param refused not to be ended */
export function endsOfProbedLease(
  state: SwarmState,
  lease: SlotLeaseRow,
  refused: ReadonlySet<string>,
): readonly Event[] {
  return holdsProbedByLease(state, lease)
    .filter(({ name, probe }) => probe?.number === undefined && !refused.has(name))
    .map((hold) => ended(hold, "probed"));
}

/** The ends of the holds that an attempt probed with slots it released, when it asks for more. An attempt that goes on
 *  was not refused. Its request would otherwise wait for the end of the attempt. */
export function endsOfOwnProbe(
  state: SwarmState,
  request: { readonly agent: AgentId; readonly holder?: string | undefined },
  resources: Iterable<ResourceName>,
): readonly Event[] {
  if (state.holds.resource.size === 0) return [];
  const { agent, holder } = request;
  const number = judgingAttempt(state, { agent, holder })?.number;
  if (number === undefined) return [];
  return [...resources]
    .map((name) => findHold(state, { on: "resource", name }))
    .filter((hold) => hold !== undefined)
    .filter(({ probe }) => probe?.agent === agent && probe.number === number && hasLetGo(state, probe))
    .map((hold) => ended(hold, "probed"));
}

function hasLetGo(state: SwarmState, { agent, handle }: HoldProbe): boolean {
  return handle !== undefined && findSlotLease(state, agent, handle) === undefined;
}

/** The end of the hold's time, or of the time within which its probe may be refused. */
export function timeIsOver(hold: HoldRow): Event {
  const { on, name } = hold;
  return phaseOf(hold) === "held" ? { type: "HoldElapsed", on, name } : ended(hold, "trusted");
}

export function decidePlaceHold(
  state: SwarmState,
  { on, name, forMs, until, lengthen }: CommandOf<"PlaceHold">,
  at: Instant,
): Decision {
  const unknown = unknownTarget(state, { on, name });
  if (unknown !== undefined) return answered(unknown);
  const asked = endOf({ forMs, until }, at);
  const current = findHold(state, { on, name });
  const inForce = current !== undefined && phaseOf(current) === "held" ? current.until : undefined;
  const end = lengthen === true && inForce !== undefined && inForce > asked ? inForce : asked;
  const settings = { on, name, until: end };
  const isSame = inForce === end;
  const placed: Event = { type: "HoldPlaced", on, name, until: end, by: "operator" };
  const events = isSame ? [] : [...roomFor(state, { on, name }), placed];
  return { events, reply: { kind: "set", settings, changed: events.length > 0 } };
}

export function decideEndHold(state: SwarmState, { on, name }: CommandOf<"EndHold">): Decision {
  const hold = findHold(state, { on, name });
  const unknown = hold === undefined ? unknownTarget(state, { on, name }) : undefined;
  if (unknown !== undefined) return answered(unknown);
  const events = hold === undefined ? [] : [ended(hold, "operator")];
  return { events, reply: { kind: "set", settings: null, changed: events.length > 0 } };
}

/** The end of another hold, where a hold on one more type needs its room: of the hold that ends first. */
export function roomFor({ holds }: SwarmState, { on, name }: HoldTarget): readonly Event[] {
  if (on !== "type" || holds.type.has(name) || holds.type.size < limits.holdsMax) return [];
  const [first] = [...holds.type.values()].toSorted((a, b) => a.until - b.until);
  return first === undefined ? [] : [ended(first, "displaced")];
}

function ended({ on, name }: HoldRow, reason: HoldEndReason): Event {
  return { type: "HoldEnded", on, name, reason };
}

function bounded(holdMs: number): number {
  return Math.max(limits.holdMsMin, Math.min(limits.holdMsMax, holdMs));
}

/** @throws InvalidValueError */
function endOf(
  { forMs, until }: { readonly forMs: number | undefined; readonly until: Instant | undefined },
  at: Instant,
): Instant {
  const field = forMs === undefined ? "until" : "forMs";
  if ((forMs === undefined) === (until === undefined))
    throw new InvalidValueError("hold: name either forMs or until", { field: "forMs" });
  const holdMs = forMs ?? (until as Instant) - at;
  if (holdMs <= 0)
    throw new InvalidValueError(`${field}: a hold ends in the future, and this is over`, { field });
  if (holdMs > limits.holdMsMax)
    throw new InvalidValueError(`${field}: a hold lasts at most 7 days (${limits.holdMsMax} ms)`, { field });
  return (at + bounded(holdMs)) as Instant;
}

/** The refusal of an unknown agent. Undefined for a type: its agents may join later.
 *  @throws InvalidValueError for an unknown resource */
function unknownTarget(state: SwarmState, { on, name }: HoldTarget): Reply | undefined {
  const known: ReadonlyMap<string, unknown> | undefined =
    on === "agent" ? state.agentById : on === "resource" ? state.resourceByName : undefined;
  if (known === undefined || known.has(name)) return undefined;
  const near = nearMisses(name, known.keys() as Iterable<never>);
  if (on === "agent") return { kind: "unknown-agent", agent: name, nearMisses: near };
  const hint = near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`;
  throw new InvalidValueError(`name: there is no ${on} ${name}${hint}`, { field: "name" });
}
