// What an operator is told beside a setting that was made: that it will not do what one may take it to do. A
// warning refuses nothing, and is not journaled.

import type { Kind, ProjectId } from "../ids.ts";
import { nearMisses } from "./near-miss.ts";
import type { PolicyPatch, ProjectPatch } from "./settings-patch.ts";
import type { SwarmState } from "./state.ts";

/** @param state before the change */
export function policyWarnings(state: SwarmState, patch: PolicyPatch): readonly string[] {
  const warnings = [...budgetWarnings(state, patch.budget?.mode ?? state.policy.budget?.mode, patch)];
  if (patch.rules === "lucio" && patch.topN === undefined && state.policy.topN === undefined)
    warnings.push(
      "lucio's own limit on attempts open at once is not among its rules: set topN (--top-n) as well",
    );
  return warnings;
}

/** @param state before the change */
export function projectWarnings(
  state: SwarmState,
  project: ProjectId,
  patch: ProjectPatch,
): readonly string[] {
  const mode = patch.budget?.mode ?? state.projectById.get(project)?.settings?.budget?.mode;
  return budgetWarnings(state, mode, patch);
}

/** Where projects are open, any name is one: whoever pauses one may have meant another. */
export function unknownProjectWarnings(state: SwarmState, project: ProjectId): readonly string[] {
  if (state.projectById.has(project)) return [];
  const near = nearMisses(project, state.projectById.keys());
  return [`nothing of project ${project} was submitted or set so far${meant(near)}`];
}

/** Kinds may be set before any agent serves them: only a name that is nearly another is worth a word.
 *  @param state before the change */
export function unknownKindWarnings(state: SwarmState, kind: Kind): readonly string[] {
  if (state.kindByName.has(kind) || state.onlineByKind.has(kind)) return [];
  const near = nearMisses(kind, new Set([...state.onlineByKind.keys(), ...state.kindByName.keys()]));
  return near.length === 0 ? [] : [`nothing of kind ${kind} was submitted or set so far${meant(near)}`];
}

/** The same of the types that agents declare. @param state before the change */
export function unknownTypeWarnings(state: SwarmState, agentType: string): readonly string[] {
  const known = new Set(state.rateByType.keys());
  for (const agent of state.agentById.values()) if (agent.agentType !== undefined) known.add(agent.agentType);
  const near = known.has(agentType) ? [] : nearMisses(agentType, known);
  return near.length === 0 ? [] : [`no agent of type ${agentType} joined so far${meant(near)}`];
}

function budgetWarnings(
  state: SwarmState,
  mode: string | undefined,
  { budget }: Pick<ProjectPatch, "budget">,
): readonly string[] {
  if (budget === undefined || budget === null || mode !== "downgrade") return [];
  for (const { settings } of state.kindByName.values()) if (settings?.cheaper !== undefined) return [];
  return [
    "a budget in mode downgrade holds nothing back, and no kind has a cheaper one: name one with `waggle kind set " +
      "<kind> --cheaper <other>`, or use mode reject",
  ];
}

function meant(near: readonly string[]): string {
  return near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`;
}
