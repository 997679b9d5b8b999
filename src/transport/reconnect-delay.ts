// How long a connection waits before it tries a lost server again: short at first, for a server that restarts, then
// longer with each attempt, for one that stays away.

import { backOffMs } from "../back-off.ts";
import { limits } from "../limits.ts";

const backOff = { pauseMs: limits.reconnectMs, pauseMsMax: limits.reconnectMsMax };

export class ReconnectDelay {
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
    this.delayMs = backOffMs(backOff, attempts + 1, Math.random());
  }
}
