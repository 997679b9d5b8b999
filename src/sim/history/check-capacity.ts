// Recounts, along the journal, which attempts occupy each agent's capacity and each resource's slots (P7). A revoked
// attempt occupies capacity until its release. Budgets: core/ledger-invariants.ts.

import type { Event } from "../../state/event.ts";
import type { CommittedLog } from "./committed-log.ts";
import type { Violation } from "./violation.ts";

export function checkCapacity(log: CommittedLog): Violation[] {
  const recount = new Recount();
  for (const { idx, events } of log.batches) for (const event of events) recount.take(event, idx);
  return recount.violations;
}

class Recount {
  readonly violations: Violation[] = [];
  readonly #capacityByAgent = new Map<string, number>();
  readonly #openByAgent = new Map<string, Set<string>>();
  readonly #slotsByResource = new Map<string, number>();
  readonly #inUseByResource = new Map<string, number>();

  take(event: Event, idx: number): void {
    switch (event.type) {
      case "AgentJoined":
        this.#capacityByAgent.set(event.agent, event.maxConcurrent + (event.prefetch ?? 0));
        return;
      case "TaskAssigned":
        return this.#assign(event, idx);
      case "TaskCompleted":
      case "TaskFailed":
      case "AttemptReleased":
        return this.#free(event);
      case "AttemptFailed":
      case "TaskDeadLettered":
        if (event.revoked !== true) this.#free(event);
        return;
      case "ResourceConfigured":
        this.#slotsByResource.set(event.resource, event.settings.slots);
        return;
      case "SlotGranted":
        return this.#grant(event, idx);
      case "SlotReleased":
        for (const resource of event.resources) this.#count(resource, -1);
        return;
      default:
        return; // occupies and frees nothing
    }
  }

  #assign(event: Extract<Event, { type: "TaskAssigned" }>, idx: number): void {
    const open = this.#openByAgent.get(event.agent) ?? new Set();
    this.#openByAgent.set(event.agent, open.add(keyOf(event)));
    const capacity = this.#capacityByAgent.get(event.agent) ?? 0;
    if (open.size > capacity)
      this.#violate(
        `batch ${idx} gives agent ${event.agent} ${open.size} attempts, more than its capacity ${capacity}`,
      );
  }

  #free(event: { readonly agent: string; readonly task: string; readonly attempt: number }): void {
    this.#openByAgent.get(event.agent)?.delete(keyOf(event));
  }

  #grant(event: Extract<Event, { type: "SlotGranted" }>, idx: number): void {
    for (const resource of event.resources) {
      const inUse = this.#count(resource, 1);
      const slots = this.#slotsByResource.get(resource) ?? 0;
      if (inUse > slots)
        this.#violate(`batch ${idx} grants slot ${inUse} of resource ${resource}, which has ${slots}`);
    }
  }

  #count(resource: string, more: 1 | -1): number {
    const inUse = (this.#inUseByResource.get(resource) ?? 0) + more;
    this.#inUseByResource.set(resource, inUse);
    return inUse;
  }

  #violate(sentence: string): void {
    this.violations.push({ promise: "P7", checker: "capacity", sentence });
  }
}

function keyOf({ task, attempt }: { readonly task: string; readonly attempt: number }): string {
  return `${task}#${attempt}`;
}
