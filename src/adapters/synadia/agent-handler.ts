// The handler of an adopted agent: a task becomes a prompt, and the answer becomes the result.
//
// - the answer → completed, with its text; with attachments as JSON {"text", "attachments"}
// - 400, 401, 403, 404 and another 4xx, and a payload that the agent cannot take → invalid input
// - 409 (busy with a prompt of another caller), 429 (with a hold), nobody at the subject, and a server that forbids the
//   prompt → infrastructure
// - 5xx, silence, and an answer that breaks the protocol → failed. A prompt may have changed files, so it counts
// - 409 and 429 after the ack → failed, for the same reason. After such a 429 the next prompt is not sent: its attempt
//   asks for the hold, because a failed attempt cannot

import {
  type Handler,
  type HandlerContext,
  type HandlerTask,
  InfrastructureError,
  InvalidInputError,
} from "../../agent/handler.ts";
import { textOrBase64 } from "../../agent/result-text.ts";
import type { Clock } from "../../clock.ts";
import { headOf } from "../../cut-text.ts";
import { type ForbiddenError, mayAnswerLater } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { RequestWire } from "../nats-service/nats.ts";
import type { Decide } from "./decision.ts";
import { type ForeignAgent, promptOf, type Query, type Refusal } from "./messages.ts";
import { askAgent, type PromptEnd } from "./prompt-call.ts";

export interface AgentHandlerDeps {
  readonly wire: RequestWire;
  readonly clock: Clock;
  /** Longest silence of the agent, ms. */
  readonly idleMs: number;
  readonly decide: Decide;
  /** The agent as it described itself last. */
  readonly agent: () => ForeignAgent;
  /** The server permits no prompts to the agent. */
  readonly onForbidden: (error: ForbiddenError) => void;
}

export function agentHandler(deps: AgentHandlerDeps): Handler {
  const { wire, clock, idleMs, decide, agent: describe } = deps;
  const quota = new UsedUpQuota(clock);
  return async (task, context) => {
    const { signal, progress } = context;
    const agent = describe();
    const data = requestOf(task, agent, wire.maxPayloadBytes);
    quota.check(agent.agent);
    const call = { wire, clock, idleMs, signal, onText: textReporterOf(task, context) };
    const end = await askAgent(
      { subject: agent.promptSubject, data },
      {
        ...call,
        decide: async (query: Query) => {
          progress(undefined, `asks: ${query.prompt}`);
          context.log(`the agent asks: ${query.prompt}`);
          const answer = await decide(query, task, context);
          context.log(`answered: ${answer}`);
          return answer;
        },
      },
    ).catch((error: unknown) => {
      throw mayAnswerLater(error) ? new InfrastructureError(error.message, { cause: error }) : error;
    });
    signal.throwIfAborted();
    if (end.kind === "forbidden") deps.onForbidden(end.error);
    if (end.kind === "refused" && end.hasBegun) quota.note(end.refusal);
    return resultOf(end, agent, idleMs);
  };
}

/** A quota that was used up (429) in the middle of a prompt. */
class UsedUpQuota {
  readonly #clock: Clock;
  /** Monotonic ms. */
  #until = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note({ code, retryAfterMs = limits.holdBackoffMs }: Refusal): void {
    if (code === 429) this.#until = this.#clock.monotonicMs() + Math.min(retryAfterMs, limits.holdMsMax);
  }

  /** Asks once: from then on the swarm keeps the hold, and an operator may end it.
   *  @throws InfrastructureError with the rest of the time */
  check(agent: string): void {
    const restMs = this.#until - this.#clock.monotonicMs();
    this.#until = Number.NEGATIVE_INFINITY;
    if (restMs <= 0) return;
    const sentence = `agent ${agent} used up its quota (429) during the prompt before; this prompt was not sent`;
    throw new InfrastructureError(sentence, { retryAfterMs: Math.ceil(restMs), scope: "agent" });
  }
}

/** @throws InvalidInputError */
function requestOf(task: HandlerTask, agent: ForeignAgent, serverMax: number): Uint8Array {
  const payload = textOrBase64(task.bytes());
  if (typeof payload !== "string")
    throw new InvalidInputError("the payload must be text, or a JSON object with a prompt, and is not UTF-8");
  const read = promptOf(payload);
  if (!read.ok) throw new InvalidInputError(read.message);
  const { data, prompt } = read.value;
  if ((prompt.attachments?.length ?? 0) > 0 && !agent.takesAttachments)
    throw new InvalidInputError(`agent ${agent.agent} takes no attachments`);
  const most = Math.min(agent.maxPayloadBytes, serverMax);
  if (data.length > most)
    throw new InvalidInputError(`the prompt has ${data.length} bytes, and the agent takes ${most}`);
  return data;
}

/** Reports parts of the answer, and emits them to a submitter who wants a stream. */
function textReporterOf(task: HandlerTask, { progress, emit }: HandlerContext): (text: string) => void {
  return (text) => {
    progress(undefined, text);
    if (!task.stream) return;
    for (let rest = text; rest !== ""; ) {
      const part = headOf(rest, PART_CHARACTERS);
      emit(part);
      rest = rest.slice(part.length);
    }
  };
}

/** A character has at most 4 bytes, and a UTF-16 unit at most 3. */
const PART_CHARACTERS = Math.floor(limits.chunkBytesMax / 3);

/** @throws InvalidInputError, InfrastructureError, Error */
function resultOf(end: PromptEnd, { agent, promptSubject }: ForeignAgent, idleMs: number): unknown {
  switch (end.kind) {
    case "answered":
      return end.attachments.length === 0 ? end.text : { text: end.text, attachments: end.attachments };
    case "refused":
      throw refusalOf(end, agent);
    case "no-responders":
      throw new InfrastructureError(`nobody answers at ${promptSubject}`, { scope: "agent" });
    case "forbidden":
      throw new InfrastructureError(end.error.message, { scope: "agent" });
    case "silent": {
      const before = end.isAcknowledged ? "acknowledged the prompt, then" : "received the prompt, and";
      throw new Error(
        `agent ${agent} ${before} said nothing for ${idleMs} ms; it may have done a part of the work`,
      );
    }
    case "broken":
      throw new Error(`agent ${agent} broke the protocol: ${end.why}`);
    case "aborted":
      throw new DOMException("the attempt was aborted", "AbortError");
  }
}

function refusalOf({ refusal, hasBegun }: Extract<PromptEnd, { kind: "refused" }>, agent: string): Error {
  const { code, description, retryAfterMs } = refusal;
  const text = `agent ${agent} answered ${code}: ${description}`;
  if (hasBegun && (code === 409 || code === 429))
    return new Error(`${text}; it had begun, and may have done a part of the work`);
  if (code === 429) {
    const wait = retryAfterMs === undefined ? {} : { retryAfterMs: Math.min(retryAfterMs, limits.holdMsMax) };
    return new InfrastructureError(text, { ...wait, scope: "agent" });
  }
  if (code === 409) return new InfrastructureError(text, { scope: "agent" });
  return code >= 400 && code < 500 ? new InvalidInputError(text) : new Error(text);
}
