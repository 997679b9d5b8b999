// `waggledance/langchain`: LangChain.js. Each call of a chat model holds a slot. Callbacks only observe, so a model is
// wrapped instead.
//
//   const model = withSwarm(new ChatOpenAI({ model: "gpt-4o" }), swarm).withRetry();

import type { Swarm } from "../client/swarm.ts";
import { InvalidValueError } from "../errors.ts";
import type { CallOptions } from "./call-options.ts";
import { type ModelCall, ModelCalls } from "./model-calls.ts";
import { laterUsage, summedUsage, type TokenUsage, usageOf } from "./token-usage.ts";

// biome-ignore lint/suspicious/noExplicitAny: the framework's types are not among this package's
type Foreign = any;

/** For one call: a model would try again, and wait in between, while the call holds its slot. */
const onlyOnce = { maxRetries: 0 } as const;

/** What is used of a `BaseChatModel`. */
interface ChatModel {
  _generate(messages: Foreign, options: Foreign, runManager?: Foreign): Promise<Foreign>;
}

/** A chat model that holds a slot per call, and per prompt of a batch. The given model is not changed. Its own retries
 *  are off: they would hold the slot during their back-off. `withRetry` tries again, with a slot per attempt.
 *  @throws InvalidValueError naming the argument or option. Calls reject as `Swarm.acquire` does, and inside a handler
 *    with InfrastructureError after a refusal */
export function withSwarm<Model extends ChatModel>(model: Model, swarm: Swarm, options?: CallOptions): Model {
  if (typeof model?._generate !== "function") {
    const sentence = "withSwarm: model: must be a chat model of LangChain, such as new ChatOpenAI({ … })";
    throw new InvalidValueError(sentence, { field: "model" });
  }
  return held(model, new ModelCalls("withSwarm", swarm, options));
}

/** A middleware that holds a slot per call of the model, whatever model the agent chooses:
 *  `createAgent({ middleware: [createMiddleware(swarmMiddleware(swarm))] })`. For models without `withSwarm`. The
 *  model's own retries are off. `modelRetryMiddleware()` before this one tries again, with a slot per attempt.
 *  @throws as `withSwarm` */
export function swarmMiddleware(swarm: Swarm, options?: CallOptions): SwarmMiddleware {
  const calls = new ModelCalls("swarmMiddleware", swarm, options);
  const wrapModelCall = async (
    request: Foreign,
    handler: (request: Foreign) => Foreign,
  ): Promise<Foreign> => {
    const { model, messages, systemPrompt, modelSettings, runtime } = request;
    const call = callOf(model.bound ?? model, [systemPrompt, messages], { signal: runtime?.signal });
    // The framework binds the settings to the model, and joins this signal with the signal of the agent's call.
    const send = async (signal: AbortSignal) =>
      await handler({ ...request, modelSettings: { ...modelSettings, signal, ...onlyOnce } });
    return await calls.once(call, send, messageUsage);
  };
  return { name: "waggle", wrapModelCall };
}

/** Fits the argument of `createMiddleware`. */
export interface SwarmMiddleware {
  readonly name: string;
  readonly wrapModelCall: (request: Foreign, handler: (request: Foreign) => Foreign) => Promise<Foreign>;
}

function held<Model extends ChatModel>(model: Model, calls: ModelCalls): Model {
  const raw: Foreign = model;
  const streamed = (name: string, usageIn: (chunk: Foreign) => TokenUsage | undefined, add = laterUsage) =>
    async function* (messages: Foreign, options: Foreign, runManager: Foreign) {
      const send = (signal: AbortSignal) =>
        raw[name](messages, { ...options, signal, ...onlyOnce }, runManager);
      yield* await calls.stream(callOf(raw, messages, options), send, { usageOf: usageIn, add });
    };
  const own: Foreign = Object.create(model);
  own._generate = async (messages: Foreign, options: Foreign, runManager: Foreign) =>
    await calls.once(
      callOf(raw, messages, options),
      async (signal) => await raw._generate(messages, { ...options, signal, ...onlyOnce }, runManager),
      ({ generations }) => messageUsage(generations[0]?.message),
    );
  if (hasOwn(raw, "_streamResponseChunks"))
    own._streamResponseChunks = streamed(
      "_streamResponseChunks",
      ({ message }) => messageUsage(message),
      summedUsage,
    );
  if (hasOwn(raw, "_streamChatModelEvents"))
    own._streamChatModelEvents = streamed("_streamChatModelEvents", ({ usage }) => metadataUsage(usage));
  for (const name of ["bindTools", "withConfig"])
    if (raw[name] !== undefined) own[name] = (...given: unknown[]) => alsoHeld(raw[name](...given), calls);
  // A model of `initChatModel` passes each call on to a model that it makes late.
  if (typeof raw._getModelInstance === "function")
    own._getModelInstance = async (config: Foreign) => alsoHeld(await raw._getModelInstance(config), calls);
  return own;
}

/** Wraps a model that another model made: the model itself, or the binding of a model, which may be kept for later
 *  calls. */
function alsoHeld(made: Foreign, calls: ModelCalls): Foreign {
  if (typeof made._generate === "function") return held(made, calls);
  if (typeof made.bound?._generate !== "function") return made;
  return Object.assign(Object.create(made), { bound: held(made.bound, calls) });
}

/** True for a method that replaces the one of the base class. The inherited one ends in the methods held here. */
function hasOwn(model: Foreign, name: string): boolean {
  let inherited: unknown;
  for (let at = model; at !== null; at = Object.getPrototypeOf(at))
    if (Object.hasOwn(at, name)) inherited = at[name];
  return model[name] !== inherited;
}

function callOf(model: Foreign, prompt: unknown, options: Foreign): ModelCall {
  // A model that an agent names by text is made late, from its default configuration.
  const configured = model.model ?? model.modelName ?? model._defaultConfig?.model;
  const id = options?.model ?? configured ?? model.getLsParams?.(options ?? {}).ls_model_name;
  return { model: id, prompt, signal: options?.signal };
}

function messageUsage(message: Foreign): TokenUsage | undefined {
  return metadataUsage(message?.usage_metadata);
}

function metadataUsage(usage: Foreign): TokenUsage | undefined {
  return usage === undefined ? undefined : usageOf(usage.input_tokens, usage.output_tokens);
}
