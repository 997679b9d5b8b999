// An agent as a language model would have: long attempts that report progress and tokens, a provider with a
// quota, and a prompt that may be invalid. Only the model is invented.

import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import {
  connect,
  type HandlerContext,
  type HandlerTask,
  InfrastructureError,
  InvalidInputError,
} from "waggledance";

const CALLS_PER_SECOND = 5;
const WORD_MS = 20;

let second = 0;
let calls = 0;

/** The provider refuses with status 429 until the next second. */
function takeQuota(): void {
  const now = Math.floor(Date.now() / 1_000);
  if (now !== second) calls = 0;
  second = now;
  calls += 1;
  if (calls <= CALLS_PER_SECOND) return;
  const retryAfterMs = (now + 1) * 1_000 - Date.now();
  throw new InfrastructureError("429: over the quota of the model", { retryAfterMs });
}

async function summarize(task: HandlerTask, context: HandlerContext): Promise<string> {
  const words = task
    .text()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.length === 0) throw new InvalidInputError("an empty prompt: a retry cannot help");
  takeQuota(); // not the agent's fault: the attempt does not count, and the agent is on hold until the quota resets

  const answer: string[] = [];
  for (const [at, word] of words.entries()) {
    await delay(WORD_MS, undefined, { signal: context.signal }); // cancelled, timed out or lost: stop at once
    if (at % 4 === 0) answer.push(word);
    context.reportTokens(1);
    context.progress((at + 1) / words.length, `${at + 1} of ${words.length} words`);
  }
  return answer.join(" ");
}

await using swarm = await connect();
await using agent = await swarm.agent({
  kinds: ["summarize"],
  type: "made-up-model",
  maxConcurrent: 8,
  handler: summarize,
});
console.log(`${agent.id} summarizes; Ctrl-C ends it`);
await Promise.race([agent.closed, once(process, "SIGINT"), once(process, "SIGTERM")]);
