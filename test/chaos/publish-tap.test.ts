// Messages read from a connection's bytes, with any cuts.

import { connect } from "@nats-io/transport-node";
import { describe, expect, it } from "vitest";
import { natsServersFor, startNatsServer } from "../support/nats-server.ts";
import { TcpProxy } from "./proxy.ts";
import { PublishTap } from "./publish-tap.ts";

const HEADERS = "NATS/1.0\r\nA: b\r\n\r\n";
const sent = [
  'CONNECT {"verbose":false}\r\nPING\r\nSUB _INBOX.x.* 1\r\n',
  "PUB journal _INBOX.x.1 3\r\none\r\n",
  "PUB other 15\r\nPUB journal 0\r\n\r\n",
  `HPUB journal _INBOX.x.2 ${HEADERS.length} ${HEADERS.length + 5}\r\n${HEADERS}t\r\nwo\r\n`,
  "PUB journal 0\r\n\r\nPONG\r\n",
  "PUB journal 9\r\nnot whole",
].join("");

describe("a tap", () => {
  it.each([1, 2, 7, 1_000])("reads what is published on its subject, %i bytes at a time", (size) => {
    const read: string[] = [];
    const tap = new PublishTap(
      (each) => each === "journal",
      (payload) => read.push(Buffer.from(payload).toString()),
    );
    for (let at = 0; at < sent.length; at += size) tap.push(Buffer.from(sent.slice(at, at + size)));
    expect(read).toEqual(["one", "t\r\nwo", ""]);
  });
});

it.each(natsServersFor("tap"))(
  "hears through a proxy what nats-server $version is told",
  async ({ path }) => {
    const server = await startNatsServer({ binary: path });
    const read: string[] = [];
    const tap = () =>
      new PublishTap(
        (each) => each === "journal",
        (payload) => read.push(Buffer.from(payload).toString()),
      );
    const proxy = await TcpProxy.start({ host: "127.0.0.1", port: server.port }, tap);
    try {
      const connection = await connect({ servers: proxy.url });
      for (const payload of ["one", "two"]) connection.publish("journal", payload);
      connection.publish("other", "three");
      await connection.flush();
      await connection.close();
      expect(read).toEqual(["one", "two"]);
    } finally {
      await proxy.close();
      await server.stop();
    }
  },
);
