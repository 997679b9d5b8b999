// What a leader tells others of its turns, once they are committed: agents and clients what they are to know, who asked
// their answers, and whoever follows the record its events. Not here: when that may be told (commits.ts).

import { type Effect, standingGrants, unconfirmedAssignments } from "../../core/effect.ts";
import { type AgentId, type BatchIndex, NO_GROUP } from "../../ids.ts";
import type { Subjects } from "../../protocol/subjects.ts";
import type { SwarmState } from "../../state/state.ts";
import type { Transport } from "../../transport/transport.ts";
import type { Awaiting } from "../requests/awaiting.ts";
import type { Commit, InboxEntry } from "../requests/inbox.ts";
import { EventPublisher } from "./event-publisher.ts";
import type { Held } from "./in-flight.ts";
import type { Monitor } from "./monitor.ts";
import { Outbox } from "./outbox.ts";
import type { Presences } from "./presence.ts";

export interface TellingDeps {
  readonly state: SwarmState;
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly awaiting: Awaiting;
  readonly presences: Presences;
  readonly monitor: Monitor;
  readonly answer: (entries: readonly InboxEntry[]) => void;
}

export class Telling {
  readonly outbox: Outbox;
  readonly #deps: TellingDeps;
  readonly #publisher: EventPublisher;
  /** The first batch that is kept, by what is committed and may be told: the state is ahead of that. */
  #firstIdx: BatchIndex;

  constructor(deps: TellingDeps) {
    const { state } = deps;
    this.#deps = deps;
    const groupOf = (agent: AgentId) => state.agentById.get(agent)?.group ?? NO_GROUP;
    this.outbox = new Outbox({ ...deps, groupOf });
    this.#publisher = new EventPublisher(deps.transport, deps.subjects);
    this.#firstIdx = state.auditFirstIdx;
  }

  /** The first batch that is kept, as far as that was told. */
  get firstIdx(): BatchIndex {
    return this.#firstIdx;
  }

  /** Tells what the leader before may not have told, or what was lost while the connection was away: by now it may have
   *  changed, so it is read from the state. To be put before the next turn. */
  again(): InboxEntry {
    let untold: readonly Effect[] = [];
    return {
      commands: [],
      replies: [],
      look: (state) => {
        untold = untoldOf(state);
      },
      finish: (commit) => this.outbox.perform(untold, commit),
    };
  }

  /** A turn is committed. */
  tell({ turn, entries, at }: Held, commit: Commit): void {
    for (const { event } of turn.recorded) if (event.type === "AuditTrimmed") this.#firstIdx = event.firstIdx;
    this.outbox.perform(turn.effects, commit);
    this.#deps.answer(entries);
    this.#publisher.publish(turn.recorded, commit, at);
    this.#deps.monitor.committed(turn.recorded);
  }
}

/** What agents have not confirmed to have heard. */
function untoldOf(state: SwarmState): readonly Effect[] {
  return [...unconfirmedAssignments(state), ...standingGrants(state)];
}
