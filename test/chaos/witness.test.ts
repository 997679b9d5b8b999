// Reading a log on a server that ends during the reading: all readable records are returned. The log ends with a
// segment that was opened.

import { expect, it } from "vitest";
import { UnreachableError } from "../../src/errors.ts";
import { term } from "../../src/ids.ts";
import { encodeRecord } from "../../src/journal/records.ts";
import { emptyTail } from "../../src/journal/replay.ts";
import { inOrder, readEach } from "./witness.ts";

it("reads what stands around a record at which the server ends, and leaves gaps out", async () => {
  let isRunning = true;
  const read = async (seq: number) => {
    if (!isRunning) throw new Error("nobody started the server again");
    if (seq === 4) return undefined;
    if (seq !== 3) return { position: seq, bytes: new Uint8Array([seq]) };
    isRunning = false;
    throw new UnreachableError("the connection is broken");
  };
  const reopen = async () => {
    isRunning = true;
  };
  const records = await readEach(read, { last: 6, reopen });
  expect(records.map(({ position }) => position)).toEqual([1, 2, 5, 6]);
});

it("puts the segment that a leader left in the making before the opened ones", () => {
  const record = (bytes: Uint8Array) => ({ bytes, position: 1 });
  const claimed = (segment: number) =>
    record(encodeRecord({ kind: "claim", segment, session: "s", attempt: "a" }));
  const opened = record(
    encodeRecord({
      ...{ kind: "opened", segment: 1, session: "s", journal: "j", term: term(1), leader: "l" },
      ...{ tail: emptyTail, previous: undefined, base: undefined, recent: [] },
    }),
  );
  const segments = [
    { number: 1, records: [claimed(1), opened] },
    { number: 2, records: [claimed(2)] },
    { number: 3, records: [claimed(3)] },
  ];
  const ordered = inOrder(segments, new Set([2]));
  expect(ordered).toEqual([claimed(3), claimed(1), opened, claimed(2)]);
});
