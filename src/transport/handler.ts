// Calls a subscription's handler. A handler that throws is a bug, and must not break the connection: inside a
// client's read loop an exception ends the reading, and the connection hangs silently.

import type { Message } from "./transport.ts";

/** An exception of the handler becomes an uncaught exception of the process, as a bug should. */
export function callHandler(handler: (message: Message) => void, message: Message): void {
  try {
    handler(message);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
