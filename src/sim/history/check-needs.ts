// Recounts, along the journal, the labels of agents, the needs of tasks, and who ran the last task of an affinity
// (invariant 58). A task goes to an agent with the labels it needs, and by affinity only to the last agent of that
// affinity. Once the affinity is forgotten, the end of an attempt may begin it anew. On purpose none of the code under
// test.

import { taskKey } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { Event, EventOf, TaskSpec } from "../../state/event.ts";
import { refOf } from "../../state/task-rows.ts";
import type { CommittedLog, LogBatch } from "./committed-log.ts";
import type { Violation } from "./violation.ts";

export function checkNeeds(log: CommittedLog): Violation[] {
  const recount = new Recount();
  for (const batch of log.batches) for (const event of batch.events) recount.take(event, batch);
  return recount.violations;
}

type End = EventOf<"TaskCompleted" | "AttemptFailed" | "TaskFailed" | "TaskDeadLettered">;

/** Who may be preferred by an affinity. */
interface Affine {
  /** The agent of the last assignment. */
  readonly agent: string;
  /** Agents whose attempts ended since, after the affinity was forgotten. */
  readonly later: Set<string>;
  usedAt: number;
}

class Recount {
  readonly violations: Violation[] = [];
  readonly #labelsByAgent = new Map<string, Readonly<Record<string, string>>>();
  readonly #specByTask = new Map<string, TaskSpec>();
  readonly #affineByAffinity = new Map<string, Affine>();

  take(event: Event, batch: Pick<LogBatch, "idx" | "at">): void {
    switch (event.type) {
      case "AgentJoined":
        this.#labelsByAgent.set(event.agent, event.labels ?? {});
        return;
      case "TaskSubmitted":
      case "TaskRetried":
        this.#specByTask.set(taskKey(refOf(event.task)), event.task);
        return;
      case "TaskAssigned":
        return this.#assign(event, batch);
      case "TaskCompleted":
      case "AttemptFailed":
      case "TaskFailed":
      case "TaskDeadLettered":
        return this.#end(event, batch);
      default:
        return; // nothing is assigned
    }
  }

  #assign(event: EventOf<"TaskAssigned">, { idx, at }: Pick<LogBatch, "idx" | "at">): void {
    const labels = this.#labelsByAgent.get(event.agent) ?? {};
    const { needs = {} } = this.#specByTask.get(taskKey(event)) ?? {};
    for (const [label, accepted] of Object.entries(needs)) {
      const value = labels[label];
      if (value === undefined || !accepted.includes(value))
        this.#violate(`batch ${idx} assigns ${event.task} to ${event.agent}, whose ${label} is ${value}`);
    }
    const affinity = this.#affinityOf(event);
    const before = affinity === undefined ? undefined : this.#affineByAffinity.get(affinity);
    const isIts = before?.agent === event.agent || before?.later.has(event.agent) === true;
    if (event.receipt.decidedBy === "affinity" && !isIts)
      this.#violate(
        `batch ${idx} assigns ${event.task} to ${event.agent} by affinity, whose agent is ${before?.agent}`,
      );
    if (affinity !== undefined)
      this.#affineByAffinity.set(affinity, { agent: event.agent, later: new Set(), usedAt: at });
  }

  #end(event: End, { at }: Pick<LogBatch, "at">): void {
    const affinity = this.#affinityOf(event);
    const known = affinity === undefined ? undefined : this.#affineByAffinity.get(affinity);
    if (known === undefined) return;
    if (at - known.usedAt >= limits.affinityMs) known.later.add(event.agent);
    if (event.agent === known.agent) known.usedAt = at;
  }

  #affinityOf(event: EventOf<"TaskAssigned"> | End): string | undefined {
    const affinity = this.#specByTask.get(taskKey(event))?.affinity;
    return affinity === undefined ? undefined : `${event.project} ${affinity}`;
  }

  #violate(sentence: string): void {
    this.violations.push({ promise: "P7", checker: "needs", sentence });
  }
}
