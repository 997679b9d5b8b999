// The journal on real nats-servers: the conformance suite, and what happens to streams and servers.

import { randomUUID } from "node:crypto";
import { cpSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BrokerError, JournalDamagedError } from "../../src/errors.ts";
import { type SwarmId, swarmId } from "../../src/ids.ts";
import type { Journal } from "../../src/journal/journal.ts";
import { inspectNatsStreams, type NatsJournalOptions, openNatsJournal } from "../../src/journal/nats.ts";
import type { StreamsInspection } from "../../src/journal/stream/inspection.ts";
import { type SettingCheck, streamConfigOf } from "../../src/journal/stream/settings.ts";
import { limits } from "../../src/limits.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import { describeJournal } from "./conformance.ts";
import { bytesOf, Follower, fill, noise, range, tell, told, toldOf } from "./records.ts";

const MEBIBYTE = 1024 * 1024;

function aSwarm(): SwarmId {
  return swarmId(`t${randomUUID().slice(0, 8)}`);
}

function optionsFor(
  server: RunningNatsServer,
  overrides: Partial<NatsJournalOptions> = {},
): NatsJournalOptions {
  return {
    connection: { urls: [server.url], name: "journal test" },
    swarm: aSwarm(),
    bytesMax: 64 * MEBIBYTE,
    create: true,
    ...overrides,
  };
}

/** All that were read back. */
function settingsOf({ journal, snapshots, maxPayload }: StreamsInspection): SettingCheck[] {
  return [
    ...[journal, snapshots].flatMap((found) => (found.kind === "there" ? found.settings : [])),
    maxPayload,
  ];
}

/** The server's own interface, past the journal. */
async function callApi(connection: NatsConnection, verb: string, body: unknown = {}): Promise<ApiAnswer> {
  const answer = await connection.request(`$JS.API.${verb}`, JSON.stringify(body), { timeout: 5_000 });
  return answer.json<ApiAnswer>();
}

interface ApiAnswer {
  readonly error?: { readonly description: string };
  readonly config?: Record<string, unknown>;
  readonly state?: { readonly consumer_count: number };
  readonly consumers?: readonly string[];
  readonly message?: { readonly hdrs: string };
}

for (const { path, version } of natsServersFor("the journal in JetStream")) {
  describe(`nats-server ${version}`, () => {
    let server: RunningNatsServer;
    let connection: NatsConnection;

    beforeAll(async () => {
      server = await startNatsServer({ binary: path, jetstream: true });
      connection = await connect({ servers: server.url });
    });

    afterAll(async () => {
      await connection.close();
      await server.stop();
    });

    describeJournal(`JetStream ${version}`, async () => {
      const options = optionsFor(server);
      return {
        open: () => openNatsJournal(options),
        dispose: async () => void (await callApi(connection, `STREAM.DELETE.WAGGLE_${options.swarm}`)),
      };
    });

    describe("the settings of a journal's stream", () => {
      it("are created and read back as they must be", async () => {
        const options = optionsFor(server);
        const journal = await openNatsJournal(options);
        expect(journal.durability.class).toBe("page-cache");
        await journal.close();
        const checks = settingsOf(await inspectNatsStreams(options));
        expect(checks.filter(({ ok }) => !ok)).toEqual([]);
        expect(checks.find(({ setting }) => setting === "max_bytes")?.found).toBe(String(64 * MEBIBYTE));
        const { config } = await callApi(connection, `STREAM.INFO.WAGGLE_${options.swarm}`);
        expect(config).toMatchObject({
          subjects: [`waggle.v1.${options.swarm}.journal`],
          storage: "file",
          retention: "limits",
          discard: "new",
          max_msgs: -1,
          max_age: 0,
          allow_direct: false,
          allow_rollup_hdrs: false,
          deny_delete: true,
          deny_purge: false,
          num_replicas: 1,
        });
      });

      it.each([
        ["storage", { storage: "memory" }, /storage is memory, wanted file: this cannot be changed/],
        ["retention", { retention: "interest" }, /retention is interest, wanted limits/],
        [
          "discard",
          { discard: "old" },
          /discard is old, wanted new: change it with `nats stream edit WAGGLE_/,
        ],
        ["max_age", { max_age: 3_600_000_000_000 }, /max_age is 3600000000000, wanted 0/],
        ["max_msgs", { max_msgs: 1_000_000 }, /max_msgs is 1000000, wanted -1/],
        ["max_bytes", { max_bytes: -1 }, /max_bytes is -1, wanted at least 1/],
        ["allow_direct", { allow_direct: true }, /allow_direct is true, wanted false/],
        ["allow_rollup_hdrs", { allow_rollup_hdrs: true }, /allow_rollup_hdrs is true, wanted false/],
        ["deny_delete", { deny_delete: false }, /deny_delete is false, wanted true/],
        ["no_ack", { no_ack: true }, /no_ack is true, wanted false/],
      ] as const)("are refused where a stream differs: %s", async (setting, config, sentence) => {
        const { bytesMax: _, ...options } = optionsFor(server);
        const name = `WAGGLE_${options.swarm}`;
        const created = await callApi(connection, `STREAM.CREATE.${name}`, {
          ...streamConfigOf({ ...options, purpose: "journal" }),
          max_bytes: MEBIBYTE,
          ...config,
        });
        expect(created.error).toBeUndefined();
        const opening = openNatsJournal(options);
        await expect(opening).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_SETTINGS" });
        await expect(opening).rejects.toThrow(sentence);
        const checks = settingsOf(await inspectNatsStreams(options));
        expect(checks.filter(({ ok }) => !ok).map((check) => check.setting)).toEqual([setting]);
        await callApi(connection, `STREAM.DELETE.${name}`);
      });

      it("are refused where the stream takes other subjects, too", async () => {
        const options = optionsFor(server);
        const subjects = [`waggle.v1.${options.swarm}.>`];
        const name = `WAGGLE_${options.swarm}`;
        await callApi(connection, `STREAM.CREATE.${name}`, {
          ...streamConfigOf({ ...options, purpose: "journal" }),
          subjects,
        });
        await expect(openNatsJournal(options)).rejects.toThrow(
          `subjects is ["waggle.v1.${options.swarm}.>"]`,
        );
      });

      it("are refused where size or replicas are not those asked for, and taken where none are", async () => {
        const options = optionsFor(server);
        await (await openNatsJournal(options)).close();
        await expect(openNatsJournal({ ...options, bytesMax: 2 * MEBIBYTE, replicas: 3 })).rejects.toThrow(
          /max_bytes is 67108864, wanted 2097152.*num_replicas is 1, wanted 3/,
        );
        const { bytesMax: _, ...whatever } = options;
        const journal = await openNatsJournal(whatever);
        expect((await journal.usage()).bytesMax).toBe(64 * MEBIBYTE);
        await journal.close();
      });

      it("are not created by who may only read", async () => {
        const options = optionsFor(server, { create: false });
        await expect(openNatsJournal(options)).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_SETTINGS" });
        await expect(openNatsJournal(options)).rejects.toThrow("start a coordinator of this swarm");
        expect(await inspectNatsStreams(options)).toMatchObject({
          journal: { stream: `WAGGLE_${options.swarm}`, kind: "missing" },
          snapshots: { stream: `WAGGLE_${options.swarm}_SNAP`, kind: "missing" },
        });
      });

      it("may be created by several at once", async () => {
        const options = optionsFor(server);
        const journals = await Promise.all(range(1, 4).map(() => openNatsJournal(options)));
        await fill(journals[0] as Journal, 3);
        expect(await tell((journals[3] as Journal).replay(1))).toEqual(toldOf(1, 3));
        await Promise.all(journals.map((journal) => journal.close()));
      });

      it("cannot be had where the server lacks room or servers", async () => {
        const { swarm } = optionsFor(server);
        const opening = openNatsJournal(optionsFor(server, { swarm, replicas: 3 }));
        await expect(opening).rejects.toThrow(BrokerError);
        await expect(opening).rejects.toThrow(`WAGGLE_${swarm} of ${64 * MEBIBYTE} bytes and 3 replicas`);
      });
    });

    describe("a journal in JetStream", () => {
      it("sends the expected position with an append, and nothing else", async () => {
        const options = optionsFor(server);
        const journal = await openNatsJournal(options);
        await fill(journal, 2);
        const stored = await callApi(connection, `STREAM.MSG.GET.WAGGLE_${options.swarm}`, { seq: 2 });
        const fields = Buffer.from(stored.message?.hdrs ?? "", "base64").toString();
        expect(fields.trim().split("\r\n")).toEqual(["NATS/1.0", "Nats-Expected-Last-Sequence: 1"]);
        await journal.close();
      });

      it("is full at its max_bytes, and takes what is small enough", async () => {
        const journal = await openNatsJournal(optionsFor(server, { bytesMax: MEBIBYTE }));
        expect(await journal.append(noise(600 * 1024), 0)).toEqual({ kind: "stored", seq: 1 });
        expect(await journal.append(noise(600 * 1024), 1)).toMatchObject({ kind: "full" });
        expect(await journal.append(bytesOf("small"), 1)).toEqual({ kind: "stored", seq: 2 });
        await journal.close();
      });

      it("is full for a record that the server would cut the connection for", async () => {
        const journal = await openNatsJournal(optionsFor(server));
        expect(await journal.append(new Uint8Array(MEBIBYTE), 0)).toMatchObject({ kind: "full" });
        expect(await journal.append(bytesOf("small"), 0)).toEqual({ kind: "stored", seq: 1 });
        await journal.close();
      });

      it("gives a follower all of it though his consumer is deleted again and again", async () => {
        const options = optionsFor(server);
        const journal = await openNatsJournal(options);
        const follower = new Follower(journal);
        for (const round of range(1, 4)) {
          await fill(journal, round * 5, round * 5 - 4);
          await follower.hasRead(round * 5);
          const { consumers = [] } = await callApi(connection, `CONSUMER.NAMES.WAGGLE_${options.swarm}`);
          for (const name of consumers)
            await callApi(connection, `CONSUMER.DELETE.WAGGLE_${options.swarm}.${name}`);
        }
        await fill(journal, 25, 21);
        await follower.hasRead(25);
        await follower.stop();
        expect(follower.lines).toEqual(toldOf(1, 25));
        await journal.close();
      });

      it("leaves no consumer behind", async () => {
        const options = optionsFor(server);
        const journal = await openNatsJournal(options);
        await fill(journal, 3);
        await tell(journal.replay(1));
        for await (const { seq } of journal.replay(1)) if (seq === 1) break;
        await journal.position(); // what was asked of the server before is done now
        const { state } = await callApi(connection, `STREAM.INFO.WAGGLE_${options.swarm}`);
        expect(state?.consumer_count).toBe(0);
        await journal.close();
      });

      it("tells who reads from before what was purged to use a snapshot", async () => {
        const options = optionsFor(server);
        const journal = await openNatsJournal(options);
        await fill(journal, 10);
        await callApi(connection, `STREAM.PURGE.WAGGLE_${options.swarm}`, { seq: 6 });
        expect(await journal.position()).toEqual({ firstSeq: 6, lastSeq: 10, missing: 0 });
        await expect(tell(journal.replay(3))).rejects.toThrow(/records 3 to 5 .* begins at 6/);
        expect(await tell(journal.replay(6))).toEqual(toldOf(6, 10));
        await callApi(connection, `STREAM.PURGE.WAGGLE_${options.swarm}`);
        expect(await journal.position()).toEqual({ firstSeq: 11, lastSeq: 10, missing: 0 });
        await fill(journal, 11, 11);
        expect(await tell(journal.replay(11))).toEqual(toldOf(11, 11));
        await journal.close();
      });
    });

    describe("a server in trouble", () => {
      it("is named where it has no JetStream", async () => {
        const bare = await startNatsServer({ binary: path });
        try {
          const opening = openNatsJournal(optionsFor(bare));
          await expect(opening).rejects.toThrow(BrokerError);
          await expect(opening).rejects.toThrow("nats-server -js");
        } finally {
          await bare.stop();
        }
      });

      it("is named where it takes only small messages", async () => {
        const small = await startNatsServer({
          binary: path,
          jetstream: true,
          extraConfig: "max_payload: 65536",
        });
        try {
          await expect(openNatsJournal(optionsFor(small))).rejects.toThrow(
            /max_payload is 65536, wanted at least/,
          );
        } finally {
          await small.stop();
        }
      });

      it("may be killed and started again under a follower and a replay", async () => {
        const own = await startNatsServer({ binary: path, jetstream: true });
        try {
          const journal = await openNatsJournal(optionsFor(own));
          await fill(journal, 30);
          const follower = new Follower(journal);
          await follower.hasRead(30);
          const lines: string[] = [];
          for await (const record of journal.replay(1)) {
            lines.push(told(record));
            if (record.seq === 10) await own.restart();
          }
          expect(lines).toEqual(toldOf(1, 30));
          await stored(journal, bytesOf("record 31"), 30);
          await follower.hasRead(31);
          await own.restart();
          await stored(journal, bytesOf("record 32"), 31);
          await follower.hasRead(32);
          await follower.stop();
          expect(follower.lines).toEqual(toldOf(1, 32));
          await journal.close();
        } finally {
          await own.stop();
        }
      });

      it("with less room than the default gets a smaller journal, and says so when even that is too much", async () => {
        const withRoom = async (size: string, test: (own: RunningNatsServer) => Promise<void>) => {
          const storeDir = mkdtempSync(join(tmpdir(), "waggle-small-store-"));
          const extraConfig = `jetstream { store_dir: "${storeDir}", max_file_store: ${size} }`;
          const own = await startNatsServer({ binary: path, extraConfig });
          try {
            await test(own);
          } finally {
            await own.stop();
            rmSync(storeDir, { recursive: true, force: true });
          }
        };
        const open = (own: RunningNatsServer) => {
          const { bytesMax: _, ...options } = optionsFor(own);
          return openNatsJournal(options);
        };
        for (const [size, bytesMax] of [
          ["2GB", 1024 ** 3],
          ["200MB", 128 * 1024 ** 2],
        ] as const) {
          await withRoom(size, async (own) => {
            const journal = await open(own);
            expect((await journal.usage()).bytesMax).toBe(bytesMax);
            await journal.close();
          });
        }
        await withRoom("10MB", (own) => expect(open(own)).rejects.toThrow(/max_file_store/));
      });

      it("proves nothing while it is stopped, and the same bytes again settle what was stored", async () => {
        const own = await startNatsServer({ binary: path, jetstream: true });
        try {
          const journal = await openNatsJournal(optionsFor(own));
          await fill(journal, 1);
          await own.kill("SIGSTOP");
          const batches = [bytesOf("record 2"), bytesOf("record 3")];
          const appends = batches.map((bytes, at) => journal.append(bytes, at + 1));
          expect((await Promise.all(appends)).map(({ kind }) => kind)).toEqual(["unknown", "unknown"]);
          await own.kill("SIGCONT");
          for (const [at, bytes] of batches.entries()) await stored(journal, bytes, at + 1);
          expect(await tell(journal.replay(1))).toEqual(toldOf(1, 3));
          await journal.close();
        } finally {
          await own.stop();
        }
      });

      it("ends what is under way at once when it dies", async () => {
        const own = await startNatsServer({ binary: path, jetstream: true });
        try {
          const journal = await openNatsJournal(optionsFor(own));
          await own.kill("SIGSTOP");
          const started = performance.now();
          const append = journal.append(bytesOf("a"), 0);
          await own.kill("SIGKILL");
          expect(await append).toMatchObject({ kind: "unknown", cause: { code: "WAGGLE_UNREACHABLE" } });
          expect(performance.now() - started).toBeLessThan(limits.appendTimeoutMs / 2);
          expect(await journal.append(bytesOf("a"), 0)).toMatchObject({ kind: "unknown" });
          await expect(journal.position()).rejects.toMatchObject({ code: "WAGGLE_UNREACHABLE" });
          await journal.close();
        } finally {
          await own.stop();
        }
      });

      it.each([
        ["goes on when a coordinator appends the same again", "record 4", undefined],
        ["is damaged when something else was appended", "another 4", /record 4 is no longer what was read/],
      ])("may lose the end of its log: a follower %s", async (_, fourth, complaint) => {
        const own = await startNatsServer({ binary: path, jetstream: true });
        const backup = `${own.storeDir}.backup`;
        try {
          const journal = await openNatsJournal(optionsFor(own));
          await fill(journal, 3);
          await own.kill("SIGTERM");
          cpSync(own.storeDir, backup, { recursive: true });
          await own.restart();
          await stored(journal, bytesOf("record 4"), 3);
          const follower = new Follower(journal);
          await follower.hasRead(4);
          await own.kill("SIGKILL");
          rmSync(own.storeDir, { recursive: true });
          renameSync(backup, own.storeDir);
          await own.restart();
          await stored(journal, bytesOf(fourth), 3);
          await stored(journal, bytesOf("record 5"), 4);
          if (complaint === undefined) {
            await follower.hasRead(5);
            await follower.stop();
            expect(follower.lines).toEqual(toldOf(1, 5));
          } else {
            await expect(follower.ended).rejects.toThrow(JournalDamagedError);
            await expect(follower.ended).rejects.toThrow(complaint);
          }
          await journal.close();
        } finally {
          await own.stop();
        }
      });
    });
  });
}

/** Appends as a coordinator does while the outcome is unknown: the same bytes at the same position. */
async function stored(journal: Journal, bytes: Uint8Array, expectedSeq: number): Promise<void> {
  for (;;) {
    const outcome = await journal.append(bytes, expectedSeq);
    if (outcome.kind === "stored") return;
    if (outcome.kind === "refused") {
      expect((await journal.read(expectedSeq + 1))?.bytes).toEqual(bytes);
      return;
    }
    expect(outcome.kind).toBe("unknown");
    await delay(limits.appendRetryMs);
  }
}
