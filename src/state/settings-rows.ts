// How operators' settings change the state: policy, projects, kinds, resources, pauses. Rates: rate-rows.ts.

import { assert } from "../assert.ts";
import type { Instant } from "../ids.ts";
import { adoptBudget, adoptGuarantee } from "./budget-rows.ts";
import type { EventOf } from "./event.ts";
import { forgetTarget } from "./hold-rows.ts";
import { kindRowOf, noteKind } from "./kind-rows.ts";
import { defaultPolicy } from "./policy.ts";
import type { KindSettings } from "./settings.ts";
import { forgetTunedAlpha, measure, newResourceRow, resourceRowOf } from "./slot-rows.ts";
import { defaultKindSettings, type SwarmState } from "./state.ts";
import { noteKept, projectRowOf } from "./task-rows.ts";

export function changePolicy(
  state: SwarmState,
  { policy, alphaSaid }: EventOf<"PolicyChanged">,
  at: Instant,
): void {
  const before = state.policy;
  state.policy = { ...defaultPolicy, ...policy }; // an older leader did not know all settings
  state.horizonAt = (state.horizonAt + before.rememberMs - state.policy.rememberMs) as Instant;
  if (alphaSaid || policy.alpha !== before.alpha || !policy.autoTune) forgetTunedAlpha(state);
  adoptBudget(state.ledger, { before: before.budget, after: policy.budget }, at);
  if (policy.guaranteeMs !== before.guaranteeMs) adoptGuarantee(state, policy.guaranteeMs, at);
}

export function configureProject(state: SwarmState, event: EventOf<"ProjectConfigured">, at: Instant): void {
  const row = projectRowOf(state, event.project);
  adoptBudget(row.ledger, { before: row.settings?.budget, after: event.settings.budget }, at);
  row.settings = event.settings;
  if (event.settings.budget === undefined) state.budgetedProjects.delete(row.project);
  else state.budgetedProjects.add(row.project);
  noteKept(state, row);
}

/** The defaults hold again. A pause is separate, and stays. */
export function removeProject(state: SwarmState, { project }: EventOf<"ProjectRemoved">, at: Instant): void {
  const row = projectRowOf(state, project);
  assert(row.live === 0, `project ${project} is removed while it has no tasks`);
  adoptBudget(row.ledger, { before: row.settings?.budget, after: undefined }, at);
  row.settings = undefined;
  state.budgetedProjects.delete(project);
  noteKept(state, row);
}

export function pauseProject(state: SwarmState, event: EventOf<"ProjectPaused" | "ProjectResumed">): void {
  const row = projectRowOf(state, event.project);
  row.isPaused = event.type === "ProjectPaused";
  noteKept(state, row);
}

/** Settings equal to the defaults count as absent, so that the row can be dropped. */
export function configureKind(state: SwarmState, event: EventOf<"KindConfigured">): void {
  const row = kindRowOf(state, event.kind);
  row.settings = isDefault(event.settings) ? undefined : event.settings;
  noteKind(state, row);
}

function isDefault({ importance, cheaper, cheaperType }: KindSettings): boolean {
  return importance === defaultKindSettings.importance && cheaper === undefined && cheaperType === undefined;
}

/** With fewer slots than before, held slots stay held: nothing is granted until it fits. */
export function configureResource(
  state: SwarmState,
  { resource, settings, alphaSaid }: EventOf<"ResourceConfigured">,
  at: Instant,
): void {
  const known = state.resourceByName.get(resource);
  if (known === undefined) {
    state.resourceByName.set(resource, newResourceRow(resource, settings, at));
    return;
  }
  measure(known, at);
  const [own, before] = [settings.ownAlpha, known.settings.ownAlpha];
  if (alphaSaid || own?.value !== before?.value || own?.autoTune !== before?.autoTune)
    known.tunedAlpha = undefined;
  known.settings = settings;
}

/** The resource's use is forgotten too: a resource of the same name starts from zero. */
export function removeResource(state: SwarmState, { resource }: EventOf<"ResourceRemoved">): void {
  const row = resourceRowOf(state, resource);
  assert(
    row.holdings.size === 0 && row.waiting.size === 0,
    `${resource} is removed without holders and waiters`,
  );
  forgetTarget(state, { on: "resource", name: resource });
  state.resourceByName.delete(resource);
}
