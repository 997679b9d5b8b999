// The grants of a seed: an operator bounds groups of agents, narrows and removes the bounds, and at times requires that
// agents are declared. Drawn apart from all other operations, so that a seed without grants keeps its course.

import type { Grant } from "../../client/operations.ts";
import { NO_GROUP } from "../../ids.ts";
import type { SeededRandom } from "../random.ts";

/** Share of seeds with groups of agents and grants. */
const GRANTS_SHARE = 0.3;
/** Mean time between two changes, ms. */
const GAP_MS = 4_000;
/** Share of agents with a group, in a seed with groups. */
const GROUPED_SHARE = 0.7;
const groups = ["g1", "g2"];

/** The names that a grant may permit. */
export interface GrantNames {
  readonly kinds: readonly string[];
  readonly projects: readonly string[];
  readonly resources: readonly string[];
  readonly roles: readonly string[];
  readonly types: readonly string[];
  readonly labels: readonly string[];
}

export type GrantOperation =
  | { readonly does: "set-grant"; readonly group: string; readonly grant: Grant }
  | { readonly does: "remove-grant"; readonly group: string };

type DrawnOperation = { readonly atMs: number; readonly client: string } & (
  | GrantOperation
  | { readonly does: "set-policy"; readonly patch: { readonly agents: "open" | "declared" } }
);

/** Groups that the seed's grants bound; none in a seed without grants. @param random for the seed's grants alone */
export function drawGroups(random: SeededRandom): readonly string[] {
  return random.split("drawn").chance(GRANTS_SHARE) ? [...groups, NO_GROUP] : [];
}

/** The group of an agent, in a seed with groups. */
export function drawGroup(random: SeededRandom): string | undefined {
  return random.chance(GROUPED_SHARE) ? random.pick(groups) : undefined;
}

export function drawGrants(
  random: SeededRandom,
  { of, clients, names, untilMs }: DrawnFrom,
): readonly DrawnOperation[] {
  const operations: DrawnOperation[] = [];
  const grantByGroup = new Map<string, Grant>();
  for (let atMs = random.exponential(GAP_MS); atMs < untilMs; atMs += random.exponential(GAP_MS)) {
    const when = { atMs: Math.round(atMs), client: random.pick(clients) };
    const group = random.pick(of);
    const known = grantByGroup.get(group);
    const roll = random.fraction();
    if (roll < 0.2) {
      const patch = { agents: random.chance(0.5) ? "declared" : "open" } as const;
      operations.push({ ...when, does: "set-policy", patch });
    } else if (roll < 0.4) {
      grantByGroup.delete(group);
      operations.push({ ...when, does: "remove-grant", group });
    } else {
      const grant = known === undefined ? aGrant(random, names) : aNarrowerGrant(random, known, names);
      grantByGroup.set(group, grant);
      operations.push({ ...when, does: "set-grant", group, grant });
    }
  }
  return operations;
}

interface DrawnFrom {
  /** Groups with grants. */
  readonly of: readonly string[];
  readonly clients: readonly string[];
  readonly names: GrantNames;
  readonly untilMs: number;
}

/** Most bounds are absent from most grants, so that agents can still work. */
function aGrant(random: SeededRandom, names: GrantNames): Grant {
  const bounded = (share: number, of: keyof GrantNames) =>
    random.chance(share) ? { [of]: some(random, names[of], 0.8) } : {};
  return {
    ...bounded(0.5, "projects"),
    ...bounded(0.25, "kinds"),
    ...bounded(0.25, "resources"),
    ...bounded(0.1, "roles"),
    ...bounded(0.1, "types"),
    ...bounded(0.1, "labels"),
    ...(random.chance(0.3) ? { maxConcurrent: 1 + random.below(6) } : {}),
    ...(random.chance(0.3) ? { tokens: 500 * (1 + random.below(20)) } : {}),
  };
}

/** The grant with one bound less wide. */
function aNarrowerGrant(random: SeededRandom, grant: Grant, names: GrantNames): Grant {
  const narrower = (of: "projects" | "kinds" | "resources") => ({
    ...grant,
    [of]: some(random, grant[of] ?? names[of], 0.6),
  });
  const roll = random.fraction();
  if (roll < 0.4) return narrower("projects");
  if (roll < 0.6) return narrower("kinds");
  if (roll < 0.8) return narrower("resources");
  return { ...grant, maxConcurrent: Math.max(0, (grant.maxConcurrent ?? 5) - 1 - random.below(2)) };
}

function some(random: SeededRandom, names: readonly string[], share: number): string[] {
  return names.filter(() => random.chance(share));
}
