// The NATS transport against the development broker, in the test's process.

import { DevelopmentBroker } from "../../src/broker/server.ts";
import { connectNats } from "../../src/transport/nats.ts";
import { describeTransport } from "../transport/conformance.ts";

describeTransport("development broker", async () => {
  const secret = "s3cret";
  const start = async (port: number) => {
    const broker = new DevelopmentBroker({ secret, port, serverName: "test" });
    await broker.listen();
    return broker;
  };
  let broker = await start(0);
  const { port } = broker;
  return {
    connect: () =>
      connectNats({
        urls: [`nats://127.0.0.1:${port}`],
        name: "conformance",
        credentials: { kind: "token", token: secret },
      }),
    cut: () => broker.close(),
    heal: async () => {
      broker = await start(port);
    },
    stop: () => broker.close(),
  };
});
