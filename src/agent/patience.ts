// Waiting before something is tried again: longer each time, spread by chance, and cut short when there is
// reason to hope (the connection is back, somebody new leads).

import type { Clock, Random } from "../clock.ts";
import { limits } from "../limits.ts";

export class Patience {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #waiting = new Set<() => void>();

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Resolves after the back-off for the `failures`-th failure in a row, from 1, or when cut short. */
  async afterFailure(failures: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const end = () => {
        cancel();
        this.#waiting.delete(end);
        resolve();
      };
      const cancel = this.#clock.after(this.#backOffMs(failures), end);
      this.#waiting.add(end);
    });
  }

  /** Ends every wait now. */
  cutShort(): void {
    for (const end of [...this.#waiting]) end();
  }

  #backOffMs(failures: number): number {
    const longest = Math.min(limits.agentRetryMsMax, limits.agentRetryMs * 2 ** (failures - 1));
    return longest * (0.5 + this.#random.next() / 2);
  }
}
