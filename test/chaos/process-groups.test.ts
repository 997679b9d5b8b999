// Ctrl-C in the terminal of `npm run chaos` reaches only the driver: each started process leads a separate
// group.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { MemoryHub } from "../../src/transport/memory.ts";
import { natsServersFor } from "../support/nats-server.ts";
import { processes } from "../support/processes.ts";
import { Reaper } from "./reaper.ts";
import { startServers } from "./servers.ts";
import { SwarmProcesses } from "./swarm-processes.ts";

const [binary] = natsServersFor("process groups of chaos");

/** Process group of a running process. */
function groupOf(pid: number | undefined): number | undefined {
  return processes().find((row) => row.pid === pid)?.group;
}

it.skipIf(binary === undefined)("servers, coordinators, agents and clients each lead a group", async () => {
  const reaper = await Reaper.start();
  const servers = await startServers(binary?.path ?? "", 1, { reaper });
  onTestFinished(servers.stop);
  const folder = mkdtempSync(join(tmpdir(), "waggle-groups-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const plan = {
    swarm: "groups",
    folder,
    seed: "groups",
    urlsFor: () => servers.urls,
    coordinators: 1,
    agents: 1,
    clients: 1,
    ratePerSecond: 1,
    payloadBytes: 16,
    recordsEvery: 1,
    samplesMemory: false,
    leaderTimeout: "1s",
    replicas: 1,
    reaper,
  };
  const swarm = new SwarmProcesses(plan, new MemoryHub().connect());
  const pids = swarm.all.map((member) => member.start().pid);
  onTestFinished(async () => void (await Promise.all(swarm.all.map((member) => member.kill()))));
  pids.push(...servers.members.map(({ pid }) => pid));

  expect(pids).toHaveLength(4);
  expect(pids.map(groupOf)).toEqual(pids);
});
