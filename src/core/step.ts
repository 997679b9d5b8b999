// One turn of the coordinator as a pure function: commands in; one batch's events, replies and effects out. The order
// is fixed: each command is decided and applied before the next is read, then due timers fire, then assignments are
// planned. Nothing is visible outside before the batch is committed. Not here: taking commands from the inbox, stamping
// time, appending (coordinator/).

import type { AgentId, BatchIndex, Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import { Planner, type Round } from "../scheduling/planner.ts";
import { slotReactions } from "../scheduling/slot-planner.ts";
import type { Event } from "../state/event.ts";
import { passTo } from "../state/journal-time.ts";
import type { SwarmState } from "../state/state.ts";
import { apply } from "./apply.ts";
import type { Command, Reply } from "./command.ts";
import { decide } from "./decide.ts";
import { kindClosedBy, reactTo } from "./decide-attempt.ts";
import { type Effect, effectOf, projectOf, revokedBy } from "./effect.ts";

/** An event as it will stand in the batch, with the fields that readers need to route it. */
export interface RecordedEvent {
  readonly event: Event;
  /** The event's JSON, made once. */
  readonly json: string;
  readonly project: string;
}

/** Collects the outcome of one turn. Mutates its state. */
export class Turn {
  readonly recorded: RecordedEvent[] = [];
  readonly effects: Effect[] = [];
  /** Agents whose rows changed. */
  readonly touchedAgents = new Set<AgentId>();
  /** Size of the events' JSON so far, in UTF-8. */
  bytes = 0;
  readonly #state: SwarmState;
  readonly #at: Instant;
  readonly #idx: BatchIndex;
  readonly #planner: Planner;

  /**
   * @param at journal time of the whole turn
   * @param idx of the batch to be
   * @param planner of this state, passed to every turn since its creation; a new planner costs as much as the swarm has
   *   agents
   */
  constructor(state: SwarmState, at: Instant, idx: BatchIndex, planner: Planner = new Planner(state)) {
    this.#state = state;
    this.#at = at;
    this.#idx = idx;
    this.#planner = planner;
  }

  get isFull(): boolean {
    return this.bytes >= limits.turnBytesMax;
  }

  /** Decides one command and applies its events. */
  take(command: Command): Reply {
    const decision = decide(this.#state, command, this.#at);
    for (const event of decision.events) this.#record(event);
    return decision.reply;
  }

  /** Fires due timers, as far as the turn has room. @returns whether none is left */
  takeDue(jitter: () => number): boolean {
    for (;;) {
      const due = this.#state.timers.peek();
      if (due === undefined || due.dueAt > this.#at) return true;
      if (this.isFull) return false;
      this.take({ type: "Tick", jitter: jitter() });
    }
  }

  /** Assigns tasks, as far as the turn has room. @returns whether nothing is left to assign */
  plan(): boolean {
    for (;;) {
      const round = this.#planner.open(this.#at);
      if (!this.#assign(round)) return false;
      if (!round.mayLeaveMore) return true;
    }
  }

  /** @returns whether the round ended by itself */
  #assign(round: Round): boolean {
    while (!this.isFull) {
      const assigned = round.next();
      if (assigned === undefined) return true;
      this.#record(assigned);
    }
    round.close();
    return false;
  }

  /** The planner already knows its own assignments. */
  #touch(event: Event & { readonly agent: AgentId }): void {
    this.touchedAgents.add(event.agent);
    if (event.type !== "TaskAssigned") this.#planner.touch(event.agent);
  }

  #record(event: Event): void {
    const revoked = revokedBy(this.#state, event);
    const ranAs = kindClosedBy(this.#state, event);
    passTo(this.#state, this.#at, event);
    this.#state.idx = this.#idx;
    apply(this.#state, event, { at: this.#at, idx: this.#idx });
    const json = JSON.stringify(event);
    this.bytes += Buffer.byteLength(json);
    this.recorded.push({ event, json, project: projectOf(event) });
    if ("agent" in event) this.#touch(event);
    for (const effect of effectOf(this.#state, event, revoked)) this.effects.push(effect);
    for (const reaction of reactTo(this.#state, event, { at: this.#at, ranAs })) this.#record(reaction);
    for (const reaction of slotReactions(this.#state, event, this.#at)) this.#record(reaction);
  }
}
