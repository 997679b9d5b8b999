// The proxy between real sockets: passing, holding back, cutting, healing.

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TcpProxy } from "./proxy.ts";

let server: Server;
let accepted: Socket[];
let proxy: TcpProxy;
const nodes: Socket[] = [];

beforeEach(async () => {
  accepted = [];
  server = createServer((socket) => {
    socket.on("error", () => undefined); // reset on purpose
    accepted.push(socket);
    server.emit("accepted");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  proxy = await TcpProxy.start({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
});

afterEach(async () => {
  for (const node of nodes.splice(0)) node.destroy();
  await proxy.close();
  await new Promise((resolve) => server.close(resolve));
});

describe("a proxy", () => {
  it("passes bytes both ways", async () => {
    const { node, peer } = await open();
    expect(await said(node, peer, "hello")).toBe("hello");
    expect(await said(peer, node, "welcome")).toBe("welcome");
  });

  it("holds back a single direction, and delivers the held bytes late", async () => {
    const { node, peer } = await open();
    proxy.stall("up");
    const late = said(node, peer, "late");
    expect(await said(peer, node, "in time")).toBe("in time");
    expect(peer.bytesRead).toBe(0);
    proxy.heal();
    expect(await late).toBe("late");
  });

  it("holds back new connections meanwhile", async () => {
    proxy.stall("down");
    const { node, peer } = await open();
    const late = said(peer, node, "late");
    expect(await said(node, peer, "in time")).toBe("in time");
    expect(node.bytesRead).toBe(0);
    proxy.heal();
    expect(await late).toBe("late");
  });

  it("resets open connections at a cut, and new connections until the healing", async () => {
    const { node, peer } = await open();
    const ends = [closing(node), closing(peer)];
    proxy.cut();
    await Promise.all(ends);
    expect(proxy.connections).toBe(0);
    await closing(dial());
    proxy.heal();
    const again = await open();
    expect(await said(again.node, again.peer, "again")).toBe("again");
  });
});

/** `once` would reject with the error that comes before. */
function closing(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

function dial(): Socket {
  const node = connect(proxy.port, "127.0.0.1");
  node.on("error", () => undefined); // reset on purpose
  nodes.push(node);
  return node;
}

async function open(): Promise<{ node: Socket; peer: Socket }> {
  const arrived = once(server, "accepted");
  const node = dial();
  await arrived;
  return { node, peer: accepted.at(-1) as Socket };
}

async function said(from: Socket, to: Socket, text: string): Promise<string> {
  const heard = once(to, "data");
  from.write(text);
  const [bytes] = (await heard) as [Buffer];
  return bytes.toString();
}
