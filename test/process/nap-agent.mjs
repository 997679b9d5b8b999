// An agent that runs one task at a time. The payload is the duration in ms. Prints `joined`. argv: the server,
// the agent's id.

import { connect } from "../../dist/src/index.js";

const [nats, id] = process.argv.slice(2);
const swarm = await connect({ nats });
await swarm.agent({
  id,
  kinds: ["nap"],
  handler: ({ payload }) => new Promise((resolve) => setTimeout(() => resolve("done"), Number(payload))),
});
process.stdout.write("joined\n");
