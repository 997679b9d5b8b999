// Bare NATS: request/reply with a queue group, by the client's own API. Keeps nothing.

import { connect, type NatsConnection } from "@nats-io/transport-node";
import type { Client, PeerConfig } from "./peer.ts";

export async function connectTo({ url = "" }: PeerConfig): Promise<NatsConnection> {
  return await connect({ servers: url.split(",") });
}

export async function worker(config: PeerConfig): Promise<void> {
  const connection = await connectTo(config);
  connection.subscribe("bare.request", {
    queue: "workers",
    callback: (_, message) => {
      message.respond("ok");
    },
  });
  await connection.flush();
}

export async function client(config: PeerConfig): Promise<Client> {
  const connection = await connectTo(config);
  return { one: (payload) => connection.request("bare.request", payload, { timeout: 30_000 }) };
}
