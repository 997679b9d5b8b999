// A recorded agent as a separate process: echoes payloads after a moment, and sometimes fails. The parent
// restarts a killed agent under the same id. The process ends when told to.

import { setTimeout as sleep } from "node:timers/promises";
import { startAgent } from "../../../src/agent/agent.ts";
import { InfrastructureError } from "../../../src/agent/handler.ts";
import { swarmId } from "../../../src/ids.ts";
import { RecordingTransport } from "../../../src/sim/history/recording-transport.ts";
import { SeededRandom } from "../../../src/sim/random.ts";
import { connectNats } from "../../../src/transport/nats.ts";
import { HistoryWriter } from "../history-file.ts";
import { monotonicMs } from "../monotonic.ts";
import type { ClientOrders, ProcessStart } from "./start.ts";

/** Long enough that a killed agent has open attempts. */
const HANDLER_MS_MAX = 250;
/** Of attempts. */
const shares = { refused: 0.01, failed: 0.01 } as const;

const start = JSON.parse(process.argv[2] ?? "{}") as ProcessStart;
const writer = new HistoryWriter(start.historyFile, start.recordsEvery);
const random = new SeededRandom(`${start.seed}/${start.node}/${process.pid}`);
const inner = await connectNats({ urls: start.urls, name: start.node });
const transport = new RecordingTransport(inner, {
  node: start.node,
  swarm: swarmId(start.swarm),
  now: monotonicMs,
  record: writer.record,
});
process.on("message", (order: ClientOrders) => {
  if (order.type !== "end") return;
  writer.flush();
  process.exit(0);
});
process.once("disconnect", () => process.exit(1));
const agent = await startAgent(
  {
    id: start.node,
    kinds: ["chaos"],
    maxConcurrent: 24,
    handler: async (task) => {
      await sleep(random.fraction() * HANDLER_MS_MAX);
      const draw = random.fraction();
      if (draw < shares.refused) throw new InfrastructureError("by chance");
      if (draw < shares.refused + shares.failed) throw new Error("by chance");
      return task.payload;
    },
  },
  { swarm: swarmId(start.swarm), connection: { kind: "transport", transport } },
);
process.send?.({ type: "ready" });
const ended = await agent.closed;
process.send?.({ type: "trouble", sentence: `agent ${start.node} ended: ${String(ended)}` });
writer.flush();
