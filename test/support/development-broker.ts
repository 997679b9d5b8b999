// A development broker within the test's process, and a connection to it, for tests of clients in other languages.

import { DevelopmentBroker } from "../../src/broker/server.ts";
import { connectNats, type NatsTransport } from "../../src/transport/nats.ts";

const secret = "for-tests-only";

export interface TestBroker {
  /** With the secret, for a client in another process. */
  readonly url: string;
  readonly address: {
    readonly urls: readonly string[];
    readonly credentials: { readonly kind: "token"; readonly token: string };
  };
  readonly transport: NatsTransport;
  /** Closes the connection, then the broker. */
  close(): Promise<void>;
}

export async function startTestBroker(): Promise<TestBroker> {
  const broker = new DevelopmentBroker({ secret, port: 0, serverName: "test" });
  const port = await broker.listen();
  const address = {
    urls: [`nats://127.0.0.1:${port}`],
    credentials: { kind: "token", token: secret },
  } as const;
  const transport = await connectNats({ ...address, name: "test" });
  return {
    url: `nats://${secret}@127.0.0.1:${port}`,
    address,
    transport,
    close: async () => {
      await transport.close();
      await broker.close();
    },
  };
}
