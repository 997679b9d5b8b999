// The HTTP server of `/metrics`. Reads only, and serves nothing else. Not here: the text (registry.ts).

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { InvalidConfigError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { ListenAddress } from "./listen-address.ts";
import { contentType } from "./registry.ts";

export interface MetricsServer {
  /** `http://127.0.0.1:9464/metrics` */
  readonly url: string;
  /** True if other machines may read the metrics. */
  readonly isPublic: boolean;
  /** Closes all connections. Idempotent. */
  close(): Promise<void>;
}

const PATH = "/metrics";

/** Serves a text on `/metrics`. @param text called for each request
 *  @throws InvalidConfigError for an address that cannot be listened on */
export async function serveMetrics(address: ListenAddress, text: () => string): Promise<MetricsServer> {
  const server = createServer({ requestTimeout: limits.metricsRequestMs }, (request, response) =>
    answer(request, response, text),
  );
  server.maxConnections = limits.metricsConnectionsMax;
  await listening(server, address);
  const { address: ip, port } = server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  return {
    url: `http://${hostText(address.host)}:${port}${PATH}`,
    isPublic: !isLoopback(ip),
    close: () => {
      closed ??= new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      return closed;
    },
  };
}

function hostText(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

function isLoopback(ip: string): boolean {
  return ip === "::1" || ip.startsWith("127.") || ip.startsWith("::ffff:127.");
}

async function listening(server: Server, { host, port }: ListenAddress): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) =>
      reject(new InvalidConfigError(`metrics: ${whyNot(cause, `${hostText(host)}:${port}`)}`, { cause })),
    );
    server.listen({ host, port }, resolve);
  });
  server.removeAllListeners("error");
  server.on("error", () => undefined); // a connection that could not be accepted: the next one may be
}

function whyNot({ code, message }: NodeJS.ErrnoException, where: string): string {
  switch (code) {
    case "EADDRINUSE":
      return `${where} is in use by another process; give --metrics a different port, or port 0 for any free port`;
    case "EADDRNOTAVAIL":
      return `${where} is no address of this machine; give --metrics 127.0.0.1:PORT, or 0.0.0.0:PORT for all addresses`;
    case "EACCES":
      return `${where} needs rights that this process lacks; give --metrics a port from 1024 on`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `the name in ${where} is unknown; give --metrics an address, like 127.0.0.1:PORT`;
    default:
      return `${where} cannot be listened on: ${message}`;
  }
}

function answer(request: IncomingMessage, response: ServerResponse, text: () => string): void {
  const { method, url = "" } = request;
  if (url.split("?")[0] !== PATH) return refuse(response, 404, `not found: the metrics are at ${PATH}`);
  if (method !== "GET" && method !== "HEAD") {
    response.setHeader("Allow", "GET, HEAD");
    return refuse(response, 405, `${method} is not allowed: use GET`);
  }
  const body = Buffer.from(text());
  response.writeHead(200, { "Content-Type": contentType, "Content-Length": body.length });
  response.end(method === "HEAD" ? undefined : body);
}

function refuse(response: ServerResponse, status: 404 | 405, sentence: string): void {
  response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8" });
  response.end(`${sentence}\n`);
}
