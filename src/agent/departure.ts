// How an agent drains and leaves: the actors of its chart that notify a leader and wait for unfinished work.

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
import type { IncarnationState } from "./incarnation-state.ts";
import type { Answer, LeaderClient } from "./leader-client.ts";
import type { SessionLog } from "./link.ts";

export interface DepartureDeps {
  readonly leader: LeaderClient;
  readonly pace: RetryPace;
  readonly log: SessionLog;
  /** State of the present incarnation. */
  readonly current: () => IncarnationState;
  /** Sends a heartbeat at once, in states with heartbeats. */
  readonly heartbeatNow: () => void;
}

export class Departure {
  readonly #deps: DepartureDeps;

  constructor(deps: DepartureDeps) {
    this.#deps = deps;
  }

  drainLog(): Observable<never> {
    const { current, log, pace } = this.#deps;
    return interval(limits.agentDrainLookMs, schedulerOn(pace.clock)).pipe(
      map(() => waitOf(current().ledger)),
      distinctUntilChanged(),
      tap((wait) => {
        const { running, unanswered } = current().ledger;
        log.info({ running, unanswered }, `draining: the agent waits for ${wait}`);
      }),
      ignoreElements(),
    );
  }

  announcement(): Observable<AgentSignal> {
    const { current, pace, heartbeatNow } = this.#deps;
    heartbeatNow();
    return current().ledger.isEmpty$.pipe(
      lasting(limits.agentDrainUnheardMs, pace.clock),
      map(() => ({ type: "UNHEARD" })),
    );
  }

  debts(): Observable<AgentSignal> {
    return this.#deps.current().ledger.isEmpty$.pipe(
      filter((isEmpty) => isEmpty),
      map(() => ({ type: "SETTLED" })),
    );
  }

  goodbye(): Observable<AgentSignal> {
    return retryPaused(() => from(this.farewell()).pipe(map(signalOfFarewell)), this.#deps.pace);
  }

  /** Notifies a leader once that the agent leaves. */
  async farewell(): Promise<Answer<unknown>> {
    const { leader, current } = this.#deps;
    return await leader.ask("leave", { incarnation: current().incarnation }, okResponseSchema);
  }
}

/** @throws TryAgain */
function signalOfFarewell({ kind }: Answer<unknown>): AgentSignal {
  if (kind === "unanswered") throw new TryAgain();
  return { type: "LEFT" };
}

function waitOf({ isEmpty, running }: AttemptLedger): string {
  if (isEmpty) return "a leader";
  return running > 0 ? "handlers" : "a leader to accept its results";
}
