// `waggledance/openai-agents`: the OpenAI Agents SDK. Each call of a model holds a slot; tools run without one.
//
//   const runner = new Runner({ modelProvider: swarmModelProvider(swarm) });

import type { Swarm } from "../client/swarm.ts";
import type { CallOptions } from "./call-options.ts";
import { ModelCalls } from "./lease.ts";
import { importPeer } from "./peer.ts";
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
 *    reject as `Swarm.acquire` does, and inside a handler with InfrastructureError after a 429 */
export function swarmModelProvider(swarm: Swarm, options: ProviderOptions = {}): SwarmModelProvider {
  const { provider, ...rest } = options;
  const calls = new ModelCalls("swarmModelProvider", swarm, rest);
  let provided = provider;
  return {
    getModel: async (modelName) => {
      provided ??= await openAiProvider();
      return held(await provided.getModel(modelName), modelName, calls);
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
        usageOf: ({ response }) => usageOf(response?.usage?.inputTokens, response?.usage?.outputTokens),
      });
    },
  };
}

async function openAiProvider(): Promise<SwarmModelProvider> {
  type Agents = { OpenAIProvider: new () => SwarmModelProvider };
  const { OpenAIProvider } = await importPeer<Agents>(
    "@openai/agents",
    "swarmModelProvider without a provider",
  );
  return new OpenAIProvider();
}
