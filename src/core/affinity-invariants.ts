// A numbered check of affinities (docs/invariants.md).

import type { Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import { affinityKey } from "../state/affinity-rows.ts";
import type { SwarmState } from "../state/state.ts";
import type { Invariant } from "./invariant.ts";

export const affinityInvariants: readonly Invariant[] = [
  { number: 57, name: "affinities", find: affinities },
];

/** At most so many, each under its key, in order of use, none from the future. */
function* affinities({ affinityByKey, at }: SwarmState): Generator<string> {
  if (affinityByKey.size > limits.affinitiesMax) yield `${affinityByKey.size} affinities are remembered`;
  let before = 0 as Instant;
  for (const [key, { project, affinity, usedAt }] of affinityByKey) {
    if (affinityKey(project, affinity) !== key) yield `affinity ${affinity} of ${project} is kept as ${key}`;
    if (usedAt < before || usedAt > at) yield `affinity ${key} was used at ${usedAt}, out of order`;
    before = usedAt;
  }
}
