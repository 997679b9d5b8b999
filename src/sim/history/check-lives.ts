// Checks sessions of agents along the journal (P4). A fenced session never joins again. Neither does an ended session
// with assignments, until the agent is forgotten. A running session loses no attempt.
//
// An agent holds an attempt until the coordinator answers the result. So the leader declares an attempt lost only
// together with the session of the attempt.

import { taskKey } from "../../ids.ts";
import type { Event } from "../../state/event.ts";
import type { CommittedLog } from "./committed-log.ts";
import type { Violation } from "./violation.ts";

export function checkLives(line: CommittedLog): Violation[] {
  const lives = new Lives(line);
  for (const { idx, events } of line.batches) for (const event of events) lives.take(event, idx);
  return lives.violations;
}

class Lives {
  readonly violations: Violation[] = [];
  readonly #line: CommittedLog;
  /** By session that may not join again: the reason. */
  readonly #whyOver = new Map<string, string>();
  readonly #wasAssigned = new Set<string>();
  /** By session: the attempt declared lost, excused when the session ends. */
  readonly #lostByLife = new Map<string, string>();

  constructor(line: CommittedLog) {
    this.#line = line;
  }

  take(event: Event, idx: number): void {
    switch (event.type) {
      case "AgentJoined":
        if (this.#whyOver.has(lifeOf(event)))
          this.#violate(
            `batch ${idx} lets session ${lifeOf(event)} join again, though it ${this.#whyOver.get(lifeOf(event))}`,
          );
        return;
      case "AgentLeft":
        this.#lostByLife.delete(lifeOf(event));
        if (event.reason === "fenced") this.#whyOver.set(lifeOf(event), "was fenced");
        else if (this.#wasAssigned.has(lifeOf(event)))
          this.#whyOver.set(lifeOf(event), "had ended with assignments");
        return;
      case "AgentForgotten":
        for (const life of this.#whyOver.keys())
          if (life.startsWith(lifeOf({ agent: event.agent, incarnation: "" }))) this.#whyOver.delete(life);
        return;
      case "AttemptFailed":
      case "TaskDeadLettered": {
        const attempt = this.#line.taskById.get(taskKey(event))?.attempts.get(event.attempt);
        if (event.failure.class === "lost" && attempt !== undefined)
          this.#lostByLife.set(lifeOf(attempt), `attempt ${event.attempt} of ${event.task} in batch ${idx}`);
        return;
      }
      case "TaskAssigned": {
        const life = lifeOf(event);
        this.#wasAssigned.add(life);
        const lost = this.#lostByLife.get(life);
        this.#lostByLife.delete(life);
        if (lost !== undefined) this.#violate(`session ${life} goes on, but lost ${lost}`);
        return;
      }
      default:
        return; // of no life
    }
  }

  #violate(sentence: string): void {
    this.violations.push({ promise: "P4", checker: "lives", sentence });
  }
}

function lifeOf({ agent, incarnation }: { readonly agent: string; readonly incarnation: string }): string {
  return `${agent}/${incarnation}`;
}
