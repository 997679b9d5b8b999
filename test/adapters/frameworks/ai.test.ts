// The adapter of Vercel's AI SDK, with the SDK's own fake model.

import { APICallError, generateText, streamText, wrapLanguageModel } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { describe, expect, it } from "vitest";
import { swarmMiddleware, swarmModel } from "../../../src/adapters/ai.ts";
import { all, conformance, text } from "./conformance.ts";
import { FakeProvider, type Plan, RefusedError, usage, wholeText } from "./fake-provider.ts";

const total = (count: number) => ({ total: count, noCache: count, cacheRead: 0, cacheWrite: 0 });
const counted = {
  inputTokens: total(usage.inputTokens),
  outputTokens: { total: usage.outputTokens, text: usage.outputTokens, reasoning: 0 },
};
const finishReason = { unified: "stop", raw: "stop" } as const;

function fakeModel(provider: FakeProvider): MockLanguageModelV4 {
  return new MockLanguageModelV4({
    modelId: "gpt-4o",
    doGenerate: async () => {
      const text = await provider.answer(begin(provider));
      return { content: [{ type: "text", text }], finishReason, usage: counted, warnings: [] };
    },
    doStream: async () => ({ stream: ReadableStream.from(parts(provider, begin(provider))) as never }),
  });
}

async function* parts(provider: FakeProvider, plan: Plan) {
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "1" };
  for await (const delta of provider.stream(plan)) yield { type: "text-delta", id: "1", delta };
  yield { type: "text-end", id: "1" };
  yield { type: "finish", finishReason, usage: counted };
}

function begin(provider: FakeProvider): Plan {
  try {
    return provider.begin();
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    const { message, status: statusCode, headers: responseHeaders } = error;
    // biome-ignore lint/style/useErrorCause: this error takes its cause with its other fields
    throw new APICallError({
      message,
      statusCode,
      responseHeaders,
      url: "",
      requestBodyValues: {},
      isRetryable: true,
      cause: error,
    });
  }
}

conformance(
  {
    name: "ai",
    afterBreak: "reads on",
    open: (provider, swarm, options) => {
      const model = wrapLanguageModel({
        model: fakeModel(provider),
        middleware: swarmMiddleware(swarm, options),
      });
      const call = (signal?: AbortSignal) => ({
        model,
        prompt: "Count to three.",
        maxRetries: 1,
        ...(signal === undefined ? {} : { abortSignal: signal }),
      });
      return {
        ask: async (signal) => (await generateText(call(signal))).text,
        stream: async function* (signal) {
          let failure: unknown;
          const onError = ({ error }: { error: unknown }) => {
            failure = error;
          };
          yield* streamText({ ...call(signal), onError }).textStream;
          if (failure !== undefined) throw failure;
        },
        abandon: async () => streamText(call()),
      };
    },
  },
  (bench) => {
    it("swarmModel wraps a model in one call", async () => {
      const model = await swarmModel(fakeModel(bench.provider), bench.swarm, { resource: bench.resource });
      expect((await generateText({ model, prompt: "Count to three." })).text).toBe(wholeText);
      expect(await bench.reports()).toEqual([all]);
    });

    it("a stream in a handler whose quota is used up fails with the error that the SDK hands to onError", async () => {
      const model = await swarmModel(fakeModel(bench.provider), bench.swarm, { resource: bench.resource });
      bench.provider.plans.push({ status: 429, headers: { "retry-after": "1" } });
      const result = await bench.inHandler(async () => {
        let failure: unknown;
        const onError = ({ error }: { error: unknown }) => {
          failure = error;
        };
        const { text } = streamText({ model, prompt: "Count.", onError });
        return await Promise.resolve(text).catch((error) => {
          throw failure ?? error;
        });
      });
      expect(result.text()).toBe(wholeText);
      expect(bench.provider.calls).toBe(2);
    });

    describe("a stream whose error the SDK hides from the handler", () => {
      const quota: Plan = { status: 429, headers: { "retry-after": "1" } };
      const asked = async () => {
        const { provider, swarm, resource } = bench;
        const model = await swarmModel(fakeModel(provider), swarm, { resource });
        return { model, prompt: "Count.", maxRetries: 0, onError: () => undefined };
      };

      it("is tried again after a used up quota, and the result is whole", async () => {
        bench.provider.plans.push(quota);
        const call = await asked();
        const result = await bench.inHandler(async function* () {
          yield* streamText(call).textStream;
        });
        expect(result.text()).toBe(wholeText);
        expect(bench.provider.calls).toBe(2);
      });

      it("is tried again when the SDK throws an error of its own instead", async () => {
        bench.provider.plans.push(quota);
        const call = await asked();
        const result = await bench.inHandler(async () => ({ summary: await streamText(call).text }));
        expect(result.json()).toEqual({ summary: wholeText });
        expect(bench.provider.calls).toBe(2);
      });

      it("fails with the error of the slot", async () => {
        const model = await swarmModel(fakeModel(bench.provider), bench.swarm, { resource: "model-unknown" });
        const call = { ...(await asked()), model };
        const failed = bench.inHandler(async function* () {
          yield* streamText(call).textStream;
        });
        await expect(failed).rejects.toThrow("`waggle resource set model-unknown --slots 4`");
      });

      it("fails when the provider hangs up, though a part of the answer came", async () => {
        bench.provider.plans.push({ breaks: true });
        const call = await asked();
        const failed = bench.inHandler(async () => {
          let summary = "";
          for await (const part of streamText(call).textStream) summary += part;
          return { summary };
        });
        await expect(failed).rejects.toThrow("the provider hung up");
      });

      it("is tried again after a part that says the quota is used up", async () => {
        const error = new APICallError({
          message: "rate",
          statusCode: 429,
          responseHeaders: { "retry-after-ms": "300" },
          url: "",
          requestBodyValues: {},
        });
        const plain = fakeModel(bench.provider);
        const begun = [
          { type: "stream-start", warnings: [] },
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: "one " },
          { type: "error", error },
          { type: "finish", finishReason: { unified: "error", raw: "error" }, usage: counted },
        ];
        const streams = [async () => ({ stream: ReadableStream.from(begun) as never }), plain.doStream];
        const model = new MockLanguageModelV4({
          modelId: "gpt-4o",
          doStream: async (options) => await (streams.shift() ?? plain.doStream)(options),
        });
        const { swarm, resource } = bench;
        const call = { ...(await asked()), model: await swarmModel(model, swarm, { resource }) };
        const result = await bench.inHandler(async function* () {
          yield* streamText(call).textStream;
        });
        expect(result.text()).toBe(wholeText);
        expect(bench.provider.calls).toBe(1);
      });

      it("fails with the error of a part, though a part of the answer came", async () => {
        const begun = [
          { type: "stream-start", warnings: [] },
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: "one " },
          { type: "error", error: new Error("the answer is filtered") },
          { type: "finish", finishReason: { unified: "error", raw: "error" }, usage: counted },
        ];
        const doStream = async () => ({ stream: ReadableStream.from(begun) as never });
        const model = new MockLanguageModelV4({ modelId: "gpt-4o", doStream });
        const { swarm, resource } = bench;
        const call = { ...(await asked()), model: await swarmModel(model, swarm, { resource }) };
        const failed = bench.inHandler(async () => await streamText(call).text);
        await expect(failed).rejects.toThrow("the answer is filtered");
      });

      it("is no matter to a result of the handler's own, or of another call", async () => {
        bench.provider.plans.push(quota);
        const call = await asked();
        const own = await bench.inHandler(async () => (await text(streamText(call).textStream)) || "busy");
        expect(own.text()).toBe("busy");
        await bench.swarm.unhold({ resource: bench.resource });
        bench.provider.plans.push(quota);
        await bench.swarm.setResource("model-other", { slots: 1 });
        const other = fakeModel(new FakeProvider());
        const held = await swarmModel(other, bench.swarm, { resource: "model-other" });
        const another = await bench.inHandler(
          async () =>
            (await text(streamText(call).textStream)) ||
            (await text(streamText({ ...call, model: held }).textStream)),
        );
        expect(another.text()).toBe(wholeText);
        expect(bench.provider.calls).toBe(2);
      });
    });

    it("the usage of an answer is a report of a slot", async () => {
      const { usage } = await generateText({ model: fakeModel(bench.provider), prompt: "Count." });
      const slot = await bench.swarm.acquire(bench.resource);
      slot.report(usage);
      await slot.release();
      expect(await bench.reports()).toEqual([all]);
    });

    it("a quota that is used up after another failure is found behind the SDK's own error", async () => {
      const model = await swarmModel(fakeModel(bench.provider), bench.swarm, { resource: bench.resource });
      const headers = { "retry-after-ms": "100" };
      bench.provider.plans.push({ status: 500, headers }, { status: 429, headers });
      const result = await bench.inHandler(
        async () => (await generateText({ model, prompt: "Count." })).text,
      );
      expect(result.text()).toBe(wholeText);
      expect(bench.provider.calls).toBe(3);
    });

    it("a model without a resource of its name says how to make one", async () => {
      const model = wrapLanguageModel({
        model: fakeModel(bench.provider),
        middleware: swarmMiddleware(bench.swarm),
      });
      await expect(generateText({ model, prompt: "Count." })).rejects.toThrow(
        "`waggle resource set gpt-4o --slots 4`",
      );
      expect(bench.provider.calls).toBe(0);
    });
  },
);
