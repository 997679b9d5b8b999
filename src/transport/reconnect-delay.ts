// Delay before each attempt to reconnect: short at first, for a server that restarts, then longer with each
// attempt, for a server that stays away.

import { backOffMs } from "../back-off.ts";
import { limits } from "../limits.ts";

const backOff = { pauseMs: limits.reconnectMs, pauseMsMax: limits.reconnectMsMax };

export class ReconnectDelay {
  /** Delay of the next attempt, ms. The client library asks several times per attempt, so the value changes
   *  with reported attempts, not with each question. */
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
