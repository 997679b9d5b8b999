// `swarm.replayAssignment` of programs that reach the journal themselves: its files, or its streams on a server.

import { expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import { natsServersFor } from "../support/nats-server.ts";
import { Workplace } from "../support/waggle-process.ts";

const BASE_EVENTS = 20;
const servers = natsServersFor("a past assignment from streams");

it.each([undefined, ...servers])("begins at a base, whoever keeps the journal (%#)", async (server) => {
  const env = { WAGGLE_BASE_EVENTS: String(BASE_EVENTS), WAGGLE_BASE_SYNC: "1ms" };
  const workplace = await Workplace.make(server?.path, env);
  try {
    await workplace.start("up").says("leading");
    await using swarm = await connect({ dataFolder: workplace.dataFolder });
    await swarm.agent({ id: "a1", kinds: ["count"], handler: () => "done" });
    let from = 1;
    for (let task = 1; from === 1 && task <= 20 * BASE_EVENTS; task += 1) {
      await (await swarm.submit({ id: `t${task}`, kind: "count" })).result();
      if (task % BASE_EVENTS !== 0) continue;
      const replayed = await swarm.replayAssignment(`t${task}`);
      expect(replayed).toMatchObject({ task: `t${task}`, agent: "a1", agrees: true });
      from = replayed.replayed.from;
    }
    expect(from).toBeGreaterThan(1);
  } finally {
    await workplace.clear();
  }
});
