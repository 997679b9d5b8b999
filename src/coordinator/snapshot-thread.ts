// The entry of the thread that makes one snapshot: opens the journal and the snapshots, makes it, says how it went, ends.

import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { assert, unreachable } from "../assert.ts";
import { systemClock } from "../clock.ts";
import { WaggleError } from "../errors.ts";
import { swarmId } from "../ids.ts";
import { openFileJournalReader } from "../journal/file-reader.ts";
import { openFileSnapshots } from "../journal/file-snapshots.ts";
import type { JournalReader } from "../journal/journal.ts";
import { openNatsJournal, openNatsSnapshots } from "../journal/nats.ts";
import { makeSnapshot } from "../journal/snapshot/make.ts";
import type { SnapshotStore } from "../journal/snapshot-store.ts";
import type { JournalPlace, ThreadOrder, ThreadWord } from "./thread-snapshotter.ts";

interface Opened {
  readonly journal: JournalReader;
  readonly snapshots: SnapshotStore;
}

async function main(port: MessagePort, { place, order }: ThreadOrder): Promise<void> {
  const say = (word: ThreadWord) => port.postMessage(word);
  const logger = {
    error: (fields: object, text: string) => say({ type: "log", fields: plain(fields), text }),
  };
  try {
    const { journal, snapshots } = await open(place, order.untilSeq);
    const made = await makeSnapshot({ journal, snapshots, clock: systemClock, logger }, order);
    await Promise.all([journal.close(), snapshots.close()]);
    say({ type: "made", made });
  } catch (error) {
    const code = error instanceof WaggleError ? error.code : "WAGGLE_INVARIANT";
    say({ type: "failed", code, message: error instanceof Error ? error.message : String(error) });
  }
  port.close();
}

async function open(place: JournalPlace, lastSeq: number): Promise<Opened> {
  switch (place.kind) {
    case "stream": {
      const swarm = swarmId(place.swarm);
      const connection = { ...place.connection, name: "waggle snapshot" };
      const options = { connection, swarm, create: false };
      const journal = await openNatsJournal(options);
      return { journal, snapshots: await openNatsSnapshots(options) };
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
