// What grants permit: joins, slots and charges of a group's agents. Not here: a grant that changes (decide-grant.ts),
// the projects whose tasks an agent may get (scheduling/eligibility.ts).

import { type GroupId, NO_GROUP, type ProjectId, type ResourceName } from "../ids.ts";
import { type Excess, excessOf, type Grant, type Grants, type Profile } from "../state/grant.ts";
import type { AgentRow, SwarmState } from "../state/state.ts";
import type { Reply } from "./command.ts";

/** The refusal of a join beyond its group's grant. */
export function refusalOfJoin(
  state: SwarmState,
  { group = NO_GROUP, ...profile }: Profile & { readonly group?: GroupId },
): Reply | undefined {
  const excess = excessOfProfile(state, state.grants, group, profile);
  return excess === undefined ? undefined : beyond(group, excess);
}

/** A request for slots, or a slot lease. */
export interface SlotsWanted {
  readonly resources: Iterable<ResourceName>;
  readonly project: ProjectId | undefined;
  /** Expected; 0: none. */
  readonly tokens: number;
}

/** The refusal of slots beyond the grant of the agent's group. */
export function refusalOfSlots(state: SwarmState, group: GroupId, wanted: SlotsWanted): Reply | undefined {
  const excess = excessOfSlots(state.grants, group, wanted);
  return excess === undefined ? undefined : beyond(group, excess);
}

export function excessOfProfile(
  { policy }: SwarmState,
  grants: Grants,
  group: GroupId,
  profile: Profile,
): Excess | undefined {
  const grant = grants.of(group);
  if (grant !== undefined) return excessOf(grant, profile);
  return policy.agents === "declared" ? { field: "group" } : undefined;
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

function beyond(group: GroupId, { field, value }: Excess): Reply {
  return { kind: "beyond-grant", group, field, ...(value === undefined ? {} : { value }) };
}

/** The grant of an agent's group, which bounds the agent's charges. */
export function grantOf(state: SwarmState, row: Pick<AgentRow, "group"> | undefined): Grant | undefined {
  return row === undefined ? undefined : state.grants.of(row.group);
}
