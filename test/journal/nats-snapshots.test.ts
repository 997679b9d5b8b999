// Snapshots on real nats-servers: the conformance suite, the stream's settings, and servers that die meanwhile.

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { swarmId } from "../../src/ids.ts";
import {
  inspectNatsStreams,
  type NatsJournalOptions,
  openNatsJournal,
  openNatsSnapshots,
  openNatsStreams,
} from "../../src/journal/nats.ts";
import { type Servers, startReadyServers } from "../chaos/servers.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import { bytesOf, noise } from "./records.ts";
import { describeSnapshotStore } from "./snapshot-conformance.ts";

const MEBIBYTE = 1024 * 1024;

function optionsFor(server: RunningNatsServer): NatsJournalOptions {
  const swarm = swarmId(`t${randomUUID().slice(0, 8)}`);
  const connection = { urls: [server.url], name: "snapshot test" };
  return { connection, swarm, bytesMax: 64 * MEBIBYTE, create: true };
}

for (const { path, version } of natsServersFor("snapshots in JetStream")) {
  describe(`nats-server ${version}`, () => {
    let server: RunningNatsServer;
    let connection: NatsConnection;

    const callApi = async (verb: string, body: unknown = {}) => {
      const answer = await connection.request(`$JS.API.${verb}`, JSON.stringify(body), { timeout: 5_000 });
      return answer.json<{ readonly error?: unknown; readonly config?: Record<string, unknown> }>();
    };

    beforeAll(async () => {
      server = await startNatsServer({ binary: path, jetstream: true });
      connection = await connect({ servers: server.url });
    });

    afterAll(async () => {
      await connection.close();
      await server.stop();
    });

    describeSnapshotStore(`JetStream ${version}`, async () => {
      const options = optionsFor(server);
      return {
        open: () => openNatsSnapshots(options),
        dispose: async () => void (await callApi(`STREAM.DELETE.WAGGLE_${options.swarm}_SNAP`)),
      };
    });

    it("get a stream of their own, with the settings of a journal", async () => {
      const options = optionsFor(server);
      await (await openNatsJournal(options)).close();
      await (await openNatsSnapshots(options)).close();
      const { config } = await callApi(`STREAM.INFO.WAGGLE_${options.swarm}_SNAP`);
      expect(config).toMatchObject({
        subjects: [
          `waggle.v1.${options.swarm}.snapshot.chunk`,
          `waggle.v1.${options.swarm}.snapshot.manifest`,
        ],
        storage: "file",
        retention: "limits",
        discard: "new",
        max_bytes: 64 * MEBIBYTE,
        max_age: 0,
        allow_direct: false,
        deny_delete: true,
        deny_purge: false,
        num_replicas: 1,
      });
    });

    it("are not kept in a stream that forgets", async () => {
      const options = optionsFor(server);
      await (await openNatsSnapshots(options)).close();
      const name = `WAGGLE_${options.swarm}_SNAP`;
      const { config } = await callApi(`STREAM.INFO.${name}`);
      await callApi(`STREAM.UPDATE.${name}`, { ...config, max_age: 3_600_000_000_000 });
      await expect(openNatsSnapshots(options)).rejects.toThrow(
        new RegExp(`${name} cannot be this swarm's snapshot store. max_age is 3600000000000, wanted 0`),
      );
    });

    it("are looked at with the journal, and missed where there are none", async () => {
      const options = optionsFor(server);
      await (await openNatsJournal(options)).close();
      expect((await inspectNatsStreams(options)).snapshots).toMatchObject({ kind: "missing" });
      await (await openNatsSnapshots(options)).close();
      const name = `WAGGLE_${options.swarm}_SNAP`;
      const { config } = await callApi(`STREAM.INFO.${name}`);
      await callApi(`STREAM.UPDATE.${name}`, { ...config, max_msgs: 7 });
      const { snapshots } = await inspectNatsStreams(options);
      const settings = snapshots.kind === "there" ? snapshots.settings : [];
      const wrong = settings.filter(({ ok }) => !ok);
      expect(wrong).toMatchObject([{ setting: "max_msgs", found: "7" }]);
      expect(wrong[0]?.advice).toContain(name);
    });

    it("say that there is no stream to who may only read", async () => {
      const options = { ...optionsFor(server), create: false };
      await expect(openNatsSnapshots(options)).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_SETTINGS" });
    });

    it("go on in a new stream where somebody deleted theirs", async () => {
      const options = optionsFor(server);
      const journal = await openNatsJournal(options);
      const store = await openNatsSnapshots(options);
      await store.putManifest(bytesOf("manifest"));
      const name = `WAGGLE_${options.swarm}_SNAP`;
      const { config } = await callApi(`STREAM.INFO.${name}`);
      await callApi(`STREAM.DELETE.${name}`);
      expect(await store.manifests()).toEqual([]);
      await callApi(`STREAM.DELETE.${name}`);
      const place = await store.putChunk(bytesOf("chunk"));
      expect(await store.chunk(place)).toEqual(bytesOf("chunk"));
      expect((await callApi(`STREAM.INFO.${name}`)).config).toEqual(config);
      await Promise.all([store.close(), journal.close()]);
    });

    it("make no new one where the journal is gone as well, for that would look like a loss of it", async () => {
      const options = optionsFor(server);
      await (await openNatsJournal(options)).close();
      const store = await openNatsSnapshots(options);
      await callApi(`STREAM.DELETE.WAGGLE_${options.swarm}_SNAP`);
      await callApi(`STREAM.DELETE.WAGGLE_${options.swarm}`);
      const asked = store.manifests().catch(({ code }) => code);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      await store.close();
      expect(await asked).toMatch(/^WAGGLE_/);
      expect(await callApi(`STREAM.INFO.WAGGLE_${options.swarm}_SNAP`)).toHaveProperty("error");
    });

    it("are full at the stream's max_bytes, and go on when older ones are removed", async () => {
      const store = await openNatsSnapshots({ ...optionsFor(server), bytesMax: MEBIBYTE });
      await store.putChunk(noise(600_000, 1));
      await expect(store.putChunk(noise(600_000, 2))).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_FULL" });
      const small = await store.putChunk(bytesOf("small"));
      await store.removeBelow(small);
      await store.putChunk(noise(600_000, 2));
      expect(await store.usage()).toMatchObject({ bytesMax: MEBIBYTE });
      await store.close();
    });

    async function withQuota(quota: string, run: (own: RunningNatsServer) => Promise<void>): Promise<void> {
      const storeDir = mkdtempSync(join(tmpdir(), "waggle-quota-"));
      const extraConfig = `jetstream { store_dir: ${JSON.stringify(storeDir)}, max_file_store: ${quota} }`;
      const own = await startNatsServer({ binary: path, storeDir, extraConfig });
      try {
        await run(own);
      } finally {
        await own.stop();
        rmSync(storeDir, { recursive: true });
      }
    }

    it.each([
      ["160MB", 64, 64],
      ["240MB", 128, 64],
      ["1060MB", 128, 256],
    ])(
      "find room beside an empty journal where a quota is small: %s",
      async (quota, journalMiB, snapshotsMiB) => {
        await withQuota(quota, async (own) => {
          const { bytesMax: _, ...options } = optionsFor(own);
          const { journal, openSnapshots } = await openNatsStreams(options);
          const store = await openSnapshots();
          expect((await journal.usage()).bytesMax).toBe(journalMiB * MEBIBYTE);
          expect((await store.usage()).bytesMax).toBe(snapshotsMiB * MEBIBYTE);
          await Promise.all([journal.close(), store.close()]);
        });
      },
    );

    it("leave no journal behind that was made for them, where there is no room, and name the quota", async () => {
      await withQuota("100MB", async (own) => {
        const { bytesMax: _, ...options } = optionsFor(own);
        const { journal, openSnapshots } = await openNatsStreams(options);
        await expect(openSnapshots()).rejects.toThrow(
          /two streams need 134217728 bytes at least.*`max_file_store`/,
        );
        await journal.close();
        const reader = openNatsJournal({ ...options, create: false });
        await expect(reader).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_SETTINGS" });
        const before = await openNatsJournal(options);
        const again = await openNatsStreams(options);
        await expect(again.openSnapshots()).rejects.toMatchObject({ code: "WAGGLE_BROKER" });
        expect((await before.position()).lastSeq).toBe(0); // one that it found is left alone
        await Promise.all([before.close(), again.journal.close()]);
      });
    });

    it("outlive a server that is killed while they are written and read", async () => {
      const own = await startNatsServer({ binary: path, jetstream: true });
      try {
        const store = await openNatsSnapshots(optionsFor(own));
        const before = await store.putChunk(bytesOf("before"));
        const restarted = own.restart();
        const during = await store.putChunk(bytesOf("during"));
        await restarted;
        const restartedAgain = own.restart();
        expect(await store.chunk(before)).toEqual(bytesOf("before"));
        expect(await store.chunk(during)).toEqual(bytesOf("during"));
        const manifest = await store.putManifest(bytesOf("manifest"));
        await restartedAgain;
        const manifests = await store.manifests();
        expect(manifests.at(-1)).toEqual({ place: manifest, bytes: bytesOf("manifest") });
        await store.close();
      } finally {
        await own.stop();
      }
    });

    it("have as many replicas as their journal, and outlive the server that leads their stream", async () => {
      const servers = await startReadyServers(path);
      try {
        const { swarm } = optionsFor(server);
        const options = {
          connection: { urls: servers.urls, name: "snapshot test" },
          swarm,
          bytesMax: 64 * MEBIBYTE,
          create: true,
        };
        const journal = await openNatsJournal({ ...options, replicas: 3 });
        const store = await openNatsSnapshots(options);
        const first = await store.putChunk(bytesOf("first"));
        const leading = await leaderOf(servers, `WAGGLE_${swarm}_SNAP`);
        expect(leading.replicas).toBe(3);
        await leading.member.kill("SIGKILL");
        const second = await store.putChunk(bytesOf("second"));
        expect(second).toBeGreaterThan(first);
        expect(await store.chunk(first)).toEqual(bytesOf("first"));
        expect(await store.chunk(second)).toEqual(bytesOf("second"));
        await store.close();
        await journal.close();
      } finally {
        await servers.stop();
      }
    }, 180_000);
  });
}

async function leaderOf({ members, urls }: Servers, stream: string) {
  const connection = await connect({ servers: [...urls] });
  const answer = await connection.request(`$JS.API.STREAM.INFO.${stream}`, "", { timeout: 5_000 });
  const { cluster, config } = answer.json<{
    readonly cluster: { readonly leader: string };
    readonly config: { readonly num_replicas: number };
  }>();
  await connection.close();
  const member = members.find(({ name }) => name === cluster.leader);
  if (member === undefined) throw new Error(`nobody leads ${stream}`);
  return { member, replicas: config.num_replicas };
}
