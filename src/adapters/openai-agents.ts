// `waggledance/openai-agents`: the OpenAI Agents SDK. Each call of a model holds a slot; tools run without one.
//
//   const runner = new Runner({ modelProvider: swarmModelProvider(swarm) });

import { argument, having } from "../agent/options.ts";
import type { Swarm } from "../client/swarm.ts";
import { InvalidValueError } from "../errors.ts";
import { type CallOptions, withoutOwn } from "./call-options.ts";
import { ModelCalls } from "./model-calls.ts";
import { importPeer } from "./peer.ts";
import { errorInEvent } from "./refusal.ts";
import { usageOf } from "./token-usage.ts";

// biome-ignore lint/suspicious/noExplicitAny: the framework's types are not among this package's
type Foreign = any;

/** What is used of a `Model`. */
interface AgentModel {
  getResponse(request: Foreign): Promise<Foreign>;
  getStreamedResponse(request: Foreign): AsyncIterable<Foreign>;
  readonly supportsPromptModelSelection?: boolean;
  getRetryAdvice?(failed: Foreign): Foreign;
}

/** Fits `ModelProvider`. */
export interface SwarmModelProvider {
  getModel(modelName?: string): Promise<AgentModel> | AgentModel;
}

export interface ProviderOptions extends CallOptions {
  /** Gives the models. Default: `new OpenAIProvider()` of `@openai/agents`. */
  readonly provider?: SwarmModelProvider;
}

/** A provider for `new Runner({ modelProvider })`. A model that an agent has as an object, not by name, is not asked of
 *  a provider: wrap it with `swarmModel`.
 *  @throws InvalidValueError naming the option. `getModel` throws MissingPackageError without `@openai/agents`. Calls
 *    reject as `Swarm.acquire` does, and inside a handler with InfrastructureError after a refusal */
export function swarmModelProvider(swarm: Swarm, options?: ProviderOptions): SwarmModelProvider {
  const { own, rest } = withoutOwn(options, "provider");
  const calls = new ModelCalls("swarmModelProvider", swarm, rest);
  const right = having<SwarmModelProvider>("a provider of models, such as new OpenAIProvider()", "getModel");
  let openAi: OpenAiModels | undefined;
  const provided = argument(["swarmModelProvider", "provider"], own, right.optional(), InvalidValueError);
  return {
    getModel: async (given) => {
      // An agent without a model asks for "".
      const name = given === "" ? undefined : given;
      if (provided !== undefined) return held(await provided.getModel(given), name, calls);
      openAi ??= await openAiModels();
      return held(await openAi.provider.getModel(given), name ?? openAi.defaultModel(), calls);
    },
  };
}

/** A model that holds slots: `new Agent({ model: swarmModel(model, "gpt-4o", swarm) })`. @throws as above */
export function swarmModel<Model extends AgentModel>(
  model: Model,
  modelName: string,
  swarm: Swarm,
  options?: CallOptions,
): AgentModel {
  const right = having<AgentModel>("a model of the Agents SDK", "getResponse", "getStreamedResponse");
  argument(["swarmModel", "model"], model, right, InvalidValueError);
  return held(model, modelName, new ModelCalls("swarmModel", swarm, options));
}

function held(model: AgentModel, modelName: string | undefined, calls: ModelCalls): AgentModel {
  const callOf = ({ systemInstructions, input, signal }: Foreign) => ({
    model: modelName,
    prompt: [systemInstructions, input],
    signal,
  });
  return {
    ...(model.supportsPromptModelSelection === undefined
      ? {}
      : { supportsPromptModelSelection: model.supportsPromptModelSelection }),
    ...(model.getRetryAdvice === undefined
      ? {}
      : { getRetryAdvice: (failed) => model.getRetryAdvice?.(failed) }),
    getResponse: async (request) =>
      await calls.once(
        callOf(request),
        (signal) => model.getResponse({ ...request, signal }),
        ({ usage }) => usageOf(usage?.inputTokens, usage?.outputTokens),
      ),
    getStreamedResponse: async function* (request) {
      const send = (signal: AbortSignal) => model.getStreamedResponse({ ...request, signal });
      yield* await calls.stream(callOf(request), send, {
        // The SDK passes the provider's own events on, and its error for a failed response does not say why.
        errorOf: ({ type, event }) => (type === "model" ? errorInEvent(event) : undefined),
        usageOf: ({ response }) => usageOf(response?.usage?.inputTokens, response?.usage?.outputTokens),
      });
    },
  };
}

interface OpenAiModels {
  readonly provider: SwarmModelProvider;
  /** The SDK's own default, or that of `OPENAI_DEFAULT_MODEL`. */
  readonly defaultModel: () => string;
}

async function openAiModels(): Promise<OpenAiModels> {
  type Agents = { OpenAIProvider: new () => SwarmModelProvider; getDefaultModel: () => string };
  const { OpenAIProvider, getDefaultModel } = await importPeer<Agents>(
    "@openai/agents",
    "swarmModelProvider without a provider",
  );
  return { provider: new OpenAIProvider(), defaultModel: getDefaultModel };
}
