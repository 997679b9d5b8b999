// Recounts, along the journal, the labels of agents, the needs of tasks, and who ran the last task of an affinity
// (invariant 58). A task goes to an agent with the labels it needs, and by affinity only to the last agent of that
// affinity. On purpose none of the code under test.

import { taskKey } from "../../ids.ts";
import type { Event, EventOf, TaskSpec } from "../../state/event.ts";
import { refOf } from "../../state/task-rows.ts";
import type { CommittedLog } from "./committed-log.ts";
import type { Violation } from "./violation.ts";

export function checkNeeds(log: CommittedLog): Violation[] {
  const recount = new Recount();
  for (const { idx, events } of log.batches) for (const event of events) recount.take(event, idx);
  return recount.violations;
}

class Recount {
  readonly violations: Violation[] = [];
  readonly #labelsByAgent = new Map<string, Readonly<Record<string, string>>>();
  readonly #specByTask = new Map<string, TaskSpec>();
  readonly #agentByAffinity = new Map<string, string>();

  take(event: Event, idx: number): void {
    switch (event.type) {
      case "AgentJoined":
        this.#labelsByAgent.set(event.agent, event.labels ?? {});
        return;
      case "TaskSubmitted":
      case "TaskRetried":
        this.#specByTask.set(taskKey(refOf(event.task)), event.task);
        return;
      case "TaskAssigned":
        return this.#assign(event, idx);
      default:
        return; // nothing is assigned
    }
  }

  #assign(event: EventOf<"TaskAssigned">, idx: number): void {
    const spec = this.#specByTask.get(taskKey(event));
    const labels = this.#labelsByAgent.get(event.agent) ?? {};
    for (const [label, accepted] of Object.entries(spec?.needs ?? {})) {
      const value = labels[label];
      if (value === undefined || !accepted.includes(value))
        this.#violate(`batch ${idx} assigns ${event.task} to ${event.agent}, whose ${label} is ${value}`);
    }
    const affinity = spec?.affinity === undefined ? undefined : `${event.project} ${spec.affinity}`;
    const before = affinity === undefined ? undefined : this.#agentByAffinity.get(affinity);
    if (event.receipt.decidedBy === "affinity" && before !== event.agent)
      this.#violate(
        `batch ${idx} assigns ${event.task} to ${event.agent} by affinity, whose agent is ${before}`,
      );
    if (affinity !== undefined) this.#agentByAffinity.set(affinity, event.agent);
  }

  #violate(sentence: string): void {
    this.violations.push({ promise: "P7", checker: "needs", sentence });
  }
}
