// The adapter of LangChain.js with the framework's own model of OpenAI, against a local server that speaks its wire.
// The model has retries of its own, for which no slot may be held.

import { ChatOpenAI, type ChatOpenAIFields } from "@langchain/openai";
import {
  type AgentMiddleware,
  createAgent,
  createMiddleware,
  initChatModel,
  modelRetryMiddleware,
} from "langchain";
import { expect, it } from "vitest";
import { z } from "zod";
import { swarmMiddleware, withSwarm } from "../../../src/adapters/langchain.ts";
import { swarmFetch } from "../../../src/adapters/openai.ts";
import { limits } from "../../../src/limits.ts";
import { all, conformance } from "./conformance.ts";
import { type FakeProvider, wholeText } from "./fake-provider.ts";
import { openAiWire, startWireServer, type WireServer } from "./wire-server.ts";

let server: WireServer | undefined;
let current: FakeProvider;

/** @param fields of the model, which tries a failed call again twice by default */
function modelOf({ configuration, ...fields }: ChatOpenAIFields = {}): ChatOpenAI {
  const reached = { baseURL: server?.url ?? "", ...configuration };
  return new ChatOpenAI({
    model: "gpt-4o",
    apiKey: "none",
    maxRetries: 2,
    ...fields,
    configuration: reached,
  });
}

/** A model of its provider's package, loaded at the first call. */
async function namedModel() {
  const fields = { modelProvider: "openai", apiKey: "none", configuration: { baseURL: server?.url } };
  return await initChatModel("gpt-4o", fields);
}

const refusedOnce = { tokens: 0, inputTokens: 0, outputTokens: 0 };

conformance(
  {
    name: "langchain with ChatOpenAI",
    afterBreak: "cut off later",
    open: async (provider, swarm, options) => {
      current = provider;
      server ??= await startWireServer(openAiWire, () => current);
      const model = withSwarm(modelOf(), swarm, options);
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
    close: async () => await server?.stop(),
  },
  (bench) => {
    const options = () => ({ resource: bench.resource });
    const holding = (more: object = {}) =>
      createMiddleware(swarmMiddleware(bench.swarm, { ...options(), ...more }));
    const asked = { messages: ["Count to three."] };

    it("a model with tools or settings holds slots, and so does one that gives objects", async () => {
      const model = withSwarm(modelOf(), bench.swarm, options());
      expect((await model.bindTools([]).invoke("Count.")).text).toBe(wholeText);
      expect((await model.withConfig({ stop: ["four"] }).invoke("Count.")).text).toBe(wholeText);
      const structured = model.withStructuredOutput(z.object({}), { method: "functionCalling" });
      await structured.invoke("Count.").catch(() => undefined); // the answer calls no function
      expect(await bench.reports()).toEqual([all, all, all]);
    });

    it("an agent of a model that holds slots, with tools, takes one slot per call", async () => {
      for (const model of [modelOf(), await namedModel()]) {
        const agent = createAgent({ model: withSwarm(model, bench.swarm, options()), tools: [] });
        expect((await agent.invoke(asked)).messages.at(-1)?.text).toBe(wholeText);
      }
      expect(await bench.reports()).toEqual([all, all]);
    });

    it("a model that is named by text holds slots, at each call", async () => {
      const model = withSwarm(await namedModel(), bench.swarm, options());
      for (const _ of [1, 2]) expect((await model.invoke("Count.")).text).toBe(wholeText);
      let streamed = "";
      for await (const { text } of await model.stream("Count.")) streamed += text;
      expect(streamed).toBe(wholeText);
      const counting = model.bindTools([]);
      for (const _ of [1, 2]) expect((await counting.invoke("Count.")).text).toBe(wholeText);
      expect(await bench.reports()).toEqual([all, all, all, all, all]);
    });

    it("a model does not try again while it holds a slot", async () => {
      bench.provider.plans.push({ status: 500 });
      const model = withSwarm(modelOf(), bench.swarm, options());
      await expect(model.invoke("Count.")).rejects.toThrow("500");
      bench.provider.plans.push({ status: 500 });
      await expect(model.stream("Count.")).rejects.toThrow("500");
      bench.provider.plans.push({ status: 500 });
      await expect(model.bindTools([]).invoke("Count.", { maxRetries: 2 })).rejects.toThrow("500");
      bench.provider.plans.push({ status: 500 });
      const agent = createAgent({ model: modelOf(), tools: [], middleware: [holding()] });
      await expect(agent.invoke(asked)).rejects.toThrow("500");
      expect(bench.provider.calls).toBe(4);
      expect(await bench.reports()).toEqual([refusedOnce, refusedOnce, refusedOnce, refusedOnce]);
    });

    it("an agent tries again in slots of their own, by the framework's middleware around this one", async () => {
      bench.provider.plans.push({ status: 500 });
      const retry = modelRetryMiddleware({ maxRetries: 1, initialDelayMs: 10, onFailure: "error" });
      const middleware = [retry, holding()] as AgentMiddleware[];
      const agent = createAgent({ model: modelOf(), tools: [], middleware });
      expect((await agent.invoke(asked)).messages.at(-1)?.text).toBe(wholeText);
      expect(bench.provider.calls).toBe(2);
      expect(await bench.reports()).toEqual([refusedOnce, all]);
    });

    it("an agent with a model named by text holds slots, and aborts a call without a slot", async () => {
      const model = await namedModel();
      const agent = createAgent({ model, tools: [], middleware: [holding()] });
      expect((await agent.invoke(asked)).messages.at(-1)?.text).toBe(wholeText);
      expect(await bench.reports()).toEqual([all]);
      bench.provider.gated();
      const quick = holding({ idleTimeoutMs: limits.slotIdleMsMin });
      const again = createAgent({ model, tools: [], middleware: [quick] });
      await expect(again.invoke(asked)).rejects.toThrow("the slot of");
      await bench.reports();
    });

    it("a model whose client holds slots tries again by itself, in slots of their own", async () => {
      bench.provider.plans.push({ status: 500 });
      const fetch = swarmFetch(bench.swarm, options());
      const { text } = await modelOf({ configuration: { fetch } }).invoke("Count.");
      expect(text).toBe(wholeText);
      expect(bench.provider.calls).toBe(2);
      expect(await bench.reports()).toEqual([refusedOnce, all]);
    });
  },
);
