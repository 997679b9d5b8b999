// The adapter of Anthropic's SDK, against a local server that speaks its wire.

import Anthropic from "@anthropic-ai/sdk";
import { expect, it } from "vitest";
import { swarmMiddleware } from "../../../src/adapters/anthropic.ts";
import { conformance } from "./conformance.ts";
import type { FakeProvider } from "./fake-provider.ts";
import { anthropicWire, startWireServer, type WireServer } from "./wire-server.ts";

let server: WireServer | undefined;
let current: FakeProvider;

conformance(
  {
    name: "anthropic",
    partial: { inputTokens: 12, outputTokens: 1 },
    open: async (provider, swarm, options) => {
      current = provider;
      server ??= await startWireServer(anthropicWire, () => current);
      const client = new Anthropic({
        apiKey: "none",
        baseURL: server.url,
        maxRetries: 1,
        logLevel: "off",
        middleware: [swarmMiddleware(swarm, options)],
      });
      const request = {
        model: "claude-sonnet-5",
        max_tokens: 100,
        messages: [{ role: "user" as const, content: "Count to three." }],
      };
      return {
        ask: async (signal) => {
          const { content } = await client.messages.create(request, signal && { signal });
          return content.map((block) => (block.type === "text" ? block.text : "")).join("");
        },
        stream: async function* (signal) {
          for await (const event of await client.messages.create(
            { ...request, stream: true },
            signal && { signal },
          ))
            if (event.type === "content_block_delta" && event.delta.type === "text_delta")
              yield event.delta.text;
        },
        abandon: async () => await client.messages.create({ ...request, stream: true }),
      };
    },
    close: async () => await server?.stop(),
  },
  (bench) => {
    it("other requests pass without a slot", async () => {
      const middleware = [swarmMiddleware(bench.swarm, { resource: bench.resource })];
      const client = new Anthropic({
        apiKey: "none",
        middleware,
        fetch: async () => Response.json({ input_tokens: 3 }),
      });
      const counted = await client.messages.countTokens({
        model: "x",
        messages: [{ role: "user", content: "Count." }],
      });
      expect(counted.input_tokens).toBe(3);
      expect(await bench.reports()).toEqual([]);
    });

    it("the client's time-out does not cover the wait for a slot; the adapter's does", async () => {
      await using held = await bench.swarm.acquire(bench.resource);
      const middleware = [swarmMiddleware(bench.swarm, { resource: bench.resource, timeoutMs: 200 })];
      const client = new Anthropic({ apiKey: "none", baseURL: server?.url ?? "", timeout: 50, middleware });
      const message = { model: "x", max_tokens: 1, messages: [{ role: "user" as const, content: "Count." }] };
      await expect(client.messages.create(message)).rejects.toMatchObject({
        code: "WAGGLE_ACQUIRE_TIMED_OUT",
      });
      await held.release();
    });
  },
);
