// The name of a slot lease in maps.

import type { AgentId, SlotHandle } from "../ids.ts";

export function slotLeaseKey({
  agent,
  handle,
}: {
  readonly agent: AgentId;
  readonly handle: SlotHandle;
}): string {
  return `${agent} ${handle}`;
}
