// The adapter of LangChain.js, with a fake model on the framework's own base class.

import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { createAgent, createMiddleware } from "langchain";
import { expect, it } from "vitest";
import { z } from "zod";
import { swarmMiddleware, withSwarm } from "../../../src/adapters/langchain.ts";
import { limits } from "../../../src/limits.ts";
import { all, conformance } from "./conformance.ts";
import { type FakeProvider, usage, wholeText } from "./fake-provider.ts";

const metadata = {
  input_tokens: usage.inputTokens,
  output_tokens: usage.outputTokens,
  total_tokens: usage.inputTokens + usage.outputTokens,
};

/** The framework's type for the tokens depends on the tools. */
function counted(content: string): { readonly content: string } {
  return { content, ...{ usage_metadata: metadata } };
}

/** Ignores the signal, as many models do. */
class FakeChatModel extends BaseChatModel {
  readonly model = "gpt-4o";
  /** Of the last call. */
  signal: AbortSignal | undefined;
  readonly #provider: FakeProvider;

  constructor(provider: FakeProvider) {
    super({});
    this.#provider = provider;
  }

  _llmType(): string {
    return "fake";
  }

  override bindTools(tools: object[], settings?: object) {
    return this.withConfig({ tools, ...settings } as object);
  }

  async _generate(_messages: BaseMessage[], { signal }: this["ParsedCallOptions"]): Promise<ChatResult> {
    this.signal = signal;
    const text = await this.#provider.answer(this.#provider.begin());
    return { generations: [{ text, message: new AIMessage(counted(text)) }] };
  }

  override async *_streamResponseChunks(
    _messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    _run?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const plan = this.#provider.begin();
    for await (const text of this.#provider.stream(plan))
      yield new ChatGenerationChunk({ text, message: new AIMessageChunk(text) });
    const message = new AIMessageChunk(counted(""));
    yield new ChatGenerationChunk({ text: "", message });
  }
}

/** Without streams of its own. */
class PlainChatModel extends FakeChatModel {
  override _streamResponseChunks = BaseChatModel.prototype._streamResponseChunks;
}

conformance(
  {
    name: "langchain",
    afterBreak: "cut off later",
    open: (provider, swarm, options) => {
      const model = withSwarm(new FakeChatModel(provider), swarm, options);
      const retrying = model.withRetry({ stopAfterAttempt: 2 });
      return {
        ask: async (signal) => (await retrying.invoke("Count to three.", signal && { signal })).text,
        stream: async function* (signal) {
          for await (const { text } of await model.stream("Count to three.", signal && { signal }))
            if (text !== "") yield text;
        },
        abandon: async () => await model.stream("Count to three."),
      };
    },
  },
  (bench) => {
    const shared = () =>
      withSwarm(new FakeChatModel(bench.provider), bench.swarm, { resource: bench.resource });

    it("a batch holds a slot per prompt", async () => {
      const messages = await shared().batch(["one", "two", "three"]);
      expect(messages.map(({ text }) => text)).toEqual([wholeText, wholeText, wholeText]);
      expect(bench.provider.runningMax).toBe(1);
      expect(await bench.reports()).toEqual([all, all, all]);
    });

    it("a model with tools holds slots too", async () => {
      const model = shared().bindTools([{ name: "count", description: "Counts.", schema: z.object({}) }]);
      expect((await model.invoke("Count.")).text).toBe(wholeText);
      expect(await bench.reports()).toEqual([all]);
    });

    it("events stream under a slot", async () => {
      const stream = shared().streamEvents("Count.", { version: "v2" });
      const parts: string[] = [];
      for await (const { event, data } of stream)
        if (event === "on_chat_model_stream") parts.push(data.chunk.text);
      expect(parts.join("")).toBe(wholeText);
      expect(await bench.reports()).toEqual([all]);
    });

    it("the given model is left alone, and a model without streams stays without", async () => {
      const model = new FakeListChatModel({ responses: ["x"] });
      expect(withSwarm(model, bench.swarm)).not.toBe(model);
      expect(Object.keys(model)).not.toContain("_generate");
      const plain = withSwarm(new PlainChatModel(bench.provider), bench.swarm, { resource: bench.resource });
      const parts: string[] = [];
      for await (const { text } of await plain.stream("Count.")) parts.push(text);
      expect(parts).toEqual([wholeText]);
      expect(await bench.reports()).toEqual([all]);
    });

    it("an agent holds a slot per call of its model, by the middleware", async () => {
      const middleware = [createMiddleware(swarmMiddleware(bench.swarm, { resource: bench.resource }))];
      const agent = createAgent({ model: new FakeChatModel(bench.provider), tools: [], middleware });
      const { messages } = await agent.invoke({ messages: ["Count to three."] });
      expect(messages.at(-1)?.text).toBe(wholeText);
      expect(await bench.reports()).toEqual([all]);
    });

    it("an agent that is aborted leaves no slot in use", async () => {
      const middleware = [createMiddleware(swarmMiddleware(bench.swarm, { resource: bench.resource }))];
      const agent = createAgent({ model: new FakeChatModel(bench.provider), tools: [], middleware });
      bench.provider.gated();
      const controller = new AbortController();
      const asked = expect(
        agent.invoke({ messages: ["Count."] }, { signal: controller.signal }),
      ).rejects.toThrow();
      await expect.poll(() => bench.provider.running).toBe(1);
      controller.abort();
      await asked;
      expect(await bench.reports()).toEqual([undefined]);
    });

    it("an agent aborts the model when a call loses the slot", async () => {
      const options = { resource: bench.resource, idleTimeoutMs: limits.slotIdleMsMin };
      const middleware = [createMiddleware(swarmMiddleware(bench.swarm, options))];
      const model = new FakeChatModel(bench.provider);
      const agent = createAgent({ model, tools: [], middleware });
      bench.provider.gated();
      const invoked = agent.invoke({ messages: ["Count."] });
      await expect(invoked).rejects.toThrow("the slot of");
      expect(model.signal?.reason).toMatchObject({ code: "WAGGLE_SLOT_LOST" });
    });

    it("an agent streams a model that holds slots", async () => {
      const agent = createAgent({ model: shared(), tools: [] });
      let text = "";
      const stream = await agent.stream({ messages: ["Count."] }, { streamMode: "messages" });
      for await (const [message] of stream) text += message.text;
      expect(text).toBe(wholeText);
      expect(await bench.reports()).toEqual([all]);
    });
  },
);
