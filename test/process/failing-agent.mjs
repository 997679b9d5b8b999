// An agent that follows its payload: `block:<ms>` blocks the thread, `exit` ends the process, any other payload
// completes at once. argv: the data folder, the agent's id, its kind.

import { connect } from "../../dist/src/index.js";

const [dataFolder, id, kind] = process.argv.slice(2);
const swarm = await connect({ dataFolder });
await swarm.agent({
  id,
  kinds: [kind],
  handler: ({ payload }) => {
    if (payload === "exit") process.exit(1);
    const [, blockMs] = /^block:(\d+)$/.exec(payload) ?? [];
    const until = performance.now() + Number(blockMs ?? 0);
    while (performance.now() < until);
    return "done";
  },
});
process.stdout.write("joined\n");
