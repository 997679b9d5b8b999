// The outcome of an operator's command: the event with the complete new settings, or nothing where nothing changes. The
// one thing to know: an operator may set less than is in use. Holders keep their slots and attempts, and nothing is
// assigned until it fits. Only waits for more slots than the resource has end, because they would last for ever. Valid
// values: next-settings.ts.

import { InvalidValueError } from "../errors.ts";
import type { Instant, Kind, ProjectId } from "../ids.ts";
import { limits } from "../limits.ts";
import type { Event } from "../state/event.ts";
import type { Policy } from "../state/policy.ts";
import { rateOf } from "../state/rate-rows.ts";
import { defaultKindSettings, defaultProjectSettings, type SwarmState } from "../state/state.ts";
import { hasRoomForProject } from "../state/task-rows.ts";
import { isDeclared } from "./admission.ts";
import type { CommandOf, SettingsCommand } from "./command.ts";
import { takeBack } from "./decide-attempt.ts";
import { decideGrant, endUndeclared } from "./decide-grant.ts";
import { decideEndHold, decidePlaceHold } from "./decide-hold.ts";
import { endWaitsAbove } from "./decide-slot.ts";
import { answered, type Decision } from "./decision.ts";
import { nextKind, nextPolicy, nextProject, nextRate, nextResource } from "./next-settings.ts";
import {
  heldTypeWarnings,
  kindWarnings,
  policyWarnings,
  projectWarnings,
  unknownProjectWarnings,
  unknownTypeWarnings,
} from "./setting-warnings.ts";

/** Decides any command about settings. An invalid value is answered, and changes nothing. */
export function decideSettings(state: SwarmState, command: SettingsCommand, at: Instant): Decision {
  try {
    return warned(decisionOn(state, command, at), warningsOf(state, command));
  } catch (error) {
    if (!(error instanceof InvalidValueError)) throw error;
    return answered({ kind: "invalid-setting", field: error.field ?? "", sentence: error.message });
  }
}

function warned(decision: Decision, warnings: readonly string[]): Decision {
  const { reply } = decision;
  if (reply.kind !== "set" || warnings.length === 0) return decision;
  return { ...decision, reply: { ...reply, warnings } };
}

function warningsOf(state: SwarmState, command: SettingsCommand): readonly string[] {
  switch (command.type) {
    case "SetPolicy":
      return policyWarnings(state, command.patch);
    case "SetProject":
      return projectWarnings(state, command.project, command.patch);
    case "SetKind":
      return kindWarnings(state, command.kind, command.patch);
    case "SetRate":
      return unknownTypeWarnings(state, command.agentType);
    case "PlaceHold":
      return command.on === "type" ? heldTypeWarnings(state, command.name) : [];
    case "Pause":
    case "Resume":
      return command.project === undefined ? [] : unknownProjectWarnings(state, command.project);
    default:
      return [];
  }
}

function decisionOn(state: SwarmState, command: SettingsCommand, at: Instant): Decision {
  switch (command.type) {
    case "SetPolicy":
      return setPolicy(state, command, at);
    case "SetProject":
      return setProject(state, command);
    case "RemoveProject":
      return removeProject(state, command);
    case "SetKind":
      return setKind(state, command);
    case "SetResource":
      return setResource(state, command);
    case "RemoveResource":
      return removeResource(state, command);
    case "SetRate":
      return setRate(state, command);
    case "RemoveRate": {
      const { agentType, window: wanted } = command;
      const windows = (state.ratesByType.get(agentType) ?? []).map(({ settings }) => settings.window);
      const removed = windows.filter((window) => wanted === undefined || window === wanted);
      return changed(
        null,
        removed.map((window): Event => ({ type: "RateRemoved", agentType, window })),
      );
    }
    case "SetGrant":
    case "RemoveGrant":
      return decideGrant(state, command, at);
    case "Pause":
    case "Resume":
      return setPause(state, command);
    case "PlaceHold":
      return placedHold(state, command, at);
    case "EndHold":
      return decideEndHold(state, command);
  }
}

/**
 * Where agents must be declared, the sessions of groups without a grant end. Sessions that are too many for one batch
 * end over several: the reply `again` asks for the same command in the next batch.
 */
function setPolicy(state: SwarmState, command: CommandOf<"SetPolicy">, at: Instant): Decision {
  const policy = nextPolicy(state.policy, command.patch);
  const configured = configurePolicy(state, policy, command);
  if (policy.agents !== "declared") return configured;
  const eventsMax = limits.closuresPerCommandMax - configured.events.length;
  const ends = endUndeclared(state, at, eventsMax);
  const events = [...configured.events, ...ends.events];
  const decision: Decision = ends.isComplete ? changed(policy, events) : { events, reply: { kind: "again" } };
  return { ...decision, grantsLast: true };
}

/** Naming α or a preset resets tuned values of α, even when the policy already has the named value. */
function configurePolicy(state: SwarmState, policy: Policy, { patch }: CommandOf<"SetPolicy">): Decision {
  const isSaid = patch.alpha !== undefined || patch.optimizeFor !== undefined;
  const hasMoved = [...state.resourceByName.values()].some(
    ({ tunedAlpha, settings }) => tunedAlpha !== undefined && settings.ownAlpha === undefined,
  );
  if (isSaid && hasMoved) return changed(policy, [{ type: "PolicyChanged", policy, alphaSaid: true }]);
  return set(policy, state.policy, { type: "PolicyChanged", policy });
}

/** Configuring an unknown project makes it exist, even with the defaults. */
function setProject(state: SwarmState, { project, patch, byOwner }: CommandOf<"SetProject">): Decision {
  const row = state.projectById.get(project);
  if (byOwner === true && !isDeclared(state, row)) return answered({ kind: "unknown-project", project });
  const settings = nextProject(row?.settings ?? defaultProjectSettings, patch);
  if (row === undefined) requireRoomForProject(state, project);
  return set(settings, row?.settings, { type: "ProjectConfigured", project, settings });
}

/** Refused while the project has tasks: they were accepted under its limits, and would run without. */
function removeProject(state: SwarmState, { project }: CommandOf<"RemoveProject">): Decision {
  const row = state.projectById.get(project);
  if (row?.settings === undefined) return changed(null, []);
  if (row.live > 0) return answered({ kind: "project-in-use", project, live: row.live });
  return changed(null, [{ type: "ProjectRemoved", project }]);
}

function setKind(state: SwarmState, { kind, patch }: CommandOf<"SetKind">): Decision {
  const now = state.kindByName.get(kind)?.settings;
  const cheaperOf = (of: Kind) => state.kindByName.get(of)?.settings?.cheaper;
  const settings = nextKind(now ?? defaultKindSettings, patch, { kind, cheaperOf });
  if (now === undefined) requireRoom(kindsSet(state), limits.kindsSetMax, "kind", "kinds");
  return set(settings, now ?? defaultKindSettings, { type: "KindConfigured", kind, settings });
}

/**
 * Naming α resets a tuned α, as in the policy. Waits that are too many for one batch end over several: the reply
 * `again` asks for the same command in the next batch. The number of slots changes first, or a doomed wait might be
 * granted meanwhile.
 */
function setResource(state: SwarmState, { resource, patch }: CommandOf<"SetResource">): Decision {
  const row = state.resourceByName.get(resource);
  const settings = nextResource(row?.settings, patch, state.policy);
  if (row === undefined) requireRoom(state.resourceByName.size, limits.resourcesMax, "resource", "resources");
  const isSaid = patch.alpha !== undefined || patch.optimizeFor !== undefined;
  const configured =
    isSaid && row?.tunedAlpha !== undefined
      ? changed(settings, [{ type: "ResourceConfigured", resource, settings, alphaSaid: true }])
      : set(settings, row?.settings, { type: "ResourceConfigured", resource, settings });
  if (row === undefined) return configured;
  const ends = endWaitsAbove(row, settings.slots, limits.closuresPerCommandMax);
  const events = [...configured.events, ...ends.events];
  return ends.isComplete ? changed(settings, events) : { events, reply: { kind: "again" } };
}

/** Refused while slots are held or waited for: holders and waiters would refer to an unknown resource. */
function removeResource(state: SwarmState, { resource }: CommandOf<"RemoveResource">): Decision {
  const row = state.resourceByName.get(resource);
  if (row === undefined) return changed(null, []);
  const { inUse, waiting } = row;
  if (inUse > 0 || waiting.size > 0)
    return answered({ kind: "resource-in-use", resource, inUse, waiting: waiting.size });
  return changed(null, [{ type: "ResourceRemoved", resource }]);
}

function setRate(state: SwarmState, { agentType, patch }: CommandOf<"SetRate">): Decision {
  const now = rateOf(state, agentType, patch.window)?.settings;
  const settings = nextRate(now, patch);
  if (!state.ratesByType.has(agentType))
    requireRoom(state.ratesByType.size, limits.ratesMax, "type", "types with rates");
  return set(settings, now, { type: "RateConfigured", agentType, settings });
}

function setPause(state: SwarmState, { type, project }: CommandOf<"Pause" | "Resume">): Decision {
  const paused = type === "Pause";
  if (project === undefined) {
    const event: Event = { type: paused ? "SwarmPaused" : "SwarmResumed" };
    return changed({ paused }, paused === state.isPaused ? [] : [event]);
  }
  const row = state.projectById.get(project);
  const isKnown = row !== undefined && (row.settings !== undefined || row.isPaused || row.live > 0);
  if (!isKnown && state.policy.projects === "declared") return answered({ kind: "unknown-project", project });
  if (row === undefined && paused) requireRoomForProject(state, project);
  const event: Event = { type: paused ? "ProjectPaused" : "ProjectResumed", project };
  return changed({ project, paused }, paused === (row?.isPaused ?? false) ? [] : [event]);
}

function set(settings: object, now: object | undefined, event: Event): Decision {
  return changed(settings, isSame(settings, now) ? [] : [event]);
}

function changed(settings: object | null, events: readonly Event[]): Decision {
  return { events, reply: { kind: "set", settings, changed: events.length > 0 } };
}

/** Settings are flat, except for a budget. */
function isSame(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null)
    return one === other;
  const names = Object.keys({ ...one, ...other });
  return names.every((name) => isSame(Reflect.get(one, name), Reflect.get(other, name)));
}

function requireRoomForProject(state: SwarmState, project: ProjectId): void {
  if (hasRoomForProject(state, project)) return;
  const sentence = `project: ${limits.projectsMax} projects are in use already, the maximum`;
  throw new InvalidValueError(sentence, { field: "project" });
}

function requireRoom(size: number, max: number, field: string, what: string): void {
  if (size < max) return;
  throw new InvalidValueError(`${field}: ${max} ${what} are set already, the maximum`, { field });
}

function kindsSet(state: SwarmState): number {
  let set = 0;
  for (const { settings } of state.kindByName.values()) if (settings !== undefined) set += 1;
  return set;
}

function placedHold(state: SwarmState, command: CommandOf<"PlaceHold">, at: Instant): Decision {
  const { events, reply } = decidePlaceHold(state, command, at);
  return { events: events.length === 0 ? events : [...events, ...takeBack(state, command, at)], reply };
}
