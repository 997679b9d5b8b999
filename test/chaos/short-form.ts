// The short form for CI: the number of rounds of each part, and the server for each. A part runs on a single
// version; together the parts use every installed server, if necessary by moving a part.

import type { Part } from "./parts.ts";

/** Rounds per part, so that all fit five minutes. */
export const shortRounds: Readonly<Record<string, number>> = {
  "leader-kills": 4,
  "segment-changes": 2,
  "leader-stops": 2,
  "agent-kills": 1,
  "stream-leader": 2,
  network: 3,
};

/** Parts with one server alternate versions, from the oldest; parts with three servers use the newest.
 *  @param ofAll the selected parts, in order
 *  @param servers oldest first, at least one */
export function shortServer<Server>(part: Part, ofAll: readonly Part[], servers: readonly Server[]): Server {
  const alone = ofAll.filter((each) => each.servers === 1);
  const place = part.servers === 1 ? alone.indexOf(part) % servers.length : servers.length - 1;
  const server = servers[place];
  if (server === undefined) throw new Error(`no server for ${part.name}`);
  return server;
}
