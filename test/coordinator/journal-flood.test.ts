// The short form of `npm run bench:journal-flood`: a leader and two standbys in one process, on a real nats-server. A
// client asks for a thousand pages of the journal per second. Submits of other clients, the server's consumers, and a
// follower are measured.

import { setTimeout as delay } from "node:timers/promises";
import { connect as connectServer } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { type Coordinator, startCoordinator } from "../../src/coordinator/coordinator.ts";
import { swarmId } from "../../src/ids.ts";
import { openNatsJournal } from "../../src/journal/nats.ts";
import { limits } from "../../src/limits.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import { connectNats } from "../../src/transport/nats.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import { silentLogger } from "../support/swarm.ts";

const FLOOD_MS = 2_000;
const RATE = 1_000;
const FILLED_BATCHES = 300;
/** With a consumer per request each page would take seconds. */
const SUBMIT_MS_MAX = 1_000;
const CONSUMERS_MAX = 8;
const swarm = swarmId("flooded");
const { query } = subjectsOf(swarm);

for (const { path, version } of natsServersFor("a flood of questions for the journal")) {
  describe(`nats-server ${version}`, () => {
    let server: RunningNatsServer;
    const closing: (() => Promise<unknown>)[] = [];

    beforeAll(async () => {
      server = await startNatsServer({ binary: path, jetstream: true });
    });
    afterAll(async () => {
      for (const close of closing.splice(0).reverse()) await close();
      await server.stop();
    });

    async function aCoordinator(id: string): Promise<Coordinator> {
      const connection = { urls: [server.url], name: id };
      const [transport, journal] = await Promise.all([
        connectNats(connection),
        openNatsJournal({ connection, swarm, bytesMax: 256 * 1024 ** 2 }),
      ]);
      const options = { id, swarm, transport, journal, clock: systemClock, random: systemRandom };
      const coordinator = await startCoordinator({ ...options, logger: silentLogger });
      closing.push(async () => {
        await coordinator.stop();
        await Promise.all([transport.close(), journal.close()]);
      });
      return coordinator;
    }

    async function fill(client: Swarm): Promise<void> {
      const payload = "x".repeat(64 * 1024);
      for (let n = 0; n < FILLED_BATCHES; n += 1) await client.submit({ kind: "parked", payload });
    }

    it("goes on taking tasks, makes few consumers, and loses nothing for a follower", async () => {
      const { recentRecordsBytes } = limits;
      Object.assign(limits, { recentRecordsBytes: 1024 ** 2 }); // mostly from the server
      closing.push(async () => void Object.assign(limits, { recentRecordsBytes }));
      await (await aCoordinator("c1")).whenLeading();
      await Promise.all([aCoordinator("c2"), aCoordinator("c3")]);
      const client = await connect({ nats: server.url, swarm });
      closing.push(() => client.close());
      await fill(client);
      const flooding = await connectServer({ servers: server.url });
      closing.push(() => flooding.close());

      const followed = new Set<string>();
      const following = new AbortController();
      const { signal } = following;
      const follower = (async () => {
        const events = client.events({ from: 1, follow: true, types: ["TaskSubmitted"], signal });
        for await (const { event } of events) if (event.type === "TaskSubmitted") followed.add(event.task.id);
      })();

      const codes = new Map<string, number>();
      const asked: Promise<void>[] = [];
      const ask = async (from: number) => {
        const subject = query("flooding", "events");
        const answer = await flooding.request(subject, JSON.stringify({ from }), { timeout: 10_000 });
        const { code = "page", retryAfterMs } = answer.json<{ code?: string; retryAfterMs?: number }>();
        if (code !== "page") expect(retryAfterMs).toBeGreaterThan(0);
        codes.set(code, (codes.get(code) ?? 0) + 1);
      };
      const took: number[] = [];
      const submitted: string[] = [];
      let consumersMost = 0;
      const endMs = performance.now() + FLOOD_MS;
      for (let step = 0; performance.now() < endMs; step += 1) {
        for (let n = 0; n < RATE / 50; n += 1) asked.push(ask(1 + ((step * 37 + n * 11) % FILLED_BATCHES)));
        const from = performance.now();
        submitted.push((await client.submit({ kind: "parked" })).id);
        took.push(performance.now() - from);
        const info = await flooding.request(`$JS.API.STREAM.INFO.WAGGLE_${swarm}_1`, "", { timeout: 10_000 });
        const { state } = info.json<{ readonly state: { readonly consumer_count: number } }>();
        consumersMost = Math.max(consumersMost, state.consumer_count);
        await delay(20);
      }
      await Promise.all(asked);
      expect(Math.max(...took)).toBeLessThan(SUBMIT_MS_MAX);
      expect(consumersMost).toBeLessThanOrEqual(CONSUMERS_MAX);
      expect([...codes.keys()].sort()).toEqual(["WAGGLE_BACKPRESSURE", "page"]);
      await expect.poll(() => submitted.every((id) => followed.has(id)), { timeout: 20_000 }).toBe(true);
      expect(followed.size).toBe(FILLED_BATCHES + submitted.length);
      following.abort();
      await follower;
    }, 60_000);
  });
}
