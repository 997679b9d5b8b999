// Says why the journal acknowledges nothing, as far as its server says so: one whose disk is full may not answer at
// all. Not at once, for a server that fails over is silent for a while, and then again each minute.

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import { limits } from "../../limits.ts";

export class UnacknowledgedLog {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #logger: Logger;
  #saidMonotonicMs = Number.NEGATIVE_INFINITY;

  constructor({ clock, logger }: { readonly clock: Pick<Clock, "monotonicMs">; readonly logger: Logger }) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** It is not known whether a batch is stored that was sent first at this time. */
  tell(cause: unknown, sentMonotonicMs: number): void {
    const now = this.#clock.monotonicMs();
    const forMs = Math.round(now - sentMonotonicMs);
    const isDue = now - this.#saidMonotonicMs >= limits.unacknowledgedAgainMs;
    if (forMs < limits.unacknowledgedMs || !isDue) return;
    this.#saidMonotonicMs = now;
    this.#logger.warn(
      { err: cause, forMs },
      "the journal does not acknowledge what is sent to it: nothing is done or answered until it does; look at the server's log and at its disk",
    );
  }
}
