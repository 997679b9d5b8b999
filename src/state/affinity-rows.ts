// Which agent ran the last task of an affinity: a session, a document, a cache that the agent keeps warm. The next task
// with the affinity prefers the agent, and never waits for it. Bounded, and forgotten by journal time.

import type { AgentId, Instant, ProjectId } from "../ids.ts";
import { limits } from "../limits.ts";
import type { TaskSpec } from "./event.ts";
import type { AffinityRow, SwarmState } from "./state.ts";

/** A project has no space in its name. */
export function affinityKey(project: ProjectId, affinity: string): string {
  return `${project} ${affinity}`;
}

/** The agent that a task's affinity prefers; undefined without one, and after `limits.affinityMs` without use. */
export function preferredAgent(
  { affinityByKey }: SwarmState,
  { project, affinity }: Pick<TaskSpec, "project" | "affinity">,
  at: Instant,
): AgentId | undefined {
  if (affinity === undefined) return undefined;
  const row = affinityByKey.get(affinityKey(project, affinity));
  return row === undefined || isOver(row, at) ? undefined : row.agent;
}

/** Notes that the agent begins a task, which from now on has the affinity. */
export function beginAffinity(state: SwarmState, spec: TaskSpec, agent: AgentId, at: Instant): void {
  if (spec.affinity !== undefined) note(state, { project: spec.project, affinity: spec.affinity, agent }, at);
}

/** Notes that the agent's attempt ended: the time counts from the end, unless another agent took over. */
export function endAffinity(state: SwarmState, spec: TaskSpec, agent: AgentId, at: Instant): void {
  const { project, affinity } = spec;
  if (affinity === undefined) return;
  const known = state.affinityByKey.get(affinityKey(project, affinity));
  if (known === undefined || known.agent === agent) note(state, { project, affinity, agent }, at);
}

function note(state: SwarmState, used: Omit<AffinityRow, "usedAt">, at: Instant): void {
  const { affinityByKey } = state;
  const key = affinityKey(used.project, used.affinity);
  affinityByKey.delete(key);
  affinityByKey.set(key, { ...used, usedAt: at });
  // Two at most: a row is added at a time, so the rows whose time is over run out.
  for (let forgotten = 0; forgotten < 2; forgotten += 1) {
    const { oldest, oldestKey } = affinityByKey;
    if (oldest === undefined || oldestKey === undefined) return;
    if (affinityByKey.size <= limits.affinitiesMax && !isOver(oldest, at)) return;
    affinityByKey.delete(oldestKey);
  }
}

function isOver({ usedAt }: AffinityRow, at: Instant): boolean {
  return at - usedAt >= limits.affinityMs;
}
