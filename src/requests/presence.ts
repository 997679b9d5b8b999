// Presence of agents, from their messages: alive or silent, prompt or lagging. Kept in the leader's memory only. A new
// leader waits a full H before it declares an agent lost. Changes of the state go through commands.

import type { Clock } from "../clock.ts";
import type { Command } from "../core/command.ts";
import { isAheadOfJournal } from "../core/decide-agent.ts";
import { type AgentId, attemptKey, type Incarnation } from "../ids.ts";
import { limits } from "../limits.ts";
import type { Heartbeat } from "../protocol/schemas.ts";
import type { AgentRow, OpenAttempt, SwarmState } from "../state/state.ts";

/** Presence of one session of an agent, beyond the state. */
interface Presence {
  readonly incarnation: Incarnation;
  heardMonotonicMs: number;
  /** Heartbeats counted as missed since the last message. */
  missed: number;
  /** Consecutive heartbeats that lacked the same due assignment. */
  lagging: number;
  /** Highest due number that the previous heartbeat lacked, or 0. */
  missedNumber: number;
  /** Highest committed assignment number that was published to the agent. */
  sentNumber: number;
  /** `sentNumber` at the previous heartbeat, and at the last two pulses. Assignments up to the older pulse, or up
   *  to the previous heartbeat, are due. */
  sentByPreviousHeartbeat: number;
  sentByPulse: number;
  sentByPulseBefore: number;
  /** Highest assignment number that was withheld because the agent was silent. All numbers up to here are due. */
  withheldNumber: number;
  reported: Heartbeat | undefined;
  /** The id in the subject of the newest heartbeat: the agent's own, or of a connection with several agents. */
  speaker: string;
  /** By attempt that waits at the agent: since when heartbeats say so. */
  waiting: ReadonlyMap<string, number>;
}

/** Consequences of a heartbeat. */
export interface HeartbeatVerdict {
  /** To be decided; undefined when the state already agrees with the agent. */
  readonly command: Command | undefined;
  /** Due assignments that did not arrive: to be sent again. */
  readonly missing: readonly OpenAttempt[];
}

export class Presences {
  readonly #clock: Clock;
  readonly #presenceById = new Map<AgentId, Presence>();
  /** By attempt: when progress was last reported, for tasks with a stall limit. */
  readonly #progressAt = new Map<string, number>();

  #missedHeartbeats = 0;
  /** By agent: when a fenced session was last heard. */
  readonly #outlivedMonotonicMs = new Map<AgentId, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Begins anew for every online agent: on taking over, and after the coordinator itself was cut off. */
  restart(state: SwarmState): void {
    for (const agent of state.agentById.values()) if (agent.online) this.heard(agent.id, agent.incarnation);
    for (const key of this.#progressAt.keys()) this.#progressAt.set(key, this.#clock.monotonicMs());
  }

  /** Notes that an agent lives. Any message of the agent shows that. */
  heard(agent: AgentId, incarnation: Incarnation): Presence {
    const now = this.#clock.monotonicMs();
    const known = this.#presenceById.get(agent);
    if (known?.incarnation === incarnation) {
      known.heardMonotonicMs = now;
      known.missed = 0;
      return known;
    }
    const presence: Presence = {
      incarnation,
      heardMonotonicMs: now,
      missed: 0,
      lagging: 0,
      missedNumber: 0,
      sentNumber: 0,
      sentByPreviousHeartbeat: 0,
      sentByPulse: 0,
      sentByPulseBefore: 0,
      withheldNumber: 0,
      reported: undefined,
      speaker: agent,
      waiting: nothingWaits,
    };
    this.#presenceById.set(agent, presence);
    return presence;
  }

  /** @param speaker the id in the subject of the heartbeat */
  heartbeat(state: SwarmState, row: AgentRow, heartbeat: Heartbeat, speaker: string): HeartbeatVerdict {
    const presence = this.heard(row.id, row.incarnation);
    presence.reported = heartbeat;
    presence.speaker = speaker;
    presence.waiting = this.#waitingIn(heartbeat, presence.waiting);
    const { sentByPreviousHeartbeat, sentByPulseBefore, withheldNumber } = presence;
    const dueNumber = Math.max(sentByPreviousHeartbeat, sentByPulseBefore, withheldNumber);
    const missing = missingAssignments(row, heartbeat.seen, dueNumber);
    const sentInTime = Math.max(sentByPreviousHeartbeat, sentByPulseBefore);
    noteMissing(
      presence,
      missing.filter(({ number }) => number <= sentInTime),
    );
    presence.sentByPreviousHeartbeat = presence.sentNumber;
    if (presence.lagging >= limits.unresponsiveHeartbeats && !row.unresponsive) {
      return { command: { type: "MarkUnresponsive", agent: row.id, incarnation: row.incarnation }, missing };
    }
    const command: Command = {
      type: "ReconcileAgent",
      agent: row.id,
      incarnation: row.incarnation,
      held: heartbeat.held,
      seen: heartbeat.seen,
      ...(heartbeat.draining === true ? { draining: true } : {}),
      ...(heartbeat.maxConcurrent === undefined ? {} : { maxConcurrent: heartbeat.maxConcurrent }),
      ...(heartbeat.slots === undefined ? {} : { slots: heartbeat.slots }),
    };
    return {
      command: agrees(row, heartbeat) && slotsAgree(state, row.id, heartbeat.slots) ? undefined : command,
      missing,
    };
  }

  /** An assignment left for the agent. */
  sent(agent: AgentId, incarnation: Incarnation, number: number): void {
    const known = this.#presenceById.get(agent);
    const presence = known?.incarnation === incarnation ? known : this.heard(agent, incarnation);
    presence.sentNumber = Math.max(presence.sentNumber, number);
  }

  /** Whether an agent was silent for so long that it gets nothing new: a new attempt could still run after the
   *  leader declares the agent lost. An agent that was never heard is not silent. */
  isSilent(agent: AgentId, incarnation: Incarnation): boolean {
    const presence = this.#presenceById.get(agent);
    if (presence?.incarnation !== incarnation) return false;
    return this.#clock.monotonicMs() - presence.heardMonotonicMs > limits.unresponsiveSilenceMs;
  }

  /** The id in the subject of the agent's newest heartbeat: assignments go to the same connection. */
  speakerOf(agent: AgentId, incarnation: Incarnation): string {
    const presence = this.#presenceById.get(agent);
    return presence?.incarnation === incarnation ? presence.speaker : agent;
  }

  /** Notes an assignment withheld from a silent agent. Each heartbeat has it sent again until it arrives. */
  withheld(agent: AgentId, incarnation: Incarnation, number: number): void {
    const presence = this.#presenceById.get(agent);
    if (presence?.incarnation !== incarnation) return;
    presence.withheldNumber = Math.max(presence.withheldNumber, number);
  }

  progressed(attempt: Parameters<typeof attemptKey>[0]): void {
    this.#progressAt.set(attemptKey(attempt), this.#clock.monotonicMs());
  }

  /** Looks for silence, once per pulse: agents silent for H, agents too silent for new assignments, and attempts
   *  without progress for their stall limit. */
  overdue(state: SwarmState, jitter: () => number): Command[] {
    const now = this.#clock.monotonicMs();
    const commands: Command[] = [];
    for (const agent of state.agentById.values()) {
      if (!agent.online) continue;
      const known = this.#presenceById.get(agent.id);
      // Silence of an earlier session does not count.
      const presence =
        known?.incarnation === agent.incarnation ? known : this.heard(agent.id, agent.incarnation);
      presence.sentByPulseBefore = presence.sentByPulse;
      presence.sentByPulse = presence.sentNumber;
      const { id, incarnation } = agent;
      const silentMs = now - presence.heardMonotonicMs;
      this.#countMissed(presence, silentMs);
      if (silentMs > limits.agentLostMs) {
        commands.push({ type: "LapseAgent", agent: id, incarnation });
        continue;
      }
      if (this.isSilent(id, incarnation) && !agent.unresponsive)
        commands.push({ type: "MarkUnresponsive", agent: id, incarnation });
      this.#collectStalled(state, agent, now, jitter, commands);
    }
    return commands;
  }

  /** Heartbeats of online agents that did not come in time, since the term began. Any message counts as a heartbeat. */
  get missedHeartbeats(): number {
    return this.#missedHeartbeats;
  }

  #countMissed(presence: Presence, silentMs: number): void {
    const missed = Math.floor(silentMs / limits.heartbeatMs - limits.heartbeatLateShare);
    if (missed <= presence.missed) return;
    this.#missedHeartbeats += missed - presence.missed;
    presence.missed = missed;
  }

  /** Notes that a fenced session was heard. @returns true at the first time */
  outlived(agent: AgentId): boolean {
    const isNews = !this.#outlivedMonotonicMs.has(agent);
    this.#outlivedMonotonicMs.set(agent, this.#clock.monotonicMs());
    return isNews;
  }

  /** Time since a second process under the agent's id was heard; undefined after long silence. */
  outlivedMs(agent: AgentId): number | undefined {
    const heardMs = this.#outlivedMonotonicMs.get(agent);
    return heardMs === undefined ? undefined : Math.round(this.#clock.monotonicMs() - heardMs);
  }

  silentMs(agent: AgentId): number | undefined {
    const presence = this.#presenceById.get(agent);
    return presence === undefined
      ? undefined
      : Math.round(this.#clock.monotonicMs() - presence.heardMonotonicMs);
  }

  reported(agent: AgentRow): Heartbeat | undefined {
    const presence = this.#presenceById.get(agent.id);
    return presence?.incarnation === agent.incarnation ? presence.reported : undefined;
  }

  /** Drops entries of agents and attempts that are gone. */
  sweep(state: SwarmState): void {
    for (const id of this.#presenceById.keys())
      if (state.agentById.get(id)?.online !== true) this.#presenceById.delete(id);
    const forgottenMs = this.#clock.monotonicMs() - limits.outlivedShownMs;
    for (const [id, heardMs] of this.#outlivedMonotonicMs)
      if (heardMs < forgottenMs) this.#outlivedMonotonicMs.delete(id);
    if (this.#progressAt.size === 0) return;
    const open = new Set<string>();
    for (const agent of state.agentById.values())
      for (const attempt of agent.open.values()) open.add(attemptKey(attempt));
    for (const key of this.#progressAt.keys()) if (!open.has(key)) this.#progressAt.delete(key);
  }

  #waitingIn({ held }: Heartbeat, before: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
    if (held.length === 0) return nothingWaits;
    const now = this.#clock.monotonicMs();
    const keys = held.filter(({ waiting }) => waiting === true).map(attemptKey);
    return new Map(keys.map((key) => [key, before.get(key) ?? now]));
  }

  #collectStalled(
    state: SwarmState,
    agent: AgentRow,
    now: number,
    jitter: () => number,
    commands: Command[],
  ): void {
    const waiting = this.#presenceById.get(agent.id)?.waiting;
    let placed = 0;
    for (const attempt of agent.open.values()) {
      placed += 1;
      if (placed > agent.maxConcurrent) break; // a prefetched attempt waits at its agent, and reports no progress
      const stallMs = attempt.state === "running" ? state.taskById.get(attempt)?.spec.stallMs : undefined;
      if (stallMs === undefined) continue;
      const key = attemptKey(attempt);
      const since = this.#progressAt.get(key);
      const waitsMs = now - (waiting?.get(key) ?? Number.NEGATIVE_INFINITY);
      if (since === undefined || waitsMs < limits.stallWaitMs) this.progressed(attempt);
      else if (now - since > stallMs) {
        commands.push({
          type: "StallAttempt",
          project: attempt.project,
          task: attempt.task,
          attempt: attempt.attempt,
          jitter: jitter(),
        });
      }
    }
  }
}

function missingAssignments(row: AgentRow, seen: number, dueNumber: number): OpenAttempt[] {
  if (seen >= dueNumber) return [];
  return [...row.open.values()].filter(({ number }) => number > seen && number <= dueNumber);
}

/** An agent that lags by a new assignment each time is slow. An agent that lags by the same assignment, even when
 *  sent again, does not hear. */
function noteMissing(presence: Presence, missing: readonly OpenAttempt[]): void {
  const isSame = missing.some(({ number }) => number <= presence.missedNumber);
  presence.lagging = isSame ? presence.lagging + 1 : Math.min(missing.length, 1);
  presence.missedNumber = missing.at(-1)?.number ?? 0;
}

const nothingWaits: ReadonlyMap<string, number> = new Map();

/** Whether the agent holds exactly the attempts of the state. A confirmation without effect is not asked for. */
function agrees(
  row: AgentRow,
  { held, seen, draining, maxConcurrent = row.maxConcurrent }: Heartbeat,
): boolean {
  if (isAheadOfJournal(row, seen)) return false;
  if (row.unresponsive && seen >= row.lastNumber) return false;
  if (draining === true && !row.draining) return false;
  if (maxConcurrent !== row.maxConcurrent) return false;
  const holds = new Set(held.map(attemptKey));
  let expected = 0;
  for (const attempt of row.open.values()) {
    if (attempt.number > seen) break;
    if (attempt.state !== "running" || !holds.has(attemptKey(attempt))) return false;
    expected += 1;
  }
  return expected === holds.size;
}

/** Whether the agent lists exactly its slot leases and waits. */
function slotsAgree(state: SwarmState, agent: AgentId, listed: Heartbeat["slots"]): boolean {
  const known = state.slotsByAgent.get(agent);
  if (listed === undefined) return known === undefined;
  const isAll = new Set([...listed.held, ...listed.waiting]).size === (known?.size ?? 0);
  return (
    isAll &&
    listed.held.every((handle) => known?.get(handle)?.state === "held") &&
    listed.waiting.every((handle) => known?.get(handle)?.state === "waiting")
  );
}
