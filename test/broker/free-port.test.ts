// Ports for servers that restart at the same port.

import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { freePort } from "../../src/broker/free-port.ts";

let taken: Server;
let takenPort: number;

beforeEach(async () => {
  taken = createServer().listen({ host: "127.0.0.1", port: 0 });
  await once(taken, "listening");
  takenPort = (taken.address() as AddressInfo).port;
});
afterEach(() => void taken.close());

it("are outside the kernel's range for connections: no connection takes the port while the server is away", async () => {
  const ports = await Promise.all(Array.from({ length: 100 }, () => freePort()));
  expect(Math.min(...ports)).toBeGreaterThan(1_023);
  expect(Math.max(...ports)).toBeLessThan(32_768);
  expect(new Set(ports).size).toBeGreaterThan(90);
});

it("are never taken ports", async () => {
  const free = await freePort();
  const tries = [takenPort, takenPort, free];
  expect(await freePort(() => tries.shift() ?? expect.fail("it goes on"))).toBe(free);
});

it("are any where many are taken", async () => {
  const port = await freePort(() => takenPort);
  expect(port).not.toBe(takenPort);
  expect(port).toBeGreaterThan(0);
});
