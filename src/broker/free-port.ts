// Finds a port for a server that will restart at the same port.

import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";

/** Below the ports that Linux (from 32768), macOS and Windows (from 49152) assign to connections. Otherwise a
 *  connection could take the port while the server is away. */
const PORT_MIN = 20_000;
const PORT_MAX = 31_999;
const TRIES_MAX = 20;

/** A port of 127.0.0.1 that was free a moment ago. If many ports are taken, the kernel chooses.
 *  @param choose proposes a port */
export async function freePort(choose: () => number = anyPort): Promise<number> {
  for (let tried = 0; tried < TRIES_MAX; tried += 1) {
    const port = await listenable(choose()).catch(() => undefined);
    if (port !== undefined) return port;
  }
  return await listenable(0);
}

const anyPort = () => PORT_MIN + Math.floor(Math.random() * (PORT_MAX - PORT_MIN + 1));

/** @param port 0: any free port. @throws Error when the port is taken */
async function listenable(port: number): Promise<number> {
  const server = createServer().listen({ host: "127.0.0.1", port });
  await once(server, "listening");
  const { port: listened } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return listened;
}
