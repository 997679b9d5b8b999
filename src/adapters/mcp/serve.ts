// The MCP server: serves the tools of a swarm over two streams, for `waggle mcp`. Both protocol eras are served, the
// handshake of 2025 and the requests of 2026-07-28. An unreachable swarm fails calls, not the server: the next call
// connects again.

import type { Readable, Writable } from "node:stream";
import { ProtocolError, ProtocolErrorCode, Server, type ServerContext } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import type { Logger } from "pino";
import type { Swarm } from "../../client/swarm.ts";
import type { WaggleError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { nearMisses } from "../../state/near-miss.ts";
import { type Answer, errorText } from "./answer.ts";
import type { Tool } from "./tool.ts";
import { tools } from "./tools.ts";

export interface McpServerOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Leaves out all tools with `changes`. */
  readonly readOnly: boolean;
  /** The project of calls that name none, for a user that may ask about no other. */
  readonly onlyProject?: string | undefined;
  /** Connects to the swarm, at the first call and after each failure. */
  readonly connect: (signal: AbortSignal) => Promise<Swarm>;
  readonly version: string;
  readonly logger: Logger;
  /** Ends the server. */
  readonly signal: AbortSignal;
}

/** Resolves when the client closed `input`, the client is gone, or `signal` was aborted. Running calls are aborted,
 *  and the swarm is closed.
 *  @throws UnauthorizedError when the server refuses formerly accepted credentials */
export async function serveMcp(options: McpServerOptions): Promise<void> {
  const { input, output, logger, signal } = options;
  const ended = new AbortController();
  const wire = new Wire(input, output, () => ended.abort());
  const ending = AbortSignal.any([signal, ended.signal]);
  let refused: WaggleError | undefined;
  const swarm = new LateSwarm(
    () => options.connect(ending),
    (reason) => {
      refused = reason;
      ended.abort();
    },
  );
  const offered = tools.filter(({ changes }) => !(options.readOnly && changes));
  const handle = serveStdio(() => serverOf(offered, swarm, { ...options, signal: ending }), {
    transport: wire,
    onerror: (error) => logger.warn({ err: error }, "a message of the client was not served"),
  });
  if (!ending.aborted)
    await new Promise<void>((resolve) => ending.addEventListener("abort", () => resolve(), { once: true }));
  await handle.close();
  await swarm.close();
  if (refused !== undefined) throw refused;
}

/** Reports its end, by either side. */
class Wire extends StdioServerTransport {
  readonly #onEnd: () => void;

  constructor(input: Readable, output: Writable, onEnd: () => void) {
    super(input, output, { maxBufferSize: limits.mcpMessageBytesMax });
    this.#onEnd = onEnd;
  }

  override async close(): Promise<void> {
    await super.close();
    this.#onEnd();
  }
}

/** The connection, opened on first use. After a failure, the next use connects again. */
class LateSwarm {
  readonly #connect: () => Promise<Swarm>;
  readonly #onRefused: (reason: WaggleError) => void;
  #opening: Promise<Swarm> | undefined;

  /** @param onRefused the server refuses formerly accepted credentials */
  constructor(connect: () => Promise<Swarm>, onRefused: (reason: WaggleError) => void) {
    this.#connect = connect;
    this.#onRefused = onRefused;
  }

  open(): Promise<Swarm> {
    if (this.#opening === undefined) {
      const opening = this.#connect();
      this.#opening = opening;
      opening.then(
        (swarm) =>
          void swarm.closed.then((reason) => {
            if (reason !== undefined) this.#onRefused(reason);
          }),
        () => {
          this.#opening = undefined;
        },
      );
    }
    return this.#opening;
  }

  async close(): Promise<void> {
    const swarm = await this.#opening?.catch(() => undefined);
    await swarm?.close();
  }
}

const instructions =
  "Waggle routes tasks across a swarm of agents and explains each decision. Submit a task with `submit` (kinds: see " +
  "`status`), read its result with `result`, ask `explain` why it waits or who ran it, and `health` what is wrong " +
  "with the swarm. Errors begin with a code, such as WAGGLE_UNKNOWN_TASK, and say what to do.";

function serverOf(
  offered: readonly Tool[],
  swarm: LateSwarm,
  {
    version,
    logger,
    onlyProject,
    signal: ending,
  }: Pick<McpServerOptions, "version" | "logger" | "onlyProject" | "signal">,
): Server {
  const server = new Server(
    { name: "waggle", title: "Waggle", version },
    { capabilities: { tools: {} }, instructions },
  );
  server.setRequestHandler("tools/list", () => ({ tools: offered.map(listed) }));
  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    const tool = offered.find(({ name }) => name === params.name);
    if (tool === undefined) throw unknownTool(params.name, offered);
    const signal = AbortSignal.any([mcpReq.signal, ending]);
    try {
      const report = progressOf(mcpReq);
      return contentOf(
        await tool.call(params.arguments, { swarm: () => swarm.open(), onlyProject, signal, report }),
      );
    } catch (error) {
      logger.info({ tool: tool.name, err: error }, "a call of a tool failed");
      return { ...contentOf([errorText(error)]), isError: true };
    }
  });
  return server;
}

/** Undefined unless the client asked for progress. Lost notifications are harmless. */
function progressOf({ _meta, notify }: ServerContext["mcpReq"]): ((message: string) => void) | undefined {
  const progressToken = _meta?.progressToken;
  if (progressToken === undefined) return undefined;
  let progress = 0;
  return (message) => {
    progress += 1;
    const params = { progressToken, progress, message };
    notify({ method: "notifications/progress", params }).catch(() => undefined);
  };
}

function contentOf(answer: Answer) {
  return { content: answer.map((text) => ({ type: "text" as const, text })) };
}

function listed({ name, title, description, inputSchema, changes, isDestructive }: Tool) {
  const hints = changes ? { destructiveHint: isDestructive } : {};
  return {
    ...{ name, title, description, inputSchema },
    annotations: { title, readOnlyHint: !changes, openWorldHint: false, ...hints },
  };
}

function unknownTool(name: string, offered: readonly Tool[]): ProtocolError {
  const names = offered.map((tool) => tool.name);
  const near = nearMisses(name, names);
  const hint = near.length > 0 ? `did you mean ${near.join(" or ")}?` : `there are ${names.join(", ")}`;
  const isLeftOut = tools.some((tool) => tool.name === name);
  const why = isLeftOut ? "is left out by --read-only" : "is unknown";
  return new ProtocolError(ProtocolErrorCode.InvalidParams, `WAGGLE_USAGE: tool ${name} ${why}; ${hint}`);
}
