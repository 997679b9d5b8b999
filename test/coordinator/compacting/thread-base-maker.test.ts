// The thread that makes a leader's next segment: a restart reads the segment, and each failure is an error and nothing
// else.

import { randomUUID } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { freePort } from "../../../src/broker/free-port.ts";
import { systemClock } from "../../../src/clock.ts";
import { ThreadBaseMaker } from "../../../src/coordinator/compacting/thread-base-maker.ts";
import { JournalDamagedError } from "../../../src/errors.ts";
import { swarmId } from "../../../src/ids.ts";
import { openFileJournal } from "../../../src/journal/file.ts";
import { openNatsJournal } from "../../../src/journal/nats.ts";
import { encodeRecord } from "../../../src/journal/records.ts";
import type { JournalPlace } from "../../../src/journal/thread-values.ts";
import { limits } from "../../../src/limits.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../../support/nats-server.ts";
import { LedLog } from "./led-log.ts";

const SLOW_TEST_MS = 60_000;
const { signal } = new AbortController();

/** Of each thread of this process (proc(5), field `nice` of a task's stat). */
async function nicenessOfThreads(): Promise<number[]> {
  const threads = await readdir("/proc/self/task");
  const stats = threads.map((thread) => readFile(`/proc/self/task/${thread}/stat`, "utf8").catch(() => ""));
  return (await Promise.all(stats)).map((stat) => Number(stat.split(") ")[1]?.split(" ")[16]));
}

/** Goes on in a segment of the thread, while batches come. */
async function expectMade(log: LedLog, place: JournalPlace): Promise<void> {
  await log.submit(30, 50_000); // several chunks
  const making = new ThreadBaseMaker(place, log.journal).make(log.order(2), signal);
  for (let turns = 0; turns < 20; turns += 1) {
    await log.submit(5);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const made = await making;
  expect(made).toMatchObject({ number: 2 });
  await log.changeTo(made);
  await log.submit(3);
  await log.journal.remove(1);
  await log.expectWhole();
}

describe("a segment made in a thread, of files", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "waggle-base-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  async function aLog() {
    const log = await new LedLog(await openFileJournal({ folder }), systemClock).begin();
    const place = { kind: "file", folder } as const;
    return { log, place, maker: new ThreadBaseMaker(place, log.journal) };
  }

  it(
    "is read by a restart, though this process holds the folder's lock",
    async () => {
      const { log, place } = await aLog();
      await expectMade(log, place);
      await log.journal.close();
    },
    SLOW_TEST_MS,
  );

  it.runIf(process.platform === "linux")(
    "yields the core to the leader's thread",
    async () => {
      const { log, place } = await aLog();
      await log.submit(30, 50_000);
      const making = new ThreadBaseMaker(place, log.journal).make(log.order(2), signal);
      await vi.waitFor(async () => expect(await nicenessOfThreads()).toContain(limits.baseNiceness));
      await making;
      await log.journal.close();
    },
    SLOW_TEST_MS,
  );

  it(
    "that fails is an error with the original code and class",
    async () => {
      const { log, maker } = await aLog();
      await log.submit(3);
      await expect(maker.make(log.order(2, { ledSegment: 7 }), signal)).rejects.toThrow(JournalDamagedError);
      await expect(maker.make(log.order(2, { bytesMax: 100 }), signal)).rejects.toMatchObject({
        code: "WAGGLE_JOURNAL_FULL",
      });
      await log.journal.close();
    },
    SLOW_TEST_MS,
  );

  it(
    "with a claim of a different session is an error with the claimant",
    async () => {
      const { log, maker } = await aLog();
      await log.journal.create(2);
      const claim = encodeRecord({ kind: "claim", segment: 2, session: "session-2", attempt: "attempt-1" });
      await log.journal.segment(2).append(claim, 0);
      await expect(maker.make(log.order(2), signal)).rejects.toThrow("not this coordinator's any more");
      await log.journal.close();
    },
    SLOW_TEST_MS,
  );

  it(
    "that is given up ends with an error",
    async () => {
      const { log, maker } = await aLog();
      const ending = new AbortController();
      const making = maker.make(log.order(2, { committedIdx: () => 0 }), ending.signal);
      ending.abort();
      await expect(making).rejects.toThrow("the thread for bases ended");
      await log.journal.close();
    },
    SLOW_TEST_MS,
  );
});

for (const { path, version } of natsServersFor("segments made in a thread"))
  describe(`a segment made in a thread, on nats-server ${version}`, () => {
    let server: RunningNatsServer;
    let monitorPort: number;
    beforeEach(async () => {
      monitorPort = await freePort();
      const extraConfig = `http: "127.0.0.1:${monitorPort}"`;
      server = await startNatsServer({ binary: path, jetstream: true, extraConfig });
    });
    afterEach(() => server.stop());

    async function aLog() {
      const swarm = swarmId(`t${randomUUID().slice(0, 8)}`);
      const connection = { urls: [server.url], name: "test" };
      const log = await new LedLog(await openNatsJournal({ connection, swarm }), systemClock).begin();
      return { log, place: { kind: "stream", connection, swarm } as const };
    }

    it(
      "is read by a restart",
      async () => {
        const { log, place } = await aLog();
        await expectMade(log, place);
        await log.journal.close();
      },
      SLOW_TEST_MS,
    );

    it(
      "leaves no connection behind, also where it fails",
      async () => {
        const { log, place } = await aLog();
        const names = async () => {
          const answer = await fetch(`http://127.0.0.1:${monitorPort}/connz`);
          const { connections } = (await answer.json()) as {
            connections: readonly { readonly name: string }[];
          };
          return connections.map(({ name }) => name);
        };
        const maker = new ThreadBaseMaker(place, log.journal);
        await expect(maker.make(log.order(2, { ledSegment: 7 }), signal)).rejects.toThrow(
          JournalDamagedError,
        );
        await vi.waitFor(async () => expect(await names()).not.toContain("waggle base"), 10_000);
        await log.journal.close();
      },
      SLOW_TEST_MS,
    );
  });
