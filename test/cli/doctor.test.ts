// `waggle doctor` and `waggle status` with a damaged or unavailable journal: on one or three real servers. Not here:
// a healthy swarm (swarm.test.ts), a journal in files (usage.test.ts).

import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Check } from "../../src/cli/doctor/check.ts";
import { checkWriters } from "../../src/cli/doctor/checks.ts";
import { checkRoom } from "../../src/cli/doctor/stream.ts";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { startCoordinator } from "../../src/coordinator/coordinator.ts";
import { openNatsJournal } from "../../src/journal/nats.ts";
import { streamConfigOf, streamNameOf } from "../../src/journal/stream/settings.ts";
import { limits } from "../../src/limits.ts";
import type { StatusResponse } from "../../src/protocol/schemas.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import { connectNats } from "../../src/transport/nats.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { blocksOf } from "../chaos/damage.ts";
import { type Servers, startReadyServers } from "../chaos/servers.ts";
import { flipBit } from "../support/flip-bit.ts";
import {
  natsServersFor,
  type RunningNatsServer,
  replicatingServersFor,
  startNatsServer,
} from "../support/nats-server.ts";
import { silentLogger } from "../support/swarm.ts";
import { Workplace } from "../support/waggle-process.ts";
import { leadTerm, swarm } from "./led-terms.ts";
import { aShell, runIn } from "./shell.ts";

const MEBIBYTE = 1024 * 1024;

interface Examined {
  readonly code: number;
  readonly checks: readonly Check[];
  /** Checks with this name, as `status found`. */
  of(name: string): string[];
  /** The advice of all checks. */
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

/** The server's API. @throws Error if refused */
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

async function create(connection: NatsConnection, number: number, replicas = 1): Promise<void> {
  const id = { swarm, number };
  await callApi(connection, `STREAM.CREATE.${streamNameOf(id)}`, streamConfigOf(id, replicas));
}

/** A server notices within a minute that others are gone, even on a busy machine. */
const UNTIL_MS = 60_000;

async function until<Value>(ask: () => Promise<Value>, isIt: (value: Value) => boolean): Promise<Value> {
  for (const startedMs = performance.now(); ; await delay(200)) {
    const value = await ask();
    if (isIt(value)) return value;
    if (performance.now() - startedMs > UNTIL_MS)
      throw new Error(`still not as it should be: ${JSON.stringify(value)}`);
  }
}

it("warns of foreign records for a day after the last one, and then only mentions them", () => {
  const writers = (agoMs: number) => {
    const journal = { foreignRecords: { count: 2, lastAt: 1_000 } };
    const status = { swarm: "default", at: 1_000 + agoMs, journal } as unknown as StatusResponse;
    return [...checkWriters(status)].map(({ status: outcome, found }) => `${outcome} ${found}`);
  };
  expect(writers(24 * 3_600_000)).toEqual([expect.stringMatching(/^warn 2 records .*, the last 24 h ago/)]);
  expect(writers(24 * 3_600_000 + 1)).toEqual([expect.stringMatching(/^ok 2 records/)]);
});

it("says how full the journal is, what follows, and how to give it more room", () => {
  const room = (bytes: number) => {
    const { status, found, advice } = checkRoom({ bytes, bytesMax: 100 * MEBIBYTE, remedy: "more disk" });
    return [`${status} ${found}`, advice];
  };
  expect(room(13 * MEBIBYTE)).toEqual(["ok the journal has 13.0 MiB of 100.0 MiB, 13 %", undefined]);
  expect(room(88 * MEBIBYTE)).toEqual([
    "warn the journal has 88.0 MiB of 100.0 MiB, 88 %: no tasks are accepted; results and terms are still journaled",
    "more disk",
  ]);
  expect(room(99.9 * MEBIBYTE)).toEqual([
    expect.stringMatching(/^fail .*, full: .* no request is answered until the journal has room$/),
    "more disk",
  ]);
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

    it("advises to start a coordinator where there is no journal", async () => {
      const { code, checks } = await doctor(server.url);
      expect(code).toBe(3);
      expect(checks).toContainEqual({
        name: "streams",
        status: "warn",
        found: "this swarm has no journal yet",
        advice: "start a coordinator: it creates the journal",
      });
    });

    it("lists the segments that a restart reads, and reports a missing segment as damage", async () => {
      const journal = await openNatsJournal({ connection: { urls: [server.url], name: "test" }, swarm });
      for (const term of [1, 2, 3]) await leadTerm(journal, term);
      const whole = await doctor(server.url);
      expect(whole.of("streams")).toEqual([
        expect.stringMatching(/^ok 3 segments \(WAGGLE_default_1 to WAGGLE_default_3\), .* all correct$/),
      ]);
      expect(whole.of("log")).toEqual([
        "ok ends in segment 3; a restart reads segments 1 to 3, from the first batch on (read to batch 12)",
      ]);
      await journal.remove(2);
      const { code, of, advice } = await doctor(server.url);
      expect(code).toBe(7);
      expect(of("log")).toEqual([
        expect.stringMatching(/^fail segment 2 is missing, which segment 3 continues/),
      ]);
      expect(advice).toContain("`waggle journal recover`");
      await journal.close();
    });

    it("reads the records of a restart while no coordinator runs, and reports an unreadable record", async () => {
      const journal = await openNatsJournal({ connection: { urls: [server.url], name: "test" }, swarm });
      for (const term of [1, 2]) await leadTerm(journal, term);
      await journal.close();
      expect((await doctor(server.url)).of("log")).toEqual([
        expect.stringMatching(/^ok ends in segment 2; .* from the first batch on \(read to batch \d+\)$/),
      ]);
      const [block = ""] = blocksOf(server.storeDir, "WAGGLE_default_1");
      flipBit(block, readFileSync(block).indexOf("t1-1"));
      await server.restart();
      const { code, of, advice } = await until(
        () => doctor(server.url),
        ({ of }) => of("log").length > 0,
      );
      expect(code).toBe(7);
      // Servers differ: the record is missing, or the segment ends before it.
      expect(of("log")).toEqual([expect.stringMatching(/^fail segment (1 |2 continues batch 4, )/)]);
      expect(advice).toContain("`waggle journal recover`");
    });

    it("names a wrong setting and the stream", async () => {
      await create(connection, 1);
      const { config } = await callApi(connection, "STREAM.INFO.WAGGLE_default_1");
      await callApi(connection, "STREAM.UPDATE.WAGGLE_default_1", { ...config, max_age: 3_600_000_000_000 });
      const { code, of, advice } = await doctor(server.url);
      expect(code).toBe(3);
      expect(of("streams")).toEqual(["fail max_age of WAGGLE_default_1 is 3600000000000, wanted 0"]);
      expect(advice).toContain("`nats stream edit WAGGLE_default_1`");
    });

    it("refuses a journal of an earlier version, and says what to do", async () => {
      await callApi(connection, "STREAM.CREATE.WAGGLE_default", {
        name: "WAGGLE_default",
        subjects: ["waggle.v1.default.journal"],
      });
      const { code, of } = await doctor(server.url);
      expect(code).toBe(2);
      expect(of("streams")).toEqual([
        expect.stringMatching(/^fail .*a journal of an earlier version.*`nats stream rm WAGGLE_default`/),
      ]);
    });

    it("knows a leader that writes in the journal and cannot be reached", async () => {
      const closing: (() => Promise<unknown>)[] = [];
      const start = async (id: string, transport: Transport) => {
        const journal = await openNatsJournal({
          connection: { urls: [server.url], name: id },
          swarm,
        });
        closing.unshift(() => Promise.all([journal.close(), transport.close()]));
        const deps = { id, swarm, transport, journal, clock: systemClock, random: systemRandom };
        const coordinator = await startCoordinator({ ...deps, logger: silentLogger });
        closing.unshift(() => coordinator.stop());
        return coordinator;
      };
      try {
        const unreachable = await start("c1", new MemoryHub({ clock: systemClock }).connect());
        await unreachable.whenLeading();
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

    it("warns of foreign writers in the journal, and advises to restrict permissions", async () => {
      const workplace = await Workplace.make();
      try {
        const up = workplace.start("up", "--nats", server.url);
        await up.says("leading");
        expect((await doctor(server.url)).of("writers")).toEqual([]);
        for (let count = 0; count < 3; count += 1)
          connection.publish(subjectsOf(swarm).segment(1), "not ours");
        const { code, of, advice } = await until(
          () => doctor(server.url),
          ({ of }) => of("writers").some((found) => found.includes("3 records")),
        );
        expect(code).toBe(0);
        expect(of("writers")).toEqual([
          expect.stringMatching(/^warn 3 records in the journal from other writers/),
        ]);
        expect(advice).toContain(`\`${subjectsOf(swarm).segment("*")}\``);
        const status = await workplace.runVerb("status", "--nats", server.url);
        expect(status.stdout).toContain("3 foreign records in the journal");
      } finally {
        await workplace.clear();
      }
    });
  });
}

for (const { path, version } of replicatingServersFor("doctor on three servers").slice(0, 1)) {
  describe(`three nats-servers ${version}`, () => {
    let servers: Servers | undefined;
    afterEach(() => servers?.stop());

    it("names missing replicas, and reports a lost majority", {
      // A second try with new servers: after a kill, replicas sometimes lag for minutes (docs/reliability.md).
      timeout: limits.journalOpenMs * 20,
      retry: 1,
    }, async () => {
      servers = await startReadyServers(path);
      const [url = ""] = servers.urls;
      const connection = await connect({ servers: url });
      await until(
        () =>
          create(connection, 1, 3).then(
            () => true,
            () => false,
          ),
        (made) => made,
      );
      const well = await until(
        () => doctor(url),
        ({ of }) => of("replicas").every((found) => found.startsWith("ok")),
      );
      expect(well.of("replicas")).toEqual([
        expect.stringMatching(/^ok WAGGLE_default_1 is stored on 3 servers, all up to date: s\d leads$/),
      ]);

      await connection.close();
      // Not the stream's leader: its loss sometimes leaves the stream without a leader for minutes
      // (docs/reliability.md).
      const [, second, third] = servers.members;
      const isThirdLeading = well.of("replicas")[0]?.endsWith("s3 leads") === true;
      const [first, next, name] = isThirdLeading ? [second, third, "s2"] : [third, second, "s3"];
      await first?.kill("SIGKILL");
      const lacking = await until(
        () => doctor(url),
        ({ of }) => of("replicas")[0]?.startsWith("warn") === true,
      );
      expect(lacking.of("replicas")[0]).toMatch(
        new RegExp(
          `^warn WAGGLE_default_1 is up to date on 2 of 3 servers: s\\d leads; ${name} (has been silent for|is)`,
        ),
      );

      await next?.kill("SIGKILL");
      const lost = await until(
        () => doctor(url),
        ({ of }) => [...of("replicas"), ...of("streams")].some((found) => found.startsWith("fail")),
      );
      expect(lost.code).toBe(3);
      expect([...lost.of("replicas"), ...lost.of("streams")]).toContainEqual(
        expect.stringMatching(
          /^fail (WAGGLE_default_1( has (lost its majority|no leader)|: JetStream)|JetStream says)/,
        ),
      );
      expect(lost.advice).toMatch(/2 of 3 must be online|a majority of them/);
      expect(lost.of("durability")).toEqual([]);
      expect(lost.advice).not.toContain("waggle up");
    });
  });
}
