// The server of metrics over real sockets: what is answered, what is refused, and addresses that cannot be served.

import { createServer, type Server } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { InvalidConfigError } from "../../src/errors.ts";
import { listenAddressIn } from "../../src/metrics/listen-address.ts";
import { type MetricsServer, serveMetrics } from "../../src/metrics/metrics-server.ts";
import { contentType } from "../../src/metrics/registry.ts";

const anyPort = { host: "127.0.0.1", port: 0 };
let server: MetricsServer | undefined;

afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function served(text = "waggle_a 1\n"): Promise<MetricsServer> {
  server = await serveMetrics(anyPort, () => text);
  return server;
}

describe("the server", () => {
  it("answers /metrics with the text of the moment", async () => {
    let reads = 0;
    server = await serveMetrics(anyPort, () => `waggle_a ${++reads}\n`);
    const first = await fetch(server.url);
    expect(first.status).toBe(200);
    expect(first.headers.get("content-type")).toBe(contentType);
    expect(await first.text()).toBe("waggle_a 1\n");
    expect(await (await fetch(`${server.url}?from=somebody`)).text()).toBe("waggle_a 2\n");
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
    expect(server.isPublic).toBe(false);
  });

  it("answers HEAD without a body", async () => {
    const { url } = await served();
    const answer = await fetch(url, { method: "HEAD" });
    expect([answer.status, answer.headers.get("content-length"), await answer.text()]).toEqual([
      200,
      "11",
      "",
    ]);
  });

  it.each(["/", "/metric", "/metrics/", "/metrics/x", "/..", "/%6detrics"])(
    "has nothing at %s",
    async (path) => {
      const { url } = await served();
      const answer = await fetch(`${new URL(url).origin}${path}`);
      expect([answer.status, await answer.text()]).toEqual([404, "not found: the metrics are at /metrics\n"]);
    },
  );

  it.each(["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])("refuses %s", async (method) => {
    const { url } = await served();
    const answer = await fetch(url, { method });
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    expect(await answer.text()).toBe(`${method} is not allowed: use GET\n`);
  });

  it("closes open connections, once", async () => {
    const { url, close } = await served();
    await (await fetch(url)).text(); // leaves a connection open
    await close();
    await close();
    await expect(fetch(url)).rejects.toThrow();
  });

  it("warns of readers on other machines", async () => {
    server = await serveMetrics({ host: "0.0.0.0", port: 0 }, () => "");
    expect(server.isPublic).toBe(true);
  });
});

describe("an address that cannot be served is refused", () => {
  let other: Server | undefined;
  afterEach(() => other?.close());

  it("when a process listens on the port", async () => {
    other = createServer();
    await new Promise<void>((resolve) => other?.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as { port: number };
    const refused = serveMetrics({ host: "127.0.0.1", port }, () => "");
    await expect(refused).rejects.toThrow(
      `metrics: 127.0.0.1:${port} is in use by another process; give --metrics`,
    );
    await expect(refused).rejects.toBeInstanceOf(InvalidConfigError);
  });

  it("when the address is of a different machine", async () => {
    const refused = serveMetrics({ host: "192.0.2.1", port: 9464 }, () => "");
    await expect(refused).rejects.toThrow("192.0.2.1:9464 is no address of this machine");
  });
});

describe("HOST:PORT", () => {
  it.each([
    ["127.0.0.1:9464", "127.0.0.1", 9464],
    ["localhost:0", "localhost", 0],
    ["[::1]:65535", "::1", 65_535],
    ["metrics-1.example.org:80", "metrics-1.example.org", 80],
  ])("%s", (text, host, port) => {
    expect(listenAddressIn(text)).toEqual({ host, port });
  });

  it.each([
    "",
    ":9464",
    "9464",
    "127.0.0.1",
    "127.0.0.1:",
    "127.0.0.1:65536",
    "127.0.0.1:-1",
    "127.0.0.1:1e3",
    "::1:9464",
    "http://127.0.0.1:9464",
    "127.0.0.1:9464/metrics",
    "a b:1",
  ])("%j is none", (text) => {
    expect(listenAddressIn(text)).toBeUndefined();
  });
});
