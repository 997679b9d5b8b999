// The holds that keep work from agents who are there. Left out are holds that have elapsed, and holds on agents that
// are offline: an agent that ended, or all known agents of a type.

import type { StatusResponse } from "../protocol/schemas.ts";

type Hold = NonNullable<StatusResponse["holds"]>[number];

export function presentHolds({
  holds = [],
  agents,
}: Pick<StatusResponse, "holds" | "agents">): readonly Hold[] {
  return holds.filter(({ on, name, phase }) => {
    if (phase === "due") return false;
    const held = agents.filter(({ id, type }) => on !== "resource" && name === (on === "agent" ? id : type));
    return held.length === 0 || held.some(({ status }) => status !== "offline");
  });
}
