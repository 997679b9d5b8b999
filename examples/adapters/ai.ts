// Vercel's AI SDK under a quota: four answers at once with two slots. Runs without a key: the model is the SDK's fake.
// With a real provider, only `model` changes: `openai("gpt-4o")`.

import { streamText, wrapLanguageModel } from "ai";
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { connect } from "waggledance";
import { swarmMiddleware } from "waggledance/ai";

await using swarm = await connect();
await swarm.setResource("gpt-4o", { slots: 2 });

const inputTokens = { total: 9, noCache: 9, cacheRead: 0, cacheWrite: 0 };
const outputTokens = { total: 2, text: 2, reasoning: 0 };
const model = new MockLanguageModelV4({
  modelId: "gpt-4o",
  doStream: async () => ({
    stream: simulateReadableStream({
      chunkDelayInMs: 50,
      chunks: [
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: "Hello, " },
        { type: "text-delta", id: "1", delta: "bee." },
        { type: "text-end", id: "1" },
        {
          type: "finish",
          finishReason: { unified: "stop", raw: "stop" },
          usage: { inputTokens, outputTokens },
        },
      ],
    }),
  }),
});

// The line that Waggle adds.
const shared = wrapLanguageModel({ model, middleware: swarmMiddleware(swarm) });

const answers = ["scout", "dance", "forage", "return"].map(async (prompt) => {
  const { textStream } = streamText({ model: shared, prompt });
  for await (const text of textStream) console.log(`${prompt}: ${text}`);
});
await Promise.all(answers);
