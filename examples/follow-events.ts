// Prints everything that ever happened in the swarm, and goes on with what happens now. With --to-present it
// ends there. `waggle events` does the same, with more options; `describeEvent` of `waggledance/audit`
// writes its lines.

import { connect } from "waggledance";

const follow = !process.argv.includes("--to-present");

await using swarm = await connect();
for await (const { idx, at, event } of swarm.events({ from: "start", follow })) {
  if (event.type === "TermRenewed") continue; // an idle leader, each second
  console.log(
    `${new Date(at).toISOString()} ${String(idx).padStart(6)} ${event.type} ${JSON.stringify(event).slice(0, 120)}`,
  );
}
