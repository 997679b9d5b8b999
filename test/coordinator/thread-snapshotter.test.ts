// The thread that makes snapshots: what it makes is what anybody reads, and however it fails is an error and nothing else.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { ThreadSnapshotter } from "../../src/coordinator/thread-snapshotter.ts";
import { openFileJournal } from "../../src/journal/file.ts";
import { openFileSnapshots } from "../../src/journal/file-snapshots.ts";
import { restore } from "../../src/journal/snapshot/restore.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { silentLogger } from "../support/swarm.ts";
import { join as joins, submit, Turns } from "../support/turns.ts";

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
  return { untilSeq, retention, now: turns.at, journalBytes: 0, isShort: false };
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

  it("that cannot be made is an error with its code", async () => {
    const making = aSnapshotter().make(orderUntil(1, new Turns()), new AbortController().signal);
    await expect(making).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_DAMAGED" });
  });

  it("that is given up ends with an error", async () => {
    const given = new AbortController();
    const making = aSnapshotter().make(orderUntil(1, new Turns()), given.signal);
    given.abort();
    await expect(making).rejects.toMatchObject({ code: "WAGGLE_INVARIANT" });
  });
});
