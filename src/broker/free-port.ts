// A port for a server that is to come back at the same one.

import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

/** Below the ports that Linux (from 32768), macOS and Windows (from 49152) give to connections: while the server is
 *  away, one of those could be at its port. */
const PORT_MIN = 20_000;
const PORT_MAX = 31_999;
const TRIES_MAX = 20;

/** A port of 127.0.0.1 that was free a moment ago; one that the kernel chooses where many others are taken.
 *  @param choose one to try */
export async function freePort(choose: () => number = anyPort): Promise<number> {
  for (let tried = 0; tried < TRIES_MAX; tried += 1) {
    const port = await listenable(choose()).catch(() => undefined);
    if (port !== undefined) return port;
  }
  return await listenable(0);
}

const anyPort = () => PORT_MIN + Math.floor(Math.random() * (PORT_MAX - PORT_MIN + 1));

/** @param port 0: any. @throws Error when somebody has it */
async function listenable(port: number): Promise<number> {
  const server = createServer().listen({ host: "127.0.0.1", port });
  await once(server, "listening");
  const { port: listened } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return listened;
}
