// An agent whose handler does what the payload says: `block:<ms>` keeps this thread busy, `exit` ends the process,
// anything else is done at once. argv: the data folder, the agent's id, its kind.

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
