// 200 agents with a handler that waits a tenth of a second: their load changes all the time.

import { setTimeout as delay } from "node:timers/promises";
import { connect } from "waggledance";
import { readyForParent, serverFromArguments } from "./server-flag.ts";

const AGENTS = 200;
const ATTEMPT_MS = 100;

const swarm = await connect({ nats: serverFromArguments().urls, swarm: "bench" });
const kinds = ["count", "digest", "outline", "embed", "review"];
await Promise.all(
  Array.from({ length: AGENTS }, async (_, at) => {
    const own = kinds.filter((__, place) => (place + at) % 2 === 0);
    const handler = async () => {
      await delay(ATTEMPT_MS);
      return "ok";
    };
    await swarm.agent({ id: `worker-${at + 1}`, kinds: own, maxConcurrent: 4, handler });
  }),
);
readyForParent();
