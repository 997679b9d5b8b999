// The badge of a hold, at an agent or a resource.

import type { HoldBadge } from "../wire.ts";

/** No badge once the hold has elapsed: then only work is missing. */
export function holdBadge(
  hold:
    | {
        readonly on: HoldBadge["on"];
        readonly until: number;
        readonly phase: "held" | "due" | "probing";
      }
    | undefined,
): { readonly hold?: HoldBadge } {
  if (hold === undefined || hold.phase === "due") return {};
  return { hold: { on: hold.on, untilAt: hold.until, isProbed: hold.phase === "probing" } };
}
