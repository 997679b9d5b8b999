// How an agent drains and leaves: the actors of its chart that say so to a leader and wait for what is still owed.

import {
  distinctUntilChanged,
  filter,
  from,
  ignoreElements,
  interval,
  map,
  type Observable,
  tap,
} from "rxjs";
import type { AgentSignal } from "../../machines/agent.ts";
import { schedulerOn } from "../clock-scheduler.ts";
import { lasting } from "../lasting.ts";
import { limits } from "../limits.ts";
import { okResponseSchema } from "../protocol/schemas.ts";
import { type RetryPace, retryPaused, TryAgain } from "../retry-paused.ts";
import type { AttemptLedger } from "./attempt-ledger.ts";
import type { Answer, LeaderLine } from "./leader-line.ts";
import type { Life } from "./life.ts";
import type { SessionLog } from "./link.ts";

export interface DepartureDeps {
  readonly line: LeaderLine;
  readonly pace: RetryPace;
  readonly log: SessionLog;
  /** The present incarnation. */
  readonly life: () => Life;
  /** Sends a heartbeat at once, where heartbeats are sent. */
  readonly beatNow: () => void;
}

export class Departure {
  readonly #deps: DepartureDeps;

  constructor(deps: DepartureDeps) {
    this.#deps = deps;
  }

  drainLog(): Observable<never> {
    const { life, log, pace } = this.#deps;
    return interval(limits.agentDrainLookMs, schedulerOn(pace.clock)).pipe(
      map(() => waitOf(life().ledger)),
      distinctUntilChanged(),
      tap((wait) => {
        const { running, unanswered } = life().ledger;
        log.info({ running, unanswered }, `draining: the agent waits for ${wait}`);
      }),
      ignoreElements(),
    );
  }

  announcement(): Observable<AgentSignal> {
    const { life, pace, beatNow } = this.#deps;
    beatNow();
    return life().ledger.isEmpty$.pipe(
      lasting(limits.agentDrainUnheardMs, pace.clock),
      map(() => ({ type: "UNHEARD" })),
    );
  }

  debts(): Observable<AgentSignal> {
    return this.#deps.life().ledger.isEmpty$.pipe(
      filter((isEmpty) => isEmpty),
      map(() => ({ type: "SETTLED" })),
    );
  }

  goodbye(): Observable<AgentSignal> {
    return retryPaused(() => from(this.farewell()).pipe(map(signalOfFarewell)), this.#deps.pace);
  }

  /** Tells a leader once that the agent leaves. */
  async farewell(): Promise<Answer<unknown>> {
    const { line, life } = this.#deps;
    return await line.ask("leave", { incarnation: life().incarnation }, okResponseSchema);
  }
}

/** @throws TryAgain */
function signalOfFarewell({ kind }: Answer<unknown>): AgentSignal {
  if (kind === "unanswered") throw new TryAgain();
  return { type: "LEFT" };
}

function waitOf({ isEmpty, running }: AttemptLedger): string {
  if (isEmpty) return "a leader";
  return running > 0 ? "handlers" : "a leader to take its results";
}
