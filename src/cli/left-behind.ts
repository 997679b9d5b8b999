// The processes left without a broker after `waggle down`, from the last status.

import { counted } from "../count-text.ts";
import type { StatusResponse } from "../protocol/schemas.ts";
import { printable } from "./output.ts";

export interface LeftBehind {
  readonly leader: string;
  readonly standbys: readonly string[];
  readonly agents: readonly string[];
  readonly liveTasks: number;
}

const liveStates = ["queued", "delayed", "assigned", "running"];

export function leftBehind({ leader, standbys = [], agents, tasks }: StatusResponse): LeftBehind {
  return {
    leader,
    standbys,
    agents: agents.filter(({ status }) => status !== "offline").map(({ id }) => id),
    liveTasks: liveStates.reduce((sum, state) => sum + (tasks[state] ?? 0), 0),
  };
}

/** A line each for coordinators, agents and tasks, if any are left. */
export function leftBehindLines({ leader, standbys, agents, liveTasks }: LeftBehind): string[] {
  const lines = [coordinatorsLine([leader, ...standbys].map(printable))];
  if (agents.length > 0) lines.push(agentsLine(agents));
  if (liveTasks > 0)
    lines.push(
      `${counted(liveTasks, "task")} had not ended; they stay in the journal and continue after \`waggle up\``,
    );
  return lines;
}

function coordinatorsLine(ids: readonly string[]): string {
  return ids.length === 1
    ? `the coordinator ${ids.join()} still runs and waits for a broker: end it with Ctrl-C in its terminal`
    : `the coordinators ${ids.join(", ")} still run and wait for a broker: end each with Ctrl-C in its terminal`;
}

function agentsLine(ids: readonly string[]): string {
  return ids.length === 1
    ? `1 agent still runs: ${ids.join()}; end it with Ctrl-C, too`
    : `${counted(ids.length, "agent")} still run: ${ids.join(", ")}; end them with Ctrl-C, too`;
}
