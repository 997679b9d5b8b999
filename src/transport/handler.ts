// How a subscription's handler is called: a handler that throws is a bug, and must not take the wire with it.
// Inside a client's read loop an exception ends the reading, and the connection hangs with nothing said.

import type { Message } from "./transport.ts";

/** What the handler throws becomes an uncaught exception of the process, as a bug should. */
export function callHandler(handler: (message: Message) => void, message: Message): void {
  try {
    handler(message);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
