// Recounts, along the journal, which agents, types and resources are on hold (invariant 51). While a hold lasts nothing
// goes to its target; since it elapsed only the probe does, one at a time. On purpose none of the code under test.

import { type TaskRef, taskKey } from "../../ids.ts";
import type { Event, EventOf } from "../../state/event.ts";
import type { CommittedLog } from "./committed-log.ts";
import type { Violation } from "./violation.ts";

export function checkHolds(log: CommittedLog): Violation[] {
  const recount = new Recount();
  for (const { idx, events } of log.batches) for (const event of events) recount.take(event, idx);
  return recount.violations;
}

interface SeenHold {
  hasElapsed: boolean;
  /** The task, or the handle, that probes. */
  probe: string | undefined;
}

class Recount {
  readonly violations: Violation[] = [];
  readonly #holdByTarget = new Map<string, SeenHold>();
  readonly #typeByAgent = new Map<string, string>();

  take(event: Event, idx: number): void {
    switch (event.type) {
      case "AgentJoined":
        if (event.agentType === undefined) this.#typeByAgent.delete(event.agent);
        else this.#typeByAgent.set(event.agent, event.agentType);
        return;
      case "HoldPlaced":
        this.#holdByTarget.set(targetOf(event), { hasElapsed: false, probe: undefined });
        return;
      case "HoldElapsed":
        return this.#elapse(event, idx);
      case "HoldEnded":
        this.#holdByTarget.delete(targetOf(event));
        return;
      case "AgentForgotten":
        this.#holdByTarget.delete(`agent ${event.agent}`);
        return;
      case "ResourceRemoved":
        this.#holdByTarget.delete(`resource ${event.resource}`);
        return;
      case "TaskAssigned":
        return this.#assign(event, idx);
      case "TaskCompleted":
      case "AttemptFailed":
      case "TaskFailed":
      case "TaskDeadLettered":
      case "TaskCancelled":
      case "TaskExpired":
        return this.#close(`task ${taskKey(event as TaskRef)}`);
      case "SlotGranted":
        for (const resource of new Set(event.resources)) {
          const hold = this.#holdByTarget.get(`resource ${resource}`);
          // The end of a probe may be the end of the attempt that holds the lease, so only a hold in force is judged.
          if (hold?.hasElapsed === false)
            this.#violate(`batch ${idx} grants ${event.handle} the resource ${resource}, which is on hold`);
        }
        return;
      default:
        return; // nothing is assigned, granted or held
    }
  }

  #elapse(event: EventOf<"HoldElapsed">, idx: number): void {
    const hold = this.#holdByTarget.get(targetOf(event));
    if (hold === undefined)
      this.#violate(`batch ${idx} ends the time of a hold on ${targetOf(event)}: there is none`);
    else hold.hasElapsed = true;
  }

  #assign(event: EventOf<"TaskAssigned">, idx: number): void {
    for (const target of [`agent ${event.agent}`, `type ${this.#typeByAgent.get(event.agent) ?? ""}`]) {
      const hold = this.#holdByTarget.get(target);
      if (hold === undefined) continue;
      if (!hold.hasElapsed || hold.probe !== undefined)
        this.#violate(`batch ${idx} assigns ${event.task} to ${event.agent}, and ${target} is on hold`);
      hold.probe = `task ${taskKey(event)}`;
    }
  }

  #close(probe: string): void {
    for (const hold of this.#holdByTarget.values()) if (hold.probe === probe) hold.probe = undefined;
  }

  #violate(sentence: string): void {
    this.violations.push({ promise: "P7", checker: "holds", sentence });
  }
}

function targetOf({ on, name }: { readonly on: string; readonly name: string }): string {
  return `${on} ${name}`;
}
