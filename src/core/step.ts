// One turn of the coordinator as a pure function: commands in; one batch's events, replies and effects out. The order
// is fixed: each command is decided and applied before the next is read, then due timers fire, then assignments are
// planned. Nothing is visible outside before the batch is committed. Not here: taking commands from the inbox, stamping
// time, appending (coordinator/).

import type { AgentId, BatchIndex, Instant, Kind } from "../ids.ts";
import { limits } from "../limits.ts";
import { Planner, type Round } from "../scheduling/planner.ts";
import { slotReactions, tokenGrants } from "../scheduling/slot-planner.ts";
import type { Event } from "../state/event.ts";
import { passTo } from "../state/journal-time.ts";
import type { SwarmState } from "../state/state.ts";
import { apply } from "./apply.ts";
import type { Command, Reply } from "./command.ts";
import { decide } from "./decide.ts";
import { kindAssignedBy, kindClosedBy, reactTo } from "./decide-attempt.ts";
import { addEffects, type Effect, projectOf, revokedBy } from "./effect.ts";
import { writeEvent } from "./event-json.ts";
import { JsonWriter, piece } from "./json-writer.ts";

/** An event as it will stand in the batch, with the fields that readers need to route it. */
export interface RecordedEvent {
  readonly event: Event;
  readonly project: string;
  /** The kind that an assigned or ended attempt runs as; undefined for other events. */
  readonly kind: Kind | undefined;
  /** The event's JSON in the turn's `eventsJson`: the first byte, and the byte after the last. */
  readonly from: number;
  readonly to: number;
  /** The same of the field with its payload or result; both 0 for an event without contents. */
  readonly contentsFrom: number;
  readonly contentsTo: number;
}

/** Collects the outcome of one turn. Mutates its state. */
export class Turn {
  readonly recorded: RecordedEvent[] = [];
  readonly effects: Effect[] = [];
  /** Agents whose rows changed. */
  readonly touchedAgents = new Set<AgentId>();
  readonly #json: JsonWriter;
  readonly #state: SwarmState;
  readonly #at: Instant;
  readonly #idx: BatchIndex;
  readonly #planner: Planner;
  /** The events so far of a decision with `grantsLast`, while it is applied. */
  #decided: Event[] | undefined;

  /**
   * @param at journal time of the whole turn
   * @param idx index of the batch that the step makes
   * @param planner of this state, passed to every turn since its creation; a new planner costs as much as the swarm has
   *   agents
   * @param json lends its memory until the next turn
   */
  constructor(
    state: SwarmState,
    at: Instant,
    idx: BatchIndex,
    planner: Planner = new Planner(state),
    json: JsonWriter = new JsonWriter(),
  ) {
    json.clear();
    this.#json = json;
    this.#state = state;
    this.#at = at;
    this.#idx = idx;
    this.#planner = planner;
  }

  /** Size of the events' JSON so far. */
  get bytes(): number {
    return this.#json.length;
  }

  /** The events' JSON so far, joined by commas. Valid until the next change of this turn, and until the next turn. */
  get eventsJson(): Uint8Array {
    return this.#json.written;
  }

  get isFull(): boolean {
    return this.bytes >= limits.turnBytesMax;
  }

  /** Decides one command and applies its events. */
  take(command: Command): Reply {
    const { events, reply, unkeptResult, grantsLast } = decide(this.#state, command, this.#at);
    const decided: Event[] = [];
    if (grantsLast === true) this.#decided = decided;
    for (const event of events) this.#record(event, unkeptResult);
    this.#decided = undefined;
    for (const event of decided) this.#grantSlotsAfter(event);
    return reply;
  }

  /**
   * Fires due timers, then grants slots to requests that waited for tokens, as far as the turn has room.
   * @returns whether nothing is left
   */
  takeDue(jitter: () => number): boolean {
    for (;;) {
      const due = this.#state.timers.peek();
      if (due === undefined || due.dueAt > this.#at) return this.#grantForTokens();
      if (this.isFull) return false;
      this.take({ type: "Tick", jitter: jitter() });
    }
  }

  #grantForTokens(): boolean {
    for (const grant of tokenGrants(this.#state, this.#at)) {
      this.#record(grant);
      if (this.isFull) return false;
    }
    return true;
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

  #record(event: Event, unkeptResult?: string): void {
    const revokedOpen = revokedBy(this.#state, event);
    const ranAs = kindClosedBy(this.#state, event);
    passTo(this.#state, this.#at, event);
    this.#state.idx = this.#idx;
    apply(this.#state, event, { at: this.#at, idx: this.#idx });
    this.recorded.push(this.#write(event, ranAs ?? kindAssignedBy(this.#state, event)));
    if ("agent" in event) this.#touch(event);
    addEffects(this.effects, this.#state, event, { revokedOpen, unkeptResult });
    for (const reaction of reactTo(this.#state, event, { at: this.#at, ranAs })) this.#record(reaction);
    if (this.#decided === undefined) this.#grantSlotsAfter(event);
    else this.#decided.push(event);
  }

  #grantSlotsAfter(event: Event): void {
    for (const reaction of slotReactions(this.#state, event, this.#at)) this.#record(reaction);
  }

  #write(event: Event, kind: Kind | undefined): RecordedEvent {
    const json = this.#json;
    if (this.recorded.length > 0) json.raw(COMMA);
    const from = json.length;
    writeEvent(json, event);
    const hasContents = json.contentsFrom >= from;
    return {
      event,
      project: projectOf(event),
      kind,
      from,
      to: json.length,
      contentsFrom: hasContents ? json.contentsFrom : 0,
      contentsTo: hasContents ? json.contentsTo : 0,
    };
  }
}

const COMMA = piece(",");
