// Notices credentials that a server refuses after it accepted them: revoked, or expired. A refusal that lasts ends the
// connection. A single one does not, for a server that is being replaced may refuse credentials for a moment.

import { limits } from "../limits.ts";

export class RefusedLogin {
  readonly #now: () => number;
  #since: number | undefined;
  #last = 0;

  /** @param now of a monotonic clock, ms */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The server refused the credentials. @returns whether it has done so for `limits.unauthorizedMs` */
  refused(): boolean {
    const now = this.#now();
    if (this.#since === undefined || now - this.#last > limits.unauthorizedGapMs) this.#since = now;
    this.#last = now;
    return now - this.#since >= limits.unauthorizedMs;
  }

  /** The server accepted the credentials. */
  accepted(): void {
    this.#since = undefined;
  }
}
