// Isolation: a leader reaches its journal, and no agent or client reaches the leader. It would renew its term, and
// keep standbys from leading that agents and clients can reach. After `isolationMs` the leader steps down
// (docs/adr/0012-a-journal-that-loses-records.md). Not here: stepping down (hand-over.ts).

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import { GracePeriod } from "../../grace-period.ts";
import type { Term } from "../../ids.ts";
import type { Journal } from "../../journal/journal.ts";
import type { Timing } from "../timing.ts";
import type { Commits } from "./commits.ts";

export interface IsolationDeps {
  readonly term: () => Term;
  readonly timing: Timing;
  readonly journal: Pick<Journal, "sharable">;
  readonly commits: Pick<Commits, "holdsLease">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The process and its connection to agents and clients, at one look. */
export interface Reach {
  /** The process stood still before the look. */
  readonly isLate: boolean;
  readonly isConnected: boolean;
}

export class Isolation {
  readonly #deps: IsolationDeps;
  readonly #gracePeriod: GracePeriod;

  constructor(deps: IsolationDeps) {
    this.#deps = deps;
    this.#gracePeriod = new GracePeriod(deps.clock, deps.timing.isolationMs);
  }

  /** Looks once more. To be called at each pulse while the coordinator leads.
   *  @returns whether the leader is to step down; the log then says so */
  isBelieved({ isLate, isConnected }: Reach): boolean {
    const { term, timing, journal, commits, logger } = this.#deps;
    const isIsolated = !isConnected && commits.holdsLease && journal.sharable;
    if (isLate || !isIsolated) {
      this.renew();
      return false;
    }
    if (!this.#gracePeriod.isBelieved()) return false;
    logger.error(
      { term: term(), isolationMs: timing.isolationMs },
      "this coordinator reaches the journal, but no agent or client reaches it: it ends its term, and a standby may lead. Find out why its connection to the server does not come back",
    );
    return true;
  }

  /** Clients could reach the leader just now. */
  renew(): void {
    this.#gracePeriod.renew();
  }
}
