// What is published while the connection is away: kept in order, up to a bound, sent when it is back.
// Beyond the bound a message is lost, as it might be on any broken wire; whoever must know uses requests.

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

  /** Everything kept, oldest first; nothing is kept afterwards. */
  take(): readonly Message[] {
    const taken = this.#messages;
    this.#messages = [];
    this.#bytes = 0;
    return taken;
  }
}
