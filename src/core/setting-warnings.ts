// Warnings beside an accepted setting: effects that an operator may wrongly expect. A warning refuses nothing, and is
// not journaled.

import type { Kind, ProjectId } from "../ids.ts";
import { nearMisses } from "../state/near-miss.ts";
import type { SwarmState } from "../state/state.ts";
import type { KindPatch, PolicyPatch, ProjectPatch } from "./settings-patch.ts";

/** @param state before the change */
export function policyWarnings(state: SwarmState, patch: PolicyPatch): readonly string[] {
  const warnings = [
    ...budgetWarnings(state, patch.budget?.mode ?? state.policy.budget?.mode, patch),
    ...ownAlphaWarnings(state, patch),
    ...undeclaredWarnings(state, patch),
    ...unansweredWarnings(state, patch),
  ];
  if (patch.rules === "lucio" && patch.topN === undefined && state.policy.topN === undefined)
    warnings.push(
      "the rules lucio do not include Lucio's own limit on open attempts: set topN (--top-n) as well",
    );
  return warnings;
}

/** Agents that have joined end, too. */
function undeclaredWarnings({ agentById, grants }: SwarmState, { agents }: PolicyPatch): readonly string[] {
  if (agents !== "declared") return [];
  const undeclared = [...agentById.values()].filter(
    ({ online, group }) => online && grants.of(group) === undefined,
  );
  const [first] = undeclared;
  if (first === undefined) return [];
  const ended = undeclared.length === 1 ? "1 agent of a group" : `${undeclared.length} agents of groups`;
  return [
    `the sessions of ${ended} without a grant end: \`waggle grant set ${first.group}\` declares the group of ${first.id}`,
  ];
}

/** A policy's α does not reach resources with an α of their own. */
function ownAlphaWarnings(
  { resourceByName }: SwarmState,
  { alpha, optimizeFor, autoTune }: PolicyPatch,
): readonly string[] {
  if (alpha === undefined && optimizeFor === undefined && autoTune === undefined) return [];
  const own = [...resourceByName.values()].filter(({ settings }) => settings.ownAlpha !== undefined);
  const [first] = own;
  if (first === undefined) return [];
  const named = own.length === 1 ? first.resource : `${first.resource} and ${own.length - 1} more`;
  return [
    `resources with an α of their own keep it (${named}): resource set --alpha policy gives them the policy's`,
  ];
}

/** Where security is strict, a question about a project is answered only at inboxes of its users. */
function unansweredWarnings(
  { projectById }: SwarmState,
  { security }: Pick<PolicyPatch, "security">,
): readonly string[] {
  if (security !== "strict") return [];
  const unnamed = [...projectById.values()].filter(({ settings }) => settings?.inboxUsers === undefined);
  const [first] = unnamed;
  if (first === undefined && projectById.size > 0) return [];
  const { project = "PROJECT" } = first ?? {};
  const of = first === undefined ? "any project" : `project ${project}`;
  const more = unnamed.length > 1 ? ` and ${unnamed.length - 1} more` : "";
  return [
    `security is strict, and no inbox user is named for ${of}${more}: nobody gets an answer about it before ` +
      `\`waggle project set ${project} --inbox-user NAME\``,
  ];
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

/** Where projects are open, any name is valid: a pause may have meant a similar name. */
export function unknownProjectWarnings(state: SwarmState, project: ProjectId): readonly string[] {
  if (state.projectById.has(project)) return [];
  const near = nearMisses(project, state.projectById.keys());
  return [`project ${project} has no tasks and no settings so far${meant(near)}`];
}

/**
 * Kinds may be set before any agent serves them: only a name close to a known name earns a warning.
 * @param state before the change
 */
export function kindWarnings(state: SwarmState, kind: Kind, patch: KindPatch): readonly string[] {
  return [...unknownKindWarnings(state, kind), ...cheaperTypeWarnings(state, kind, patch)];
}

function unknownKindWarnings(state: SwarmState, kind: Kind): readonly string[] {
  if (state.kindByName.has(kind) || state.onlineByKind.has(kind)) return [];
  const near = nearMisses(kind, new Set([...state.onlineByKind.keys(), ...state.kindByName.keys()]));
  return near.length === 0 ? [] : [`kind ${kind} has no tasks, agents or settings so far${meant(near)}`];
}

/** Under a used-up budget the kind's tasks wait until an agent of the type serves the kind that they would run as. */
function cheaperTypeWarnings(state: SwarmState, kind: Kind, patch: KindPatch): readonly string[] {
  const { cheaperType } = patch;
  if (cheaperType === undefined || cheaperType === null) return [];
  const cheaper = patch.cheaper === undefined ? state.kindByName.get(kind)?.settings?.cheaper : patch.cheaper;
  const runsAs = cheaper ?? kind;
  for (const agent of state.onlineByKind.get(runsAs)?.values() ?? [])
    if (agent.agentType === cheaperType) return [];
  return [
    `no agent of type ${cheaperType} that serves ${runsAs} is online: under a used-up budget in mode downgrade, ` +
      `tasks of ${kind} wait for such an agent${meant(nearTypes(state, cheaperType))}`,
  ];
}

/** A warning for a type close to a type that agents declare. @param state before the change */
export function unknownTypeWarnings(state: SwarmState, agentType: string): readonly string[] {
  const near = nearTypes(state, agentType);
  return near.length === 0 ? [] : [`no agent of type ${agentType} joined so far${meant(near)}`];
}

/** A hold on a type without agents keeps no work from anybody, so any unknown type earns a warning. */
export function heldTypeWarnings(state: SwarmState, agentType: string): readonly string[] {
  if (knownTypes(state).has(agentType)) return [];
  return [`no agent of type ${agentType} joined so far${meant(nearTypes(state, agentType))}`];
}

/** No names when the type is known. */
function nearTypes(state: SwarmState, agentType: string): readonly string[] {
  const known = knownTypes(state);
  return known.has(agentType) ? [] : nearMisses(agentType, known);
}

function knownTypes(state: SwarmState): ReadonlySet<string> {
  const known = new Set(state.ratesByType.keys());
  for (const agent of state.agentById.values()) if (agent.agentType !== undefined) known.add(agent.agentType);
  return known;
}

function budgetWarnings(
  state: SwarmState,
  mode: string | undefined,
  { budget }: Pick<ProjectPatch, "budget">,
): readonly string[] {
  if (budget === undefined || budget === null || mode !== "downgrade") return [];
  for (const { settings } of state.kindByName.values())
    if (settings?.cheaper !== undefined || settings?.cheaperType !== undefined) return [];
  return [
    "a budget in mode downgrade limits nothing without a cheaper kind or type: set one with " +
      "`waggle kind set <kind> --cheaper <other>` or `--cheaper-type <type>`, or use mode wait or reject",
  ];
}

function meant(near: readonly string[]): string {
  return near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`;
}
