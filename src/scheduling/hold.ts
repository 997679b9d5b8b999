// When a refused attempt puts its agent, the agent's type or a resource on hold, and when a hold ends. Pure rules;
// `decide` makes the events. Not here: the effect of a hold on tasks (eligibility.ts) and on slots (slot-planner.ts).
//
//    refused, with a time                          → on hold until then
//    limits.refusalsBeforeHold refusals in a row   → on hold for limits.holdBackoffMs: the agent, its type if
//                                                    several of the type's agents were refused, or the resource
//    time over → one probe → not refused: hold ends · refused: hold renewed, a guessed time doubled

import type { AgentId, Instant, Kind, SlotHandle } from "../ids.ts";
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
  /** When the task of a refused probe may start again; absent for other refusals. */
  readonly retryAt?: Instant;
  readonly holds: readonly HoldPlaced[];
}

const counted: RefusalVerdict = { class: "infrastructure", holds: [] };

/**
 * What a refused attempt leads to. Its task is queued again at once, and may go to an agent that no hold concerns.
 * @param attempt still open
 * @param refusal `until` is later than `at`, or absent
 */
export function verdictOnRefusal(
  state: SwarmState,
  attempt: OpenAttempt,
  refusal: Refusal & { readonly error: string },
  at: Instant,
): RefusalVerdict {
  const said = { reportedBy: attempt.agent, ...(refusal.error === "" ? {} : { reason: refusal.error }) };
  const guess = (target: HoldTarget, step: number) => guessed(target, step, at, said);
  const target = targetOf(state, attempt, refusal.on);
  const current = findHold(state, target);
  const probed = holdsProbedBy(state, attempt).filter(
    (hold) => refusal.on === undefined || isSameTarget(hold, target),
  );
  if (refusal.until !== undefined)
    return { class: "refused", holds: heldUntil(state, target, refusal.until, said) };
  const refused = (holds: readonly HoldPlaced[]): RefusalVerdict => {
    const retryAt = afterNextProbe(attempt, { probed, holds, current });
    return { class: "refused", ...(retryAt === undefined ? {} : { retryAt }), holds };
  };
  if (probed.length > 0) return refused(probed.map((hold) => guess(hold, (hold.step ?? 0) + 1)));
  if (target.on === "resource" && current !== undefined) {
    // An attempt may use the resource without a slot. Then it probes an elapsed hold as well.
    const isProbe = phaseOf(current) === "due";
    return refused(isProbe ? [guess(current, (current.step ?? 0) + 1)] : []);
  }
  const { agent: id, agentType } = attempt;
  if (target.on !== "resource" && holdsOn(state, { id, agentType }, undefined).length > 0) return refused([]);
  const exceeded = countingTargets(state, attempt, refusal.on).find((each) =>
    exceedsRow(state, each, refusalOfAttempt(attempt)),
  );
  return exceeded === undefined ? counted : refused([guess(exceeded, 1)]);
}

/** When the task of a refused probe may start again: it lets another task make the next probe, because its own handler
 *  may be the reason. Undefined for the task of any other attempt. */
function afterNextProbe(
  { project, task }: OpenAttempt,
  {
    probed,
    holds,
    current,
  }: {
    readonly probed: readonly HoldRow[];
    readonly holds: readonly HoldPlaced[];
    readonly current: HoldRow | undefined;
  },
): Instant | undefined {
  const renewed: { readonly until: Instant }[] = holds.filter((hold) =>
    probed.some((other) => isSameTarget(hold, other)),
  );
  // The slot that the attempt released has renewed the hold before.
  const isRenewed = current?.setBack?.task === task && current.setBack.project === project;
  if (current !== undefined && isRenewed && phaseOf(current) === "held") renewed.push(current);
  if (renewed.length === 0) return undefined;
  return (Math.max(...renewed.map(({ until }) => until)) + limits.retryBackoffMs) as Instant;
}

function isSameTarget(a: HoldTarget, b: HoldTarget): boolean {
  return a.on === b.on && a.name === b.name;
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
 * How far holds keep an agent from tasks of a kind; undefined without holds. `held`: one of them has not elapsed, or
 * has its probe under way. `due`: the agent's next task is the probe. Constant time.
 */
export function holdAt(
  state: SwarmState,
  agent: AgentRow,
  kind: Kind,
): Exclude<HoldPhase, "probing"> | undefined {
  const holds = holdsOn(state, agent, kind);
  if (holds.length === 0) return undefined;
  return holds.every((hold) => phaseOf(hold) === "due") ? "due" : "held";
}

/** The hold that keeps an agent longest from tasks. @param kind as for `holdsOn` */
export function lastHoldOn(state: SwarmState, agent: AgentRow, kind: Kind | undefined): HoldRow | undefined {
  let last: HoldRow | undefined;
  for (const hold of holdsOn(state, agent, kind))
    if (last === undefined || hold.until > last.until) last = hold;
  return last;
}
