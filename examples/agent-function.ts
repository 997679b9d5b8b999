// An agent whose work is a function: counts words, four tasks at a time, until Ctrl-C. Ctrl-C drains the agent:
// running tasks finish, then it leaves. After a kill, its attempts run elsewhere.

import { once } from "node:events";
import { connect, InvalidInputError } from "waggledance";

await using swarm = await connect();
await using agent = await swarm.agent({
  kinds: ["count"],
  maxConcurrent: 4,
  handler: (task) => {
    const text = task.text();
    if (text.includes("\u0000")) throw new InvalidInputError("the payload is not text");
    return String(text.split(/\s+/).filter((word) => word !== "").length);
  },
});
console.log(`${agent.id} counts words; Ctrl-C ends it`);
const error = await Promise.race([agent.closed, once(process, "SIGINT"), once(process, "SIGTERM")]);
if (error instanceof Error) console.error(error.message);
