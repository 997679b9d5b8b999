// The short form, which CI runs: how many rounds of which parts, and on which of the servers that are there. Each part
// runs on one of them; together they strike each server, also where that needs a part of its own to be elsewhere.

import type { Part } from "./parts.ts";

/** How many rounds of each, so that all fit five minutes. */
export const shortRounds: Readonly<Record<string, number>> = {
  "leader-kills": 4,
  "leader-stops": 2,
  "agent-kills": 1,
  "stream-leader": 2,
  network: 3,
};

/** Parts with one server take turns, from the oldest on; those with three have the newest.
 *  @param ofAll the parts that are run, in order
 *  @param servers oldest first, at least one */
export function shortServer<Server>(part: Part, ofAll: readonly Part[], servers: readonly Server[]): Server {
  const alone = ofAll.filter((each) => each.servers === 1);
  const place = part.servers === 1 ? alone.indexOf(part) % servers.length : servers.length - 1;
  const server = servers[place];
  if (server === undefined) throw new Error(`no server for ${part.name}`);
  return server;
}
