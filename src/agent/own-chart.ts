// The agent's own chart, run in its own process: the one owner of the machine. It is moved on edges only, and
// whoever shows a status is told when it changes.

import { type Actor, createActor } from "xstate";
import {
  type AgentSignal,
  type AgentStatus,
  agentMachine,
  agentStatus,
  isDraining,
  loadSignals,
} from "../../machines/agent.ts";

export interface ShownStatus {
  readonly status: AgentStatus;
  readonly draining: boolean;
}

export class OwnChart {
  readonly #places: number;
  readonly #onChange: (shown: ShownStatus) => void;
  readonly #actor: Actor<typeof agentMachine> = createActor(agentMachine).start();
  #shown: ShownStatus = { status: "offline", draining: false };
  /** What the chart was last told is in flight. */
  #load = 0;

  constructor(places: number, onChange: (shown: ShownStatus) => void) {
    this.#places = places;
    this.#onChange = onChange;
  }

  get status(): AgentStatus {
    return this.#shown.status;
  }

  send(signal: AgentSignal): void {
    this.#actor.send(signal);
    const snapshot = this.#actor.getSnapshot();
    const status = agentStatus(snapshot);
    if (status === "offline") this.#load = 0;
    const draining = isDraining(snapshot);
    if (status === this.#shown.status && draining === this.#shown.draining) return;
    this.#shown = { status, draining };
    this.#onChange(this.#shown);
  }

  /** So many attempts run now. Nothing to an agent that is offline. */
  reflect(running: number): void {
    if (this.status === "offline") return;
    const signals = loadSignals({ before: this.#load, after: running, places: this.#places });
    this.#load = running;
    for (const signal of signals) this.send(signal);
  }

  stop(): void {
    this.#actor.stop();
  }
}
