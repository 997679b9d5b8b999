// A handler that hands each attempt to an agent of A2A. A message becomes a remote task, and its artifacts are the
// result.
//
// - completed, or a message in answer → completed, with the text; with other content as bytes or JSON
// - a request that the agent cannot take (-32602, -32005), and a question for more input → invalid input
// - a remote task that failed, was rejected or cancelled, and every other error → failed
// - 429, 503 and 529 (with `Retry-After` as a hold), 502, 504 and no connection → infrastructure
// - a connection that breaks → polls the remote task until its end; without contact for a while → failed
//
// An aborted attempt cancels the remote task.

import { Buffer } from "node:buffer";
import { A2A_VERSION_HEADER, AGENT_CARD_PATH, type AgentCard, type Message, Role } from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import { ContentTypeNotSupportedError, RequestMalformedError } from "@a2a-js/sdk/errors";
import type { Logger } from "pino";
import {
  type Handler,
  type HandlerContext,
  type HandlerTask,
  InfrastructureError,
  InvalidInputError,
} from "../../agent/handler.ts";
import type { HoldScopeOption } from "../../agent/hold-options.ts";
import { isUnserved, mayNameTime, retryAfterMs } from "../../agent/retry-after.ts";
import { systemClock } from "../../clock.ts";
import { InvalidConfigError, messageOf } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { pause } from "../../pause.ts";
import { nearMisses } from "../../state/near-miss.ts";
import { type RemoteEnd, RemoteResult } from "./remote-result.ts";

export interface A2aAgentOptions {
  /** URL of the agent, without the path of its card. */
  readonly url: string;
  /** Sent as `metadata.skill`. */
  readonly skill: string | undefined;
  /** Sent as `Authorization: Bearer <token>`. */
  readonly token: string | undefined;
  /** What 429, 503 and 529 with a time put on hold. Default `agent`. */
  readonly holdScope?: HoldScopeOption;
  readonly logger: Logger;
  /** Aborts the start. */
  readonly signal: AbortSignal;
}

/** Reads the agent's card, to see that there is such an agent and skill.
 *  @throws InvalidConfigError; the reason of `signal` */
export async function openA2aAgent(options: A2aAgentOptions): Promise<Handler> {
  const { url, skill, signal } = options;
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new InvalidConfigError("the URL of an A2A agent must be like http://host:port", { field: "--a2a" });
  const fetchImpl = fetchWith(options);
  const started = AbortSignal.any([signal, AbortSignal.timeout(limits.a2aStartMs)]);
  let card: AgentCard;
  let client: Client;
  try {
    const fetchCard: typeof fetch = (input, init) => fetchImpl(input, { ...init, signal: started });
    card = await new DefaultAgentCardResolver({ fetchImpl: fetchCard }).resolve(url);
    const transports = [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })];
    const config = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports });
    client = await new ClientFactory(config).createFromAgentCard(card);
  } catch (cause) {
    signal.throwIfAborted();
    const where = new URL(AGENT_CARD_PATH, url.endsWith("/") ? url : `${url}/`).href;
    const behind = cause instanceof Error ? cause.cause : undefined; // `fetch failed` alone says nothing
    const why = behind === undefined ? messageOf(cause) : `${messageOf(cause)} (${messageOf(behind)})`;
    throw new InvalidConfigError(`no agent of A2A 1.0 answers at ${where}: ${why}`, {
      field: "--a2a",
      cause,
    });
  }
  if (skill !== undefined) checkSkill(skill, card);
  const remote = new RemoteAgent(client, card, options);
  return (task, context) => remote.run(task, context);
}

/** @throws InvalidConfigError */
function checkSkill(skill: string, { name, skills }: AgentCard): void {
  const ids = skills.map(({ id }) => id);
  if (ids.includes(skill)) return;
  const near = nearMisses(skill, ids);
  const hint = near.length > 0 ? `did you mean ${near.join(" or ")}? There are ` : "there are ";
  throw new InvalidConfigError(
    `agent ${name} has no skill ${skill}; ${ids.length === 0 ? "it names no skills" : `${hint}${ids.join(", ")}`}`,
    { field: "--skill" },
  );
}

class RemoteAgent {
  readonly #client: Client;
  readonly #card: AgentCard;
  readonly #options: A2aAgentOptions;

  constructor(client: Client, card: AgentCard, options: A2aAgentOptions) {
    this.#client = client;
    this.#card = card;
    this.#options = options;
  }

  async run(task: HandlerTask, context: HandlerContext): Promise<unknown> {
    const { signal } = context;
    const result = new RemoteResult(context, task.stream);
    try {
      const end = (await this.#ask(task, result, signal)) ?? (await this.#poll(result, signal));
      if (end.kind === "input-required") await this.#cancel(result);
      return this.#valueOf(end);
    } catch (error) {
      if (signal.aborted || result.isTooLarge) await this.#cancel(result);
      signal.throwIfAborted();
      throw this.#verdictOf(error, task, result);
    }
  }

  /** @returns undefined when the answer broke off, and the remote task goes on */
  async #ask(task: HandlerTask, result: RemoteResult, signal: AbortSignal): Promise<RemoteEnd | undefined> {
    const request = this.#requestFor(task);
    if (this.#card.capabilities?.streaming !== true) {
      const answer = await this.#client.sendMessage(request, { signal });
      return "messageId" in answer ? result.takeMessage(answer) : result.takeTask(answer);
    }
    signal.throwIfAborted();
    const stream = new AbortController();
    // The first event names the remote task. Without the name the remote task could not be cancelled.
    const stop = () => {
      const waitMs = result.taskId === undefined ? limits.a2aCancelMs : 0;
      systemClock.after(waitMs, () => stream.abort(signal.reason), { unref: true });
    };
    signal.addEventListener("abort", stop, { once: true });
    try {
      for await (const event of this.#client.sendMessageStream(request, { signal: stream.signal })) {
        const end = result.take(event);
        if (end !== undefined) return end;
        signal.throwIfAborted();
      }
    } catch (error) {
      if (signal.aborted || result.taskId === undefined || result.isTooLarge) throw error;
      this.#options.logger.info({ err: error }, "the answer broke off; asking for the task");
    } finally {
      signal.removeEventListener("abort", stop);
    }
    if (result.taskId === undefined)
      throw new Error("the agent ended its answer without a task or a message");
    return undefined;
  }

  /** Polls the remote task until its end. @throws Error without contact for a while */
  async #poll(result: RemoteResult, signal: AbortSignal): Promise<RemoteEnd> {
    const id = result.taskId ?? "";
    for (let failures = 0; ; ) {
      await pause(systemClock, limits.a2aPollMs, signal);
      signal.throwIfAborted();
      try {
        const task = await this.#client.getTask({ tenant: "", id }, { signal });
        failures = 0;
        const end = result.takeTask(task);
        if (end !== undefined) return end;
      } catch (error) {
        failures += 1;
        if (signal.aborted || result.isTooLarge) throw error;
        if (failures >= limits.a2aPollFailuresMax)
          throw new Error(`lost contact with task ${id} of the agent, which may go on: ${messageOf(error)}`, {
            cause: error,
          });
      }
    }
  }

  /** Best effort: the agent may be gone, or the task has ended. */
  async #cancel({ taskId: id }: RemoteResult): Promise<void> {
    if (id === undefined) return;
    const signal = AbortSignal.timeout(limits.a2aCancelMs);
    await this.#client.cancelTask({ tenant: "", id, metadata: {} }, { signal }).catch((error: unknown) => {
      this.#options.logger.info({ err: error, remote: id }, "the task of the agent was not cancelled");
    });
  }

  #valueOf(end: RemoteEnd): unknown {
    switch (end.kind) {
      case "completed":
        return end.value;
      case "input-required":
        throw new InvalidInputError(`the agent asks for more input: ${end.says}`);
      case "failed":
        throw new Error(end.says);
    }
  }

  #verdictOf(error: unknown, { maxAttempts }: HandlerTask, result: RemoteResult): unknown {
    if (error instanceof InfrastructureError || error instanceof InvalidInputError) return error;
    if (error instanceof RequestMalformedError || error instanceof ContentTypeNotSupportedError)
      return new InvalidInputError(error.message);
    // The SDK reports errors within a stream as text.
    if (/\(Code: -32(?:602|005)\)/.test(messageOf(error))) return new InvalidInputError(messageOf(error));
    const code = connectionErrorIn(error);
    if (code === undefined || result.taskId !== undefined) return error;
    const text = `no answer from ${this.#options.url} (${code})`;
    if (unsent.has(code) || maxAttempts > 1)
      return new InfrastructureError(text, { cause: error, scope: "agent" });
    return new Error(`${text}: the agent may have done the work, and the task has only one attempt`);
  }

  #requestFor(task: HandlerTask) {
    const { skill } = this.#options;
    const metadata = skill === undefined ? {} : { skill };
    const message: Message = {
      messageId: `waggle-${task.project}-${task.id}-${task.attempt}`,
      ...{ contextId: "", taskId: "", role: Role.ROLE_USER, parts: [this.#partFor(task)], metadata },
      ...{ extensions: [], referenceTaskIds: [] },
    };
    const configuration = {
      ...{ acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately: true },
    };
    return { tenant: "", message, configuration, metadata };
  }

  /** JSON as data for an agent that takes JSON, bytes as bytes, and anything else as text. */
  #partFor(task: HandlerTask): Message["parts"][number] {
    const rest = { filename: "", metadata: {} };
    if (task.encoding !== undefined) {
      const value = Buffer.from(task.bytes());
      return { content: { $case: "raw", value }, mediaType: "application/octet-stream", ...rest };
    }
    const value = this.#card.defaultInputModes.includes("application/json")
      ? objectIn(task.text())
      : undefined;
    if (value !== undefined)
      return { content: { $case: "data", value }, mediaType: "application/json", ...rest };
    return { content: { $case: "text", value: task.text() }, mediaType: "text/plain", ...rest };
  }
}

function objectIn(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined; // plain text
  }
}

/** Codes of connections on which nothing was sent. */
const unsent: ReadonlySet<string> = new Set([
  ...["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"],
]);

/** The code of a connection that failed, as `fetch` reports it in a cause. */
function connectionErrorIn(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    const code: unknown = Reflect.get(at, "code");
    if (typeof code === "string" && /^(?:E[A-Z]+|UND_ERR_[A-Z_]+)$/.test(code)) return code;
  }
  return undefined;
}

/** Adds the token and the version, and turns refusals for a time into infrastructure failures. */
function fetchWith({ token, url, holdScope: scope = "agent" }: A2aAgentOptions): typeof fetch {
  return async (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set(A2A_VERSION_HEADER, "1.0");
    if (
      token !== undefined &&
      new URL(String(input instanceof Request ? input.url : input)).origin === new URL(url).origin
    )
      headers.set("Authorization", `Bearer ${token}`);
    const response = await fetch(input, { ...init, headers });
    const { status } = response;
    if (status !== 429 && !isUnserved(status)) return response;
    await response.body?.cancel();
    const waitMs = retryAfterMs(Object.fromEntries(response.headers), Date.now());
    const hold = mayNameTime(status) ? waitMs : undefined;
    throw new InfrastructureError(`${new URL(url).host} answered ${status}`, {
      ...(hold === undefined ? {} : { retryAfterMs: hold }),
      scope,
    });
  };
}
