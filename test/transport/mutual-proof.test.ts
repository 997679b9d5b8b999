// A client of a data folder's broker against processes that are not the broker. One listens, one plays a broker, and
// one passes everything on to the real broker.

import { once } from "node:events";
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { DevelopmentBroker } from "../../src/broker/server.ts";
import { brokerProof, clientAnswer } from "../../src/transport/mutual-proof.ts";
import { connectNats, type NatsOptions } from "../../src/transport/nats.ts";

const secret = "the-secret-of-this-folder";
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function startBroker(port = 0): Promise<DevelopmentBroker> {
  const broker = new DevelopmentBroker({ secret, port, serverName: "test" });
  await broker.listen();
  closing.push(() => broker.close());
  return broker;
}

/** @returns the port, and all bytes that clients sent */
async function startProcess(onClient: (socket: Socket) => void, port = 0) {
  const heard: string[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket.on("error", () => socket.destroy()));
    socket.on("data", (data) => heard.push(String(data)));
    onClient(socket);
  }).listen({ host: "127.0.0.1", port });
  await once(server, "listening");
  const close = async () => {
    server.close();
    for (const socket of sockets) socket.destroy();
    await once(server, "close");
  };
  closing.push(() => server.listening && close());
  return { port: (server.address() as AddressInfo).port, heard, close };
}

const connect = async (port: number, options: Partial<NatsOptions> = {}) => {
  const transport = await connectNats({
    urls: [`nats://127.0.0.1:${port}`],
    credentials: { kind: "secret", secret },
    name: "test",
    ...options,
  });
  closing.push(() => transport.close());
  return transport;
};

/** A server that lets every client in, and proves nothing. */
const playServer =
  (info: (port: number) => object) =>
  (socket: Socket): void => {
    socket.write(
      `INFO ${JSON.stringify({ version: "2.10.0", max_payload: 1024, headers: true, ...info(socket.localPort ?? 0) })}\r\n`,
    );
    socket.on("data", (data) => {
      if (String(data).includes("PING")) socket.write("PONG\r\n");
    });
  };

it.each([
  ["without a nonce", () => ({})],
  ["with a nonce of another kind", () => ({ nonce: "abcdefghijk" })],
  ["with a broker's nonce, which cannot prove itself", (port: number) => ({ nonce: `waggle-${port}-abc` })],
])("refuses a server %s, and sends it no secret", async (_name, info) => {
  const stranger = await startProcess(playServer(info));
  await expect(connect(stranger.port)).rejects.toThrow(/does not know the broker's secret/);
  expect(stranger.heard.join("")).toMatch(/^CONNECT/);
  expect(stranger.heard.join("")).not.toContain(secret);
});

it("refuses a process that passes everything on to the broker at its new port", async () => {
  const broker = await startBroker();
  const relay = await startProcess((socket) => {
    const onward = dial({ host: "127.0.0.1", port: broker.port });
    onward.on("error", () => socket.destroy());
    socket.pipe(onward).pipe(socket);
  });
  await expect(connect(relay.port)).rejects.toThrow(/refused the credentials/);
  expect((await connect(broker.port)).status()).toBe("connected");
});

it("publishes nothing to a process that took the broker's port, and goes back to the broker", async () => {
  const broker = await startBroker();
  const { port } = broker;
  const errors: string[] = [];
  const transport = await connect(port, { onError: (error) => errors.push(error.message) });
  const received: string[] = [];
  transport.subscribe("news", ({ data }) => received.push(String(data)));
  await broker.close();
  const stranger = await startProcess((socket) => {
    playServer(() => ({ nonce: `waggle-${port}-abc` }))(socket);
    socket.on("data", (data) => {
      const sid = /SUB news (\S+)/.exec(String(data))?.[1];
      if (sid !== undefined) socket.write(`MSG news ${sid} 4\r\nfake\r\n`);
    });
  }, port);
  await expect.poll(() => transport.status()).toBe("reconnecting");
  transport.publish("news", Buffer.from("private"));
  await expect
    .poll(() => errors.join(" "), { timeout: 10_000 })
    .toContain("is not the broker of this data folder");
  expect(transport.status()).toBe("reconnecting");
  await stranger.close();
  await startBroker(port);
  await expect.poll(() => transport.status(), { timeout: 10_000 }).toBe("connected");
  await expect.poll(() => received, { timeout: 5_000 }).toEqual(["private"]);
  expect(stranger.heard.join("")).not.toContain("private");
  expect(stranger.heard.join("")).not.toContain(secret);
});

it("answers as the page on the wire says", () => {
  const handshake = { secret: "s", nonce: "waggle-4222-n", challenge: "c" };
  // printf 'client\nwaggle-4222-n\nc' | openssl dgst -sha256 -hmac s
  expect(clientAnswer(handshake)).toBe("a0bca6a2ba4a68c4314a21c656c2c34b3aeeba76e22fb69f2885206fe1b4deed");
  expect(brokerProof(handshake)).toBe("40337f52d1331688a75c6871a00efbb9689a252674cb147102390115e06692d3");
});
