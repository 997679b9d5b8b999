// Prints all events since the swarm began, then new events as they come. With --to-present, ends at the
// present. `waggle events` does the same with more options; `describeEvent` of `waggledance/audit` writes its
// lines.

import { connect } from "waggledance";

const follow = !process.argv.includes("--to-present");

await using swarm = await connect();
for await (const { idx, at, event } of swarm.events({ from: "start", follow })) {
  if (event.type === "TermRenewed") continue; // an idle leader, once per second
  console.log(
    `${new Date(at).toISOString()} ${String(idx).padStart(6)} ${event.type} ${JSON.stringify(event).slice(0, 120)}`,
  );
}
