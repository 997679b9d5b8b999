// Figures of recovery from a recorded history: the time from a fault until a task was accepted again, or until
// a dead agent's work was reassigned. Based on clients' observations and the journal, not on the nemesis' view.

import type { Observation } from "../../src/sim/history/observation.ts";
import type { Event } from "../../src/state/event.ts";
import type { SeenEvent } from "./witness.ts";

/** Definition of a measured fault. */
export type Figure =
  | "leader killed → next accept"
  | "leader stopped → next accept"
  | "stream leader killed → next accept"
  | "stream leader stopped → next accept"
  | "store damaged → next accept"
  | "store damaged, coordinators run → next accept"
  | "stream leader killed, its store damaged → next accept"
  | "follower killed, its store damaged → next accept"
  | "damaged store leads → next accept"
  | "healed → next accept"
  | "disk has room again → next accept"
  | "server has room again → next accept"
  | "full server restarted → next accept"
  | "agent killed → reassigned"
  | "agent stopped → reassigned"
  | "client continued → its next accept";

export interface Fault {
  readonly figure: Figure;
  readonly atMs: number;
  /** Term of the leader at the fault; a new leader must answer. Absent when the old leader may answer. */
  readonly endedTerm?: number;
  /** The dead agent. */
  readonly agent?: string;
  /** Client with the accepted task. Absent: any client. */
  readonly client?: string;
}

export type Recoveries = Partial<Record<Figure, number[]>>;

/** ms for each fault; infinite without recovery. */
export function recoveriesOf(
  faults: readonly Fault[],
  observations: readonly Observation[],
  seen: readonly SeenEvent[],
): Recoveries {
  const accepts = acceptsOf(observations);
  const recoveries: Recoveries = {};
  for (const fault of faults) {
    const endMs =
      fault.agent === undefined ? nextAccept(fault, accepts) : reassigned(fault.agent, fault.atMs, seen);
    const figures = recoveries[fault.figure] ?? [];
    recoveries[fault.figure] = figures;
    if (endMs !== undefined) figures.push(endMs - fault.atMs);
  }
  return recoveries;
}

interface Accept {
  readonly node: string;
  readonly sentMs: number;
  readonly heardMs: number;
  readonly term: number;
}

function acceptsOf(observations: readonly Observation[]): Accept[] {
  const accepts = observations.flatMap((observed): Accept[] => {
    if (observed.kind !== "submit" || observed.answer !== "accepted") return [];
    const { node, sentMs, heardMs = Number.POSITIVE_INFINITY, at } = observed;
    return [{ node, sentMs, heardMs, term: at?.term ?? 0 }];
  });
  return accepts.sort((a, b) => a.heardMs - b.heardMs);
}

function nextAccept({ atMs, endedTerm, client }: Fault, accepts: readonly Accept[]): number {
  const isNext = ({ node, sentMs, heardMs, term }: Accept) =>
    (client === undefined || node === client) &&
    (endedTerm === undefined ? sentMs >= atMs : heardMs >= atMs && term > endedTerm);
  return accepts.find(isNext)?.heardMs ?? Number.POSITIVE_INFINITY;
}

/** When the last open task of the agent was reassigned or ended. Undefined without open tasks. */
function reassigned(agent: string, atMs: number, seen: readonly SeenEvent[]): number | undefined {
  const open = new Set<string>();
  let last: number | undefined;
  for (const { seenMs, event } of seen) {
    if (seenMs < atMs) follow(open, agent, event);
    else if (open.size > 0 && isElsewhere(open, agent, event)) last = seenMs;
    if (seenMs >= atMs && open.size === 0) return last;
  }
  return open.size === 0 ? last : Number.POSITIVE_INFINITY;
}

/** Open tasks of an agent according to the given events. */
export function openAt(agent: string, seen: Iterable<SeenEvent>): ReadonlySet<string> {
  const open = new Set<string>();
  for (const { event } of seen) follow(open, agent, event);
  return open;
}

function follow(open: Set<string>, agent: string, event: Event): void {
  if (event.type === "TaskAssigned" && event.agent === agent) open.add(event.task);
  else if (closing.has(event.type) && "task" in event) open.delete(event.task as string);
}

/** True if the event reassigns or ends one of the open tasks. */
function isElsewhere(open: Set<string>, agent: string, event: Event): boolean {
  if (event.type === "TaskAssigned") return event.agent !== agent && open.delete(event.task);
  return ending.has(event.type) && "task" in event && open.delete(event.task as string);
}

const ending: ReadonlySet<Event["type"]> = new Set([
  "TaskCompleted",
  "TaskFailed",
  "TaskDeadLettered",
  "TaskCancelled",
  "TaskExpired",
]);
const closing: ReadonlySet<Event["type"]> = new Set([...ending, "AttemptFailed"]);

/** @param fraction 0.5 for the median */
export function quantile(values: readonly number[], fraction: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? Number.NaN;
}
