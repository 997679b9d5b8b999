// What a leader makes of a journal that does not give back what it acknowledged.

import { beforeEach, expect, it } from "vitest";
import { ReadBack } from "../../src/coordinator/repair/read-back.ts";
import { UnreachableError } from "../../src/errors.ts";
import { batchIndex, instant, term } from "../../src/ids.ts";
import { encodeBatch } from "../../src/journal/batch.ts";
import { MemoryJournal } from "../../src/chain/memory.ts";
import { MemoryJournalStore } from "../../src/chain/memory-store.ts";
import { RecentRecords } from "../../src/journal/recent-records.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";

const bytesOf = (idx: number, by = "us") =>
  encodeBatch({ journal: "j", term: term(1), idx: batchIndex(idx), prev: by, at: instant(1) }, [
    JSON.stringify({ type: "TermRenewed" }),
  ]);

let clock: ManualClock;
let recent: RecentRecords;
let said: string[];
let readBack: ReadBack;
/** What stands at each place; an error is thrown to whoever asks. */
let standing: Map<number, Uint8Array | Error>;

beforeEach(() => {
  clock = new ManualClock();
  recent = new RecentRecords();
  said = [];
  standing = new Map();
  const journal = new MemoryJournalStore().open();
  journal.read = async (seq) => {
    const bytes = standing.get(seq);
    if (bytes instanceof Error) throw bytes;
    return bytes && { seq, bytes };
  };
  readBack = new ReadBack(
    { journal, recent, committedSeq: () => recent.lastSeq, clock },
    {
      onDoubt: () => said.push("doubted"),
      onFound: () => said.push("found"),
      onUnreadable: () => said.push("unreadable"),
      onDamaged: () => said.push("damaged"),
    },
  );
});

/** Committed and, unless said otherwise, there. */
function commit(seq: number, bytes: Uint8Array | undefined = bytesOf(seq)): void {
  recent.add({ seq, bytes: bytesOf(seq) }, clock.monotonicMs());
  if (bytes !== undefined) standing.set(seq, bytes);
}

async function look(): Promise<void> {
  readBack.lookSoon();
  readBack.look();
  await clock.settle();
}

it("asks on for the record in whose place another batch stands, though the next one is found", async () => {
  commit(1, bytesOf(1, "them"));
  await look();
  commit(2);
  await look();
  expect(said).toEqual(["damaged", "damaged"]);
  standing.set(1, bytesOf(1));
  await look();
  expect(said.at(-1)).toBe("found");
});

it("believes that a record is lost when it was not found for long", async () => {
  commit(1);
  standing.delete(1);
  await look();
  await clock.advance(limits.readBackPatienceMs - limits.appendRetryMs);
  expect(said).toEqual(["doubted"]);
  await clock.advance(2 * limits.appendRetryMs);
  expect(said).toEqual(["doubted", "unreadable"]);
});

it("does not count the time in which nobody answered", async () => {
  commit(1);
  standing.delete(1);
  await look();
  standing.set(1, new UnreachableError("nobody answers"));
  await clock.advance(2 * limits.readBackPatienceMs);
  standing.delete(1);
  await clock.advance(limits.readBackPatienceMs - limits.appendRetryMs);
  expect(said).toEqual(["doubted"]);
  standing.set(1, bytesOf(1));
  await clock.advance(limits.appendRetryMs);
  expect(said).toEqual(["doubted", "found"]);
});
