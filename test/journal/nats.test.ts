// The journal on real nats-servers: the conformance suite, the settings of streams, and servers killed.

import { randomUUID } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BrokerError } from "../../src/errors.ts";
import { type SwarmId, swarmId } from "../../src/ids.ts";
import type { AppendOutcome, Journal } from "../../src/journal/journal.ts";
import { inspectNatsStreams, type NatsJournalOptions, openNatsJournal } from "../../src/journal/nats.ts";
import type { FoundSegment } from "../../src/journal/stream/opening.ts";
import { streamConfigOf } from "../../src/journal/stream/settings.ts";
import { limits } from "../../src/limits.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import { describeJournal } from "./conformance.ts";
import { bytesOf, Follower, fill, filled, linesOf, range } from "./records.ts";
import { appendSurely, surely } from "./stream-repeats.ts";

function aSwarm(): SwarmId {
  return swarmId(`t${randomUUID().slice(0, 8)}`);
}

function optionsFor(
  server: Pick<RunningNatsServer, "url">,
  overrides: Partial<NatsJournalOptions> = {},
): NatsJournalOptions {
  return { connection: { urls: [server.url], name: "journal test" }, swarm: aSwarm(), ...overrides };
}

interface ApiAnswer {
  readonly error?: { readonly description: string };
  readonly config?: Record<string, unknown>;
  readonly state?: { readonly consumer_count: number };
  readonly consumers?: readonly string[];
  readonly message?: { readonly hdrs: string };
}

/** The server's own API, past the journal. */
async function callApi(connection: NatsConnection, verb: string, body: unknown = {}): Promise<ApiAnswer> {
  const answer = await connection.request(`$JS.API.${verb}`, JSON.stringify(body), { timeout: 5_000 });
  return answer.json<ApiAnswer>();
}

/** The settings that are not ok, by segment. */
function wrongSettings(segments: readonly FoundSegment[]): string[] {
  return segments.flatMap((found) =>
    found.kind === "there"
      ? found.settings.filter(({ ok }) => !ok).map(({ setting }) => setting)
      : [found.kind],
  );
}

/** Flips a bit in a record's payload, in the store of a server that does not run. The server reads its blocks again. */
function flipBitOf(payload: string, storeDir: string): void {
  for (const file of readdirSync(storeDir, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".blk")) continue;
    const path = join(storeDir, file);
    const bytes = readFileSync(path);
    const at = bytes.indexOf(payload);
    if (at < 0) continue;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(path, bytes);
    const folder = dirname(path);
    for (const name of readdirSync(folder))
      if (!name.endsWith(".blk")) rmSync(join(folder, name), { recursive: true });
    return;
  }
  throw new Error(`no block in ${storeDir} has ${payload}`);
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

    async function withOwnServer(
      test: (own: RunningNatsServer, journal: Journal, open: () => Promise<Journal>) => Promise<void>,
    ) {
      const own = await startNatsServer({ binary: path, jetstream: true });
      try {
        const options = optionsFor(own);
        const journal = await openNatsJournal(options);
        await test(own, journal, () => openNatsJournal(options));
        await journal.close();
      } finally {
        await own.stop();
      }
    }

    describeJournal(`JetStream ${version}`, async ({ bytesMax }) => {
      const options = optionsFor(server, { bytesMax });
      return {
        open: () => openNatsJournal(options),
        dispose: async () => {
          const journal = await openNatsJournal(options);
          for (const number of await journal.list()) await journal.remove(number);
          await journal.close();
        },
      };
    });

    describe("the settings of a segment's stream", () => {
      it("are created and read back as required, for a sealed segment too", async () => {
        const options = optionsFor(server);
        const journal = await openNatsJournal(options);
        expect(journal.durability.class).toBe("page-cache");
        expect((await journal.usage()).bytesMax).toBe(limits.journalBytesMax);
        await journal.create(1);
        await journal.create(2);
        await journal.segment(1).seal();
        await journal.close();
        const { segments, maxPayload } = await inspectNatsStreams(options);
        expect(segments.map(({ number }) => number)).toEqual([1, 2]);
        expect(wrongSettings(segments)).toEqual([]);
        expect(maxPayload.ok).toBe(true);
        const { config } = await callApi(connection, `STREAM.INFO.WAGGLE_${options.swarm}_2`);
        expect(config).toMatchObject({
          subjects: ["", ".opened", ".sealed"].map((end) => `waggle.v1.${options.swarm}.journal.2${end}`),
          storage: "file",
          discard: "new",
          max_bytes: -1,
          max_age: 0,
          deny_delete: true,
          deny_purge: true,
          num_replicas: 1,
        });
        await (await openNatsJournal(options)).close();
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
        ["max_bytes", { max_bytes: 1_048_576 }, /max_bytes is 1048576, wanted -1/],
        ["allow_direct", { allow_direct: true }, /allow_direct is true, wanted false/],
        ["deny_delete", { deny_delete: false }, /deny_delete is false, wanted true/],
        ["deny_purge", { deny_purge: false }, /deny_purge is false, wanted true/],
        ["no_ack", { no_ack: true }, /no_ack is true, wanted false/],
        ["subjects", { subjects: ["x.>"] }, /subjects is \["x.>"\]/],
      ] as const)("are refused when a stream differs: %s", async (setting, config, sentence) => {
        const options = optionsFor(server);
        const { swarm } = options;
        const name = `WAGGLE_${swarm}_1`;
        const journal = await openNatsJournal(options);
        const wanted = streamConfigOf({ swarm, number: 1 }, 1);
        const answer = await callApi(connection, `STREAM.CREATE.${name}`, { ...wanted, ...config });
        expect(answer.error).toBeUndefined();
        const creation = journal.create(1);
        await expect(creation).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_SETTINGS" });
        await expect(creation).rejects.toThrow(sentence);
        await journal.close();
        if (setting !== "subjects") {
          await expect(openNatsJournal(options)).rejects.toThrow(sentence);
          expect(wrongSettings((await inspectNatsStreams(options)).segments)).toEqual([setting]);
        }
        await callApi(connection, `STREAM.DELETE.${name}`);
      });

      it("are refused when the stream was sealed by its settings", async () => {
        const options = optionsFor(server);
        const journal = await openNatsJournal(options);
        await journal.create(1);
        const name = `WAGGLE_${options.swarm}_1`;
        const { config } = await callApi(connection, `STREAM.INFO.${name}`);
        await callApi(connection, `STREAM.UPDATE.${name}`, { ...config, sealed: true });
        await expect(journal.create(1)).rejects.toThrow(
          /sealed is true, wanted not set: this cannot be changed/,
        );
        await journal.remove(1);
        await journal.close();
      });

      it("are refused when another stream has the subjects", async () => {
        const options = optionsFor(server);
        const name = `OTHER_${options.swarm}`;
        await callApi(connection, `STREAM.CREATE.${name}`, {
          name,
          subjects: [`waggle.v1.${options.swarm}.>`],
        });
        const journal = await openNatsJournal(options);
        expect(await journal.list()).toEqual([]);
        await expect(journal.create(1)).rejects.toThrow(
          /subjects overlap.*A different stream takes the journal's subjects/,
        );
        await journal.close();
        await callApi(connection, `STREAM.DELETE.${name}`);
      });

      it("may be read while the server creates the stream", () =>
        withOwnServer(async (own, creating, open) => {
          const reading = await open();
          let isOver = false;
          const read = async () => {
            while (!isOver)
              for (const number of await reading.list()) {
                expect(await reading.segment(number).read(1)).toBeUndefined();
                expect(await reading.segment(number).opened()).toBeUndefined();
              }
          };
          const readers = Promise.all([read(), read(), read()]);
          for (let round = 0; round < 100; round += 1) {
            await creating.create(round + 1);
            await creating.remove(round + 1);
          }
          isOver = true;
          await readers;
          expect(own.isRunning).toBe(true); // the cause when it fails: the server crashed
          await reading.close();
        }));

      it("are created once by several coordinators at the same time", async () => {
        const options = optionsFor(server);
        const journals = await Promise.all(range(1, 4).map(() => openNatsJournal(options)));
        for (const number of range(1, 5)) {
          await Promise.all(journals.map((journal) => journal.create(number)));
          const claims = journals.map((journal) => journal.segment(number).append(bytesOf("claim"), 0));
          const kinds = (await Promise.all(claims)).map(({ kind }) => kind).sort();
          expect(kinds).toEqual(["refused", "refused", "refused", "stored"]);
        }
        await Promise.all(journals.map((journal) => journal.close()));
      });
    });

    describe("a journal in JetStream", () => {
      it("sends the expected position with an append, and no other header", async () => {
        const options = optionsFor(server);
        const journal = await openNatsJournal(options);
        await journal.create(1);
        await fill(journal.segment(1), 2);
        const stored = await callApi(connection, `STREAM.MSG.GET.WAGGLE_${options.swarm}_1`, { seq: 2 });
        const fields = Buffer.from(stored.message?.hdrs ?? "", "base64").toString();
        expect(fields.trim().split("\r\n")).toEqual(["NATS/1.0", "Nats-Expected-Last-Sequence: 1"]);
        await journal.close();
      });

      it("answers full for a record so large that the server would cut the connection", async () => {
        const journal = await openNatsJournal(optionsFor(server));
        await journal.create(1);
        const segment = journal.segment(1);
        expect(await segment.append(new Uint8Array(1024 * 1024), 0)).toMatchObject({ kind: "full" });
        expect(await segment.append(bytesOf("small"), 0)).toEqual({ kind: "stored" });
        await journal.close();
      });

      it("bounds all segments together, and accepts records again after a segment is removed", async () => {
        const journal = await openNatsJournal(optionsFor(server, { bytesMax: 300_000 }));
        for (const number of [1, 2]) {
          await journal.create(number);
          expect(await journal.segment(number).append(new Uint8Array(140_000), 0)).toEqual({
            kind: "stored",
          });
        }
        const segment = journal.segment(2);
        expect(await segment.append(new Uint8Array(140_000), 1)).toMatchObject({
          kind: "full",
          message: expect.stringContaining("of 0.3 MiB"),
        });
        await journal.remove(1);
        await expect.poll(async () => (await segment.append(new Uint8Array(140_000), 1)).kind).toBe("stored");
        await journal.close();
      });

      it("gives a follower every record though its consumer is deleted again and again", async () => {
        const options = optionsFor(server);
        const journal = await openNatsJournal(options);
        await journal.create(1);
        const segment = journal.segment(1);
        const follower = new Follower(segment);
        const stream = `WAGGLE_${options.swarm}_1`;
        for (const round of range(1, 4)) {
          await fill(segment, round * 5, round * 5 - 4);
          await follower.hasRead(round * 5);
          const { consumers = [] } = await callApi(connection, `CONSUMER.NAMES.${stream}`);
          for (const name of consumers) await callApi(connection, `CONSUMER.DELETE.${stream}.${name}`);
        }
        await fill(segment, 25, 21);
        await segment.seal();
        await follower.ended;
        expect(follower.lines).toEqual(filled(1, 25));
        await journal.close();
      });

      it("has one consumer for each reader, and leaves none behind", async () => {
        const options = optionsFor(server);
        const journal = await openNatsJournal(options);
        await journal.create(1);
        const segment = journal.segment(1);
        await fill(segment, 3);
        const info = async () => await callApi(connection, `STREAM.INFO.WAGGLE_${options.swarm}_1`);
        const follower = new Follower(segment);
        await follower.hasRead(3);
        expect((await info()).state?.consumer_count).toBe(1);
        await linesOf(segment.replay(1));
        for await (const { position } of segment.replay(1)) if (position === 1) break;
        await segment.seal();
        await follower.ended;
        await segment.end(); // earlier requests are done now
        expect((await info()).state?.consumer_count).toBe(0);
        await journal.close();
      });

      it("refuses a journal of an earlier version, and says what to do", async () => {
        const options = optionsFor(server);
        const name = `WAGGLE_${options.swarm}`;
        await callApi(connection, `STREAM.CREATE.${name}`, {
          name,
          subjects: [`waggle.v1.${options.swarm}.journal`],
        });
        for (const call of [() => openNatsJournal(options), () => inspectNatsStreams(options)]) {
          await expect(call()).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_SETTINGS" });
          await expect(call()).rejects.toThrow(
            "which this version cannot read; finish the tasks with that version, then remove the old journal with " +
              `\`nats stream rm ${name}\`, or use a different swarm name`,
          );
        }
        await callApi(connection, `STREAM.DELETE.${name}`);
        await (await openNatsJournal(options)).close();
      });

      it("refuses replicas on a server that is in no cluster", async () => {
        await expect(openNatsJournal(optionsFor(server, { replicas: 3 }))).rejects.toMatchObject({
          code: "WAGGLE_INVALID_CONFIG",
          field: "replicas",
        });
      });
    });

    describe("a server in trouble", () => {
      it("is named if it has no JetStream", async () => {
        const bare = await startNatsServer({ binary: path });
        try {
          const opening = openNatsJournal(optionsFor(bare));
          await expect(opening).rejects.toThrow(BrokerError);
          await expect(opening).rejects.toThrow("nats-server -js");
        } finally {
          await bare.stop();
        }
      });

      it("is named when it takes only small messages", async () => {
        const extraConfig = "max_payload: 65536";
        const small = await startNatsServer({ binary: path, jetstream: true, extraConfig });
        try {
          await expect(openNatsJournal(optionsFor(small))).rejects.toThrow(
            /max_payload is 65536, wanted at least/,
          );
        } finally {
          await small.stop();
        }
      });

      async function withStore(
        configure: (storeDir: string) => string,
        test: (journal: Journal) => Promise<void>,
      ): Promise<void> {
        const storeDir = mkdtempSync(join(tmpdir(), "waggle-store-"));
        const own = await startNatsServer({ binary: path, extraConfig: configure(storeDir) });
        try {
          const journal = await openNatsJournal(optionsFor(own));
          await test(journal);
          await journal.close();
        } finally {
          await own.stop();
          rmSync(storeDir, { recursive: true, force: true });
        }
      }

      it("bounds the journal by the account's storage limit", () => {
        const accounts =
          "accounts { A { users: [{ user: a, password: a }], jetstream: { max_file: 4000000 } } }";
        return withStore(
          (storeDir) => `jetstream { store_dir: "${storeDir}" }\n${accounts}\nno_auth_user: a`,
          async (journal) => expect((await journal.usage()).bytesMax).toBe(4_000_000),
        );
      });

      it("answers full if the server's storage is full", () =>
        withStore(
          (storeDir) => `jetstream { store_dir: "${storeDir}", max_file_store: 1MB }`,
          async (journal) => {
            await journal.create(1);
            const segment = journal.segment(1);
            let outcome: AppendOutcome = { kind: "stored" };
            for (let end = 0; outcome.kind === "stored"; end += 1)
              outcome = await segment.append(new Uint8Array(300_000), end);
            expect(outcome).toMatchObject({ kind: "full", message: expect.stringContaining("JetStream") });
          },
        ));

      it("may be killed under appends, followers and replays: nothing is lost or doubled", () =>
        withOwnServer(async (own, journal) => {
          await journal.create(1);
          const segment = journal.segment(1);
          await fill(segment, 30);
          const follower = new Follower(segment);
          await follower.hasRead(30);
          const lines: string[] = [];
          for await (const { position } of segment.replay(1)) {
            lines.push(`${position}:record ${position}`);
            if (position === 10) await own.restart();
          }
          expect(lines).toEqual(filled(1, 30));
          for (const round of range(1, 3)) {
            const from = 21 + round * 10;
            const killing = delay(round * 3).then(() => own.restart());
            for (const position of range(from, from + 9)) {
              const bytes = bytesOf(`record ${position}`);
              expect(await appendSurely(segment, bytes, position - 1)).toEqual({ kind: "stored" });
            }
            await killing;
          }
          await follower.hasRead(60);
          expect(await surely(() => segment.seal())).toBe(true);
          await follower.ended;
          expect(follower.lines).toEqual(filled(1, 60));
        }));

      it("may be killed while it seals: the seal is repeated, holds, and followers return", () =>
        withOwnServer(async (own, journal) => {
          for (const number of range(1, 6)) {
            await surely(() => journal.create(number));
            const segment = journal.segment(number);
            for (const position of range(1, 5))
              expect((await appendSurely(segment, bytesOf(`record ${position}`), position - 1)).kind).toBe(
                "stored",
              );
            const follower = new Follower(segment);
            await follower.hasRead(5);
            const killing = delay(number - 1).then(() => own.restart());
            expect(await surely(() => segment.seal())).toBe(true);
            const end = await surely(() => segment.end());
            await killing;
            await own.restart();
            expect((await appendSurely(segment, bytesOf("late"), 5)).kind).toBe("sealed");
            expect(await surely(() => segment.end())).toEqual(end);
            expect(end).toMatchObject({ position: 5, isSealed: true, missing: 0 });
            await follower.ended;
            expect(follower.lines).toEqual(filled(1, 5));
          }
          expect(await surely(() => journal.list())).toEqual(range(1, 6));
        }));

      it("may be set back by its store: the seal is lost, and a follower sees that records changed", () =>
        withOwnServer(async (own, journal, open) => {
          const backup = `${own.storeDir}.backup`;
          const [segment, sealed] = [journal.segment(1), journal.segment(2)];
          await journal.create(1);
          await journal.create(2);
          await fill(segment, 3);
          await own.kill("SIGTERM");
          cpSync(own.storeDir, backup, { recursive: true });
          await own.restart();
          expect(await appendSurely(segment, bytesOf("record 4"), 3)).toEqual({ kind: "stored" });
          const follower = new Follower(segment);
          await follower.hasRead(4);
          await surely(() => sealed.seal());
          const writer = await open();
          await own.kill("SIGKILL");
          rmSync(own.storeDir, { recursive: true });
          renameSync(backup, own.storeDir);
          await own.restart();
          expect(await appendSurely(writer.segment(1), bytesOf("another 4"), 3)).toEqual({ kind: "stored" });
          await expect(follower.ended).rejects.toThrow("record 4 of segment 1 changed since it was read");
          expect(await surely(() => writer.segment(2).end())).toMatchObject({ isSealed: false });
          expect(await sealed.append(bytesOf("late"), 0)).toEqual({ kind: "sealed" });
          expect(await writer.segment(2).append(bytesOf("a zombie's"), 0)).toEqual({ kind: "stored" });
          await writer.close();
        }));

      it("may have a bit flipped in its store: the segment can be sealed, and ends for good", () =>
        withOwnServer(async (own, journal) => {
          await journal.create(1);
          const segment = journal.segment(1);
          await fill(segment, 20);
          await own.kill("SIGKILL");
          flipBitOf("record 11", own.storeDir);
          await own.restart();
          const { position = 0 } = (await surely(() => segment.end())) ?? {};
          const startedMs = performance.now();
          expect(await surely(() => segment.seal())).toBe(true);
          expect(performance.now() - startedMs).toBeLessThan(5_000);
          expect(await segment.append(bytesOf("late"), position)).toEqual({ kind: "sealed" });
          expect(await surely(() => segment.end())).toMatchObject({ position, isSealed: true });
          await surely(() => journal.create(2));
          await fill(journal.segment(2), 3);
          expect(await linesOf(journal.segment(2).replay(1))).toEqual(filled(1, 3));
        }));

      it("reports the return, and proves nothing while stopped", () =>
        withOwnServer(async (own, journal) => {
          await journal.create(1);
          const segment = journal.segment(1);
          await fill(segment, 1);
          await own.kill("SIGSTOP");
          const batches = [bytesOf("record 2"), bytesOf("record 3")];
          const appends = batches.map((bytes, at) => segment.append(bytes, at + 1));
          expect((await Promise.all(appends)).map(({ kind }) => kind)).toEqual(["unknown", "unknown"]);
          await own.kill("SIGCONT");
          for (const [at, bytes] of batches.entries())
            expect(await appendSurely(segment, bytes, at + 1)).toEqual({ kind: "stored" });
          expect(await linesOf(segment.replay(1))).toEqual(filled(1, 3));
          const isBack = new Promise<void>((resolve) => journal.onReconnected(resolve));
          await own.kill("SIGKILL");
          expect(await segment.append(bytesOf("a"), 3)).toMatchObject({ kind: "unknown" });
          await own.restart();
          await isBack;
          expect(await surely(() => segment.end())).toMatchObject({ position: 3 });
        }));
    });
  });
}
