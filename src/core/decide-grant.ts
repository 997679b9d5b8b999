// How an operator's grant, and the policy on agents, reach agents that have joined: a session that is no longer
// permitted ends, and its attempts and slots are taken back. The agent may join again with what is permitted. Not here:
// refusals (grant-rules.ts).

import { InvalidValueError } from "../errors.ts";
import type { Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import type { Event } from "../state/event.ts";
import { slotLeasesOf } from "../state/slot-rows.ts";
import type { AgentRow, SwarmState } from "../state/state.ts";
import type { CommandOf } from "./command.ts";
import { endSession } from "./decide-agent.ts";
import type { Decision } from "./decision.ts";
import { type AgentRules, agentRulesOf, excessOfProfile, excessOfSlots } from "./grant-rules.ts";
import { nextGrant } from "./next-settings.ts";

/**
 * Replaces or removes a group's grant. Sessions that are too many for one batch end over several: the reply `again`
 * asks for the same command in the next batch. The grant changes first, so that nothing more is given beyond it.
 */
export function decideGrant(
  state: SwarmState,
  command: CommandOf<"SetGrant" | "RemoveGrant">,
  at: Instant,
): Decision {
  const { group } = command;
  const now = state.grants.of(group);
  const grant = command.type === "SetGrant" ? nextGrant(command.grant) : undefined;
  if (grant !== undefined && now === undefined && state.grants.byGroup.size >= limits.grantsMax)
    throw new InvalidValueError(`group: ${limits.grantsMax} groups have a grant already, the maximum`, {
      field: "group",
    });
  const isChanged = JSON.stringify(grant) !== JSON.stringify(now);
  const events: Event[] = [];
  if (isChanged)
    events.push(
      grant === undefined ? { type: "GrantRemoved", group } : { type: "GrantConfigured", group, grant },
    );
  const rules = { ...agentRulesOf(state), ...(isChanged ? { grants: state.grants.with(group, grant) } : {}) };
  const ends = endForbidden(state, (row) => row.group === group && isBeyond(state, rules, row), {
    at,
    eventsMax: limits.closuresPerCommandMax - events.length,
  });
  events.push(...ends.events);
  if (!ends.isComplete) return { events, reply: { kind: "again" }, grantsLast: true };
  const reply = { kind: "set", settings: grant ?? null, changed: events.length > 0 } as const;
  return { events, reply, grantsLast: true };
}

/** Ends the sessions of groups without a grant, as `agents: declared` requires. */
export function endUndeclared(
  state: SwarmState,
  at: Instant,
  eventsMax: number,
): { events: Event[]; isComplete: boolean } {
  return endForbidden(state, ({ group }) => state.grants.of(group) === undefined, { at, eventsMax });
}

/** Ends sessions, as many as fit. @param isForbidden asked about online agents */
function endForbidden(
  state: SwarmState,
  isForbidden: (row: AgentRow) => boolean,
  { at, eventsMax }: { readonly at: Instant; readonly eventsMax: number },
): { events: Event[]; isComplete: boolean } {
  const events: Event[] = [];
  for (const row of state.agentById.values()) {
    if (!row.online || !isForbidden(row)) continue;
    const closures = endSession(state, row, "forbidden", at, eventsMax - events.length);
    events.push(...closures.events);
    if (!closures.isComplete) return { events, isComplete: false };
  }
  return { events, isComplete: true };
}

/** Whether an online agent declared, runs or holds more than is permitted. */
function isBeyond(state: SwarmState, rules: AgentRules, row: AgentRow): boolean {
  const { grants } = rules;
  if (excessOfProfile(rules, row.group, row) !== undefined) return true;
  for (const { project, state: of } of row.open.values())
    if (of !== "revoked" && !grants.includes(row.group, project)) return true;
  return slotLeasesOf(state, row.id).some(
    ({ needs, project, tokens }) =>
      excessOfSlots(grants, row.group, { resources: needs.keys(), project, tokens }) !== undefined,
  );
}
