// Each agent's chart as the coordinator sees it: the same machine the agent runs, moved on edges only, once a
// turn, by comparing what the state says with where the chart stands. Nobody else asks a chart where it is.

import { type Actor, createActor } from "xstate";
import {
  type AgentSignal,
  type AgentStatus,
  agentMachine,
  agentStatus,
  describeAgent,
  loadSignals,
} from "../../../machines/agent.ts";
import type { AgentId } from "../../ids.ts";
import { type AgentRow, placesOf, type SwarmState } from "../../state/state.ts";

interface Mirror {
  readonly actor: Actor<typeof agentMachine>;
  /** What the chart was last told. */
  inFlight: number;
  places: number;
  draining: boolean;
  online: boolean;
  incarnation: string;
}

export class AgentMirrors {
  readonly #mirrorById = new Map<AgentId, Mirror>();

  /** Brings the charts of the given agents up to the state. */
  sync(state: SwarmState, agents: Iterable<AgentId>): void {
    for (const id of agents) {
      const row = state.agentById.get(id);
      if (row === undefined) this.#mirrorById.delete(id);
      else this.#syncOne(row);
    }
  }

  status(id: AgentId): AgentStatus {
    const mirror = this.#mirrorById.get(id);
    return mirror === undefined ? "offline" : agentStatus(mirror.actor.getSnapshot());
  }

  /** For people. */
  describe(id: AgentId): string {
    const mirror = this.#mirrorById.get(id);
    return mirror === undefined ? "offline" : describeAgent(mirror.actor.getSnapshot());
  }

  #syncOne(row: AgentRow): void {
    const mirror = this.#mirrorOf(row.id);
    const isSameLife = row.online && mirror.incarnation === row.incarnation;
    // Other places are other edges: the chart is walked anew.
    if (mirror.online && !(isSameLife && mirror.places === placesOf(row))) endLife(mirror);
    if (!row.online) return;
    if (!mirror.online) beginLife(mirror, row);
    for (const signal of edges(mirror, row)) mirror.actor.send(signal);
    mirror.inFlight = row.open.size;
    mirror.draining = row.draining;
  }

  #mirrorOf(id: AgentId): Mirror {
    const known = this.#mirrorById.get(id);
    if (known !== undefined) return known;
    const actor = createActor(agentMachine).start();
    const mirror: Mirror = { actor, inFlight: 0, places: 0, draining: false, online: false, incarnation: "" };
    this.#mirrorById.set(id, mirror);
    return mirror;
  }
}

function endLife(mirror: Mirror): void {
  mirror.actor.send({ type: "LEFT" });
  mirror.online = false;
  mirror.inFlight = 0;
  mirror.draining = false;
}

function beginLife(mirror: Mirror, row: AgentRow): void {
  mirror.actor.send({ type: "JOINED" });
  mirror.online = true;
  mirror.incarnation = row.incarnation;
  mirror.places = placesOf(row);
}

function edges(mirror: Mirror, row: AgentRow): readonly AgentSignal[] {
  const load = loadSignals({ before: mirror.inFlight, after: row.open.size, places: placesOf(row) });
  if (mirror.draining === row.draining) return load;
  return [...load, { type: row.draining ? "DRAIN" : "UNDRAIN" }];
}
