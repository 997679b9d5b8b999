// The entry of the thread that makes one snapshot, or looks which one can be read: opens the journal and the snapshots,
// does it, says how it went, ends.

import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { assert, unreachable } from "../../assert.ts";
import { systemClock } from "../../clock.ts";
import { swarmId } from "../../ids.ts";
import { openFileJournalReader } from "../../journal/file/reader.ts";
import { openFileSnapshots } from "../../journal/file/snapshots.ts";
import type { JournalReader } from "../../journal/journal.ts";
import { openNatsJournal, openNatsSnapshots } from "../../journal/nats.ts";
import { makeSnapshot } from "../../journal/snapshot/make.ts";
import { findSnapshots } from "../../journal/snapshot/restore.ts";
import type { SnapshotStore } from "../../journal/snapshot-store.ts";
import { copyOf } from "./copied-error.ts";
import type { JournalPlace, ThreadOrder, ThreadWord } from "./thread-snapshotter.ts";

interface Opened {
  readonly journal: JournalReader;
  readonly snapshots: SnapshotStore;
}

async function main(port: MessagePort, order: ThreadOrder): Promise<void> {
  const say = (word: ThreadWord) => port.postMessage(word);
  const logger = {
    error: (fields: object, text: string) => say({ type: "log", fields: plain(fields), text }),
  };
  try {
    const lastSeq = order.type === "make" ? order.order.untilSeq : order.lastSeq;
    const opened = await open(order.place, lastSeq);
    const deps = { ...opened, clock: systemClock, logger };
    const word: ThreadWord =
      order.type === "make"
        ? { type: "made", made: await makeSnapshot(deps, order.order) }
        : { type: "found", found: await findSnapshots(deps) };
    await Promise.all([opened.journal.close(), opened.snapshots.close()]);
    say(word);
  } catch (error) {
    say({ type: "failed", error: copyOf(error) });
  }
  port.close();
}

async function open(place: JournalPlace, lastSeq: number): Promise<Opened> {
  switch (place.kind) {
    case "stream": {
      const swarm = swarmId(place.swarm);
      const connection = { ...place.connection, name: "waggle snapshot" };
      const options = { connection, swarm };
      const journal = await openNatsJournal({ ...options, create: false });
      return { journal, snapshots: await openNatsSnapshots({ ...options, create: true }) };
    }
    case "file":
      return {
        journal: await openFileJournalReader({ folder: place.folder, lastSeq }),
        snapshots: await openFileSnapshots(place.snapshotFolder),
      };
    default:
      return unreachable(place);
  }
}

/** Errors lose what they say when they are copied to another thread. */
function plain(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, value instanceof Error ? value.message : value]),
  );
}

assert(parentPort !== null, "this file is the entry of a thread");
await main(parentPort, workerData);
