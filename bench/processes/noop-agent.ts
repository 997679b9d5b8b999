// An agent with a handler that does nothing: the measured time is the swarm's own cost.

import { connect } from "waggledance";
import { readyForParent, serverFromArguments } from "./server-flag.ts";

const swarm = await connect({ nats: serverFromArguments().urls, swarm: "bench" });
await swarm.agent({ kinds: ["noop"], maxConcurrent: 512, handler: () => "ok" });
readyForParent();
