// The OpenAI Agents SDK under a quota: three runs of an agent with one slot. Runs without a key: the provider gives a
// fake model. Without `provider`, the models are OpenAI's.

import { Agent, type Model, Runner, Usage } from "@openai/agents";
import { connect } from "waggledance";
import { swarmModelProvider } from "waggledance/openai-agents";

await using swarm = await connect();
await swarm.setResource("gpt-4o-mini", { slots: 1 });

const model: Model = {
  getResponse: async () => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    const content = [{ type: "output_text" as const, text: "Hello, bee." }];
    const output = [
      { type: "message" as const, role: "assistant" as const, status: "completed" as const, content },
    ];
    return { output, usage: new Usage({ inputTokens: 9, outputTokens: 2 }) };
  },
  getStreamedResponse: () => {
    throw new Error("this fake does not stream");
  },
};

// The line that Waggle adds.
const modelProvider = swarmModelProvider(swarm, { provider: { getModel: () => model } });

const runner = new Runner({ modelProvider, tracingDisabled: true });
const agent = new Agent({ name: "greeter", instructions: "Greet.", model: "gpt-4o-mini" });
await Promise.all(
  ["scout", "dance", "forage"].map(async (prompt) => {
    const { finalOutput } = await runner.run(agent, prompt);
    console.log(`${prompt}: ${finalOutput}`);
  }),
);
