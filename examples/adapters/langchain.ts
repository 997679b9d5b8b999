// LangChain.js under a quota: four prompts in a batch with two slots. Runs without a key: the model is the framework's
// fake. A real model has a name of its own, which is the resource by default: new ChatOpenAI({ model: "gpt-4o" }).

import { FakeListChatModel } from "@langchain/core/utils/testing";
import { connect } from "waggledance";
import { withSwarm } from "waggledance/langchain";

await using swarm = await connect();
await swarm.setResource("fake", { slots: 2 });

const model = new FakeListChatModel({ responses: ["Hello, bee."], sleep: 20 });

// The line that Waggle adds.
const shared = withSwarm(model, swarm, { resource: "fake" });

const messages = await shared.batch(["scout", "dance", "forage", "return"]);
for (const { text } of messages) console.log(text);

for await (const { text } of await shared.stream("and rest")) process.stdout.write(text);
process.stdout.write("\n");
