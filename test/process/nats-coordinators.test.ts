// Coordinators on real nats-servers whose journal is damaged under them: a segment's stream deleted, purged by hand,
// its file cut after a kill -9, a bit in it flipped. Also a server without room. And how long a hand-over and a change
// of segment take there.

import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectServer, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFailed } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { baseMakerHere } from "../../src/coordinator/compacting/make-next-segment.ts";
import { type Coordinator, startCoordinator } from "../../src/coordinator/coordinator.ts";
import { type SwarmId, swarmId } from "../../src/ids.ts";
import type { Journal } from "../../src/journal/journal.ts";
import { openNatsJournal } from "../../src/journal/nats.ts";
import { limits } from "../../src/limits.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import { connectNats } from "../../src/transport/nats.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { StreamBallast } from "../chaos/stream-ballast.ts";
import { flipBit } from "../support/flip-bit.ts";
import { keptLog } from "../support/kept-log.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";

const bytesMax = 64 * 1024 * 1024;
const leaderTimeoutMs = 1_000;
/** "At once" for a person; the hand-over itself takes less. */
const handOverMsMax = 200;
/** Of a hanging test; the longest takes 10 s. */
const timeoutMs = 60_000;
/** Printed after a failure. */
const LOG_CHARACTERS = 8_000;
const LOG_LINES = 100;

for (const { path, version } of natsServersFor("coordinators on a damaged stream")) {
  describe(`nats-server ${version}`, { timeout: timeoutMs }, () => {
    let server: RunningNatsServer;
    let admin: NatsConnection;
    let swarm: SwarmId;
    let client: Swarm;
    let log: ReturnType<typeof keptLog>;
    const closing: (() => Promise<unknown>)[] = [];
    const partsById = new Map<string, { readonly transport: Transport; readonly journal: Journal }>();

    beforeAll(async () => {
      server = await startNatsServer({ binary: path, jetstream: true });
      admin = await connectServer({ servers: server.url, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
    });
    afterAll(async () => {
      await admin.close();
      await server.stop();
    });
    beforeEach(async () => {
      // The test before may have failed between a kill and the restart.
      if (!server.isRunning) await server.restart();
      swarm = swarmId(`t${randomUUID().slice(0, 8)}`);
      log = keptLog();
      onTestFailed(() => {
        console.error(`nats-server ${version}, the end of its log:\n${server.log().slice(-LOG_CHARACTERS)}`);
        for (const line of log.lines.slice(-LOG_LINES)) console.error(JSON.stringify(line));
      });
    });
    afterEach(async () => {
      for (const close of closing.splice(0).reverse()) await close();
    });

    async function aCoordinator(id: string, everyEvents?: number): Promise<Coordinator> {
      const connection = { urls: [server.url], name: id };
      const opening = { connection, swarm, bytesMax };
      const [transport, journal] = await Promise.all([connectNats(connection), openNatsJournal(opening)]);
      partsById.set(id, { transport, journal });
      closing.push(() => Promise.all([transport.close(), journal.close()]));
      const { logger } = log;
      const coordinator = await startCoordinator({
        id,
        swarm,
        transport,
        journal,
        clock: systemClock,
        random: systemRandom,
        logger,
        leaderTimeoutMs,
        compaction: {
          maker: baseMakerHere({ journal, clock: systemClock }),
          retention: { ageMs: limits.auditRetentionMs, bytes: limits.auditRetentionBytes },
          ...(everyEvents === undefined ? {} : { everyEvents }),
        },
      });
      closing.push(() => coordinator.stop());
      return coordinator;
    }

    async function aClient(): Promise<Swarm> {
      const opened = await connect({ nats: server.url, swarm });
      closing.push(() => opened.close());
      return opened;
    }

    const callApi = (verb: string, body: object = {}) =>
      admin.request(`$JS.API.${verb}`, JSON.stringify(body), { timeout: 5_000 });
    /** Of the newest segment. */
    async function stream(): Promise<string> {
      const { journal } = partsById.get("c1") ?? expect.fail("it was started");
      return `WAGGLE_${swarm}_${(await journal.list()).at(-1)}`;
    }

    const streamFolder = async () =>
      join(server.storeDir, "jetstream", "$G", "streams", await stream(), "msgs");

    /** A leader, a follower, and a coordinator that starts from the journal alone have all tasks. */
    async function expectWhole(tasks: number): Promise<void> {
      await client.submit({ id: "after", kind: "none" });
      expect((await client.status()).tasks.queued).toBe(tasks + 1);
      for (const close of closing.splice(0).reverse()) await close();
      await (await aCoordinator("c9")).whenLeading();
      client = await aClient();
      expect((await client.status()).tasks.queued).toBe(tasks + 1);
    }

    /** A leader with tasks in the journal. */
    async function aLeader(): Promise<Coordinator> {
      const coordinator = await aCoordinator("c1");
      await coordinator.whenLeading();
      client = await aClient();
      for (const id of ["t1", "t2", "t3"]) await client.submit({ id, kind: "none" });
      return coordinator;
    }

    it.each<[string, (name: string) => Promise<unknown>]>([
      ["deleted", (name) => callApi(`STREAM.DELETE.${name}`)],
      ["purged", (name) => callApi(`STREAM.PURGE.${name}`)],
    ])("goes on in a new segment, and loses nothing, when its stream is %s by hand", async (_, damage) => {
      await aLeader();
      await aCoordinator("c2");
      await damage(await stream());
      await client.submit({ id: "t4", kind: "none" });
      await expectWhole(4);
    });

    it("begins on a new server with several that start at the same moment", async () => {
      for (let round = 0; round < 5; round += 1) {
        swarm = swarmId(`t${randomUUID().slice(0, 8)}`);
        const all = await Promise.all(["c1", "c2", "c3"].map((id) => aCoordinator(id)));
        await Promise.race(all.map((coordinator) => coordinator.whenLeading()));
        for (const close of closing.splice(0).reverse()) await close();
      }
    });

    it("loses nothing when a server killed with -9 lost the end of its file, while a coordinator lives", async () => {
      await aLeader();
      const folder = await streamFolder();
      await server.kill("SIGKILL");
      cutLastBytes(folder, 600);
      await server.restart();
      await client.submit({ id: "t4", kind: "none" });
      expect(log.lines.map(({ msg }) => msg)).toContain("the segment is faulty; going on in a new one");
      await expectWhole(4);
    });

    it("goes on by itself, and loses nothing, after a bit flipped in its newest block", async () => {
      await aLeader();
      const folder = await streamFolder();
      await server.kill("SIGKILL");
      damageNewestBlock(folder);
      await server.restart();
      const readyMs = performance.now();
      await client.submit({ id: "t4", kind: "none" });
      await expect
        .poll(() => log.lines.map(({ msg }) => msg), { timeout: 10_000 })
        .toContain("the segment is faulty; going on in a new one");
      await client.submit({ id: "t5", kind: "none" });
      console.info(
        `nats-server ${version}: whole ${Math.round(performance.now() - readyMs)} ms after a flip`,
      );
      await expectWhole(5);
    });

    it("answers why while its server has no room, loses nothing, and goes on when there is room", async () => {
      const roomy = server;
      const storeDir = mkdtempSync(join(tmpdir(), "waggle-full-"));
      const bound = `jetstream { store_dir: ${JSON.stringify(storeDir)}, max_file_store: 8MB }`;
      server = await startNatsServer({ binary: path, storeDir, extraConfig: bound });
      const neighbour = await connectNats({ urls: [server.url], name: "neighbour" });
      try {
        await aLeader();
        const ballast = new StreamBallast(neighbour, swarm);
        await ballast.fill();
        const waiting = client.submit({ id: "t4", kind: "none", payload: "x".repeat(100_000) });
        waiting.catch(() => undefined); // awaited below
        await expect
          .poll(() => log.lines.map(({ msg }) => msg), { timeout: 10_000 })
          .toContain("the journal is full: nothing is done until there is room");
        const refused = client.submit({ id: "t5", kind: "none" }, { timeoutMs: 2_000 });
        await expect(refused).rejects.toThrow(/the journal is full, and nothing is done or answered/);
        await aCoordinator("c2");
        expect(await ballast.remove()).toBeUndefined();
        await waiting;
        expect(log.lines.map(({ msg }) => msg)).toContain("the journal takes batches again");
        await expectWhole(4);
      } finally {
        for (const close of closing.splice(0).reverse()) await close();
        await neighbour.close();
        await server.stop();
        rmSync(storeDir, { recursive: true });
        server = roomy;
      }
    });

    it.each([1, 100])(
      "leads, and changes leaders, while another program writes into each open segment %i times a second",
      async (rate) => {
        await aLeader();
        const [closeLeader] = closing;
        const standby = await aCoordinator("c2");
        const open = [1];
        const writing = setInterval(
          () => open.map((number) => admin.publish(subjectsOf(swarm).segment(number), "foreign")),
          1_000 / rate,
        );
        try {
          await client.submit({ id: "t4", kind: "none" });
          await closeLeader?.(); // cut off from both
          const cutMs = performance.now();
          await standby.whenLeading();
          const tookMs = performance.now() - cutMs;
          open.push(2);
          await client.submit({ id: "t5", kind: "none" });
          expect((await client.status()).tasks.queued).toBe(5);
          expect(tookMs).toBeLessThan(2 * standby.silenceMsMax);
        } finally {
          clearInterval(writing);
        }
      },
    );

    // Tried again, because other suites take the processor meanwhile: the bound is for a swarm alone on two cores.
    it(`hands over within ${handOverMsMax} ms, back and forth`, { retry: 2 }, async () => {
      await aLeader();
      await aCoordinator("c2");
      await new Promise((resolve) =>
        setTimeout(resolve, leaderTimeoutMs / limits.leaderHeartbeatsPerTimeout),
      );
      const tookMs: number[] = [];
      for (let round = 0; round < 6; round += 1) {
        const startedMs = performance.now();
        const { leader } = await client.transferLead();
        await client.submit({ id: `r${round}`, kind: "none" });
        tookMs.push(performance.now() - startedMs);
        expect(leader).toBe(round % 2 === 0 ? "c2" : "c1");
      }
      console.info(
        `nats-server ${version}: accepted ${tookMs.map(Math.round).join(", ")} ms after the request`,
      );
      expect(tookMs.sort((a, b) => a - b)[3]).toBeLessThan(handOverMsMax);
    });

    it("changes its segment under load, keeps its term, and loses nothing", async () => {
      await (await aCoordinator("c1", 20)).whenLeading();
      await aCoordinator("c2");
      client = await aClient();
      for (let n = 0; n < 60; n += 1) await client.submit({ id: `l${n}`, kind: "none" });
      const changed = "the journal continues in a new segment";
      await expect.poll(() => log.lines.map(({ msg }) => msg), { timeout: 20_000 }).toContain(changed);
      const pausedMs = log.lines.filter(({ msg }) => msg === changed).map(({ pausedMs: ms }) => ms);
      console.info(`nats-server ${version}: the change of segment took ${pausedMs.join(", ")} ms`);
      expect((await client.status()).term).toBe(1);
      await expectWhole(60);
    });
  });
}

/** As after a power failure: unsynced records are gone. */
function cutLastBytes(folder: string, count: number): void {
  const [block] = readdirSync(folder)
    .filter((name) => name.endsWith(".blk"))
    .sort((a, b) => Number.parseInt(b, 10) - Number.parseInt(a, 10));
  const file = join(folder, block ?? expect.fail("the stream has a file"));
  truncateSync(file, statSync(file).size - count);
}

/** Flips a bit in the middle of the newest block; without its index the server reads it, and finds that out. */
function damageNewestBlock(folder: string): void {
  const blocks = readdirSync(folder).filter((name) => name.endsWith(".blk"));
  const newest = blocks.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10)).at(-1);
  const file = join(folder, newest ?? expect.fail("the stream has a file"));
  const bytes = readFileSync(file);
  // Of a record's content: in its number, the stream would end where nobody counts to.
  const place = bytes.indexOf('"events"', bytes.length >> 1);
  if (place < 0) expect.fail("a record is in the second half");
  flipBit(file, place);
  for (const name of readdirSync(folder))
    if (!name.endsWith(".blk")) rmSync(join(folder, name), { recursive: true });
}
