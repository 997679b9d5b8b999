// Checks whether the known broker listens at a local port. Uses plain sockets: the probe must recognise the
// broker before it sends the secret, which a client library does not.

import { connect, type Socket } from "node:net";
import { limits } from "../limits.ts";

export type ProbeAnswer =
  /** The broker answers and accepts the login. */
  | { readonly kind: "answers"; readonly version: string; readonly hasJetStream: boolean }
  | { readonly kind: "nobody" }
  /** A process listens and does not identify itself in time: a foreign server, or a broker that hangs. */
  | { readonly kind: "silent" }
  /** A foreign server, a broker with a different secret, or a process that passes on what a broker says. */
  | { readonly kind: "stranger" };

export interface ProbeOptions {
  readonly port: number;
  /** The broker's name in INFO. */
  readonly serverName: string;
  readonly credentials: ProbeCredentials;
}

export interface ProbeCredentials {
  /** Fields of CONNECT that log in. @param nonce empty without one */
  login(nonce: string): object | Promise<object>;
  /** Whether the INFO after CONNECT proves that the broker knows the secret. Absent: there is no such INFO. */
  isGivenBy?(info: object | undefined): boolean;
}

export async function probe(options: ProbeOptions): Promise<ProbeAnswer> {
  const socket = connect({ host: "127.0.0.1", port: options.port });
  const timer = setTimeout(() => socket.destroy(new Error("silent")), limits.brokerAnswerMs);
  try {
    return await converse(socket, options);
  } catch (error) {
    const isRefused = (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
    return { kind: isRefused ? "nobody" : "silent" };
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

async function converse(socket: Socket, { serverName, credentials }: ProbeOptions): Promise<ProbeAnswer> {
  const lines = linesOf(socket);
  const info = infoIn((await lines.next()).value);
  if (info?.["server_name"] !== serverName) return { kind: "stranger" };
  const login = await credentials.login(String(info["nonce"] ?? ""));
  socket.write(`CONNECT ${JSON.stringify({ ...login, verbose: false, lang: "waggle" })}\r\nPING\r\n`);
  if (credentials.isGivenBy?.(infoIn((await lines.next()).value)) === false) return { kind: "stranger" };
  const answer = (await lines.next()).value;
  if (answer !== "PONG") return { kind: "stranger" };
  return { kind: "answers", version: String(info["version"]), hasJetStream: info["jetstream"] === true };
}

async function* linesOf(socket: Socket): AsyncGenerator<string, undefined> {
  let rest = "";
  for await (const chunk of socket) {
    rest += String(chunk);
    if (rest.length > LINE_CHARACTERS_MAX) return;
    const lines = rest.split("\r\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

function infoIn(line: string | undefined): Record<string, unknown> | undefined {
  if (line === undefined || !line.startsWith("INFO ")) return undefined;
  try {
    return JSON.parse(line.slice("INFO ".length)) as Record<string, unknown>;
  } catch {
    return undefined; // a foreign server
  }
}

const LINE_CHARACTERS_MAX = 64 * 1024;
