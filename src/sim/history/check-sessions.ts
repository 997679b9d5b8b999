// Checks sessions of agents along the journal (P4). A fenced session never joins again. Neither does an ended session
// with assignments, until the agent is forgotten. A running session loses no attempt.
//
// An agent holds an attempt until the coordinator answers the result. So the leader declares an attempt lost only
// together with the session of the attempt.

import { taskKey } from "../../ids.ts";
import type { Event } from "../../state/event.ts";
import type { CommittedLog } from "./committed-log.ts";
import type { Violation } from "./violation.ts";

export function checkSessions(log: CommittedLog): Violation[] {
  const sessions = new Sessions(log);
  for (const { idx, events } of log.batches) for (const event of events) sessions.take(event, idx);
  return sessions.violations;
}

class Sessions {
  readonly violations: Violation[] = [];
  readonly #log: CommittedLog;
  /** By session that may not join again: the reason. */
  readonly #whyOver = new Map<string, string>();
  readonly #wasAssigned = new Set<string>();
  /** By session: the attempt declared lost, excused when the session ends. */
  readonly #lostBySession = new Map<string, string>();

  constructor(log: CommittedLog) {
    this.#log = log;
  }

  take(event: Event, idx: number): void {
    switch (event.type) {
      case "AgentJoined":
        if (this.#whyOver.has(sessionOf(event)))
          this.#violate(
            `batch ${idx} lets session ${sessionOf(event)} join again, though it ${this.#whyOver.get(sessionOf(event))}`,
          );
        return;
      case "AgentLeft":
        this.#lostBySession.delete(sessionOf(event));
        if (event.reason === "fenced") this.#whyOver.set(sessionOf(event), "was fenced");
        else if (this.#wasAssigned.has(sessionOf(event)))
          this.#whyOver.set(sessionOf(event), "had ended with assignments");
        return;
      case "AgentForgotten":
        for (const session of this.#whyOver.keys())
          if (session.startsWith(sessionOf({ agent: event.agent, incarnation: "" })))
            this.#whyOver.delete(session);
        return;
      case "AttemptFailed":
      case "TaskDeadLettered": {
        const attempt = this.#log.taskById.get(taskKey(event))?.attempts.get(event.attempt);
        if (event.failure.class === "lost" && attempt !== undefined)
          this.#lostBySession.set(
            sessionOf(attempt),
            `attempt ${event.attempt} of ${event.task} in batch ${idx}`,
          );
        return;
      }
      case "TaskAssigned": {
        const session = sessionOf(event);
        this.#wasAssigned.add(session);
        const lost = this.#lostBySession.get(session);
        this.#lostBySession.delete(session);
        if (lost !== undefined) this.#violate(`session ${session} goes on, but lost ${lost}`);
        return;
      }
      default:
        return; // of no session
    }
  }

  #violate(sentence: string): void {
    this.violations.push({ promise: "P4", checker: "sessions", sentence });
  }
}

function sessionOf({ agent, incarnation }: { readonly agent: string; readonly incarnation: string }): string {
  return `${agent}/${incarnation}`;
}
