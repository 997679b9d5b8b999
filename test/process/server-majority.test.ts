// Three nats-servers with replicas. The leader of the journal's stream is killed, then a second server. With
// two servers the swarm goes on. With one server nothing is accepted, and no definite answer is given. When a
// majority returns, all accepted tasks are present.

import { expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { WaggleError } from "../../src/errors.ts";
import { swarmId } from "../../src/ids.ts";
import { connectNats } from "../../src/transport/nats.ts";
import { type Servers, startReadyServers } from "../chaos/servers.ts";
import { StreamAdmin } from "../chaos/stream-admin.ts";
import { replicatingServersFor } from "../support/nats-server.ts";
import { Workplace } from "../support/waggle-process.ts";

const [binary] = replicatingServersFor("a majority of servers");
/** Median about 7 s, at most 17.5 s with up-to-date replicas (docs/reliability.md). */
const NEXT_ACCEPT_MS_MAX = 45_000;
/** For a majority that returned; lagging replicas may take a minute. */
const BACK_MS_MAX = 90_000;

it.skipIf(binary === undefined)(
  "of three servers two are enough, and one says nothing definite",
  async () => {
    const servers = await startReadyServers(binary?.path ?? "");
    const workplace = await Workplace.make();
    const admin = await connectNats({ urls: servers.urls, name: "admin" });
    let swarm: Swarm | undefined;
    try {
      const flags = ["--nats", servers.urls.join(","), "--replicas", "3", "--leader-timeout", "1s"];
      await workplace.start("up", ...flags).says("leading");
      swarm = await connect({ nats: servers.urls.join(",") });
      await swarm.submit({ id: "t1", kind: "none" });
      const leading = await until(new StreamAdmin(admin, swarmId("default")));

      const killed = [memberNamed(servers, leading)];
      await killed[0]?.kill("SIGKILL");
      const withTwoMs = await acceptedMs(swarm, "t2", NEXT_ACCEPT_MS_MAX);
      killed.push(...servers.members.filter((member) => !killed.includes(member)).slice(0, 1));
      await killed[1]?.kill("SIGKILL");
      const withOne = await swarm.submit({ id: "t3", kind: "none" }, { timeoutMs: 6_000 }).catch(String);

      await Promise.all(killed.map((member) => member.restart()));
      const backMs = await acceptedMs(swarm, "t3", BACK_MS_MAX);
      console.log(`two servers: accepted after ${withTwoMs} ms; a majority again: after ${backMs} ms`);
      expect(withOne).toMatch(/OutcomeUnknownError|NoLeaderError|UnreachableError/);
      const { tasks } = await swarm.status();
      expect(tasks).toMatchObject({ queued: 3 });
    } finally {
      await swarm?.close();
      await admin.close();
      await workplace.clear();
      await servers.stop();
    }
  },
);

async function until(admin: StreamAdmin): Promise<string> {
  await expect.poll(() => admin.isWhole(), { timeout: 30_000 }).toBe(true);
  return (await admin.leader()) ?? expect.fail("somebody leads the stream");
}

function memberNamed({ members }: Servers, name: string) {
  return members.find((member) => member.name === name) ?? expect.fail(`there is ${name}`);
}

/** Time until a task was accepted, ms. After an unknown outcome, repeats under the same id. */
async function acceptedMs(swarm: Swarm, id: string, msMax: number): Promise<number> {
  const startedAt = performance.now();
  for (;;) {
    const leftMs = msMax - (performance.now() - startedAt);
    expect(leftMs, `${id} is accepted within ${msMax} ms`).toBeGreaterThan(0);
    try {
      await swarm.submit({ id, kind: "none" }, { timeoutMs: leftMs });
      return Math.round(performance.now() - startedAt);
    } catch (error) {
      if (!(error instanceof WaggleError)) throw error;
    }
  }
}
