// How holds change the state: placing, the end of their time, and the one probe. Every assignment and every grant
// passes here, so that nothing reaches what is on hold except the probe. Not here: when a hold is placed or ended
// (scheduling/hold.ts), refusals in a row (refusal-rows.ts).

import { assert } from "../assert.ts";
import type { Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import type { EventOf } from "./event.ts";
import type { HoldPhase, HoldProbe, HoldTarget } from "./hold.ts";
import type { AgentRow, HoldRow, OpenAttempt, SlotLeaseRow, SwarmState, TaskRow } from "./state.ts";
import { startTimer, stopTimer } from "./task-rows.ts";

export function placeHold(state: SwarmState, event: EventOf<"HoldPlaced">, at: Instant): void {
  const { on, name, until, by, step, reason, reportedBy, byAttempt } = event;
  assert(until > at, `the hold on ${on} ${name} ends in the future`);
  const holds = state.holds[on];
  const known = holds.get(name);
  if (known !== undefined && by === "operator") moveWaiting(state, known, until);
  if (known?.timer !== undefined) stopTimer(state, known.timer);
  const hold: HoldRow = {
    on,
    name,
    placedAt: known?.placedAt ?? at,
    until,
    by,
    step,
    reason,
    attemptsOf: byAttempt === true ? reportedBy : undefined,
    timer: undefined,
    probe: undefined,
    changedAt: 0,
  };
  hold.timer = startTimer(state, until, { kind: "hold", hold });
  holds.set(name, hold);
  noteChange(state, hold);
  state.refusalsInARow[on].delete(name);
}

export function elapseHold(state: SwarmState, event: EventOf<"HoldElapsed">): void {
  const hold = findHold(state, event);
  assert(hold?.timer !== undefined, `the time of the hold on ${event.on} ${event.name} ends once`);
  stopTimer(state, hold.timer);
  hold.timer = undefined;
  noteChange(state, hold);
}

export function endHold(state: SwarmState, event: EventOf<"HoldEnded">, at: Instant): void {
  const hold = findHold(state, event);
  assert(hold !== undefined, `${event.on} ${event.name} is on hold`);
  if (event.reason === "operator") moveWaiting(state, hold, at);
  dropHold(state, event);
}

/** Whether a task waits for the end of a resource's hold, or as long after it as the task of a refused probe. */
export function waitsFor(hold: HoldRow, { releaseTimer, refusals, spec }: TaskRow): boolean {
  if (hold.on !== "resource" || hold.timer === undefined || refusals === 0) return false;
  if (releaseTimer === undefined || releaseTimer.dueAt === spec.notBefore) return false;
  const longerMs = releaseTimer.dueAt - hold.until;
  return longerMs === 0 || longerMs === limits.retryBackoffMs;
}

/** An operator ends a hold at another instant: the tasks that wait for its end follow. */
function moveWaiting(state: SwarmState, hold: HoldRow, until: Instant): void {
  if (hold.on !== "resource" || hold.timer === undefined) return;
  for (const task of state.taskById.values()) {
    const { releaseTimer } = task;
    if (releaseTimer === undefined || !waitsFor(hold, task)) continue;
    stopTimer(state, releaseTimer);
    const dueAt = (until + releaseTimer.dueAt - hold.until) as Instant;
    task.releaseTimer = startTimer(state, dueAt, { kind: "release", task });
  }
}

/** The target is removed from the state, and its hold and refusals with it. */
export function forgetTarget(state: SwarmState, target: HoldTarget): void {
  dropHold(state, target);
  state.refusalsInARow[target.on].delete(target.name);
}

function noteChange({ holds }: SwarmState, hold: HoldRow): void {
  holds.changes += 1;
  hold.changedAt = holds.changes;
}

/** Removes a hold, if any. */
function dropHold(state: SwarmState, { on, name }: HoldTarget): void {
  const hold = state.holds[on].get(name);
  if (hold?.timer !== undefined) stopTimer(state, hold.timer);
  if (state.holds[on].delete(name)) state.holds.changes += 1;
}

export function findHold({ holds }: SwarmState, { on, name }: HoldTarget): HoldRow | undefined {
  return holds[on].get(name);
}

export function phaseOf({ timer, probe }: HoldRow): HoldPhase {
  if (timer !== undefined) return "held";
  return probe === undefined ? "due" : "probing";
}

/** Whether an agent or a type is on hold: nearly always false, and then no row is read. */
export function holdsWork({ holds }: SwarmState): boolean {
  return holds.agent.size + holds.type.size > 0;
}

/** The holds on an agent and on the agent's type. Either keeps tasks from the agent. */
export function holdsOn(
  state: SwarmState,
  { id, agentType }: Pick<AgentRow, "id" | "agentType">,
): readonly HoldRow[] {
  if (!holdsWork(state)) return none;
  const own = state.holds.agent.get(id);
  const ofType = agentType === undefined ? undefined : state.holds.type.get(agentType);
  if (own === undefined) return ofType === undefined ? none : [ofType];
  return ofType === undefined ? [own] : [own, ofType];
}

const none: readonly HoldRow[] = [];

/** The holds that an attempt probes: nearly always none. */
export function holdsProbedBy(state: SwarmState, attempt: OpenAttempt): readonly HoldRow[] {
  const { holds } = state;
  if (!holdsWork(state) && holds.resource.size === 0) return none;
  const work = holdsOn(state, { id: attempt.agent, agentType: attempt.agentType });
  return [...work, ...holds.resource.values()].filter(({ probe }) => isProbe(probe, attempt));
}

/** The elapsed holds of resources that refused attempts of the agent, while no slot probes them. */
export function holdsDueForAttempts({ holds }: SwarmState, { agent }: OpenAttempt): readonly HoldRow[] {
  if (holds.resource.size === 0) return none;
  return [...holds.resource.values()].filter((hold) => hold.attemptsOf === agent && phaseOf(hold) === "due");
}

function isProbe(probe: HoldProbe | undefined, { agent, number }: OpenAttempt): boolean {
  return probe !== undefined && probe.agent === agent && probe.number === number;
}

/** The resource holds that a slot lease probes. */
export function holdsProbedByLease(
  state: SwarmState,
  { agent, handle }: Pick<SlotLeaseRow, "agent" | "handle">,
): readonly HoldRow[] {
  if (state.holds.resource.size === 0) return none;
  return [...state.holds.resource.values()].filter(
    ({ probe }) => probe?.agent === agent && probe.handle === handle,
  );
}

/** Notes an assignment: to an agent on hold it is the probe. */
export function openProbes(state: SwarmState, attempt: OpenAttempt): void {
  for (const hold of holdsOn(state, { id: attempt.agent, agentType: attempt.agentType })) {
    assert(phaseOf(hold) === "due", `${hold.on} ${hold.name} is on hold, and is probed once at a time`);
    hold.probe = { agent: attempt.agent, number: attempt.number };
    noteChange(state, hold);
  }
}

/** Notes that an attempt ended, or no longer says anything about a hold. */
export function closeProbes(state: SwarmState, attempt: OpenAttempt): void {
  for (const hold of holdsProbedBy(state, attempt)) {
    hold.probe = undefined;
    noteChange(state, hold);
  }
}

/** Notes a grant: of a resource on hold it is the probe. */
export function openLeaseProbes(state: SwarmState, lease: SlotLeaseRow): void {
  if (state.holds.resource.size === 0) return;
  for (const resource of lease.needs.keys()) {
    const hold = state.holds.resource.get(resource);
    if (hold === undefined) continue;
    assert(phaseOf(hold) === "due", `resource ${resource} is on hold, and is probed once at a time`);
    const attempt = judgingAttempt(state, lease);
    const { agent, handle } = lease;
    hold.probe = { agent, handle, ...(attempt === undefined ? {} : { number: attempt.number }) };
  }
}

/** Notes a release. A lease that an attempt acquired is judged by the attempt's end. */
export function closeLeaseProbes(state: SwarmState, lease: SlotLeaseRow): void {
  for (const hold of holdsProbedByLease(state, lease))
    if (hold.probe?.number === undefined) hold.probe = undefined;
}

/** The name under which an attempt's handler acquires slots. */
export function attemptHolder({ incarnation, number }: OpenAttempt): string {
  return `${incarnation}.${number}`;
}

/** The holder of a lease; for a holder of its own within a handler (`attemptHolder`, `/`, a name), the attempt's. */
export function acquirerOf({ holder }: Pick<SlotLeaseRow, "holder">): string | undefined {
  return holder?.split("/", 1)[0];
}

/** The running attempt whose handler acquired the lease. */
export function attemptOf(
  state: SwarmState,
  { agent, holder }: Pick<SlotLeaseRow, "agent" | "holder">,
): OpenAttempt | undefined {
  const acquirer = acquirerOf({ holder });
  if (acquirer === undefined) return undefined;
  for (const open of state.agentById.get(agent)?.open.values() ?? [])
    if (open.state !== "revoked" && attemptHolder(open) === acquirer) return open;
  return undefined;
}

/** Whether the end of an attempt judges the lease. A holder of its own within a handler is judged by its release. */
export function isOfAttempt({
  incarnation,
  holder = "",
}: Pick<SlotLeaseRow, "incarnation" | "holder">): boolean {
  return holder.startsWith(`${incarnation}.`) && /^\d+$/.test(holder.slice(incarnation.length + 1));
}

/** The attempt whose end judges a probe. */
export function judgingAttempt(
  state: SwarmState,
  lease: Pick<SlotLeaseRow, "agent" | "holder">,
): OpenAttempt | undefined {
  return lease.holder?.includes("/") === true ? undefined : attemptOf(state, lease);
}

/** Whether a resource may be granted now; as the probe, while its hold is due. */
export function isGrantable({ holds }: SwarmState, resource: string): boolean {
  if (holds.resource.size === 0) return true;
  const hold = holds.resource.get(resource);
  return hold === undefined || phaseOf(hold) === "due";
}
