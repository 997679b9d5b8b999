// The handler of an adopted agent: a task becomes a prompt, and the answer becomes the result.
//
// - the answer → completed, with its text; with attachments as JSON {"text", "attachments"}
// - 400, 401, 403, 404 and another 4xx, and a payload that the agent cannot take → invalid input
// - 409 (busy with a prompt of another caller), 429 (with a hold) and nobody at the subject → infrastructure
// - 5xx, silence, and an answer that breaks the protocol → failed. A prompt may have changed files, so it counts

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
import { mayAnswerLater } from "../../errors.ts";
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
}

export function agentHandler({ wire, clock, idleMs, decide, agent: describe }: AgentHandlerDeps): Handler {
  return async (task, context) => {
    const { signal, progress } = context;
    const agent = describe();
    const data = requestOf(task, agent, wire.maxPayloadBytes);
    const call = { wire, clock, idleMs, signal, onText: tellerOf(task, context) };
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
    return resultOf(end, agent, idleMs);
  };
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
function tellerOf(task: HandlerTask, { progress, emit }: HandlerContext): (text: string) => void {
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
      throw refusalOf(end.refusal, agent);
    case "no-responders":
      throw new InfrastructureError(`nobody answers at ${promptSubject}`, { scope: "agent" });
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

function refusalOf({ code, description, retryAfterMs }: Refusal, agent: string): Error {
  const text = `agent ${agent} answered ${code}: ${description}`;
  if (code === 429) {
    const wait = retryAfterMs === undefined ? {} : { retryAfterMs: Math.min(retryAfterMs, limits.holdMsMax) };
    return new InfrastructureError(text, { ...wait, scope: "agent" });
  }
  if (code === 409) return new InfrastructureError(text, { scope: "agent" });
  return code >= 400 && code < 500 ? new InvalidInputError(text) : new Error(text);
}
