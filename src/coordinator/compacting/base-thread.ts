// The entry of the thread that makes one segment: opens the journal, makes the segment, reports, and ends.

import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { assert } from "../../assert.ts";
import { systemClock } from "../../clock.ts";
import { InvariantError } from "../../errors.ts";
import { swarmId } from "../../ids.ts";
import { openFileJournalReader } from "../../journal/file/reader.ts";
import type { AppendOutcome, Journal, JournalReader } from "../../journal/journal.ts";
import { openNatsJournal } from "../../journal/nats.ts";
import { copyOf, errorOf, type JournalPlace } from "../../journal/thread-values.ts";
import { limits } from "../../limits.ts";
import { yieldToOthers } from "../../yield-to-others.ts";
import { makeNextSegment } from "./make-next-segment.ts";
import type { Answer, Question, ThreadMessage, ThreadOrder } from "./thread-base-maker.ts";

type Ask = (question: Question) => Promise<unknown>;

async function main(port: MessagePort, { place, order }: ThreadOrder): Promise<void> {
  const send = (message: ThreadMessage) => port.postMessage(message);
  const ask = asking(port, send);
  yieldToOthers(limits.baseNiceness);
  try {
    const journal = await open(place, ask);
    const committedIdx = () => ask({ kind: "committed" }) as Promise<number>;
    const deps = { journal, clock: systemClock };
    const { signal } = new AbortController(); // the thread is stopped as a whole
    const made = await makeNextSegment(deps, { ...order, committedIdx }, signal);
    await journal.close();
    send({ type: "made", made });
  } catch (error) {
    send({ type: "failed", error: copyOf(error) });
  }
  port.close();
}

async function open(place: JournalPlace, ask: Ask): Promise<Journal> {
  if (place.kind === "file") return writtenByAsking(await openFileJournalReader(place.folder), ask);
  const { connection, swarm, replicas, bytesMax } = place;
  return await openNatsJournal({
    connection: { ...connection, name: "waggle base" },
    swarm: swarmId(swarm),
    replicas,
    bytesMax,
  });
}

function asking(port: MessagePort, send: (message: ThreadMessage) => void): Ask {
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  let asked = 0;
  port.on("message", (answer: Answer) => {
    const asker = waiting.get(answer.id);
    waiting.delete(answer.id);
    if ("error" in answer) asker?.reject(errorOf(answer.error));
    else asker?.resolve(answer.value);
  });
  return (question) =>
    new Promise((resolve, reject) => {
      asked += 1;
      waiting.set(asked, { resolve, reject });
      send({ type: "ask", id: asked, question });
    });
}

/** A journal of files that the process with the folder's lock writes. */
function writtenByAsking(reader: JournalReader, ask: Ask): Journal {
  const never = () => {
    throw new InvariantError("a maker reads, creates and appends");
  };
  return {
    durability: { class: "file", sentence: "" },
    sharable: false,
    list: () => reader.list(),
    segment: (number) => {
      const segment = reader.segment(number);
      return {
        number,
        end: () => segment.end(),
        read: (position) => segment.read(position),
        opened: () => segment.opened(),
        replay: (from, options) => segment.replay(from, options),
        append: (record, expected) => {
          const bytes = new Uint8Array(record); // a message would copy the whole buffer of a view
          return ask({ kind: "append", segment: number, bytes, expected }) as Promise<AppendOutcome>;
        },
        follow: never,
        seal: never,
      };
    },
    create: async (segment) => void (await ask({ kind: "create", segment })),
    remove: never,
    usage: never,
    onReconnected: () => () => undefined,
    close: () => reader.close(),
  };
}

assert(parentPort !== null, "this file is the entry of a thread");
await main(parentPort, workerData);
