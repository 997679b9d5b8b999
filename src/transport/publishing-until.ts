// Wraps a connection whose user can be cut off: afterwards the wrapper publishes nothing for the user.

import type { Transport } from "./transport.ts";

export function publishingUntil(isCut: () => boolean, transport: Transport): Transport {
  return {
    inboxPrefix: transport.inboxPrefix,
    get maxPayloadBytes() {
      return transport.maxPayloadBytes;
    },
    publish: (subject, data, reply) => {
      if (!isCut()) transport.publish(subject, data, reply);
    },
    request: (subject, data, options) => transport.request(subject, data, options),
    subscribe: (subject, handler, options) => transport.subscribe(subject, handler, options),
    onStatus: (listener) => transport.onStatus(listener),
    status: () => transport.status(),
    flush: () => transport.flush(),
    close: () => transport.close(),
  };
}
