// The adapter of OpenAI's SDK, against a local server that speaks its wire.

import OpenAI from "openai";
import { expect, it } from "vitest";
import { swarmFetch } from "../../../src/adapters/openai.ts";
import { all, conformance } from "./conformance.ts";
import type { FakeProvider } from "./fake-provider.ts";
import { openAiWire, startWireServer, type WireServer } from "./wire-server.ts";

let server: WireServer | undefined;
let current: FakeProvider;

conformance(
  {
    name: "openai",
    open: async (provider, swarm, options) => {
      current = provider;
      server ??= await startWireServer(openAiWire, () => current);
      const client = new OpenAI({
        apiKey: "none",
        baseURL: server.url,
        maxRetries: 1,
        logLevel: "off",
        fetch: swarmFetch(swarm, options),
      });
      const request = { model: "gpt-4o", messages: [{ role: "user" as const, content: "Count to three." }] };
      const streamed = async (signal?: AbortSignal) =>
        await client.chat.completions.create(
          { ...request, stream: true, stream_options: { include_usage: true } },
          signal && { signal },
        );
      return {
        ask: async (signal) => {
          const { choices } = await client.chat.completions.create(request, signal && { signal });
          return choices[0]?.message.content ?? "";
        },
        stream: async function* (signal) {
          for await (const { choices } of await streamed(signal)) {
            const content = choices[0]?.delta.content;
            if (content) yield content;
          }
        },
        abandon: streamed,
      };
    },
    close: async () => await server?.stop(),
  },
  (bench) => {
    const clientOf = (answer: () => Response) =>
      new OpenAI({
        apiKey: "none",
        fetch: swarmFetch(bench.swarm, { resource: bench.resource, fetch: async () => answer() }),
      });

    it("the Responses API reports its tokens, in an answer and in a stream", async () => {
      const response = {
        id: "1",
        output: [],
        usage: { input_tokens: 12, output_tokens: 3, total_tokens: 15 },
      };
      await clientOf(() => Response.json(response)).responses.create({ model: "gpt-4o", input: "Count." });
      const events = `event: response.completed\ndata: ${JSON.stringify({ type: "response.completed", response })}\n\n`;
      const headers = { "content-type": "text/event-stream; charset=utf-8" };
      const client = clientOf(() => new Response(events, { headers }));
      for await (const { type } of await client.responses.create({
        model: "gpt-4o",
        input: "Count.",
        stream: true,
      }))
        expect(type).toBe("response.completed");
      expect(await bench.reports()).toEqual([all, all]);
    });

    it("a stream that is not asked for its usage is charged the estimate", async () => {
      const events = 'data: {"choices":[{"index":0,"delta":{"content":"one"}}]}\n\ndata: [DONE]\n\n';
      const client = clientOf(
        () => new Response(events, { headers: { "content-type": "text/event-stream" } }),
      );
      const messages = [{ role: "user" as const, content: "Count." }];
      const stream = await client.chat.completions.create({ model: "gpt-4o", messages, stream: true });
      for await (const { choices } of stream) expect(choices[0]?.delta.content).toBe("one");
      expect(await bench.reports()).toEqual([undefined]);
    });

    it("an unknown resource is a bad request with our code, and is not tried again", async () => {
      const sent: unknown[] = [];
      const fetch = async (url: unknown) => {
        sent.push(url);
        return Response.json({});
      };
      const client = new OpenAI({ apiKey: "none", fetch: swarmFetch(bench.swarm, { fetch }) });
      const asked = client.responses.create({ model: "gpt-9", input: "Count." });
      await expect(asked).rejects.toMatchObject({
        status: 400,
        code: "WAGGLE_UNKNOWN_RESOURCE",
        param: "resource",
      });
      await expect(asked).rejects.toThrow("`waggle resource set gpt-9 --slots 4`");
      expect(sent).toEqual([]);
    });

    it("other requests pass without a slot", async () => {
      await clientOf(() => Response.json({ data: [] })).models.list();
      expect(await bench.reports()).toEqual([]);
    });
  },
);
