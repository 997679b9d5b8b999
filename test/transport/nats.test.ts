// The NATS transport against each nats-server found. The development broker: test/broker/transport.test.ts.

import { connectNats } from "../../src/transport/nats.ts";
import { natsServersFor, startNatsServer } from "../support/nats-server.ts";
import { describeTransport } from "./conformance.ts";

for (const { path, version } of natsServersFor("transport conformance")) {
  describeTransport(`nats-server ${version}`, async () => {
    const server = await startNatsServer({ binary: path });
    return {
      connect: () => connectNats({ urls: [server.url], name: "conformance" }),
      cut: () => server.kill("SIGKILL"),
      heal: () => server.restart(),
      stop: () => server.stop(),
    };
  });
}
