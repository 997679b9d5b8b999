// Anthropic's SDK under a quota: three messages with one slot. Runs without a key: `fetch` answers in the provider's
// place. With a key, leave `apiKey` and `fetch` out.

import Anthropic from "@anthropic-ai/sdk";
import { connect } from "waggledance";
import { swarmMiddleware } from "waggledance/anthropic";

await using swarm = await connect();
await swarm.setResource("claude-haiku-5", { slots: 1 });

async function fetch(): Promise<Response> {
  await new Promise((resolve) => setTimeout(resolve, 50));
  return Response.json({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-haiku-5",
    content: [{ type: "text", text: "Hello, bee." }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 9, output_tokens: 4 },
  });
}

// The line that Waggle adds is the middleware.
const client = new Anthropic({ apiKey: "none", fetch, middleware: [swarmMiddleware(swarm)] });

await Promise.all(
  ["scout", "dance", "forage"].map(async (prompt) => {
    const { content } = await client.messages.create({
      model: "claude-haiku-5",
      max_tokens: 100,
      messages: [{ role: "user", content: prompt }],
    });
    for (const block of content) if (block.type === "text") console.log(`${prompt}: ${block.text}`);
  }),
);
