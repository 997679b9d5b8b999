// Submits a task and waits for its result. Requires an agent for the kind `count`: examples/agent-function.ts,
// or `waggle agent --kind count --exec 'wc -w'`.

import { connect, TaskFailedError, WaitTimedOutError } from "waggledance";

const text = process.argv[2] ?? "how many words is this";

await using swarm = await connect();
const task = await swarm.submit({ kind: "count", payload: text });
console.log(`accepted as ${task.id}, in batch ${task.ack?.idx} of the journal`);
for (const warning of task.ack?.warnings ?? []) console.warn(`warning: ${warning.code}`);

try {
  const result = await task.result({ timeoutMs: 60_000 });
  console.log(`${result.text().trim()} words, counted by ${result.agent}`);
} catch (error) {
  if (error instanceof WaitTimedOutError) console.error("no agent has completed the task yet; it goes on");
  else if (error instanceof TaskFailedError) console.error(`the task failed: ${error.message}`);
  else throw error;
  process.exitCode = 1;
}
