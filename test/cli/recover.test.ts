// `waggle journal recover` on deliberately damaged journals: real files and real servers. A coordinator in this
// process writes the journal.

import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RecoveryReport } from "../../src/cli/recovery-view.ts";
import { connect as connectSwarm } from "../../src/client/connect.ts";
import { segmentFolder, segmentPath } from "../../src/journal/file/reader.ts";
import { openFileJournal } from "../../src/journal/file.ts";
import type { Journal } from "../../src/journal/journal.ts";
import { openNatsJournal } from "../../src/journal/nats.ts";
import { streamNameOf } from "../../src/journal/stream/settings.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import { leading, leadTerm, swarm } from "./led-terms.ts";
import { aShell, runIn } from "./shell.ts";

interface Recovered {
  readonly code: number;
  readonly report: RecoveryReport;
  readonly stderr: string;
}

async function recover(env: Record<string, string>, ...flags: string[]): Promise<Recovered> {
  const { code, stdout, stderr } = await runIn(
    aShell({ cwd: tmpdir(), env }),
    ...["journal", "recover", "--json", ...flags],
  );
  return { code, stderr, report: (stdout === "" ? {} : JSON.parse(stdout)) as RecoveryReport };
}

describe("a journal in files", () => {
  let dataFolder: string;
  let folder: string;
  const env = () => ({ WAGGLE_DATA_FOLDER: dataFolder });

  beforeEach(async () => {
    dataFolder = await mkdtemp(join(tmpdir(), "waggle-recover-"));
    folder = join(dataFolder, "journals", "default");
    for (const term of [1, 2, 3]) await inFiles((journal) => leadTerm(journal, term));
  });
  afterEach(() => rm(dataFolder, { recursive: true, force: true }));

  async function inFiles(use: (journal: Journal) => Promise<void>): Promise<void> {
    const journal = await openFileJournal({ folder });
    try {
      await use(journal);
    } finally {
      await journal.close();
    }
  }

  /** Flips a bit of the record with a task, as a disk does. Hashes before the record may contain the id by chance, but
   *  no quotation marks. */
  async function flip(segment: number, task: string): Promise<void> {
    const path = segmentPath(folder, segment);
    const bytes = await readFile(path);
    const at = bytes.indexOf(`"${task}"`) + 1;
    expect(at).toBeGreaterThan(1);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    await writeFile(path, bytes);
  }

  /** Checks that audits read the recovered journal to its end, and find the record of the recovery. */
  async function expectWhole(from: number, to: number | undefined): Promise<void> {
    const shell = aShell({ cwd: tmpdir(), env: env() });
    const verified = await runIn(shell, "verify", "--json");
    expect(JSON.parse(verified.stdout)).toMatchObject({
      ok: true,
      gaps: [],
      recoveries: [{ idx: from, from, to }],
    });
    expect(await runIn(shell, "replay")).toMatchObject({ code: 0, stdout: expect.stringContaining("exact") });
    const { code, stdout } = await runIn(shell, "export");
    expect(code).toBe(0);
    const trimmed = { type: "AuditTrimmed", firstIdx: 1, reason: "lost", givenUp: { from, to } };
    expect(stdout).toContain(JSON.stringify(trimmed));
  }

  /** Checks that a coordinator leads with the remaining tasks. */
  async function leadsWith(tasks: readonly string[], newest: readonly number[]): Promise<void> {
    await inFiles(async (journal) => {
      await leading(journal, "after", async (coordinator, hub) => {
        const held = [...(coordinator.probe.settledState?.taskById.values() ?? [])];
        expect(held.map(({ spec }) => spec.id)).toEqual(tasks);
        const client = await connectSwarm({ swarm, transport: hub.connect() });
        const terms: number[] = [];
        for await (const { event, term } of client.events())
          if (event.type === "TermStarted") terms.push(term);
        expect(terms.slice(-2)).toEqual(newest);
        await client.close();
      });
    });
  }

  it("has nothing to recover where the journal is whole", async () => {
    const { code, report } = await recover(env(), "--yes");
    expect(code).toBe(0);
    expect(report).toMatchObject({ last: { term: 3, tasks: { live: 9 } }, audit: { firstIdx: 1 } });
    expect(report).not.toHaveProperty("damage");
    expect(report).not.toHaveProperty("openedSegment");
  });

  it("reports the last good batch and what is lost, and changes nothing without --yes", async () => {
    await flip(2, "t2-1");
    const before = await readFile(segmentPath(folder, 2));
    const { code, report } = await recover(env());
    expect(code).toBe(7);
    expect(report.damage).toMatch(/^record \d+ of segment 2 cannot be read: .* damaged at byte \d+$/);
    expect(report.last).toMatchObject({ term: 2, segment: 2, tasks: { live: 4, ended: 0 } });
    expect(report.lost).toMatchObject({ segments: [3] });
    expect(report.lost?.upToIdx).toBeGreaterThan((report.last?.idx ?? 0) + 3);
    expect(report.segments.map(({ segment, open }) => ({ segment, open }))).toEqual(
      [1, 2, 3].map((segment) => ({ segment, open: true })),
    );
    expect(await readFile(segmentPath(folder, 2))).toEqual(before);
    await expect(inFiles((journal) => leadTerm(journal, 4))).rejects.toMatchObject({
      code: "WAGGLE_JOURNAL_DAMAGED",
    });
  });

  it("continues from the last good batch with --yes", async () => {
    await flip(2, "t2-1");
    const shell = aShell({ cwd: tmpdir(), env: env() });
    expect(await runIn(shell, "doctor")).toMatchObject({
      code: 7,
      stdout: expect.stringMatching(/^fail +journal .*record \d+ of segment 2 cannot be read/m),
    });
    const { code, report } = await recover(env(), "--yes");
    expect(code).toBe(0);
    expect(report).toMatchObject({ last: { term: 2, segment: 2, tasks: { live: 4 } }, openedSegment: 4 });
    await leadsWith(["t1-0", "t1-1", "t1-2", "t2-0"], [4, 5]);
    await expectWhole((report.last?.idx ?? 0) + 1, report.lost?.upToIdx);
    expect(await recover(env())).toMatchObject({ code: 0, report: { audit: { firstIdx: 1 } } });
    const after = await runIn(aShell({ cwd: tmpdir(), env: env() }), "doctor");
    expect(after.stdout).toMatch(/^warn +journal .*record \d+ of segment 2 cannot be read/m);
    expect(after.code).not.toBe(7);
  });

  it("continues past a segment without a file, and past a file with an invalid beginning", async () => {
    await rename(segmentFolder(folder, 3), join(dataFolder, "elsewhere"));
    await writeFile(segmentPath(folder, 2), "nothing of ours");
    const { code, report } = await recover(env(), "--yes");
    expect(code).toBe(0);
    expect(report.last).toMatchObject({ term: 1, segment: 1, tasks: { live: 3 } });
    await leadsWith(["t1-0", "t1-1", "t1-2"], [3, 4]);
  });

  it("has nothing to go on from where the first segment is gone, and says so", async () => {
    await rename(segmentFolder(folder, 1), join(dataFolder, "elsewhere"));
    const { code, report } = await recover(env(), "--yes");
    expect(code).toBe(7);
    expect(report.damage).toContain("segment 1 is missing");
    expect(report).not.toHaveProperty("last");
    expect(report).not.toHaveProperty("openedSegment");
  });

  it("reports while a process writes the journal, and refuses to continue it", async () => {
    await inFiles(async () => {
      expect(await recover(env())).toMatchObject({ code: 0, report: { last: { term: 3 } } });
      const { code, stderr } = await recover(env(), "--yes");
      expect(code).toBe(5);
      expect(stderr).toContain(`process ${process.pid} writes the journal`);
    });
  });

  it("refuses a folder without a journal, and names what to check", async () => {
    const { code, stderr } = await recover({ ...env(), WAGGLE_SWARM: "other" });
    expect(code).toBe(2);
    expect(stderr).toContain("--swarm");
  });
});

for (const { path, version } of natsServersFor("recovery of a journal in JetStream")) {
  describe(`nats-server ${version}`, () => {
    let server: RunningNatsServer;
    beforeEach(async () => {
      server = await startNatsServer({ binary: path, jetstream: true });
    });
    afterEach(() => server.stop());

    it("continues past a deleted stream, and refuses while a coordinator runs", async () => {
      const journal = await openNatsJournal({ connection: { urls: [server.url], name: "test" }, swarm });
      for (const term of [1, 2, 3]) await leadTerm(journal, term);
      const connection = await connect({ servers: server.url });
      const stream = streamNameOf({ swarm, number: 2 });
      await connection.request(`$JS.API.STREAM.DELETE.${stream}`);

      const env = { NATS_URL: server.url };
      const busy = connection.subscribe("waggle.v1.default.project._.query.status"); // like a hanging coordinator
      await connection.flush(); // the server knows the subscription before the next connection asks
      expect(await recover(env, "--yes")).toMatchObject({
        code: 5,
        stderr: expect.stringContaining("stop all coordinators"),
      });
      expect(await recover(env)).toMatchObject({ code: 7, report: { last: { term: 1 } } });
      busy.unsubscribe();
      await connection.flush();

      const { code, report } = await recover(env);
      expect(code).toBe(7);
      expect(report.damage).toContain("segment 2 is missing");
      expect(report.last).toMatchObject({ term: 1, tasks: { live: 3 } });
      expect(await recover(env, "--yes")).toMatchObject({ code: 0, report: { openedSegment: 4 } });
      expect(await recover(env)).toMatchObject({
        code: 0,
        report: { last: { term: 4, tasks: { live: 3 } } },
      });
      await connection.close();
      await journal.close();
    });
  });
}
