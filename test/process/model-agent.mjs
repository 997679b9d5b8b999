// A process with an agent whose tasks call a model under slots. Prints `joined`.
// argv: the data folder, the agent's id, the URL of the provider.

import { swarmFetch } from "../../dist/src/adapters/openai.js";
import { connect } from "../../dist/src/index.js";

const [dataFolder, id, url] = process.argv.slice(2);
const swarm = await connect({ dataFolder });
const fetch = swarmFetch(swarm);
const init = { method: "POST", body: JSON.stringify({ model: "gpt-4o", messages: [] }) };
await swarm.agent({
  id,
  kinds: ["ask"],
  maxConcurrent: 10,
  handler: async () => {
    const answer = await fetch(`${url}v1/chat/completions`, init);
    return await answer.text();
  },
});
process.stdout.write("joined\n");
