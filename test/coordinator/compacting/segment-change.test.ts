// The leader goes on in a made segment only if the copies in it end with a batch that the leader committed.

import { expect, it } from "vitest";
import { changeSegment } from "../../../src/coordinator/leader/segment-change.ts";
import { JournalDamagedError } from "../../../src/errors.ts";
import { term } from "../../../src/ids.ts";
import { RecentBatches } from "../../../src/journal/recent-batches.ts";
import { hashOf } from "../../../src/journal/records.ts";
import { MemoryLedLog, SESSION } from "./led-log.ts";

it("a copy that the storage changed ends the change before the old segment is sealed", async () => {
  const log = await MemoryLedLog.start();
  await log.submit(3);
  const made = await log.make(2);
  expect(made).toMatchObject({ copiedIdx: log.tail.idx, copiedHash: log.tail.hash });
  const end = (await log.journal.segment(1).end()) ?? expect.fail("the segment exists");
  const changing = (copiedHash: string) =>
    changeSegment(
      {
        left: { number: 1, position: end.position, recordHash: log.tail.hash },
        next: { ...made, copiedHash, writer: log.writerOf(2, made.position) },
        tail: log.tail,
        term: term(1),
        recent: [log.tail.hash],
      },
      {
        id: "c1",
        session: SESSION,
        journal: log.journal,
        recentBatches: new RecentBatches(),
        clock: log.clock,
      },
      new AbortController().signal,
    );
  await expect(changing(hashOf(Buffer.from("changed")))).rejects.toThrow(JournalDamagedError);
  expect(await log.journal.segment(1).end()).toEqual(end);
  await expect(changing(made.copiedHash)).resolves.toMatchObject({ number: 2 });
  await log.expectWhole();
});
