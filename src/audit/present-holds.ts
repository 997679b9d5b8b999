// The holds that keep work from online agents. Elapsed holds are left out. So are a hold on an offline agent, and a
// hold on a type whose known agents are all offline.

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
