// The adapter of the OpenAI Agents SDK, with a fake model.

import {
  Agent,
  type Model,
  type ModelRequest,
  type ModelResponse,
  Runner,
  type StreamEvent,
  Usage,
} from "@openai/agents";
import { expect, it, vi } from "vitest";
import { swarmModel, swarmModelProvider } from "../../../src/adapters/openai-agents.ts";
import { all, conformance } from "./conformance.ts";
import { type FakeProvider, usage, wholeText } from "./fake-provider.ts";

class FakeModel implements Model {
  readonly #provider: FakeProvider;

  constructor(provider: FakeProvider) {
    this.#provider = provider;
  }

  async getResponse(_request: ModelRequest): Promise<ModelResponse> {
    const text = await this.#provider.answer(this.#provider.begin());
    return { usage: new Usage(usage), output: [messageOf(text)] };
  }

  async *getStreamedResponse(_request: ModelRequest): AsyncIterable<StreamEvent> {
    for await (const delta of this.#provider.stream(this.#provider.begin()))
      yield { type: "output_text_delta", delta };
    const total = { ...usage, totalTokens: usage.inputTokens + usage.outputTokens };
    yield { type: "response_done", response: { id: "1", usage: total, output: [messageOf(wholeText)] } };
  }
}

function messageOf(text: string) {
  return {
    type: "message" as const,
    role: "assistant" as const,
    status: "completed" as const,
    content: [{ type: "output_text" as const, text }],
  };
}

conformance(
  {
    name: "openai-agents",
    open: (provider, swarm, options) => {
      const modelProvider = swarmModelProvider(swarm, {
        ...options,
        provider: { getModel: () => new FakeModel(provider) },
      });
      const runner = new Runner({ modelProvider, tracingDisabled: true });
      const retry = { maxRetries: 1, policy: () => true, backoff: { initialDelayMs: 20 } };
      const agent = new Agent({ name: "counter", model: "gpt-4o", modelSettings: { retry } });
      const streamed = async (signal?: AbortSignal) =>
        await runner.run(agent, "Count to three.", { stream: true, ...(signal && { signal }) });
      return {
        ask: async (signal) =>
          (await runner.run(agent, "Count to three.", signal && { signal })).finalOutput ?? "",
        stream: async function* (signal) {
          const run = await streamed(signal);
          for await (const event of run)
            if (event.type === "raw_model_stream_event" && event.data.type === "output_text_delta")
              yield event.data.delta;
          await run.completed;
        },
        abandon: streamed,
      };
    },
  },
  (bench) => {
    it("a model that the agent has as an object is wrapped by swarmModel", async () => {
      const model = swarmModel(new FakeModel(bench.provider), "gpt-4o", bench.swarm, {
        resource: bench.resource,
      });
      const agent = new Agent({ name: "counter", model });
      expect((await new Runner({ tracingDisabled: true }).run(agent, "Count.")).finalOutput).toBe(wholeText);
      expect(await bench.reports()).toEqual([all]);
    });

    it("without a provider the models are OpenAI's", async () => {
      vi.stubEnv("OPENAI_API_KEY", "none");
      const model = await swarmModelProvider(bench.swarm).getModel("gpt-4o");
      vi.unstubAllEnvs();
      expect(model.getRetryAdvice).toBeTypeOf("function");
      expect(await bench.reports()).toEqual([]);
    });
  },
);
