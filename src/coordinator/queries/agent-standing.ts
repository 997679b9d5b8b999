// What a coordinator says of an agent, derived from its row. The agent says the same of itself: a test walks its chart
// against this function.

import type { AgentStanding } from "../../../machines/agent.ts";
import { type AgentRow, placesOf } from "../../state/state.ts";

export function standingOf(row: AgentRow): AgentStanding {
  const { online, draining, open } = row;
  if (!online) return { status: "offline", saturated: false, draining };
  const status = open.size > 0 ? "busy" : "ready";
  return { status, saturated: open.size >= placesOf(row), draining };
}
