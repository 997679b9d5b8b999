// What grants permit: joins, slots and charges of a group's agents. Not here: a grant that changes (decide-grant.ts),
// the projects whose tasks an agent may get (scheduling/eligibility.ts).

import {
  type AgentId,
  type GroupId,
  type Incarnation,
  NO_GROUP,
  type ProjectId,
  type ResourceName,
} from "../ids.ts";
import { type Excess, excessOf, type Grant, type Grants, type Profile } from "../state/grant.ts";
import type { Policy } from "../state/policy.ts";
import type { AgentRow, SwarmState } from "../state/state.ts";
import type { Reply } from "./command.ts";

/** The grants, and whether a group needs one. */
export interface AgentRules {
  readonly grants: Grants;
  readonly agents: Policy["agents"];
}

export function agentRulesOf({ grants, policy }: SwarmState): AgentRules {
  return { grants, agents: policy.agents };
}

export type BeyondGrant = Extract<Reply, { kind: "beyond-grant" }>;

/** The refusal of a join beyond its group's grant. */
export function refusalOfJoin(
  state: SwarmState,
  { group = NO_GROUP, ...profile }: Profile & { readonly group?: GroupId },
): BeyondGrant | undefined {
  const excess = excessOfProfile(agentRulesOf(state), group, profile);
  return excess === undefined ? undefined : beyond(group, excess);
}

/** The refusal that the agent of an ended session would get, if it joined again with the same declarations. */
export function refusalOfReturn(
  state: SwarmState,
  { agent, incarnation }: { readonly agent: AgentId; readonly incarnation: Incarnation },
): BeyondGrant | undefined {
  const row = state.agentById.get(agent);
  if (row === undefined || row.online || row.incarnation !== incarnation) return undefined;
  return refusalOfJoin(state, row);
}

/** A request for slots, or a slot lease. */
export interface SlotsWanted {
  readonly resources: Iterable<ResourceName>;
  readonly project: ProjectId | undefined;
  /** Expected; 0: none. */
  readonly tokens: number;
}

/** The refusal of slots beyond the grant of the agent's group. */
export function refusalOfSlots(
  state: SwarmState,
  group: GroupId,
  wanted: SlotsWanted,
): BeyondGrant | undefined {
  const excess = excessOfSlots(state.grants, group, wanted);
  return excess === undefined ? undefined : beyond(group, excess);
}

export function excessOfProfile(
  { grants, agents }: AgentRules,
  group: GroupId,
  profile: Profile,
): Excess | undefined {
  const grant = grants.of(group);
  if (grant !== undefined) return excessOf(grant, profile);
  return agents === "declared" ? { field: "group" } : undefined;
}

export function excessOfSlots(
  grants: Grants,
  group: GroupId,
  { resources, project, tokens }: SlotsWanted,
): Excess | undefined {
  const { resources: granted, tokens: tokensMax } = grants.of(group) ?? {};
  if (granted !== undefined)
    for (const resource of resources)
      if (!granted.includes(resource)) return { field: "resources", value: resource };
  if (project !== undefined && !grants.includes(group, project)) return { field: "projects", value: project };
  if (tokensMax !== undefined && tokens > tokensMax) return { field: "tokens", value: String(tokens) };
  return undefined;
}

function beyond(group: GroupId, { field, value }: Excess): BeyondGrant {
  return { kind: "beyond-grant", group, field, ...(value === undefined ? {} : { value }) };
}

/** The grant of an agent's group, which bounds the agent's charges. */
export function grantOf(state: SwarmState, row: Pick<AgentRow, "group"> | undefined): Grant | undefined {
  return row === undefined ? undefined : state.grants.of(row.group);
}
