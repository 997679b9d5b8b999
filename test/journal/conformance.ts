// What every journal must do, whatever it is made of. Run against memory, file and JetStream by the suites
// beside this file; what only one of them can do is tested there.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { JournalDamagedError, UnreachableError } from "../../src/errors.ts";
import type { Journal } from "../../src/journal/journal.ts";
import { bytesOf, Follower, fill, noise, range, tell, told, toldOf } from "./records.ts";

/** One empty journal, and the way to it. */
export interface JournalWorld {
  /** A handle of its own. Where the journal is not sharable, the one before must be closed. */
  open(): Promise<Journal>;
  dispose(): Promise<void>;
}

export function describeJournal(name: string, makeWorld: () => Promise<JournalWorld>): void {
  describe(`journal: ${name}`, () => {
    let world: JournalWorld;
    let journal: Journal;
    /** A second writer: a handle of its own where the journal has that, else the same one. */
    let rival: Journal;

    beforeEach(async () => {
      world = await makeWorld();
      journal = await world.open();
      rival = journal.sharable ? await world.open() : journal;
    });

    afterEach(async () => {
      await rival.close();
      await journal.close();
      await world.dispose();
    });

    describe("when empty", () => {
      it("has no first and no last record", async () => {
        expect(await journal.position()).toEqual({ firstSeq: 0, lastSeq: 0, missing: 0 });
      });

      it("reads and replays nothing", async () => {
        expect(await journal.read(1)).toBeUndefined();
        expect(await tell(journal.replay(1))).toEqual([]);
      });

      it("takes its first record at position 1 only", async () => {
        expect(await journal.append(bytesOf("too far"), 1)).toEqual({ kind: "refused" });
        expect(await journal.append(bytesOf("first"), 0)).toEqual({ kind: "stored", seq: 1 });
      });

      it("says in words what it is worth", () => {
        expect(journal.durability.sentence).toMatch(/^[A-Z].{20,}\.$/);
      });
    });

    describe("the fence", () => {
      it("lets one of two writers have a position, and tells the other", async () => {
        await fill(journal, 3);
        const outcomes = await Promise.all([
          journal.append(bytesOf("mine"), 3),
          rival.append(bytesOf("theirs"), 3),
        ]);
        expect(outcomes.map(({ kind }) => kind).sort()).toEqual(["refused", "stored"]);
        const winner = outcomes[0]?.kind === "stored" ? "mine" : "theirs";
        expect(await tell(journal.replay(4))).toEqual([`4:${winner}`]);
      });

      it("stores nothing of what it refuses", async () => {
        await fill(journal, 3);
        for (const expectedSeq of [0, 2, 4, 100]) {
          expect(await journal.append(bytesOf("misplaced"), expectedSeq)).toEqual({ kind: "refused" });
        }
        expect(await journal.position()).toEqual({ firstSeq: 1, lastSeq: 3, missing: 0 });
        expect(await tell(journal.replay(1))).toEqual(toldOf(1, 3));
      });

      it("refuses the same bytes again, and shows them at the position", async () => {
        const batch = bytesOf("once");
        expect(await journal.append(batch, 0)).toEqual({ kind: "stored", seq: 1 });
        expect(await journal.append(batch, 0)).toEqual({ kind: "refused" });
        expect((await journal.read(1))?.bytes).toEqual(batch);
        expect(await journal.read(2)).toBeUndefined();
      });

      it("may store the second of two in flight behind a rival who took the place of the first", async () => {
        const rivals = rival.append(bytesOf("rival"), 0);
        if (journal.sharable) await rivals;
        const first = journal.append(bytesOf("first"), 0);
        const second = journal.append(bytesOf("second"), 1);
        expect(await rivals).toEqual({ kind: "stored", seq: 1 });
        expect(await first).toEqual({ kind: "refused" });
        expect(await second).toEqual({ kind: "stored", seq: 2 });
        expect(await tell(journal.replay(1))).toEqual(["1:rival", "2:second"]);
      });
    });

    describe("appending", () => {
      it("stores what overlaps in the order of the calls", async () => {
        await fill(journal, 50);
        expect(await journal.position()).toEqual({ firstSeq: 1, lastSeq: 50, missing: 0 });
        expect(await tell(journal.replay(1))).toEqual(toldOf(1, 50));
      });

      it("keeps every byte of large records", async () => {
        const records = [noise(500 * 1024, 1), noise(768 * 1024, 2), noise(1, 3)];
        const outcomes = await Promise.all(records.map((bytes, at) => journal.append(bytes, at)));
        expect(outcomes).toEqual([1, 2, 3].map((seq) => ({ kind: "stored", seq })));
        let seq = 0;
        for await (const record of journal.replay(1)) {
          seq += 1;
          expect(record.seq).toBe(seq);
          expect(Buffer.compare(record.bytes, records[seq - 1] as Uint8Array)).toBe(0);
        }
        expect(seq).toBe(3);
        const read = await journal.read(2);
        expect(Buffer.compare(read?.bytes as Uint8Array, records[1] as Uint8Array)).toBe(0);
      });

      it("counts its bytes", async () => {
        const before = await journal.usage();
        await journal.append(noise(10_000), 0);
        const after = await journal.usage();
        expect(after.bytes - before.bytes).toBeGreaterThanOrEqual(10_000);
        expect(after.bytesMax).toBe(before.bytesMax);
      });

      it("is still there when opened again", async () => {
        await fill(journal, 5);
        await rival.close();
        await journal.close();
        journal = await world.open();
        rival = journal;
        expect(await journal.position()).toEqual({ firstSeq: 1, lastSeq: 5, missing: 0 });
        await fill(journal, 7, 6);
        expect(await tell(journal.replay(1))).toEqual(toldOf(1, 7));
      });
    });

    describe("replay", () => {
      it("begins in the middle", async () => {
        await fill(journal, 20);
        expect(await tell(journal.replay(13))).toEqual(toldOf(13, 20));
        expect(await tell(journal.replay(20))).toEqual(toldOf(20, 20));
        expect(await tell(journal.replay(21))).toEqual([]);
      });

      it("ends with the record that was last when it began", async () => {
        await fill(journal, 3);
        const lines: string[] = [];
        for await (const record of journal.replay(1)) {
          lines.push(told(record));
          if (record.seq === 1) await fill(journal, 6, 4);
        }
        expect(lines).toEqual(toldOf(1, 3));
      });

      it("goes through thousands", async () => {
        for (let seq = 1; seq <= 3_000; seq += 500) await fill(journal, seq + 499, seq);
        expect(await tell(journal.replay(1))).toEqual(toldOf(1, 3_000));
        expect((await journal.read(1_777))?.bytes).toEqual(bytesOf("record 1777"));
      });

      it("may be left in the middle, and taken up by two at once", async () => {
        await fill(journal, 30);
        for await (const { seq } of journal.replay(1)) if (seq === 2) break;
        const both = await Promise.all([tell(journal.replay(1)), tell(rival.replay(16))]);
        expect(both).toEqual([toldOf(1, 30), toldOf(16, 30)]);
      });
    });

    describe("follow", () => {
      it("gives every record once and in order: earlier, concurrent and later ones", async () => {
        await fill(journal, 40);
        const follower = new Follower(rival);
        for (const from of range(4, 9)) await fill(journal, from * 10 + 10, from * 10 + 1);
        await follower.hasRead(100);
        await fill(journal, 101, 101);
        await follower.hasRead(101);
        await follower.stop();
        expect(follower.lines).toEqual(toldOf(1, 101));
      });

      it("begins in the middle", async () => {
        await fill(journal, 10);
        const follower = new Follower(rival, 8);
        await follower.hasRead(3);
        await fill(journal, 11, 11);
        await follower.hasRead(4);
        await follower.stop();
        expect(follower.lines).toEqual(toldOf(8, 11));
      });

      it("waits for a position that is still ahead", async () => {
        const follower = new Follower(rival, 3);
        await fill(journal, 4);
        await follower.hasRead(2);
        await follower.stop();
        expect(follower.lines).toEqual(toldOf(3, 4));
      });

      it("returns when told to, while nothing comes", async () => {
        const follower = new Follower(rival);
        await fill(journal, 1);
        await follower.hasRead(1);
        await follower.stop();
        expect(follower.lines).toEqual(toldOf(1, 1));
      });

      it("returns at once when told before it began", async () => {
        await fill(journal, 2);
        expect(await tell(journal.follow(1, AbortSignal.abort()))).toEqual([]);
      });
    });

    describe("purging", () => {
      it("removes at most what lies below, never the last record, and may be repeated", async () => {
        await journal.purgeBelow(5);
        expect(await journal.position()).toEqual({ firstSeq: 0, lastSeq: 0, missing: 0 });
        await fill(journal, 10);
        for (const _ of range(1, 2)) {
          await journal.purgeBelow(6);
          const { firstSeq, lastSeq, missing } = await journal.position();
          expect(firstSeq).toBeLessThanOrEqual(6);
          expect({ lastSeq, missing }).toEqual({ lastSeq: 10, missing: 0 });
        }
        await rival.purgeBelow(3);
        expect(await tell(journal.replay(6))).toEqual(toldOf(6, 10));
        await journal.purgeBelow(1_000);
        expect((await journal.read(10))?.bytes).toEqual(bytesOf("record 10"));
        expect(await tell(rival.replay(10))).toEqual(toldOf(10, 10));
        await fill(journal, 12, 11);
        expect(await tell(rival.replay(10))).toEqual(toldOf(10, 12));
      });

      it("tells who reads from before what is left to use a snapshot", async () => {
        await fill(journal, 10);
        await journal.purgeBelow(6);
        const { firstSeq } = await journal.position();
        if (firstSeq === 1) return; // all of it is still there
        await expect(tell(journal.replay(1))).rejects.toThrow(`it begins at ${firstSeq}`);
        await expect(new Follower(journal, 1).ended).rejects.toThrow(JournalDamagedError);
        expect(await journal.read(firstSeq - 1)).toBeUndefined();
      });

      it("does not disturb who follows behind it", async () => {
        await fill(journal, 10);
        const follower = new Follower(rival);
        await follower.hasRead(10);
        await journal.purgeBelow(9);
        await fill(journal, 12, 11);
        await follower.hasRead(12);
        await follower.stop();
        expect(follower.lines).toEqual(toldOf(1, 12));
      });
    });

    describe("close", () => {
      it("ends what is under way as unknown, unless it was stored", async () => {
        const appends = [journal.append(noise(200_000), 0), journal.append(noise(200_000), 1)];
        await journal.close();
        const outcomes = await Promise.all(appends);
        for (const { kind } of outcomes) expect(["unknown", "stored"]).toContain(kind);

        await rival.close();
        journal = await world.open();
        rival = journal;
        const { lastSeq } = await journal.position();
        const stored = outcomes.filter(({ kind }) => kind === "stored").length;
        expect(lastSeq).toBeGreaterThanOrEqual(stored);
      });

      it("ends followers", async () => {
        await fill(journal, 1);
        const follower = new Follower(journal);
        await follower.hasRead(1);
        await journal.close();
        await follower.ended;
      });

      it("leaves nothing that answers", async () => {
        await fill(journal, 1);
        await journal.close();
        await journal.close();
        expect((await journal.append(bytesOf("late"), 1)).kind).toBe("unknown");
        await expect(journal.position()).rejects.toThrow(UnreachableError);
        await expect(journal.read(1)).rejects.toThrow(UnreachableError);
        await expect(tell(journal.replay(1))).rejects.toThrow(UnreachableError);
        await expect(journal.usage()).rejects.toThrow(UnreachableError);
        await expect(journal.purgeBelow(1)).rejects.toThrow(UnreachableError);
        expect(await tell(journal.follow(1, new AbortController().signal))).toEqual([]);
      });
    });
  });
}
