// How holds change the state: placing, the end of their time, and the one probe. Every assignment and every grant
// passes here, so that nothing reaches what is on hold except the probe. Not here: when a hold is placed or ended
// (scheduling/hold.ts), refusals in a row (refusal-rows.ts).

import { assert } from "../assert.ts";
import type { AgentId, Instant, Kind, TaskRef } from "../ids.ts";
import { limits } from "../limits.ts";
import type { EventOf } from "./event.ts";
import type { HoldPhase, HoldProbe, HoldTarget } from "./hold.ts";
import type { AgentRow, HoldRow, OpenAttempt, SlotLeaseRow, SwarmState, TaskRow } from "./state.ts";
import { startTimer, stopTimer } from "./task-rows.ts";

export function placeHold(state: SwarmState, event: EventOf<"HoldPlaced">, at: Instant): void {
  const { on, name, until, by, step, reason } = event;
  assert(until > at, `the hold on ${on} ${name} ends in the future`);
  const hold = findHold(state, event) ?? newHold(event, at);
  if (by === "operator") moveSetBack(state, hold, until);
  if (by !== "operator")
    hold.setBack = by === "refusals" && hold.probe ? taskOf(state, hold.probe) : undefined;
  stopTime(state, hold);
  hold.probe = undefined;
  Object.assign(hold, { until, by, step, reason });
  hold.timer = startTimer(state, until, { kind: "hold", hold });
  state.holds[on].set(name, hold);
  noteChange(state, hold);
  state.refusalsInARow[on].delete(name);
}

function newHold({ on, name, until, by }: EventOf<"HoldPlaced">, at: Instant): HoldRow {
  return {
    on,
    name,
    placedAt: at,
    until,
    by,
    step: undefined,
    reason: undefined,
    users: new Map(),
    setBack: undefined,
    timer: undefined,
    probe: undefined,
    changedAt: 0,
  };
}

/** A resource on hold refused an attempt of the agent. */
export function noteUser(state: SwarmState, resource: string, { agent, kind }: OpenAttempt): void {
  const hold = state.holds.resource.get(resource);
  if (hold === undefined) return;
  addUser(state, hold, { agent, kind });
  noteChange(state, hold);
}

/** Adds a kind of an agent to the row and to the index. */
export function addUser(
  { holds: { byUser } }: SwarmState,
  hold: HoldRow,
  { agent, kind }: Pick<OpenAttempt, "agent" | "kind">,
): void {
  hold.users.set(agent, (hold.users.get(agent) ?? new Set()).add(kind));
  byUser.set(agent, (byUser.get(agent) ?? new Set()).add(hold));
}

export function elapseHold(state: SwarmState, event: EventOf<"HoldElapsed">): void {
  const hold = findHold(state, event);
  assert(
    hold !== undefined && phaseOf(hold) === "held",
    `the time of the hold on ${event.on} ${event.name} ends once`,
  );
  stopTime(state, hold);
  noteChange(state, hold);
}

export function endHold(state: SwarmState, event: EventOf<"HoldEnded">, at: Instant): void {
  const hold = findHold(state, event);
  assert(hold !== undefined, `${event.on} ${event.name} is on hold`);
  if (event.reason === "operator") moveSetBack(state, hold, at);
  dropHold(state, event);
}

/** Whether a task waits beyond the end of the hold, because its attempt was the last refused probe. */
export function isSetBackBy(hold: HoldRow, { releaseTimer, spec }: TaskRow): boolean {
  if (hold.setBack?.task !== spec.id || hold.setBack.project !== spec.project) return false;
  return releaseTimer?.dueAt === hold.until + limits.retryBackoffMs && releaseTimer.dueAt !== spec.notBefore;
}

/** An operator ends a hold at another instant, and the task that waits beyond its end follows. */
function moveSetBack(state: SwarmState, hold: HoldRow, until: Instant): void {
  const task = hold.setBack && state.taskById.get(hold.setBack);
  if (task?.releaseTimer === undefined || !isSetBackBy(hold, task)) return;
  stopTimer(state, task.releaseTimer);
  const dueAt = (until + limits.retryBackoffMs) as Instant;
  task.releaseTimer = startTimer(state, dueAt, { kind: "release", task });
}

function taskOf(state: SwarmState, { agent, number }: HoldProbe): TaskRef | undefined {
  const attempt = number === undefined ? undefined : state.agentById.get(agent)?.open.get(number);
  return attempt && { project: attempt.project, task: attempt.task };
}

/** The target is removed from the state, and its hold and refusals with it. An agent no longer uses resources. */
export function forgetTarget(state: SwarmState, target: HoldTarget): void {
  dropHold(state, target);
  state.refusalsInARow[target.on].delete(target.name);
  if (target.on !== "agent") return;
  const agent = target.name as AgentId;
  for (const hold of state.holds.byUser.get(agent) ?? []) hold.users.delete(agent);
  state.holds.byUser.delete(agent);
}

function noteChange({ holds }: SwarmState, hold: HoldRow): void {
  holds.changes += 1;
  hold.changedAt = holds.changes;
}

/** Removes a hold, if any. */
function dropHold(state: SwarmState, target: HoldTarget): void {
  const { holds } = state;
  const hold = findHold(state, target);
  if (hold === undefined) return;
  stopTime(state, hold);
  holds[target.on].delete(target.name);
  holds.changes += 1;
  for (const agent of hold.users.keys()) {
    const used = holds.byUser.get(agent);
    used?.delete(hold);
    if (used?.size === 0) holds.byUser.delete(agent);
  }
}

export function findHold({ holds }: SwarmState, { on, name }: HoldTarget): HoldRow | undefined {
  return holds[on].get(name);
}

export function phaseOf({ timer, probe }: HoldRow): HoldPhase {
  if (probe !== undefined) return "probing";
  return timer === undefined ? "due" : "held";
}

/** Starts the probe, or replaces a probe that may say less. */
function setProbe(state: SwarmState, hold: HoldRow, probe: HoldProbe | undefined): void {
  stopTime(state, hold);
  hold.probe = probe;
  if (probe?.trustedAt !== undefined) hold.timer = startTimer(state, probe.trustedAt, { kind: "hold", hold });
  noteChange(state, hold);
}

function stopTime(state: SwarmState, hold: HoldRow): void {
  if (hold.timer !== undefined) stopTimer(state, hold.timer);
  hold.timer = undefined;
}

function trustedFrom(at: Instant): Instant {
  return (at + limits.probeTrustedMs) as Instant;
}

/** Whether a hold keeps tasks from some agent: nearly always false, and then no row is read. */
function keepsTasks({ holds }: SwarmState): boolean {
  return holds.agent.size + holds.type.size + holds.byUser.size > 0;
}

/** The holds that keep tasks from an agent: on the agent, on its type, and on resources that refused its attempts.
 *  @param kind kind of the tasks; absent: without the holds on resources, which depend on the kind */
export function holdsOn(
  state: SwarmState,
  { id, agentType }: Pick<AgentRow, "id" | "agentType">,
  kind: Kind | undefined,
): readonly HoldRow[] {
  if (!keepsTasks(state)) return none;
  const { agent, type, byUser } = state.holds;
  const found = [agent.get(id), agentType === undefined ? undefined : type.get(agentType)];
  if (kind !== undefined)
    for (const hold of byUser.get(id) ?? []) if (hold.users.get(id)?.has(kind) === true) found.push(hold);
  return found.filter((hold) => hold !== undefined);
}

const none: readonly HoldRow[] = [];

/** The holds that an attempt probes: nearly always none. */
export function holdsProbedBy(state: SwarmState, attempt: OpenAttempt): readonly HoldRow[] {
  const { resource } = state.holds;
  if (!keepsTasks(state) && resource.size === 0) return none;
  const work = holdsOn(state, { id: attempt.agent, agentType: attempt.agentType }, undefined);
  return [...work, ...resource.values()].filter(({ probe }) => isProbe(probe, attempt));
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
  const { agent: id, agentType, kind } = attempt;
  for (const hold of holdsOn(state, { id, agentType }, kind)) {
    assert(phaseOf(hold) === "due", `${hold.on} ${hold.name} is on hold, and is probed once at a time`);
    setProbe(state, hold, { agent: attempt.agent, number: attempt.number });
  }
}

/** Notes that an attempt began. A resource may be asked for late, so its probe is trusted from the grant on. */
export function beginProbes(state: SwarmState, attempt: OpenAttempt, at: Instant): void {
  for (const hold of holdsProbedBy(state, attempt))
    if (hold.on !== "resource" && hold.probe !== undefined)
      setProbe(state, hold, { ...hold.probe, trustedAt: trustedFrom(at) });
}

/** Notes that an attempt ended, or no longer says anything about a hold. */
export function closeProbes(state: SwarmState, attempt: OpenAttempt): void {
  for (const hold of holdsProbedBy(state, attempt)) setProbe(state, hold, undefined);
}

/** Notes a grant: of a resource on hold it is the probe. */
export function openLeaseProbes(state: SwarmState, lease: SlotLeaseRow, at: Instant): void {
  if (state.holds.resource.size === 0) return;
  for (const resource of lease.needs.keys()) {
    const hold = state.holds.resource.get(resource);
    if (hold === undefined) continue;
    assert(isGrantable(state, resource), `resource ${resource} is on hold, and is probed once at a time`);
    const { agent, handle } = lease;
    const attempt = judgingAttempt(state, lease);
    const judge = attempt === undefined ? {} : { number: attempt.number };
    setProbe(state, hold, { agent, handle, ...judge, trustedAt: trustedFrom(at) });
  }
}

/** Notes a release. A lease that an attempt acquired is judged by the attempt's end. */
export function closeLeaseProbes(state: SwarmState, lease: SlotLeaseRow): void {
  for (const hold of holdsProbedByLease(state, lease))
    if (hold.probe?.number === undefined) setProbe(state, hold, undefined);
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

/** Whether a resource may be granted now. The next grant is the probe while the hold is due, and also while an attempt
 *  without a slot is the probe: it may ask for one late, or never. */
export function isGrantable({ holds }: SwarmState, resource: string): boolean {
  if (holds.resource.size === 0) return true;
  const hold = holds.resource.get(resource);
  if (hold === undefined) return true;
  return phaseOf(hold) !== "held" && hold.probe?.handle === undefined;
}
