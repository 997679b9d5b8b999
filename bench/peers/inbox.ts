// The physical path of core NATS: publish, an own inbox, a map of waiting tasks. Keeps nothing, and has no time-outs.
// The workers are those of bare request/reply.

import { createInbox } from "@nats-io/transport-node";
import { worker as bareWorker, connectTo } from "./bare.ts";
import type { Client, PeerConfig } from "./peer.ts";
import { waiters } from "./waiters.ts";

export const worker = bareWorker;

export async function client(config: PeerConfig): Promise<Client> {
  const connection = await connectTo(config);
  const inbox = createInbox();
  const { open, end } = waiters();
  connection.subscribe(`${inbox}.*`, {
    callback: (_, { subject }) => end(subject.slice(inbox.length + 1)),
  });
  await connection.flush();
  return {
    one: (payload) => {
      const { id, ended } = open();
      connection.publish("bare.request", payload, { reply: `${inbox}.${id}` });
      return ended;
    },
  };
}
