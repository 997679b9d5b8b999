// OpenAI's SDK under a quota: three answers with one slot. Runs without a key: a function answers in the provider's
// place. With a key, leave `apiKey` and the function out: `fetch: swarmFetch(swarm)`.

import OpenAI from "openai";
import { connect } from "waggledance";
import { swarmFetch } from "waggledance/openai";

await using swarm = await connect();
await swarm.setResource("gpt-4o", { slots: 1 });

async function answer(): Promise<Response> {
  await new Promise((resolve) => setTimeout(resolve, 50));
  return Response.json({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "gpt-4o",
    choices: [{ index: 0, message: { role: "assistant", content: "Hello, bee." }, finish_reason: "stop" }],
    usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 },
  });
}

// The line that Waggle adds is the fetch.
const client = new OpenAI({ apiKey: "none", fetch: swarmFetch(swarm, { fetch: answer }) });

await Promise.all(
  ["scout", "dance", "forage"].map(async (prompt) => {
    const { choices } = await client.chat.completions.create({
      model: "gpt-4o",
      messages: [{ role: "user", content: prompt }],
    });
    console.log(`${prompt}: ${choices[0]?.message.content}`);
  }),
);
