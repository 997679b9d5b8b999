// Checks whether the known broker listens at a local port. Uses plain sockets: the probe must recognise the
// broker before it sends the secret, which a client library does not.

import { connect, type Socket } from "node:net";
import { limits } from "../limits.ts";

export type ProbeAnswer =
  /** The broker answers and accepts the secret. */
  | { readonly kind: "answers"; readonly version: string; readonly hasJetStream: boolean }
  | { readonly kind: "nobody" }
  /** A process listens and does not identify itself in time: a foreign server, or a broker that hangs. */
  | { readonly kind: "silent" }
  /** A foreign server, or a broker with a different secret. */
  | { readonly kind: "stranger" };

export interface ProbeOptions {
  readonly port: number;
  readonly secret: string;
  /** The broker's name in INFO. */
  readonly serverName: string;
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

async function converse(socket: Socket, { secret, serverName }: ProbeOptions): Promise<ProbeAnswer> {
  const lines = linesOf(socket);
  const info = infoIn((await lines.next()).value);
  if (info?.["server_name"] !== serverName) return { kind: "stranger" };
  socket.write(
    `CONNECT ${JSON.stringify({ auth_token: secret, verbose: false, lang: "waggle" })}\r\nPING\r\n`,
  );
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
