// Logs the server's reason when the journal acknowledges nothing, as far as the server gives one: a server with a full
// disk may not answer at all. The first line comes after a while, because a server that fails over is silent for a
// moment; then once a minute.

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

  /** A batch may or may not be stored. @param sentMonotonicMs when it was sent first */
  notice(cause: unknown, sentMonotonicMs: number): void {
    const now = this.#clock.monotonicMs();
    const forMs = Math.round(now - sentMonotonicMs);
    const isDue = now - this.#saidMonotonicMs >= limits.unacknowledgedAgainMs;
    if (forMs < limits.unacknowledgedMs || !isDue) return;
    this.#saidMonotonicMs = now;
    this.#logger.warn(
      { err: cause, forMs },
      "the journal does not acknowledge batches: nothing is done or answered until it does; look at the server's log and at its disk",
    );
  }
}
