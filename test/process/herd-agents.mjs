// Many agents in one process, each with its own connection. They join when a line arrives on standard input.
// argv: the server, a prefix for ids, the number of agents. Prints `connected`, `joined` when all have joined,
// and `ended <id> <code>` for each end.

import { once } from "node:events";
import { startAgent } from "../../src/agent/agent.ts";
import { connectNats } from "../../src/transport/nats.ts";

const [url, prefix, count] = process.argv.slice(2);
const say = (text) => process.stdout.write(`${text}\n`);
const handler = ({ payload }) => new Promise((resolve) => setTimeout(() => resolve("done"), Number(payload)));
const transports = await Promise.all(
  Array.from({ length: Number(count) }, () => connectNats({ urls: [url], name: "herd" })),
);
say("connected");
await once(process.stdin, "data");
await Promise.all(
  transports.map(async (transport, n) => {
    const options = { id: `${prefix}${n}`, kinds: ["herd"], handler };
    const agent = await startAgent(options, {
      swarm: "default",
      connection: { kind: "transport", transport },
    });
    void agent.closed.then((error) => say(`ended ${agent.id} ${error?.code ?? "as asked"}`));
  }),
);
say("joined");
