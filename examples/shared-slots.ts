// Calls that share a quota: a maximum of concurrent calls over all processes. Start the program twice: both take turns.
// TypeScript and tsx compile `await using`. In plain JavaScript on Node 20, write
//
//   const slot = await swarm.acquire("gpt-4o");
//   try { … } finally { await slot.release(); }

import { BackpressureError, connect } from "waggledance";

await using swarm = await connect();
await swarm.setResource("gpt-4o", { slots: 2 });

/** In place of a call of a model. */
async function ask(prompt: string): Promise<string> {
  await new Promise((resolve) => setTimeout(resolve, 200));
  return prompt.toUpperCase();
}

async function summarize(prompt: string): Promise<void> {
  // `label` shows in `waggle resource show gpt-4o`; `tokens` and `project` would reserve tokens of a budget.
  const options = { weight: prompt.length, label: `summarize ${prompt}`, timeoutMs: 30_000 };
  await using slot = await swarm.acquire("gpt-4o", options);
  console.log(`${prompt}: has a slot`);
  if (slot.signal.aborted) return; // lost meanwhile: another process may have the slot
  console.log(`${prompt}: ${await ask(prompt)}`);
}

try {
  await Promise.all(["scout", "dance", "forage", "return"].map(summarize));
  // `wrap` holds a slot while a function runs, and releases it however the function ends.
  const answer = await swarm.wrap(() => ask("and rest"), { resource: "gpt-4o", weight: 2 });
  console.log(`wrapped: ${answer}`);
} catch (error) {
  if (!(error instanceof BackpressureError)) throw error;
  console.log(`the queue is full: try again in ${error.retryAfterMs} ms`);
}
