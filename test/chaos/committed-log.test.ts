// The log of batches from observations: whole chains, rivals, gaps.

import { describe, expect, it } from "vitest";
import { batchIndex, instant, type Term } from "../../src/ids.ts";
import { encodeBatch, hashOf, type Opened } from "../../src/journal/records.ts";
import { CommittedLog, type LogRecord } from "../../src/sim/history/committed-log.ts";
import type { Event } from "../../src/state/event.ts";
import { committedLog } from "./committed-log.ts";

describe("the committed log", () => {
  it("is the chain behind the last record, wherever its batches are", () => {
    const [a, b, c] = chain(3);
    const moved = at(9, c);
    expect(idxOf(committedLog([at(1, a), at(2, b), moved]))).toEqual([1, 2, 3]);
  });

  it("leaves out what no chain leads to: a rival's second batch, a foreign record", () => {
    const [a, b, c] = chain(3);
    const orphan = batch(3, "no such hash");
    const foreign = { bytes: new TextEncoder().encode("hello") };
    expect(idxOf(committedLog([at(1, a), at(2, b), at(3, orphan), foreign]))).toEqual([1, 2]);
    expect(idxOf(committedLog([at(1, a), at(2, b), at(3, orphan), at(4, c)]))).toEqual([1, 2, 3]);
  });

  it("takes from a witness what the log no longer has", () => {
    const [a, b, c] = chain(3);
    const witness = [at(1, a), at(2, b)];
    expect(idxOf(committedLog([...witness, at(1, a), at(3, c)]))).toEqual([1, 2, 3]);
  });

  it("takes an unstored batch from the wire, but only if a stored batch continues it", () => {
    const [a, b, c, d] = chain(4);
    const sent = [a, b, c, d].map(bytesOf);
    expect(idxOf(committedLog([at(1, a), at(5, c)], sent))).toEqual([1, 2, 3]);
    expect(idxOf(committedLog([at(1, a)], sent))).toEqual([1]);
  });

  it("assembles an unsent batch from published events and the hashes of the base", () => {
    const all = chain(5);
    const [a, b, c, , e] = all;
    const spec = { project: "p", id: "t", kind: "k" };
    const published = {
      term: 2,
      at: 4,
      events: [
        { type: "TaskAssigned", project: "p", task: "t", attempt: 1 },
        { type: "TaskSubmitted", task: spec },
      ] as unknown as Event[],
    };
    const opened = {
      ...{ journal: "j", session: "l", tail: { idx: 4 } },
      recent: all.slice(0, 4).map((bytes) => hashOf(bytes)),
    } as unknown as Opened;
    const seen = [at(1, a), at(2, b), at(3, c), at(5, e)];
    const line = committedLog(seen, [], { opened: [opened], publishedByIdx: new Map([[4, published]]) });
    expect(idxOf(line)).toEqual([1, 2, 3, 4, 5]);
    const { batches, faults } = new CommittedLog(line);
    expect(batches.map(({ hash }) => hash)).toEqual(all.map((bytes) => hashOf(bytes)));
    expect(batches[3]?.events.map(({ type }) => type)).toEqual(["TaskSubmitted", "TaskAssigned"]);
    expect(faults).toEqual([]);
    const withoutEvents = { opened: [opened], publishedByIdx: new Map() };
    expect(idxOf(committedLog(seen, [], withoutEvents))).toEqual([1, 2, 3]);
  });

  it("fails where a link is missing, instead of ending before it", () => {
    const all = chain(12);
    const seen = all.map((bytes, place) => at(place + 1, bytes)).filter((_, place) => place !== 2);
    expect(() => committedLog(seen)).toThrow("nothing can be judged");
    expect(idxOf(committedLog(seen, [bytesOf(all[2])]))).toHaveLength(12);
  });

  it("fails where the chain cannot be followed to its beginning", () => {
    const [, b, c] = chain(3);
    expect(() => committedLog([at(2, b), at(3, c)])).toThrow("none has a whole chain");
    expect(committedLog([])).toEqual([]);
  });
});

function chain(length: number): Uint8Array[] {
  const all: Uint8Array[] = [];
  for (let idx = 1; idx <= length; idx += 1) {
    const last = all.at(-1);
    all.push(batch(idx, last === undefined ? "" : hashOf(last)));
  }
  return all;
}

function batch(idx: number, prev: string): Uint8Array {
  const header = {
    journal: "j",
    session: "l",
    term: 1 as Term,
    idx: batchIndex(idx),
    prev,
    at: instant(idx),
  };
  return encodeBatch(header, ['{"type":"TermRenewed"}']);
}

/** @param _position of the observation */
function at(_position: number, bytes: Uint8Array | undefined): LogRecord {
  return { bytes: bytesOf(bytes) };
}

function bytesOf(bytes: Uint8Array | undefined): Uint8Array {
  if (bytes === undefined) throw new Error("the chain is shorter");
  return bytes;
}

function idxOf(line: readonly LogRecord[]): number[] {
  return line.map(({ bytes }) => (JSON.parse(Buffer.from(bytes).toString()) as { idx: number }).idx);
}
