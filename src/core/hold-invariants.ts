// Numbered checks of holds (docs/invariants.md). On the hot path `openProbes` and `openLeaseProbes` assert the same.

import type { AgentId, ResourceName } from "../ids.ts";
import { limits } from "../limits.ts";
import { type HoldTarget, holdScopes } from "../state/hold.ts";
import { phaseOf } from "../state/hold-rows.ts";
import { findSlotLease } from "../state/slot-rows.ts";
import type { HoldRow, OpenAttempt, SwarmState } from "../state/state.ts";
import type { Invariant } from "./invariant.ts";

export const holdInvariants: readonly Invariant[] = [
  { number: 51, name: "one-probe-a-hold", find: oneProbeAHold },
  { number: 52, name: "holds-are-on-what-exists", find: holdsAreOnWhatExists },
];

/** Since the end of a hold's time, at most one attempt, or one lease, was opened at what is on hold. */
function* oneProbeAHold(state: SwarmState): Generator<string> {
  for (const on of holdScopes) {
    for (const hold of state.holds[on].values()) {
      if (phaseOf(hold) === "probing" && !isUnderWay(state, hold))
        yield `${on} ${hold.name} is probed by nothing that runs`;
      // A resource keeps an agent from a kind from a refusal on. Attempts may have begun before that refusal.
      if (on === "resource") continue;
      for (const open of attemptsAt(state, hold)) {
        const isProbe = hold.probe?.agent === open.agent && hold.probe.number === open.number;
        if (open.assignedAt > hold.placedAt && open.assignedAt >= hold.until && !isProbe)
          yield `attempt ${open.task}#${open.attempt} runs at ${on} ${hold.name}, which is on hold`;
      }
    }
  }
}

function isUnderWay({ agentById, ...state }: SwarmState, { probe }: HoldRow): boolean {
  if (probe === undefined) return false;
  if (probe.number === undefined)
    return (
      probe.handle !== undefined &&
      findSlotLease({ agentById, ...state }, probe.agent, probe.handle)?.state === "held"
    );
  const open = agentById.get(probe.agent)?.open.get(probe.number);
  return open !== undefined && open.state !== "revoked";
}

function* attemptsAt(state: SwarmState, { on, name }: HoldRow): Generator<OpenAttempt> {
  for (const agent of state.agentById.values()) {
    if (on === "agent" && agent.id !== name) continue;
    for (const open of agent.open.values())
      if (open.state !== "revoked" && (on === "agent" || open.agentType === name)) yield open;
  }
}

function* holdsAreOnWhatExists(state: SwarmState): Generator<string> {
  yield* usersAreIndexed(state);
  for (const on of holdScopes) {
    for (const [name, hold] of state.holds[on]) {
      if (hold.on !== on || hold.name !== name)
        yield `the hold on ${hold.on} ${hold.name} is kept as ${name}`;
      if (hold.timer !== undefined && hold.timer.dueAt !== (hold.probe?.trustedAt ?? hold.until))
        yield `the hold on ${on} ${name} ends at another instant than its timer`;
      if ((hold.timer === undefined) !== (hold.probe?.trustedAt === undefined) && hold.probe !== undefined)
        yield `the probe of ${on} ${name} has a timer, or an instant, alone`;
      if (!isKnown(state, { on, name })) yield `unknown ${on} ${name} is on hold`;
      for (const [agent, kinds] of hold.users) {
        if (on !== "resource" || kinds.size === 0 || !state.agentById.has(agent))
          yield `the hold on ${on} ${name} keeps ${kinds.size} kinds from ${agent}`;
        if (state.holds.byUser.get(agent)?.has(hold) !== true)
          yield `the index of holds lacks ${agent}, which ${on} ${name} refused`;
      }
    }
    for (const [name, row] of state.refusalsInARow[on]) {
      if (state.holds[on].has(name)) yield `refusals of ${on} ${name} count during its hold`;
      if (!isKnown(state, { on, name })) yield `refusals of unknown ${on} ${name} count`;
      if (row.length === 0 || row.length >= limits.refusalsBeforeHold)
        yield `${on} ${name} was refused ${row.length} times in a row without a hold`;
    }
  }
}

/** As many pairs of an agent and a hold as the holds name. */
function* usersAreIndexed({ holds }: SwarmState): Generator<string> {
  let named = 0;
  for (const hold of holds.resource.values()) named += hold.users.size;
  let indexed = 0;
  for (const used of holds.byUser.values()) indexed += used.size;
  if (named !== indexed) yield `the index of holds has ${indexed} users, the holds ${named}`;
}

/** Any type may be on hold: its agents may come later. */
function isKnown({ agentById, resourceByName }: SwarmState, { on, name }: HoldTarget): boolean {
  if (on === "agent") return agentById.has(name as AgentId);
  return on === "type" || resourceByName.has(name as ResourceName);
}
