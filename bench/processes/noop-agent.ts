// An agent whose handler does nothing: what is left is the swarm's own cost.

import { startAgent } from "../../src/agent/agent.ts";
import { swarmId } from "../../src/ids.ts";
import { readyForParent, serverFromArguments } from "./server-flag.ts";

const connection = { kind: "server", server: serverFromArguments() } as const;
const options = { kinds: ["noop"], maxConcurrent: 512, handler: () => "ok" };
await startAgent(options, { swarm: swarmId("bench"), connection });
readyForParent();
