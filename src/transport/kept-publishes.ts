// Messages published during a reconnect: kept in order, up to a bound, and sent after the reconnect. Messages
// beyond the bound are lost, as on any broken connection. Callers that need certainty use requests.

import { limits } from "../limits.ts";
import type { Message } from "./transport.ts";

export class KeptPublishes {
  #messages: Message[] = [];
  #bytes = 0;

  keep(message: Message): void {
    const bytes = message.subject.length + message.data.length;
    if (this.#bytes + bytes > limits.keptPublishBytesMax) return;
    this.#bytes += bytes;
    this.#messages.push(message);
  }

  /** Returns all kept messages, oldest first, and keeps none. */
  take(): readonly Message[] {
    const taken = this.#messages;
    this.#messages = [];
    this.#bytes = 0;
    return taken;
  }
}
