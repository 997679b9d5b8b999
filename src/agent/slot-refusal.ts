// What a holder says at the release of slots whose work the provider refused. The leader puts the resources on hold in
// the same batch, so that no waiting request gets the slot before the hold. No operator's rights are needed.

import { headOf } from "../cut-text.ts";
import { InvalidMessageError } from "../errors.ts";
import type { Instant, ResourceName } from "../ids.ts";
import { limits } from "../limits.ts";
import type { HoldClaim } from "../protocol/schemas.ts";
import type { SlotRefusalClaim } from "../protocol/slot-schemas.ts";
import { holdMs } from "./hold-options.ts";
import { flag, instant, type OptionRules, objectOf, readerOf, text } from "./options.ts";

export interface ReleaseOptions {
  /** The provider refused the work, such as with HTTP status 429. The resource is put on hold before its slot is free,
   *  so no waiting request runs into the same refusal. */
  readonly refused?: RefusedSlot;
  /** The work failed or was cut off before the provider answered, so the release says nothing about refusals. Default
   *  false: a release without `refused` is a success of the resource. */
  readonly unanswered?: boolean;
}

export interface RefusedSlot {
  /** Time until the provider accepts work again, ms, 0 to 7 days. Without a time the third refusal in a row puts the
   *  resource on hold, for 5 s and then longer. A slot released without a refusal ends the row. */
  readonly retryAfterMs?: number;
  /** Instead of `retryAfterMs`: the instant, at most 7 days from now. */
  readonly until?: Date | number;
  /** Name of the resource that refused, for a slot of several. Default: all resources of the slot. Required to
   *  report a refusal by a bare handle after the slot has ended. */
  readonly resource?: string;
  /** The provider's words, shown by `status` and `explain`. */
  readonly reason?: string;
}

const refusedRules: OptionRules<RefusedSlot> = {
  each: { retryAfterMs: holdMs, until: instant, resource: text.min(1), reason: text },
  otherwise: { retryAfter: "retryAfterMs", forMs: "retryAfterMs", reset: "until", message: "reason" },
  example: "{ retryAfterMs: 30_000 }",
};

const readOptions = readerOf<ReleaseOptions>({
  each: { refused: objectOf(refusedRules), unanswered: flag },
  otherwise: { retryAfterMs: "refused", refusal: "refused", hold: "refused" },
  example: "{ refused: { retryAfterMs: 30_000 } }",
});

/** What a release says about the provider. */
export interface ReleaseClaim {
  readonly refused?: SlotRefusalClaim;
  readonly unanswered?: true;
}

/** @param resources the slot's, if known @throws InvalidMessageError naming the option */
export function readRelease(given: unknown, resources: readonly string[] | undefined): ReleaseClaim {
  const { refused, unanswered } = readOptions("release", given);
  if (refused === undefined) return unanswered === true ? { unanswered } : {};
  if (unanswered === true)
    throw new InvalidMessageError("release: refused and unanswered exclude each other", {
      field: "unanswered",
    });
  return { refused: refusalIn(refused, resources) };
}

/** @throws InvalidMessageError naming the option */
function refusalIn(refused: RefusedSlot, resources: readonly string[] | undefined): SlotRefusalClaim {
  const { retryAfterMs, until, resource, reason } = refused;
  if (retryAfterMs !== undefined && until !== undefined)
    throw new InvalidMessageError("release: retryAfterMs and until exclude each other", { field: "until" });
  if (resource !== undefined && resources?.includes(resource) === false) {
    const sentence = `release: resource: the slot is of ${resources.join(" and ")}, not of ${resource}`;
    throw new InvalidMessageError(sentence, { field: "resource" });
  }
  // Named also where it is clear: the leader forgets the resources of a slot that ends.
  const named = resource ?? onlyOneOf(resources);
  return {
    ...(named === undefined ? {} : { resource: named as ResourceName }),
    ...(retryAfterMs === undefined ? {} : { forMs: Math.ceil(retryAfterMs) }),
    ...(until === undefined ? {} : { until: Number(until) as Instant }),
    ...(reason === undefined ? {} : { reason: headOf(reason, limits.errorCharactersMax) }),
  };
}

function onlyOneOf(resources: readonly string[] | undefined): string | undefined {
  const [first, ...others] = resources ?? [];
  return others.every((other) => other === first) ? first : undefined;
}

/** How slots are released after an error in the work under them. Without a refusal of one of the resources the error
 *  says nothing about them.
 *  @param hold that the error asks for */
export function releaseAfterError(
  { scope, forMs, until }: HoldClaim,
  reason: string,
  resources: readonly string[],
): ReleaseOptions {
  const resource = typeof scope === "object" ? scope.resource : undefined;
  if (resource === undefined || !resources.includes(resource)) return { unanswered: true };
  const time = forMs === undefined ? (until === undefined ? {} : { until }) : { retryAfterMs: forMs };
  return { refused: { resource, reason, ...time } };
}
