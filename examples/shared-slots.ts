// Calls that share a quota: so many at once, whoever makes them, in whatever process. Start it twice and both take
// turns. TypeScript and tsx compile `await using`; plain JavaScript on Node 20 writes
//
//   const slot = await swarm.acquire("gpt-4o");
//   try { … } finally { await slot.release(); }

import { BackpressureError, connect } from "waggledance";

await using swarm = await connect();
await swarm.setResource("gpt-4o", { slots: 2 });

/** Stands for a call of a model. */
async function ask(prompt: string): Promise<string> {
  await new Promise((resolve) => setTimeout(resolve, 200));
  return prompt.toUpperCase();
}

async function summarize(prompt: string): Promise<void> {
  await using slot = await swarm.acquire("gpt-4o", { weight: prompt.length, timeoutMs: 30_000 });
  console.log(`${prompt}: has a slot`);
  if (slot.signal.aborted) return; // lost in the meantime: somebody else may have it
  console.log(`${prompt}: ${await ask(prompt)}`);
}

try {
  await Promise.all(["scout", "dance", "forage", "return"].map(summarize));
  // The same around a function, released however it ends.
  const answer = await swarm.wrap(() => ask("and rest"), { resource: "gpt-4o", weight: 2 });
  console.log(`wrapped: ${answer}`);
} catch (error) {
  if (!(error instanceof BackpressureError)) throw error;
  console.log(`too many wait: try again in ${error.retryAfterMs} ms`);
}
