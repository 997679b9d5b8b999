// How what operators set changes the state: policy, projects, kinds, resources, rates, pauses.

import type { Kind } from "../ids.ts";
import type { EventOf } from "./event.ts";
import type { KindRow, ProjectRow, SwarmState } from "./state.ts";
import { isKept, projectRowOf } from "./task-rows.ts";

export function configureProject(state: SwarmState, event: EventOf<"ProjectConfigured">): void {
  const row = projectRowOf(state, event.project);
  row.settings = event.settings;
  noteKept(state, row);
}

export function pauseProject(state: SwarmState, event: EventOf<"ProjectPaused" | "ProjectResumed">): void {
  const row = projectRowOf(state, event.project);
  row.isPaused = event.type === "ProjectPaused";
  noteKept(state, row);
}

export function configureKind(state: SwarmState, event: EventOf<"KindConfigured">): void {
  kindRowOf(state, event.kind).settings = event.settings;
}

export function configureResource(state: SwarmState, event: EventOf<"ResourceConfigured">): void {
  const known = state.resourceByName.get(event.resource);
  if (known !== undefined) known.settings = event.settings;
  else state.resourceByName.set(event.resource, { resource: event.resource, settings: event.settings });
}

export function configureRate(state: SwarmState, event: EventOf<"RateConfigured">): void {
  const known = state.rateByType.get(event.agentType);
  if (known !== undefined) known.settings = event.settings;
  else state.rateByType.set(event.agentType, { agentType: event.agentType, settings: event.settings });
}

/** The row of a kind, made when it is not there. */
export function kindRowOf(state: SwarmState, kind: Kind): KindRow {
  const known = state.kindByName.get(kind);
  if (known !== undefined) return known;
  const row: KindRow = { kind, settings: undefined };
  state.kindByName.set(kind, row);
  return row;
}

function noteKept(state: SwarmState, row: ProjectRow): void {
  if (row.live > 0 || isKept(row)) state.idleProjects.delete(row.project);
  else state.idleProjects.add(row.project);
}
