// How long a connection waits before it tries a lost server again: quick at first, for one that restarts, then
// twice as long each time, for one that stays away.

import { limits } from "../limits.ts";

export class BackOff {
  /** Of the next attempt. The client library asks several times for one attempt, so this changes with the
   *  attempts that it tells of, not with the questions. */
  delayMs: number = limits.reconnectMs;
  #attempts = 0;

  /** @param statuses of the connection, from its beginning to its end */
  async follow(statuses: AsyncIterable<{ readonly type: string }>): Promise<void> {
    for await (const { type } of statuses) {
      if (type === "reconnecting") this.#set(this.#attempts + 1);
      else if (type === "reconnect") this.#set(0);
    }
  }

  #set(attempts: number): void {
    this.#attempts = attempts;
    const delayMs = Math.min(limits.reconnectMsMax, limits.reconnectMs * 2 ** attempts);
    this.delayMs = delayMs * (0.5 + Math.random() / 2); // all agents lose a server at the same moment
  }
}
