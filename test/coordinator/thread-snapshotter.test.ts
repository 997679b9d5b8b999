// The thread that makes snapshots: what it makes is what anybody reads, and however it fails is an error and nothing
// else.

import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { freePort } from "../../src/broker/free-port.ts";
import { systemClock } from "../../src/clock.ts";
import { ThreadSnapshotter } from "../../src/coordinator/compaction/thread-snapshotter.ts";
import { JournalDamagedError } from "../../src/errors.ts";
import { swarmId, taskId } from "../../src/ids.ts";
import { openFileSnapshots } from "../../src/journal/file/snapshots.ts";
import { openFileJournal } from "../../src/journal/file.ts";
import { openNatsJournal, openNatsSnapshots } from "../../src/journal/nats.ts";
import { restore } from "../../src/journal/snapshot/restore.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { natsServersFor, startNatsServer } from "../support/nats-server.ts";
import { silentLogger } from "../support/swarm.ts";
import { aTask, join as joins, submit, Turns } from "../support/turns.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "waggle-snapshot-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function aSnapshotter() {
  const snapshotFolder = join(folder, "snapshots");
  return new ThreadSnapshotter({ kind: "file", folder, snapshotFolder }, silentLogger);
}

function orderUntil(untilSeq: number, turns: Turns) {
  const retention = { ageMs: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };
  return {
    untilSeq,
    synced: [],
    retention,
    now: turns.at,
    journalBytes: 0,
    journalBytesMax: undefined,
    cameBytes: 0,
    isShort: false,
  };
}

describe("a snapshot made in a thread", () => {
  it("is of the journal that this process has open, up to the record that was said", async () => {
    const turns = new Turns();
    turns.turn(joins("a1"));
    const upTo = fingerprint(turns.state);
    const untilSeq = turns.records.length;
    turns.turn(submit());
    const journal = await openFileJournal({ folder });
    for (const { seq, bytes } of turns.records) await journal.append(bytes, seq - 1);
    const made = await aSnapshotter().make(orderUntil(untilSeq, turns), new AbortController().signal);
    expect(made).toMatchObject({ idx: untilSeq });
    const snapshots = await openFileSnapshots(join(folder, "snapshots"));
    const { replay } = await restore({ journal, snapshots, clock: systemClock, logger: silentLogger });
    expect(fingerprint(replay.state)).toBe(upTo);
    await Promise.all([journal.close(), snapshots.close()]);
  });

  it("that cannot be made is an error with its code and of its class", async () => {
    const making = aSnapshotter().make(orderUntil(1, new Turns()), new AbortController().signal);
    await expect(making).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_DAMAGED" });
    await expect(making).rejects.toBeInstanceOf(JournalDamagedError);
  });

  it("is found there as long as it can be read, and whoever looks is told whether that is a loss", async () => {
    const turns = new Turns();
    for (let number = 1; number <= 4; number += 1) turns.turn(submit(aTask({ id: taskId(`t${number}`) })));
    const journal = await openFileJournal({ folder });
    for (const { seq, bytes } of turns.records) await journal.append(bytes, seq - 1);
    const lastSeq = turns.records.length;
    const { signal } = new AbortController();
    const { idx } = await aSnapshotter().make(orderUntil(2, turns), signal);
    expect(await aSnapshotter().find(lastSeq, signal)).toMatchObject({ read: { seq: idx }, unreadable: [] });
    const snapshotFolder = join(folder, "snapshots");
    const chunk = (await readdir(snapshotFolder)).find((name) => name.endsWith(".chunk"));
    await rm(join(snapshotFolder, chunk ?? "none"));
    expect(await aSnapshotter().find(lastSeq, signal)).toMatchObject({
      read: undefined,
      unreadable: [{ why: expect.stringContaining("is missing") }],
    });
    await journal.close();
  });

  it("that is given up ends with an error", async () => {
    const given = new AbortController();
    const making = aSnapshotter().make(orderUntil(1, new Turns()), given.signal);
    given.abort();
    await expect(making).rejects.toMatchObject({ code: "WAGGLE_INVARIANT" });
  });
});

describe.each(natsServersFor("snapshots made in a thread"))("on nats-server $version", (binary) => {
  it("a thread that failed leaves no connection behind", async () => {
    const monitorPort = await freePort();
    const server = await startNatsServer({
      binary: binary.path,
      jetstream: true,
      extraConfig: `http: "127.0.0.1:${monitorPort}"`,
    });
    const connection = { urls: [server.url], name: "test" };
    const swarm = swarmId("threads");
    const opening = { connection, swarm, create: true };
    const kept = [await openNatsJournal(opening), await openNatsSnapshots(opening)];
    const names = async () => {
      const answer = await fetch(`http://127.0.0.1:${monitorPort}/connz`);
      const { connections } = (await answer.json()) as { connections: readonly { readonly name: string }[] };
      return connections.map(({ name }) => name);
    };
    const snapshotter = new ThreadSnapshotter({ kind: "stream", connection, swarm }, silentLogger);
    const making = snapshotter.make(orderUntil(1, new Turns()), new AbortController().signal);
    await expect(making).rejects.toThrow("a snapshot is of batches that were applied"); // and there are none
    await vi.waitFor(async () => expect(await names()).not.toContain("waggle snapshot"), 10_000);
    await Promise.all(kept.map((each) => each.close()));
    await server.stop();
  }, 60_000);
});
