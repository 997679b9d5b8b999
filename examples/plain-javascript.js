// Plain JavaScript, on Node 20 too: without `await using`, so that closing stands in `finally`.
// Needs nothing but a swarm: it brings its own agent.

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
