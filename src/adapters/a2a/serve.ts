// The HTTP server of `waggle serve a2a`: the agent card, and JSON-RPC with answers as one document or as a stream of
// events. Not here: what the requests mean (request-handler.ts).

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { A2A_VERSION_HEADER, AGENT_CARD_PATH, AgentCard, formatSSEEvent, SSE_HEADERS } from "@a2a-js/sdk";
import { JsonRpcTransportHandler, ServerCallContext, validateVersion } from "@a2a-js/sdk/server";
import type { Logger } from "pino";
import type { ProjectSwarm } from "../../client/swarm.ts";
import { InvalidConfigError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { CardOptions } from "./card.ts";
import { admitted, type GuardOptions } from "./guard.ts";
import { GONE, SwarmRequestHandler } from "./request-handler.ts";

export interface A2aServerOptions extends Omit<CardOptions, "url" | "isGuarded">, GuardOptions {
  readonly swarm: string;
  /** Connection to the project whose tasks are served. */
  readonly connection: ProjectSwarm;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** In the card. Default: `http://HOST:PORT/`. */
  readonly publicUrl: string | undefined;
  readonly logger: Logger;
}

export interface A2aServer {
  /** Where clients send requests. */
  readonly url: string;
  /** Takes no new requests, and resolves when the open ones are answered. */
  drain(): Promise<void>;
  /** Closes all connections. */
  close(): void;
}

/** @throws InvalidConfigError for an address that cannot be listened on */
export async function serveA2a(options: A2aServerOptions): Promise<A2aServer> {
  const { connection, host, port, publicUrl, logger, token } = options;
  const server = createServer();
  server.maxConnections = limits.a2aConnectionsMax;
  await listening(server, { host, port });
  const { port: bound } = server.address() as AddressInfo;
  const url = publicUrl ?? `http://${host.includes(":") ? `[${host}]` : host}:${bound}/`;
  const handler = new SwarmRequestHandler(connection, { ...options, url, isGuarded: token !== undefined });
  const rpc = new JsonRpcTransportHandler(handler);
  server.on("request", (request, response) => {
    answer(request, response, { handler, rpc, options }).catch((error: unknown) => {
      logger.warn({ err: error }, "a request was not answered");
      response.destroy();
    });
  });
  return {
    url,
    drain: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      });
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function listening(
  server: Server,
  { host, port }: Pick<A2aServerOptions, "host" | "port">,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const isTaken = cause.code === "EADDRINUSE";
      const why = isTaken
        ? "another process uses it; give a different port, or 0 for any free port"
        : cause.message;
      reject(
        new InvalidConfigError(`cannot listen on ${host}:${port}: ${why}`, { cause, field: "--listen" }),
      );
    });
    server.listen({ host, port }, resolve);
  });
  server.removeAllListeners("error");
  server.on("error", () => undefined); // a connection that could not be accepted: the next one may be
}

interface Answering {
  readonly handler: SwarmRequestHandler;
  readonly rpc: JsonRpcTransportHandler;
  readonly options: A2aServerOptions;
}

async function answer(request: IncomingMessage, response: ServerResponse, by: Answering): Promise<void> {
  const path = (request.url ?? "").split("?")[0];
  if (path === `/${AGENT_CARD_PATH}`) {
    if (request.method !== "GET") return refuse(response, 405, "use GET");
    return json(response, 200, AgentCard.toJSON(await by.handler.getAgentCard()));
  }
  const refusal = admitted(request, by.options);
  if (refusal !== undefined) return refuse(response, refusal.status, refusal.text);
  if (path !== "/") return refuse(response, 404, `not found: the card is at /${AGENT_CARD_PATH}`);
  if (request.method !== "POST") return refuse(response, 405, "use POST");
  const body = await bodyOf(request);
  if (body === undefined)
    return refuse(response, 413, `a request has at most ${limits.a2aRequestBytesMax} bytes`);
  const gone = new AbortController();
  response.once("close", () => gone.abort(new DOMException("the client is gone", "AbortError")));
  await answerRpc(body, { request, response, gone: gone.signal, ...by });
}

interface Call extends Answering {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly gone: AbortSignal;
}

async function answerRpc(body: string, { request, response, gone, handler, rpc }: Call): Promise<void> {
  const version = String(request.headers[A2A_VERSION_HEADER.toLowerCase()] ?? "0.3");
  const context = new ServerCallContext({ requestedVersion: version, state: new Map([[GONE, gone]]) });
  const parsed = parsedBody(body);
  if (parsed === undefined) return json(response, 200, NO_JSON);
  try {
    validateVersion(version, await handler.getAgentCard(), "JSONRPC");
  } catch (error) {
    const id = Reflect.get(Object(parsed), "id") ?? null;
    return json(response, 200, {
      jsonrpc: "2.0",
      id,
      error: JsonRpcTransportHandler.mapToJSONRPCError(error),
    });
  }
  const answered = await rpc.handle(parsed as string, context);
  if (gone.aborted) return;
  if (!(Symbol.asyncIterator in answered)) return json(response, 200, answered);
  response.writeHead(200, SSE_HEADERS);
  const living = setInterval(() => response.write(SIGN_OF_LIFE), limits.promptWorkingMs);
  try {
    for await (const event of answered) await written(response, formatSSEEvent(event), gone);
  } catch (error) {
    if (gone.aborted) return;
    const id = Reflect.get(Object(parsed), "id") ?? null;
    const failure = { jsonrpc: "2.0", id, error: JsonRpcTransportHandler.mapToJSONRPCError(error) };
    response.write(formatSSEEvent(failure));
  } finally {
    clearInterval(living);
  }
  response.end();
}

/** The document. As text if it is no object: the transport answers with the error. Undefined if it is no JSON. */
function parsedBody(body: string): unknown {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null ? value : body;
  } catch {
    return undefined;
  }
}

/** The transport of the SDK has no code for this. */
const NO_JSON = { jsonrpc: "2.0", id: null, error: { code: -32700, message: "the request is no JSON" } };

/** A comment of the stream: proxies and clients give up a silent connection, some after a minute. */
const SIGN_OF_LIFE = ": \n\n";

/** Waits for a slow reader. */
async function written(response: ServerResponse, text: string, gone: AbortSignal): Promise<void> {
  if (response.write(text) || gone.aborted) return;
  await new Promise<void>((resolve) => {
    const goOn = () => {
      response.off("drain", goOn);
      gone.removeEventListener("abort", goOn);
      resolve();
    };
    response.once("drain", goOn);
    gone.addEventListener("abort", goOn, { once: true });
  });
}

/** Undefined for a body that is too large. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Uint8Array>) {
    bytes += part.length;
    if (bytes > limits.a2aRequestBytesMax) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

function json(response: ServerResponse, status: number, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": body.length });
  response.end(body);
}

function refuse(response: ServerResponse, status: number, text: string): void {
  const headers = { "Content-Type": "text/plain; charset=utf-8", Connection: "close" };
  response.writeHead(status, status === 401 ? { ...headers, "WWW-Authenticate": "Bearer" } : headers);
  response.end(`${text}\n`);
}
