// Moleculer over NATS with its own balancer and the serializer that its documentation calls the fastest. Metrics,
// tracing and the logger are off. Keeps nothing.

import moleculer from "moleculer";
import type { Client, PeerConfig } from "./peer.ts";

const workersMin = 2;

function broker(nodeID: string, { url = "", serializer = "CBOR" }: PeerConfig): moleculer.ServiceBroker {
  return new moleculer.ServiceBroker({
    nodeID,
    transporter: { type: "NATS", options: { url } },
    serializer: serializer as "CBOR",
    logger: false,
    metrics: false,
    tracing: false,
  });
}

export async function worker(config: PeerConfig): Promise<void> {
  const own = broker(`worker-${process.pid}`, config);
  own.createService({ name: "noop", actions: { run: () => "ok" } });
  await own.start();
}

export async function client(config: PeerConfig): Promise<Client> {
  const own = broker(`client-${process.pid}`, config);
  await own.start();
  await own.waitForServices("noop");
  const { nodes } = own.registry;
  const known = () => (nodes.list({ onlyAvailable: true }) as { id: string }[]).map(({ id }) => id);
  while (known().filter((id) => id.startsWith("worker-")).length < workersMin)
    await new Promise((resolve) => setTimeout(resolve, 50));
  return { one: (payload) => own.call("noop.run", { payload }) };
}
