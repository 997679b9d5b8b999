// The entry of the thread that verifies the journal: opens the journal, verifies, reports, and ends.

import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { assert } from "../../assert.ts";
import { systemClock } from "../../clock.ts";
import { swarmId } from "../../ids.ts";
import { openFileJournalReader } from "../../journal/file/reader.ts";
import type { JournalReader } from "../../journal/journal.ts";
import { openNatsJournal } from "../../journal/nats.ts";
import { copyOf, type JournalPlace } from "../../journal/thread-values.ts";
import { limits } from "../../limits.ts";
import { yieldToOthers } from "../../yield-to-others.ts";
import type { FoundAudit } from "./audit-check.ts";
import type { VerifyMessage } from "./thread-verifier.ts";
import { type Verification, verifyJournal } from "./verify.ts";

async function main(port: MessagePort, place: JournalPlace): Promise<void> {
  const say = (message: VerifyMessage) => port.postMessage(message);
  yieldToOthers(limits.auditCheckNiceness);
  try {
    const journal = await open(place);
    let saidMs = 0;
    const found = await verifyJournal({
      journal,
      clock: systemClock,
      onProgress: ({ idx }) => {
        if (systemClock.monotonicMs() - saidMs < limits.auditCheckSaidMs) return;
        saidMs = systemClock.monotonicMs();
        say({ type: "progress", idx });
      },
    });
    await journal.close();
    say({ type: "verified", found: found === undefined ? undefined : foundIn(found) });
  } catch (error) {
    say({ type: "failed", error: copyOf(error) });
  }
  port.close();
}

async function open(place: JournalPlace): Promise<JournalReader> {
  if (place.kind === "file") return await openFileJournalReader(place.folder);
  const { connection, swarm, replicas, bytesMax } = place;
  return await openNatsJournal({
    connection: { ...connection, name: "waggle verify" },
    swarm: swarmId(swarm),
    replicas,
    bytesMax,
  });
}

function foundIn({ firstIdx, tail, fault }: Verification): FoundAudit {
  if (fault === undefined) return { firstIdx, lastIdx: tail.idx, fault };
  const { segment, idx, text } = fault;
  const lastIdx = idx === undefined ? tail.idx : Math.min(tail.idx, idx - 1);
  return { firstIdx, lastIdx, fault: { segment, text, ...(idx === undefined ? {} : { idx }) } };
}

assert(parentPort !== null, "this file is the entry of a thread");
await main(parentPort, workerData);
