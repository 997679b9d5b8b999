// Submits a long task and prints its updates. `events$` is an RxJS Observable. Requires
// examples/agent-llm-like.ts.

import { connect } from "waggledance";

const text = process.argv[2] ?? "a swarm of bees decides where to live by dancing for the places it has seen";

await using swarm = await connect({ user: "ann" });
const task = await swarm.submit({
  kind: "summarize",
  payload: text,
  maxAttempts: 5,
  tokens: 20,
  stallMs: 10_000,
});

const updates = task.events$.subscribe((update) => {
  if (update.type === "assigned") console.log(`attempt ${update.attempt} goes to ${update.agent}`);
  if (update.type === "progress") console.log(`${Math.round((update.fraction ?? 0) * 100)} %`);
  if (update.type === "attempt-failed") console.log(`attempt ${update.attempt}: ${update.error}`);
});

const result = await task.result({ signal: AbortSignal.timeout(60_000) });
console.log(`“${result.text()}”, for ${result.tokens} tokens`);
updates.unsubscribe();
