// A process that contends for a slot and prints changes, one per line: `joined`, `has`, `lost`, `released`.
// argv: the data folder, the resource, how often to hold the slot (0: once, until killed), the duration in ms.

import { connect } from "../../dist/src/index.js";

const [dataFolder, resource, times, holdMs] = process.argv.slice(2);
const swarm = await connect({ dataFolder });
const say = (text) => process.stdout.write(`${text}\n`);
say("joined");
for (let round = 0; round < Math.max(1, Number(times)); round += 1) {
  const slot = await swarm.acquire(resource);
  slot.signal.addEventListener("abort", () => say(`lost ${slot.signal.reason.code}`));
  say(`has ${slot.handle}`);
  if (times === "0") await new Promise(() => setInterval(() => undefined, 60_000));
  await new Promise((resolve) => setTimeout(resolve, Number(holdMs)));
  await slot.release();
  say("released");
}
await swarm.close();
say("done");
