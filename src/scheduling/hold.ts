// When a refused attempt puts its agent, the agent's type or a resource on hold, and when a hold ends. Pure rules;
// `decide` makes the events. Not here: the effect of a hold on tasks (eligibility.ts) and on slots (slot-planner.ts).
//
//    refused, with a time                          → on hold until then
//    limits.refusalsBeforeHold refusals in a row   → on hold for limits.holdBackoffMs: the agent, its type if
//                                                    several of the type's agents were refused, or the resource
//    time over → one probe → not refused: hold ends · refused: hold renewed, a guessed time doubled

import type { AgentId, Instant, SlotHandle } from "../ids.ts";
import { limits } from "../limits.ts";
import type { EventOf } from "../state/event.ts";
import type { HoldPhase, HoldTarget, Refusal, SlotRefusal } from "../state/hold.ts";
import { findHold, holdsOn, holdsProbedBy, holdsProbedByLease, phaseOf } from "../state/hold-rows.ts";
import {
  countingTargets,
  exceedsRow,
  refusalOfAttempt,
  refusalOfLease,
  refusedOf,
} from "../state/refusal-rows.ts";
import type { AgentRow, HoldRow, OpenAttempt, SlotLeaseRow, SwarmState } from "../state/state.ts";

type HoldPlaced = EventOf<"HoldPlaced">;
/** The reporting agent, the ended slots of a late report, and the reason for people. */
type Said = Pick<HoldPlaced, "reportedBy" | "handle" | "reason">;

export interface RefusalVerdict {
  /** `infrastructure`: the refusal counts, and the task pauses · `refused`: it counts towards no limit. */
  readonly class: "infrastructure" | "refused";
  /** With `refused`: when the task may start again; absent: at once, elsewhere or after the hold. */
  readonly retryAt?: Instant;
  readonly holds: readonly HoldPlaced[];
}

const counted: RefusalVerdict = { class: "infrastructure", holds: [] };

/**
 * What a refused attempt leads to.
 * @param attempt still open
 * @param refusal `until` is later than `at`, or absent
 */
export function verdictOnRefusal(
  state: SwarmState,
  attempt: OpenAttempt,
  refusal: Refusal & { readonly error: string },
  at: Instant,
): RefusalVerdict {
  const verdict = ruleOn(state, attempt, refusal, at);
  const byAttempt = (hold: HoldPlaced) =>
    hold.on === "resource" ? { ...hold, byAttempt: true as const } : hold;
  return { ...verdict, holds: verdict.holds.map(byAttempt) };
}

function ruleOn(
  state: SwarmState,
  attempt: OpenAttempt,
  refusal: Refusal & { readonly error: string },
  at: Instant,
): RefusalVerdict {
  const said = { reportedBy: attempt.agent, ...(refusal.error === "" ? {} : { reason: refusal.error }) };
  if (refusal.until !== undefined) return verdictWithTime(state, attempt, refusal, refusal.until, said);
  const guess = (target: HoldTarget, step: number) => guessed(target, step, at, said);
  const probed = holdsProbedBy(state, attempt);
  if (probed.length > 0) {
    const holds = probed.map((hold) => guess(hold, (hold.step ?? 0) + 1));
    // The task of a refused probe lets another task make the next probe: its own handler may be the reason.
    const retryAt = (Math.max(...holds.map(({ until }) => until)) + limits.retryBackoffMs) as Instant;
    return { class: "refused", retryAt, holds };
  }
  const targets = countingTargets(state, attempt, refusal.on);
  const [resource] = targets.filter(({ on }) => on === "resource");
  const current = resource === undefined ? undefined : findHold(state, resource);
  if (current !== undefined) return refusedBy(current, guess, at);
  if (
    resource === undefined &&
    holdsOn(state, { id: attempt.agent, agentType: attempt.agentType }).length > 0
  )
    return { class: "refused", holds: [] };
  const target = targets.find((each) => exceedsRow(state, each, refusalOfAttempt(attempt)));
  if (target === undefined) return counted;
  const hold = guess(target, 1);
  return { class: "refused", ...retryAtEndOf(hold), holds: [hold] };
}

/** The verdict of a refused attempt on the resource of a hold that the attempt does not probe. An attempt may use the
 *  resource without a slot: then it is the probe of an elapsed hold. */
function refusedBy(
  hold: HoldRow,
  guess: (target: HoldTarget, step: number) => HoldPlaced,
  at: Instant,
): RefusalVerdict {
  switch (phaseOf(hold)) {
    case "held":
      return { class: "refused", ...retryAtEndOf(hold), holds: [] };
    case "due": {
      const renewed = guess(hold, (hold.step ?? 0) + 1);
      return { class: "refused", ...retryAtEndOf(renewed), holds: [renewed] };
    }
    case "probing":
      return { class: "refused", retryAt: (at + limits.retryBackoffMs) as Instant, holds: [] };
  }
}

/** No other agent has another resource of this name, so the task waits for the end of the hold. */
function retryAtEndOf({ on, until }: HoldRow | HoldPlaced): { readonly retryAt?: Instant } {
  return on === "resource" ? { retryAt: until } : {};
}

function verdictWithTime(
  state: SwarmState,
  attempt: OpenAttempt,
  refusal: Refusal,
  until: Instant,
  said: Said,
): RefusalVerdict {
  const target = targetOf(state, attempt, refusal.on);
  const holds = heldUntil(state, target, until, said);
  const [hold = findHold(state, target)] = holds;
  return { class: "refused", ...(hold === undefined ? {} : retryAtEndOf(hold)), holds };
}

/**
 * The holds that the release of refused slots leads to. Without a time: of resources whose hold the lease probes, and
 * of resources refused often enough in a row.
 * @param lease still held
 * @param refusal `until` is later than `at`, or absent
 */
export function holdsOfRefusedSlots(
  state: SwarmState,
  lease: SlotLeaseRow,
  refusal: SlotRefusal,
  at: Instant,
): readonly HoldPlaced[] {
  const { until, reason } = refusal;
  const said = { reportedBy: lease.agent, ...(reason === undefined ? {} : { reason }) };
  const targets = refusedOf(lease, refusal).map((name) => ({ on: "resource", name }) as const);
  if (until !== undefined) return targets.flatMap((target) => heldUntil(state, target, until, said));
  const probed = holdsProbedByLease(state, lease);
  return targets.flatMap((target) => {
    const hold = probed.find(({ name }) => name === target.name);
    if (hold !== undefined) return [guessed(target, (hold.step ?? 0) + 1, at, said)];
    return exceedsRow(state, target, refusalOfLease(lease)) ? [guessed(target, 1, at, said)] : [];
  });
}

/** The hold that the report of an ended slot lease leads to. */
export function holdOfEndedSlots(
  state: SwarmState,
  { agent, handle }: { readonly agent: AgentId; readonly handle: SlotHandle },
  { resource, until, reason }: SlotRefusal & Required<Pick<SlotRefusal, "resource">>,
  at: Instant,
): readonly HoldPlaced[] {
  const said = { reportedBy: agent, handle, ...(reason === undefined ? {} : { reason }) };
  const target = { on: "resource", name: resource } as const;
  if (until !== undefined) return heldUntil(state, target, until, said);
  return exceedsRow(state, target, { agent, handle }) ? [guessed(target, 1, at, said)] : [];
}

/** A hold in force that ends later is kept as it is. */
function heldUntil(state: SwarmState, target: HoldTarget, until: Instant, said: Said): HoldPlaced[] {
  const current = findHold(state, target);
  const isLonger = current !== undefined && phaseOf(current) === "held" && current.until >= until;
  return isLonger ? [] : [{ type: "HoldPlaced", ...target, until, by: "agent", ...said }];
}

function guessed({ on, name }: HoldTarget, step: number, at: Instant, said: Said): HoldPlaced {
  return { type: "HoldPlaced", on, name, until: guessedEnd(at, step), by: "refusals", step, ...said };
}

/** An agent without a type, and a resource that is not set, leave the agent as the target. */
function targetOf(state: SwarmState, { agent, agentType }: OpenAttempt, on: Refusal["on"]): HoldTarget {
  if (on === "type" && agentType !== undefined) return { on: "type", name: agentType };
  if (typeof on === "object" && state.resourceByName.has(on.resource))
    return { on: "resource", name: on.resource };
  return { on: "agent", name: agent };
}

function guessedEnd(at: Instant, step: number): Instant {
  let holdMs: number = limits.holdBackoffMs;
  for (let doubled = 1; doubled < step && holdMs < limits.holdBackoffMsMax; doubled += 1) holdMs *= 2;
  return (at + Math.min(holdMs, limits.holdBackoffMsMax)) as Instant;
}

/**
 * How far holds keep an agent from tasks: `held` while one of them has not elapsed or has its probe under way, `due`
 * when its next task is the probe; undefined without holds. Constant time.
 */
export function holdAt(state: SwarmState, agent: AgentRow): Exclude<HoldPhase, "probing"> | undefined {
  const holds = holdsOn(state, agent);
  if (holds.length === 0) return undefined;
  return holds.every((hold) => phaseOf(hold) === "due") ? "due" : "held";
}

/** The hold that keeps an agent longest from tasks. */
export function lastHoldOn(state: SwarmState, agent: AgentRow): HoldRow | undefined {
  let last: HoldRow | undefined;
  for (const hold of holdsOn(state, agent)) if (last === undefined || hold.until > last.until) last = hold;
  return last;
}
