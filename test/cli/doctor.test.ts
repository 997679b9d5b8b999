// `waggle doctor`, and what `waggle status` says, where the journal is in trouble: on real servers, one or three. Not
// here: a swarm that is well (swarm.test.ts), a journal in files (usage.test.ts).

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Check } from "../../src/cli/doctor/check.ts";
import { checkWriters } from "../../src/cli/doctor/checks.ts";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { startCoordinator } from "../../src/coordinator/coordinator.ts";
import { swarmId } from "../../src/ids.ts";
import { openNatsJournal } from "../../src/journal/nats.ts";
import { type StreamPurpose, streamConfigOf, streamNameOf } from "../../src/journal/stream/settings.ts";
import { limits } from "../../src/limits.ts";
import type { StatusResponse } from "../../src/protocol/schemas.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import { connectNats } from "../../src/transport/nats.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { type Servers, startServers } from "../chaos/servers.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import { silentLogger } from "../support/swarm.ts";
import { Workplace } from "../support/waggle-process.ts";
import { aShell, runIn } from "./shell.ts";

const MEBIBYTE = 1024 * 1024;
const swarm = swarmId("default");
const JOURNAL = "WAGGLE_default";
const SNAPSHOTS = "WAGGLE_default_SNAP";

interface Examined {
  readonly code: number;
  readonly checks: readonly Check[];
  /** Those of a name, as `status found`. */
  of(name: string): string[];
  /** What is to be done, all together. */
  readonly advice: string;
}

function examined({ code, stdout }: { readonly code: number | null; readonly stdout: string }): Examined {
  const checks = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Check);
  return {
    code: code ?? -1,
    checks,
    of: (name) =>
      checks.filter((check) => check.name === name).map(({ status, found }) => `${status} ${found}`),
    advice: checks.flatMap(({ advice = [] }) => advice).join("\n"),
  };
}

async function doctor(url: string): Promise<Examined> {
  const shell = aShell({ cwd: tmpdir(), env: { NATS_URL: url } });
  return examined(await runIn(shell, "doctor", "--json"));
}

/** The server's own interface. @throws Error where it refuses */
async function callApi(connection: NatsConnection, verb: string, body: unknown = {}): Promise<ApiAnswer> {
  const answer = await connection.request(`$JS.API.${verb}`, JSON.stringify(body), { timeout: 5_000 });
  const read = answer.json<ApiAnswer>();
  if (read.error !== undefined) throw new Error(`${verb}: ${read.error.description}`);
  return read;
}

interface ApiAnswer {
  readonly error?: { readonly description: string };
  readonly config: Record<string, unknown>;
  readonly state: { readonly bytes: number };
  readonly cluster?: { readonly leader?: string };
}

async function create(
  connection: NatsConnection,
  purpose: StreamPurpose,
  more: { readonly bytesMax?: number; readonly replicas?: number } = {},
): Promise<void> {
  const wanted = { swarm, purpose, bytesMax: MEBIBYTE, ...more };
  await callApi(connection, `STREAM.CREATE.${streamNameOf(wanted)}`, streamConfigOf(wanted));
}

async function setBytesMax(connection: NatsConnection, bytesMax: (bytes: number) => number): Promise<void> {
  const { config, state } = await callApi(connection, `STREAM.INFO.${JOURNAL}`);
  await callApi(connection, `STREAM.UPDATE.${JOURNAL}`, { ...config, max_bytes: bytesMax(state.bytes) });
}

/** A server finds out within a minute that others are gone, on a busy machine too. */
const UNTIL_MS = 60_000;

async function until<Value>(ask: () => Promise<Value>, isIt: (value: Value) => boolean): Promise<Value> {
  for (const startedMs = performance.now(); ; await delay(200)) {
    const value = await ask();
    if (isIt(value)) return value;
    if (performance.now() - startedMs > UNTIL_MS)
      throw new Error(`still not as it should be: ${JSON.stringify(value)}`);
  }
}

it("warns of who else writes into the journal for a day after the last such record, and says so from then on", () => {
  const writers = (agoMs: number) => {
    const journal = { alienRecords: { count: 2, lastAt: 1_000 } };
    const status = { swarm: "default", at: 1_000 + agoMs, journal } as unknown as StatusResponse;
    return [...checkWriters(status)].map(({ status: told, found }) => `${told} ${found}`);
  };
  expect(writers(24 * 3_600_000)).toEqual([expect.stringMatching(/^warn 2 records .*, the last 24 h ago/)]);
  expect(writers(24 * 3_600_000 + 1)).toEqual([expect.stringMatching(/^ok 2 records/)]);
});

for (const { path, version } of natsServersFor("doctor on a journal in trouble").slice(0, 1)) {
  describe(`nats-server ${version}`, () => {
    let server: RunningNatsServer;
    let connection: NatsConnection;

    beforeEach(async () => {
      server = await startNatsServer({ binary: path, jetstream: true });
      connection = await connect({ servers: server.url });
    });
    afterEach(async () => {
      await connection.close();
      await server.stop();
    });

    it("takes a journal that is gone, and its snapshots are there, for damage", async () => {
      await create(connection, "snapshots");
      const { code, of, advice } = await doctor(server.url);
      expect(code).toBe(7);
      expect(of("stream")).toEqual([
        expect.stringMatching(/^fail WAGGLE_default is gone, and WAGGLE_default_SNAP is there/),
      ]);
      expect(advice).toContain(`\`nats stream rm ${JOURNAL}\`, \`nats stream rm ${SNAPSHOTS}\``);
      expect(advice).not.toMatch(/which creates it|waggle up/);
    });

    it("advises to start a coordinator where there is neither", async () => {
      const { code, checks } = await doctor(server.url);
      expect(code).toBe(3);
      expect(checks).toContainEqual({
        name: "stream",
        status: "warn",
        found: `there is no ${JOURNAL}`,
        advice: "start a coordinator of this swarm, which creates it",
      });
    });

    it("takes snapshots that are gone, and the journal was purged, for damage", async () => {
      await create(connection, "journal");
      for (const text of ["one", "two", "three"]) await connection.request(subjectsOf(swarm).journal, text);
      await callApi(connection, `STREAM.PURGE.${JOURNAL}`, { seq: 3 });
      const { code, of } = await doctor(server.url);
      expect(code).toBe(7);
      expect(of("stream")).toEqual([
        expect.stringMatching(
          /^fail WAGGLE_default_SNAP is gone, and WAGGLE_default was purged before record 3:/,
        ),
      ]);
    });

    it("says how full both streams are, and how to give them more", async () => {
      await create(connection, "journal", { bytesMax: 8 * MEBIBYTE });
      await create(connection, "snapshots", { bytesMax: 8 * MEBIBYTE });
      const subjects = subjectsOf(swarm);
      const fill = async (subject: string, parts: number) => {
        for (let part = 0; part < parts; part += 1)
          await connection.request(subject, new Uint8Array(MEBIBYTE / 2));
      };
      await fill(subjects.journal, 2);
      await fill(subjects.snapshotChunk, 15);
      const first = await doctor(server.url);
      expect(first.of("room")).toEqual([
        `ok ${JOURNAL} has 1.0 MiB of 8.0 MiB, 13 %`,
        `fail ${SNAPSHOTS} has 7.5 MiB of 8.0 MiB, it is full: no snapshot fits`,
      ]);
      await fill(subjects.journal, 12);
      const then = await doctor(server.url);
      expect(then.of("room")[0]).toBe(
        `warn ${JOURNAL} has 7.0 MiB of 8.0 MiB, 88 %: no tasks are accepted; results and terms go on`,
      );
      expect(then.advice).toContain(`\`nats stream edit ${JOURNAL} --max-bytes ${16 * MEBIBYTE}\``);
    });

    it("knows a leader that writes in the journal and cannot be reached", async () => {
      const closing: (() => Promise<unknown>)[] = [];
      const start = async (id: string, transport: Transport) => {
        const journal = await openNatsJournal({
          connection: { urls: [server.url], name: id },
          swarm,
          bytesMax: 64 * MEBIBYTE,
          create: true,
        });
        closing.unshift(() => Promise.all([journal.close(), transport.close()]));
        const deps = { id, swarm, transport, journal, clock: systemClock, random: systemRandom };
        const coordinator = await startCoordinator({ ...deps, logger: silentLogger });
        closing.unshift(() => coordinator.stop());
        return coordinator;
      };
      try {
        const deaf = await start("c1", new MemoryHub({ clock: systemClock }).connect());
        await deaf.whenLeading();
        await start("c2", await connectNats({ urls: [server.url], name: "c2" }));
        const { code, of, advice } = await doctor(server.url);
        expect(code).toBe(3);
        expect(of("leader")).toEqual([
          expect.stringMatching(
            /^fail c1 leads default, term 1: it writes in the journal \(batch \d+, then \d+\) and cannot be reached$/,
          ),
        ]);
        expect(advice).toContain("`waggle coordinator c1`");
        expect(advice).not.toContain("wait until it leads");
      } finally {
        for (const close of closing) await close();
      }
    });

    it("warns of who else writes into the journal, and says who may not", async () => {
      const workplace = await Workplace.make();
      try {
        const up = workplace.start("up", "--nats", server.url);
        await up.says("leading");
        expect((await doctor(server.url)).of("writers")).toEqual([]);
        for (let count = 0; count < 3; count += 1) connection.publish(subjectsOf(swarm).journal, "not ours");
        const { code, of, advice } = await until(
          () => doctor(server.url),
          ({ of }) => of("writers").some((found) => found.includes("3 records")),
        );
        expect(code).toBe(0);
        expect(of("writers")).toEqual([
          expect.stringMatching(/^warn 3 records in the journal that no coordinator/),
        ]);
        expect(advice).toContain(`\`${subjectsOf(swarm).journal}\``);
        expect(of("durability")[0]).not.toContain("dead record");
        const status = await workplace.run("status", "--nats", server.url);
        expect(status.stdout).toContain("3 records of somebody else in the journal");
      } finally {
        await workplace.clear();
      }
    });

    it("knows a leader that its full journal keeps from answering", async () => {
      const workplace = await Workplace.make();
      try {
        const up = workplace.start("up", "--nats", server.url);
        await up.says("leading");
        // So that what is left is little beside it: a dead record, which the leader writes on behind.
        await connection.request(subjectsOf(swarm).journal, new Uint8Array(MEBIBYTE / 2));
        await setBytesMax(connection, (bytes) => bytes + 64);
        const full = await until(
          async () => examined(await workplace.run("doctor", "--nats", server.url, "--json")),
          ({ of }) => of("leader").some((found) => found.startsWith("fail")),
        );
        expect(full.code).toBe(3);
        expect(full.of("leader")).toEqual([
          expect.stringMatching(/^fail \S+ leads default, term 1, .*does not answer$/),
        ]);
        expect(full.of("room")[0]).toMatch(/^fail WAGGLE_default has .* it is full: .* nothing is answered/);
        expect(full.advice).not.toContain("waggle up");
        const status = await workplace.run("status", "--nats", server.url);
        expect(status).toMatchObject({ code: 3, stderr: expect.stringMatching(/is full.*--max-bytes/) });
        expect(status.stderr.match(/--max-bytes/g)).toHaveLength(1);

        workplace.start("up", "--nats", server.url);
        const byStandby = await until(
          async () => await workplace.run("status", "--nats", server.url),
          ({ code }) => code === 0,
        );
        expect(byStandby.stdout).toContain("the journal is full");
        const seen = examined(await workplace.run("doctor", "--nats", server.url, "--json"));
        expect(seen.of("leader")).toEqual(full.of("leader"));
        expect(seen.of("clock")).toEqual([]);

        await setBytesMax(connection, () => 64 * MEBIBYTE);
        await until(
          async () => examined(await workplace.run("doctor", "--nats", server.url, "--json")),
          ({ code, of }) => code === 0 && of("room")[0]?.startsWith("ok") === true,
        );
      } finally {
        await workplace.clear();
      }
    });
  });

  describe(`nats-server ${version} with little room`, () => {
    it("says that no snapshot can be kept where only the journal found room", async () => {
      const storeDir = mkdtempSync(join(tmpdir(), "waggle-doctor-"));
      const extraConfig = `jetstream { store_dir: ${JSON.stringify(storeDir)}, max_file_store: 160MB }`;
      const server = await startNatsServer({ binary: path, extraConfig });
      try {
        const connection = await connect({ servers: server.url });
        await create(connection, "journal", { bytesMax: 128 * MEBIBYTE });
        await connection.close();
        const { code, of, advice } = await doctor(server.url);
        expect(code).toBe(3);
        expect(of("stream")).toEqual([`fail there is no ${SNAPSHOTS} for snapshots of ${JOURNAL}`]);
        expect(advice).toContain("max_file_store");
        expect(advice).not.toContain("waggle up");
      } finally {
        await server.stop();
        rmSync(storeDir, { recursive: true, force: true, maxRetries: 5 });
      }
    });
  });

  describe(`three nats-servers ${version}`, () => {
    let servers: Servers | undefined;
    afterEach(() => servers?.stop());

    it("names replicas that are away, and says when a majority is", {
      // Once more with other servers: replicas of some lag for minutes where one is killed (docs/reliability.md).
      timeout: limits.journalOpenMs * 20,
      retry: 1,
    }, async () => {
      servers = await startServers(path, 3);
      const [url = ""] = servers.urls;
      const connection = await connect({ servers: url });
      const make = (purpose: StreamPurpose) => create(connection, purpose, { replicas: 3 });
      await until(
        () =>
          make("journal").then(
            () => true,
            () => false,
          ),
        (made) => made,
      );
      await make("snapshots");
      const well = await until(
        () => doctor(url),
        ({ of }) => of("replicas").every((found) => found.startsWith("ok")),
      );
      expect(well.of("replicas")).toEqual([
        expect.stringMatching(/^ok WAGGLE_default is kept by 3 servers, all up to date: s\d leads$/),
        expect.stringMatching(/^ok WAGGLE_default_SNAP is kept by 3 servers/),
      ]);

      await connection.close();
      // Not who leads the stream: nobody leads it then, now and then, for a minute and more (docs/reliability.md).
      const [, second, third] = servers.members;
      const isThirdLeading = well.of("replicas")[0]?.endsWith("s3 leads") === true;
      const [first, next, name] = isThirdLeading ? [second, third, "s2"] : [third, second, "s3"];
      await first?.kill("SIGKILL");
      const lacking = await until(
        () => doctor(url),
        ({ of }) => of("replicas")[0]?.startsWith("warn") === true,
      );
      expect(lacking.of("replicas")[0]).toMatch(
        new RegExp(`^warn WAGGLE_default is kept by 2 of 3: s\\d leads; ${name} (was not heard for|is)`),
      );

      await next?.kill("SIGKILL");
      const lost = await until(
        () => doctor(url),
        ({ of }) => [...of("replicas"), ...of("stream")].some((found) => found.startsWith("fail")),
      );
      expect(lost.code).toBe(3);
      expect([...lost.of("replicas"), ...lost.of("stream")]).toContainEqual(
        expect.stringMatching(/^fail WAGGLE_default(_SNAP)?( has (lost its majority|no leader)|: JetStream)/),
      );
      expect(lost.advice).toMatch(/2 of 3 must be there|a majority of them/);
      expect(lost.of("durability")).toEqual([]);
      expect(lost.advice).not.toContain("waggle up");
    });
  });
}
