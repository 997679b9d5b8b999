// A connection as it is, until its user is cut off: from then on nothing is published for that user.

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
