// The options with which a handler's error asks for a hold, and their form on the wire. A wrong option never costs the
// attempt: the report then asks for no time, keeps a right scope, and the agent's log names the option (runner.ts).

import * as z from "zod";
import { InvalidValueError, messageOf } from "../errors.ts";
import { limits } from "../limits.ts";
import type { HoldClaim } from "../protocol/schemas.ts";
import { instant, judged, readerOf, text } from "./options.ts";

/** What is put on hold: this agent, all agents of its type, or grants of a resource. */
export type HoldScopeOption = "agent" | "type" | { readonly resource: string };

export interface InfrastructureErrorOptions {
  /** Time until the work may be tried again, ms, 0 to 7 days. */
  readonly retryAfterMs?: number;
  /** Instead of `retryAfterMs`: the instant, at most 7 days from now. */
  readonly until?: Date | number;
  /** Default `agent`; without a time, the agent, its type or the resource after three refusals in a row. */
  readonly scope?: HoldScopeOption;
  /** The error behind this one. */
  readonly cause?: unknown;
}

export const holdMs = z.number().min(0).max(limits.holdMsMax);

export const holdScope: z.ZodType<HoldScopeOption> = judged((input) => {
  if (input === "agent" || input === "type") return undefined;
  const resource = typeof input === "object" && input !== null ? Reflect.get(input, "resource") : undefined;
  if (text.min(1).safeParse(resource).success) return undefined;
  return 'must be "agent", "type" or an object such as { resource: "gpt-4o" }';
});

const readOptions = readerOf<InfrastructureErrorOptions>(
  {
    each: { retryAfterMs: holdMs, until: instant, scope: holdScope, cause: z.unknown() },
    otherwise: { retryAfter: "retryAfterMs", forMs: "retryAfterMs", reset: "until" },
    example: "{ retryAfterMs: 30_000 }",
  },
  InvalidValueError,
);

/** The hold that an error asks for; with a wrong option: none with a time, and the error about the option. */
export interface AskedHold {
  readonly hold: HoldClaim;
  readonly wrong: InvalidValueError | undefined;
}

/** Never throws. */
export function askedHold(given: unknown): AskedHold {
  try {
    return { hold: claimOf(readOptions("InfrastructureError", given)), wrong: undefined };
  } catch (error) {
    const wrong = error instanceof InvalidValueError ? error : new InvalidValueError(messageOf(error));
    return { hold: scopeIn(given), wrong };
  }
}

function scopeIn(given: unknown): Pick<HoldClaim, "scope"> {
  const scope = typeof given === "object" && given !== null ? Reflect.get(given, "scope") : undefined;
  return holdScope.safeParse(scope).success ? { scope } : {};
}

/** @throws InvalidValueError */
function claimOf({ retryAfterMs, until, scope }: InfrastructureErrorOptions): HoldClaim {
  if (retryAfterMs !== undefined && until !== undefined)
    throw new InvalidValueError("InfrastructureError: retryAfterMs and until exclude each other", {
      field: "until",
    });
  return {
    ...(scope === undefined ? {} : { scope: scope as NonNullable<HoldClaim["scope"]> }),
    ...(retryAfterMs === undefined ? {} : { forMs: Math.ceil(retryAfterMs) }),
    ...(until === undefined ? {} : { until: Number(until) as NonNullable<HoldClaim["until"]> }),
  };
}
