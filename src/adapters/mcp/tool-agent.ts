// A handler that calls a tool of an MCP server for each attempt: the payload is the tool's arguments, the content is
// the result. The server is a child process, started once and again after its end.
//
// - content → completed, with the structured content as JSON, the only text as text, the only image or sound as bytes,
//   any other content as JSON
// - arguments that the server refuses (-32602) → invalid input
// - `isError` and every other error → failed
// - a server that cannot start, or ends during the call → infrastructure. The exception is a task with `maxAttempts: 1`
//   whose call was sent: the tool may have done the work
//
// An aborted attempt cancels the call, by the protocol's notification. Progress of the tool is progress of the attempt.

import { type CallToolResult, Client, ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/client";
import type { Logger } from "pino";
import {
  type Handler,
  type HandlerContext,
  type HandlerTask,
  InfrastructureError,
  InvalidInputError,
} from "../../agent/handler.ts";
import type { HoldScopeOption } from "../../agent/hold-options.ts";
import { InvalidConfigError, messageOf } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { nearMisses } from "../../state/near-miss.ts";
import { unlessAborted } from "../../transport/waiting.ts";
import { ToolProcess } from "./tool-process.ts";

export interface McpToolOptions {
  /** Command line of the server, for `sh -c`. */
  readonly command: string;
  readonly tool: string;
  /** What the third failure in a row to start or to stay up puts on hold. Default `agent`. */
  readonly holdScope?: HoldScopeOption;
  readonly version: string;
  readonly logger: Logger;
  /** Aborts the start. */
  readonly signal: AbortSignal;
}

export interface McpToolAgent {
  readonly handler: Handler;
  /** Ends the server. */
  close(): Promise<void>;
}

/** Starts the server once, to see that the tool exists.
 *  @throws InvalidConfigError when the server does not start, or has no such tool; the reason of `signal` */
export async function openMcpTool(options: McpToolOptions): Promise<McpToolAgent> {
  const server = new ToolServer(options);
  try {
    await unlessAborted(server.connected(), options.signal, () => undefined);
  } catch (cause) {
    await server.close();
    if (options.signal.aborted || cause instanceof InvalidConfigError) throw cause;
    throw new InvalidConfigError(messageOf(cause), { field: "--mcp", cause });
  }
  return { handler: (task, context) => server.call(task, context), close: () => server.close() };
}

interface Connection {
  readonly client: Client;
  readonly process: ToolProcess;
}

class ToolServer {
  readonly #options: McpToolOptions;
  readonly #running = new Set<HandlerContext>();
  #connection: Promise<Connection> | undefined;

  constructor(options: McpToolOptions) {
    this.#options = options;
  }

  /** The running server, or a new one. @throws InfrastructureError, InvalidConfigError */
  connected(): Promise<Connection> {
    if (this.#connection === undefined) {
      const connection = this.#connect(() => {
        if (this.#connection === connection) this.#connection = undefined;
      });
      this.#connection = connection;
    }
    return this.#connection;
  }

  async close(): Promise<void> {
    const connection = await this.#connection?.catch(() => undefined);
    await connection?.client.close();
  }

  async #connect(forget: () => void): Promise<Connection> {
    const { command, tool, version, logger } = this.#options;
    const process = new ToolProcess(command, (chunk) => this.#keepErrors(chunk));
    const client = new Client(
      { name: "waggle", version },
      { versionNegotiation: { mode: "auto", probe: { timeoutMs: limits.mcpProbeMs } } },
    );
    client.onerror = (error) => logger.warn({ err: error }, "a message of the MCP server was not understood");
    try {
      await client.connect(process, { timeout: limits.mcpStartMs });
      const { tools } = await client.listTools(undefined, { timeout: limits.mcpStartMs });
      const names = tools.map(({ name }) => name);
      if (!names.includes(tool)) throw unknownTool(tool, names);
    } catch (cause) {
      forget();
      await client.close().catch(() => undefined);
      await process.close();
      if (cause instanceof InvalidConfigError) throw cause;
      const why = process.end === "" ? messageOf(cause) : process.end;
      throw this.#infrastructure(`the MCP server did not start: ${why}`, cause);
    }
    client.onclose = () => {
      forget();
      logger.info(`the MCP server ended (${process.end}); the next attempt starts it again`);
    };
    if (process.end !== "") forget();
    return { client, process };
  }

  async call(task: HandlerTask, context: HandlerContext): Promise<unknown> {
    const { signal, progress } = context;
    const args = argumentsOf(task);
    const { client, process } = await this.#connectedFor(signal);
    this.#running.add(context);
    try {
      const result = await client.callTool(
        { name: this.#options.tool, arguments: args },
        {
          signal,
          timeout: limits.mcpCallMs,
          onprogress: ({ progress: done, total, message }) =>
            progress(total === undefined || total === 0 ? undefined : done / total, message),
        },
      );
      return resultOf(result);
    } catch (error) {
      signal.throwIfAborted();
      throw this.#verdictOf(error, process, task);
    } finally {
      this.#running.delete(context);
    }
  }

  async #connectedFor(signal: AbortSignal): Promise<Connection> {
    try {
      return await unlessAborted(this.connected(), signal, () => undefined);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof InfrastructureError) throw error;
      throw this.#infrastructure(messageOf(error), error); // the tool is gone since the agent's start
    }
  }

  #verdictOf(error: unknown, { end }: ToolProcess, { maxAttempts }: HandlerTask): unknown {
    if (error instanceof ProtocolError)
      return error.code === ProtocolErrorCode.InvalidParams ? new InvalidInputError(error.message) : error;
    if (end === "") return error;
    const text = `the MCP server ended during the call (${end})`;
    if (maxAttempts > 1) return this.#infrastructure(text, error);
    return new Error(`${text}: the tool may have done the work, and the task has only one attempt`);
  }

  #infrastructure(text: string, cause: unknown): InfrastructureError {
    const { holdScope: scope = "agent" } = this.#options;
    return new InfrastructureError(text, { cause, scope });
  }

  #keepErrors(chunk: Uint8Array): void {
    for (const { log } of this.#running) log.write(chunk);
    this.#options.logger.debug({ stderr: Buffer.from(chunk).toString() }, "the MCP server wrote to stderr");
  }
}

/** @throws InvalidInputError */
function argumentsOf(task: HandlerTask): Record<string, unknown> {
  if (task.text() === "") return {};
  const value = task.json();
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new InvalidInputError(
    'the payload must be the tool\'s arguments, a JSON object such as {"text":"…"}',
  );
}

/** @throws InvalidInputError, Error */
function resultOf({ content, structuredContent, isError }: CallToolResult): unknown {
  const [first, ...others] = content;
  const only = others.length === 0 ? first : undefined;
  if (isError === true) {
    const said = only?.type === "text" ? only.text : JSON.stringify(content);
    if (/-32602|input validation error/i.test(said)) throw new InvalidInputError(said);
    throw new Error(said);
  }
  if (structuredContent !== undefined) return structuredContent;
  if (first === undefined) return undefined;
  if (only?.type === "text") return only.text;
  if (only?.type === "image" || only?.type === "audio")
    return new Uint8Array(Buffer.from(only.data, "base64"));
  return content;
}

function unknownTool(tool: string, names: readonly string[]): InvalidConfigError {
  const near = nearMisses(tool, names);
  const hint = near.length > 0 ? `did you mean ${near.join(" or ")}? There are ` : "there are ";
  return new InvalidConfigError(
    `the MCP server has no tool ${tool}; ${names.length === 0 ? "it has no tools" : `${hint}${names.join(", ")}`}`,
    { field: "--tool" },
  );
}
