// Agents in separate processes contend for slots over NATS, and some are killed with kill -9. No slot is held
// twice, none is lost, and the next holder has the slot within H.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { limits } from "../../src/limits.ts";
import { findNatsServers } from "../support/nats-server.ts";
import { RunningWaggle, Workplace } from "../support/waggle-process.ts";

const holderFile = fileURLToPath(new URL("./slot-holder.mjs", import.meta.url));
const natsServers = findNatsServers();
const brokers: readonly { name: string; binary: string | undefined }[] = [
  { name: "the development broker", binary: undefined },
  ...natsServers.slice(0, 1).map(({ path, version }) => ({ name: `NATS ${version}`, binary: path })),
];

it("has a nats-server to run on, in CI", () => {
  expect(natsServers.length > 0 || process.env["CI"] === undefined).toBe(true);
});

describe.each(brokers)("slots on $name", ({ binary }) => {
  let workplace: Workplace;
  let coordinator: RunningWaggle;
  let swarm: Swarm;
  const holders: RunningWaggle[] = [];

  beforeEach(async () => {
    workplace = await Workplace.make(binary);
    coordinator = await startLeading();
    swarm = await connect({ dataFolder: workplace.dataFolder });
  });
  afterEach(async () => {
    await Promise.all(holders.splice(0).map((holder) => holder.kill("SIGKILL")));
    await swarm.close();
    await workplace.clear();
  });

  async function startLeading(): Promise<RunningWaggle> {
    const started = workplace.start("up");
    await started.says("leading");
    return started;
  }

  function startHolder(times: number, holdMs: number): RunningWaggle {
    const args = [holderFile, workplace.dataFolder, "gpu", String(times), String(holdMs)];
    const holder = new RunningWaggle(spawn(process.execPath, args));
    holders.push(holder);
    return holder;
  }

  async function setSlots(slots: number): Promise<void> {
    const { code, stderr } = await workplace.run("resource", "set", "gpu", "--slots", String(slots));
    expect([code, stderr]).toEqual([0, ""]);
  }

  const gpu = async () => (await swarm.status()).resources.find(({ resource }) => resource === "gpu");

  /** Held slots at each moment of the journal; @returns the maximum, and the number at the end */
  async function replayHoldings(): Promise<{ most: number; left: number; grants: number }> {
    const held = new Set<string>();
    let most = 0;
    let grants = 0;
    for await (const { event } of swarm.events({ from: "start", follow: false })) {
      if (event.type === "SlotGranted") {
        expect(held.has(event.handle)).toBe(false);
        held.add(event.handle);
        grants += 1;
      }
      if (event.type === "SlotReleased") expect(held.delete(event.handle)).toBe(true);
      most = Math.max(most, held.size);
    }
    return { most, left: held.size, grants };
  }

  it("are never held twice, whoever dies, and every waiter gets one", async () => {
    await setSlots(2);
    const victim = startHolder(0, 0);
    await victim.says("has");
    const workers = Array.from({ length: 4 }, () => startHolder(5, 20));
    await workers[0]?.says("released");
    await victim.kill("SIGKILL");
    for (const { code, stdout } of await Promise.all(workers.map(({ finished }) => finished)))
      expect([code, stdout.match(/^has/gm)?.length, stdout.includes("done")]).toEqual([0, 5, true]);
    const waiter = startHolder(1, 0);
    await waiter.finished;
    await swarm.acquire(["gpu", "gpu"], { timeoutMs: 2 * limits.agentLostMs });
    expect(await replayHoldings()).toEqual({ most: 2, left: 1, grants: 23 });
  });

  it("come back within H from a killed holder, and go to the next waiter", async () => {
    await setSlots(1);
    const victim = startHolder(0, 0);
    await victim.says("has");
    const next = startHolder(1, 10);
    await next.says("joined");
    const held = swarm.wrap(() => undefined, { resource: "gpu" });
    const killedAt = performance.now();
    await victim.kill("SIGKILL");
    await next.says("released");
    // H after the last heartbeat, up to a second old, then a pulse and two network trips.
    expect(performance.now() - killedAt).toBeLessThan(limits.agentLostMs + 2_000);
    expect(performance.now() - killedAt).toBeGreaterThan(limits.agentLostMs - 2 * limits.heartbeatMs);
    await held;
    expect(await gpu()).toMatchObject({ inUse: 0, waiting: 0, tick: 3 });
  });

  it("outlive their coordinator: held and waited for as before under the next", async () => {
    await setSlots(1);
    const slot = await swarm.acquire("gpu");
    const next = startHolder(1, 10);
    await next.says("joined");
    const held = swarm.wrap(() => undefined, { resource: "gpu" });
    await coordinator.kill("SIGKILL");
    coordinator = await startLeading();
    expect(slot.signal.aborted).toBe(false);
    await slot.release();
    await next.says("released");
    await held;
    expect(await replayHoldings()).toEqual({ most: 1, left: 0, grants: 3 });
  });
});
