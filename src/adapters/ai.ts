// `waggledance/ai`: Vercel's AI SDK. Each attempt of a call holds a slot, inside the SDK's retries.
//
//   const model = wrapLanguageModel({ model: openai("gpt-4o"), middleware: swarmMiddleware(swarm) });

import { argument, having } from "../agent/options.ts";
import type { Swarm } from "../client/swarm.ts";
import { InvalidValueError } from "../errors.ts";
import type { CallOptions } from "./call-options.ts";
import { ModelCalls } from "./model-calls.ts";
import { importPeer } from "./peer.ts";
import { type TokenUsage, usageOf } from "./token-usage.ts";

/** What is used of a `LanguageModelV4CallOptions`. */
interface CallParams {
  readonly prompt: unknown;
  readonly abortSignal?: AbortSignal | undefined;
}

/** Fits `LanguageModelV4Middleware`. */
export interface SwarmMiddleware {
  readonly specificationVersion: "v4";
  readonly wrapGenerate: <Params extends CallParams, Result>(of: {
    readonly model: { readonly modelId: string; doGenerate(params: Params): PromiseLike<Result> };
    readonly params: Params;
  }) => Promise<Result>;
  readonly wrapStream: <
    Params extends CallParams,
    Chunk,
    Result extends { stream: ReadableStream<Chunk> },
  >(of: {
    readonly model: { readonly modelId: string; doStream(params: Params): PromiseLike<Result> };
    readonly params: Params;
  }) => Promise<Result & { stream: ReadableStream<Chunk> }>;
}

/** A middleware for `wrapLanguageModel`: `generateText`, `streamText` and agents hold a slot per call of the model.
 *  @throws InvalidValueError naming the option. Calls reject as `Swarm.acquire` does, and inside a handler with
 *    InfrastructureError after a refusal */
export function swarmMiddleware(swarm: Swarm, options?: CallOptions): SwarmMiddleware {
  const calls = new ModelCalls("swarmMiddleware", swarm, options);
  const callOf = (modelId: string, { prompt, abortSignal }: CallParams) => ({
    model: modelId,
    prompt,
    signal: abortSignal,
  });
  return {
    specificationVersion: "v4",
    wrapGenerate: async ({ model, params }) =>
      await calls.once(
        callOf(model.modelId, params),
        (signal) => model.doGenerate({ ...params, abortSignal: signal }),
        (answer) => usageIn(answer),
      ),
    wrapStream: async ({ model, params }) => {
      const lease = await calls.open({ ...callOf(model.modelId, params), standIn });
      try {
        const result = await lease.race(model.doStream({ ...params, abortSignal: lease.signal }));
        return {
          ...result,
          stream: calls.readAhead(lease, result.stream, { usageOf: usageIn, errorOf, textOf }),
        };
      } catch (error) {
        throw calls.failed(lease, error);
      }
    },
  };
}

/** A model of the AI SDK that holds slots: `await swarmModel(openai("gpt-4o"), swarm)`.
 *  @throws InvalidValueError for the name of a model; MissingPackageError without the package `ai`; as
 *    `swarmMiddleware` */
export async function swarmModel<Model extends object>(
  model: Model,
  swarm: Swarm,
  options?: CallOptions,
): Promise<Model> {
  const right = having<{ doGenerate: unknown; doStream: unknown }>(
    'a model of the AI SDK, such as openai("gpt-4o") or gateway("openai/gpt-4o")',
    "doGenerate",
    "doStream",
  );
  argument(["swarmModel", "model"], model, right, InvalidValueError);
  const middleware = swarmMiddleware(swarm, options);
  type Wrap = { wrapLanguageModel(of: { model: Model; middleware: SwarmMiddleware }): Model };
  const { wrapLanguageModel } = await importPeer<Wrap>("ai", "swarmModel");
  return wrapLanguageModel({ model, middleware });
}

/** The SDK hands the errors of a stream to `onError` alone. It throws this one for a text that never began. */
const standIn = "AI_NoOutputGeneratedError";

/** The text in the part `text-delta` of a stream; undefined for other parts. */
function textOf(part: unknown): string | undefined {
  const { type, delta } = part as { readonly type?: unknown; readonly delta?: unknown };
  return type === "text-delta" && typeof delta === "string" ? delta : undefined;
}

/** The error in the part `error` of a stream; undefined for other parts. */
function errorOf(part: unknown): unknown {
  const { type, error } = part as { readonly type?: unknown; readonly error?: unknown };
  return type === "error" ? (error ?? part) : undefined;
}

/** The usage in an answer, or in the part `finish` of a stream. The total is a field of its own since version 6. */
function usageIn(holder: unknown): TokenUsage | undefined {
  const usage = (holder as { usage?: { inputTokens?: unknown; outputTokens?: unknown } }).usage;
  return usage === undefined ? undefined : usageOf(total(usage.inputTokens), total(usage.outputTokens));
}

function total(tokens: unknown): unknown {
  return typeof tokens === "object" && tokens !== null ? Reflect.get(tokens, "total") : tokens;
}
