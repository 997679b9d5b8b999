// Plain JavaScript, also on Node 20: without `await using`, `finally` closes the swarm. Requires only a swarm:
// the program starts its own agent.

import { connect } from "waggledance";

const swarm = await connect();
try {
  const agent = await swarm.agent({
    kinds: ["shout"],
    maxConcurrent: 2,
    handler: (task) => task.text().toUpperCase(),
  });
  try {
    const tasks = ["bees", "dance", "to", "vote"].map((payload) => ({ kind: "shout", payload }));
    for await (const outcome of swarm.submitMany(tasks)) {
      if (!outcome.ok) throw outcome.error;
      const result = await outcome.handle.result();
      console.log(result.text());
    }
  } finally {
    await agent.drain();
  }
} finally {
  await swarm.close();
}
