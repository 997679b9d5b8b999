// The behaviour of every journal, whatever the storage. The suites of memory, file and JetStream run the conformance
// suite, and test the behaviour of a single storage themselves.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { JournalDamagedError, UnreachableError } from "../../src/errors.ts";
import type { Journal, Segment } from "../../src/journal/journal.ts";
import { bytesOf, Follower, fill, filled, linesOf, noise, range } from "./records.ts";

/** An empty journal, and ways to open and close it. */
export interface JournalWorld {
  /** A new handle. If the journal is not sharable, the suite closes the previous handle first. */
  open(): Promise<Journal>;
  /** Cuts off a handle of `open`. Returns a function that reconnects the handle. Absent without a connection. */
  cutOff?(journal: Journal): Promise<() => Promise<void>>;
  dispose(): Promise<void>;
}

export interface WorldOptions {
  /** Bound on the journal's bytes: at least of each segment. */
  readonly bytesMax?: number;
}

/** Followers believe a fault only after 3 s, and servers are slow. */
const SLOW_TEST_MS = 30_000;

export function describeJournal(
  name: string,
  makeWorld: (options: WorldOptions) => Promise<JournalWorld>,
): void {
  describe(`journal: ${name}`, () => {
    let world: JournalWorld;
    let journal: Journal;
    /** A second writer: a second handle if the journal is sharable, else the same handle. */
    let rival: Journal;
    let segment: Segment;

    async function begin(options: WorldOptions = {}): Promise<void> {
      world = await makeWorld(options);
      await open();
    }

    async function open(): Promise<void> {
      journal = await world.open();
      rival = journal.sharable ? await world.open() : journal;
      segment = journal.segment(1);
    }

    async function close(): Promise<void> {
      await rival.close();
      await journal.close();
    }

    beforeEach(() => begin());

    afterEach(async () => {
      await close();
      await world.dispose();
    });

    describe("the chain of segments", () => {
      it("is empty at first", async () => {
        expect(await journal.list()).toEqual([]);
      });

      it("lists the segments that were created, in ascending order", async () => {
        for (const number of [3, 1, 12, 2]) await journal.create(number);
        expect(await journal.list()).toEqual([1, 2, 3, 12]);
        expect(await rival.list()).toEqual([1, 2, 3, 12]);
      });

      it("creates a segment empty and open", async () => {
        await journal.create(1);
        expect(await segment.end()).toMatchObject({ position: 0, isSealed: false, missing: 0 });
        expect(await segment.read(1)).toBeUndefined();
        expect(await linesOf(segment.replay(1))).toEqual([]);
      });

      it("leaves an existing segment as it is when it is created again", async () => {
        await Promise.all([journal.create(1), rival.create(1), journal.create(1)]);
        await fill(segment, 2);
        await rival.create(1);
        expect(await linesOf(segment.replay(1))).toEqual(filled(1, 2));
        await segment.seal();
        await journal.create(1);
        expect(await segment.end()).toMatchObject({ position: 2, isSealed: true });
      });

      it("numbers the positions of each segment from 1", async () => {
        await journal.create(1);
        await journal.create(2);
        await fill(segment, 3);
        await fill(journal.segment(2), 2);
        expect(await linesOf(segment.replay(1))).toEqual(filled(1, 3));
        expect(await linesOf(rival.segment(2).replay(1))).toEqual(filled(1, 2));
        expect(await segment.end()).toMatchObject({ position: 3 });
      });

      it("removes a segment with all records, and no other segment", async () => {
        for (const number of [1, 2, 3]) {
          await journal.create(number);
          await fill(journal.segment(number), 2);
        }
        await journal.segment(2).seal();
        for (const _ of range(1, 2)) {
          await rival.remove(2);
          await rival.remove(1);
        }
        expect(await journal.list()).toEqual([3]);
        expect(await segment.end()).toBeUndefined();
        expect(await segment.append(bytesOf("late"), 2)).toEqual({ kind: "missing" });
        expect(await linesOf(journal.segment(3).replay(1))).toEqual(filled(1, 2));
      });

      it("answers that a segment is missing, and does not create it", async () => {
        expect(await segment.end()).toBeUndefined();
        expect(await segment.append(bytesOf("nowhere"), 0)).toEqual({ kind: "missing" });
        expect(await segment.read(1)).toBeUndefined();
        expect(await segment.opened()).toBeUndefined();
        expect(await segment.seal()).toBe(false);
        await expect(linesOf(segment.replay(1))).rejects.toThrow(JournalDamagedError);
        await journal.remove(1);
        expect(await journal.list()).toEqual([]);
      });

      it("states its durability in a sentence", () => {
        expect(journal.durability.sentence).toMatch(/^[A-Z].{20,}\.$/);
      });
    });

    describe("the expected position", () => {
      beforeEach(() => journal.create(1));

      it("is 0 for the first record", async () => {
        expect(await segment.append(bytesOf("too far"), 1)).toEqual({ kind: "refused" });
        expect(await segment.append(bytesOf("first"), 0)).toEqual({ kind: "stored" });
        expect(await segment.end()).toMatchObject({ position: 1 });
      });

      it("admits one of two rivals at the first record of a segment", async () => {
        const outcomes = await Promise.all([
          segment.append(bytesOf("mine"), 0),
          rival.segment(1).append(bytesOf("theirs"), 0),
        ]);
        expect(outcomes.map(({ kind }) => kind).sort()).toEqual(["refused", "stored"]);
        const winner = outcomes[0]?.kind === "stored" ? "mine" : "theirs";
        expect(await linesOf(segment.replay(1))).toEqual([`1:${winner}`]);
      });

      it("admits one of two writers at a later record", async () => {
        await fill(segment, 3);
        const outcomes = await Promise.all([
          segment.append(bytesOf("mine"), 3),
          rival.segment(1).append(bytesOf("theirs"), 3),
        ]);
        expect(outcomes.map(({ kind }) => kind).sort()).toEqual(["refused", "stored"]);
        expect((await segment.end())?.position).toBe(4);
      });

      it("refuses any other position and stores nothing", async () => {
        await fill(segment, 3);
        for (const expected of [0, 2, 4, 100])
          expect(await segment.append(bytesOf("misplaced"), expected)).toEqual({ kind: "refused" });
        expect(await linesOf(segment.replay(1))).toEqual(filled(1, 3));
      });

      it("refuses the same bytes again at the same position", async () => {
        expect(await segment.append(bytesOf("once"), 0)).toEqual({ kind: "stored" });
        expect(await segment.append(bytesOf("once"), 0)).toEqual({ kind: "refused" });
        expect(await segment.read(1)).toEqual({ position: 1, bytes: bytesOf("once") });
        expect(await segment.read(2)).toBeUndefined();
      });

      it("may admit the second of two appends after a rival took the position of the first", async () => {
        const rivals = rival.segment(1).append(bytesOf("rival"), 0);
        if (journal.sharable) await rivals;
        const first = segment.append(bytesOf("first"), 0);
        const second = segment.append(bytesOf("second"), 1);
        expect([await rivals, await first, await second].map(({ kind }) => kind)).toEqual([
          "stored",
          "refused",
          "stored",
        ]);
        expect(await linesOf(segment.replay(1))).toEqual(["1:rival", "2:second"]);
      });
    });

    describe("appending", () => {
      beforeEach(() => journal.create(1));

      it("stores overlapping appends in the order of the calls", async () => {
        await fill(segment, 50);
        expect(await segment.end()).toMatchObject({ position: 50, missing: 0 });
        expect(await linesOf(segment.replay(1))).toEqual(filled(1, 50));
      });

      it("keeps every byte of large records", async () => {
        const records = [noise(500 * 1024, 1), noise(768 * 1024, 2), noise(1, 3)];
        const outcomes = await Promise.all(records.map((bytes, at) => segment.append(bytes, at)));
        expect(outcomes.map(({ kind }) => kind)).toEqual(["stored", "stored", "stored"]);
        let position = 0;
        for await (const record of segment.replay(1)) {
          position += 1;
          expect(record.position).toBe(position);
          expect(Buffer.compare(record.bytes, records[position - 1] as Uint8Array)).toBe(0);
        }
        expect(position).toBe(3);
        const read = await segment.read(2);
        expect(Buffer.compare(read?.bytes as Uint8Array, records[1] as Uint8Array)).toBe(0);
      });

      it("is still there when the journal is opened again", async () => {
        await fill(segment, 5);
        await close();
        await open();
        expect(await journal.list()).toEqual([1]);
        expect(await segment.end()).toMatchObject({ position: 5, isSealed: false, missing: 0 });
        await fill(segment, 7, 6);
        expect(await linesOf(segment.replay(1))).toEqual(filled(1, 7));
      });

      it("counts the bytes of a segment and of the journal, and frees those of a removed segment", async () => {
        const before = await journal.usage();
        await segment.append(noise(10_000), 0);
        await journal.create(2);
        await journal.segment(2).append(noise(20_000), 0);
        expect((await segment.end())?.bytes).toBeGreaterThanOrEqual(10_000);
        const after = await journal.usage();
        expect(after.bytes - before.bytes).toBeGreaterThanOrEqual(30_000);
        expect(after.bytesMax).toBe(before.bytesMax);
        await journal.remove(2);
        expect((await journal.usage()).bytes).toBeLessThan(before.bytes + 20_000);
      });

      it("answers full at the bound and stores nothing", async () => {
        await close();
        await world.dispose();
        await begin({ bytesMax: 256 * 1024 });
        await journal.create(1);
        let end = 0;
        let outcome = await segment.append(noise(50_000), end);
        for (; outcome.kind === "stored" && end < 10; end++)
          outcome = await segment.append(noise(50_000), end + 1);
        expect(outcome).toEqual({ kind: "full", message: expect.stringMatching(/.{10,}/) });
        expect(end).toBeGreaterThanOrEqual(3);
        expect((await segment.end())?.position).toBe(end);
        expect(await segment.read(end + 1)).toBeUndefined();
      });
    });

    describe("the opened record", () => {
      beforeEach(() => journal.create(1));

      it("is found among others", async () => {
        await fill(segment, 10);
        expect(await segment.opened()).toBeUndefined();
        const opened = { position: 11, bytes: bytesOf("opened") };
        expect(await segment.append(opened.bytes, 10, { isOpened: true })).toEqual({ kind: "stored" });
        await fill(segment, 15, 12);
        expect(await segment.opened()).toEqual(opened);
        expect(await rival.segment(1).opened()).toEqual(opened);
        expect(await segment.read(11)).toEqual(opened);
        expect(await linesOf(segment.replay(10, { until: 12 }))).toEqual([
          "10:record 10",
          "11:opened",
          "12:record 12",
        ]);
      });

      it("is the last of several, and never a refused record", async () => {
        const options = { isOpened: true };
        const outcomes = await Promise.all([
          segment.append(bytesOf("first"), 0, options),
          segment.append(bytesOf("second"), 1, options),
          segment.append(bytesOf("refused"), 7, options),
        ]);
        expect(outcomes.map(({ kind }) => kind)).toEqual(["stored", "stored", "refused"]);
        expect(await segment.opened()).toEqual({ position: 2, bytes: bytesOf("second") });
      });

      it("is found in a sealed segment, when the journal is opened again, and in no other segment", async () => {
        await fill(segment, 2);
        await segment.append(bytesOf("opened"), 2, { isOpened: true });
        await segment.seal();
        await journal.create(2);
        await fill(journal.segment(2), 1);
        await close();
        await open();
        expect(await segment.opened()).toEqual({ position: 3, bytes: bytesOf("opened") });
        expect(await journal.segment(2).opened()).toBeUndefined();
      });
    });

    describe("replay", () => {
      beforeEach(() => journal.create(1));

      it("begins in the middle", async () => {
        await fill(segment, 20);
        expect(await linesOf(segment.replay(13))).toEqual(filled(13, 20));
        expect(await linesOf(segment.replay(20))).toEqual(filled(20, 20));
        expect(await linesOf(segment.replay(21))).toEqual([]);
      });

      it("ends with the last record of the beginning", async () => {
        await fill(segment, 3);
        const positions: number[] = [];
        for await (const { position } of segment.replay(1)) {
          positions.push(position);
          if (position === 1) await fill(segment, 6, 4);
        }
        expect(positions).toEqual([1, 2, 3]);
      });

      it("ends at the given position", async () => {
        await fill(segment, 9);
        expect(await linesOf(segment.replay(2, { until: 5 }))).toEqual(filled(2, 5));
        expect(await linesOf(segment.replay(6, { until: 5 }))).toEqual([]);
      });

      it("throws when the segment ends before the requested position", async () => {
        await fill(segment, 3);
        const lines: string[] = [];
        const reading = async () => {
          for await (const { position } of segment.replay(2, { until: 5, patienceMs: 1_000 }))
            lines.push(`${position}:record ${position}`);
        };
        await expect(reading()).rejects.toThrow(JournalDamagedError);
        expect(filled(2, 3).slice(0, lines.length)).toEqual(lines);
      });

      it("reads thousands of records", async () => {
        for (let from = 1; from <= 3_000; from += 500) await fill(segment, from + 499, from);
        expect(await linesOf(segment.replay(1))).toEqual(filled(1, 3_000));
        expect((await segment.read(1_777))?.bytes).toEqual(bytesOf("record 1777"));
      });

      it("may be left in the middle, and run twice at once", async () => {
        await fill(segment, 30);
        for await (const { position } of segment.replay(1)) if (position === 2) break;
        const both = await Promise.all([
          linesOf(segment.replay(1)),
          linesOf(rival.segment(1).replay(16, { aheadBytes: 1_024 })),
        ]);
        expect(both).toEqual([filled(1, 30), filled(16, 30)]);
      });
    });

    describe("follow", () => {
      beforeEach(() => journal.create(1));

      it("gives every record once and in order: earlier, concurrent and later ones", async () => {
        await fill(segment, 40);
        const follower = new Follower(rival.segment(1));
        for (const from of range(4, 9)) await fill(segment, from * 10 + 10, from * 10 + 1);
        await follower.hasRead(100);
        await fill(segment, 101, 101);
        await follower.hasRead(101);
        await follower.stop();
        expect(follower.lines).toEqual(filled(1, 101));
      });

      it("begins in the middle", async () => {
        await fill(segment, 10);
        const follower = new Follower(rival.segment(1), 8);
        await follower.hasRead(3);
        await fill(segment, 11, 11);
        await follower.hasRead(4);
        await follower.stop();
        expect(follower.lines).toEqual(filled(8, 11));
      });

      it("returns when it is aborted, while nothing arrives", async () => {
        const follower = new Follower(rival.segment(1));
        await fill(segment, 1);
        await follower.hasRead(1);
        await follower.stop();
        expect(follower.lines).toEqual(filled(1, 1));
      });

      it("returns at once when aborted before the beginning", async () => {
        await fill(segment, 2);
        expect(await linesOf(segment.follow(1, AbortSignal.abort()))).toEqual([]);
      });

      it("returns at the end of a segment that is sealed while it follows", async () => {
        await fill(segment, 4);
        const early = new Follower(rival.segment(1));
        const ahead = new Follower(rival.segment(1), 6);
        await early.hasRead(4);
        await fill(segment, 5, 5);
        expect(await segment.seal()).toBe(true);
        await Promise.all([early.ended, ahead.ended]);
        expect(early.lines).toEqual(filled(1, 5));
        expect(ahead.lines).toEqual([]);
      });

      it("returns at the end of a segment that was sealed before", async () => {
        await journal.create(2);
        await journal.segment(2).seal();
        await fill(segment, 3);
        await segment.seal();
        const { signal } = new AbortController();
        expect(await linesOf(segment.follow(2, signal))).toEqual(filled(2, 3));
        expect(await linesOf(segment.follow(4, signal))).toEqual([]);
        expect(await linesOf(rival.segment(2).follow(1, signal))).toEqual([]);
      });

      it("goes from segment to segment as each is sealed", async () => {
        const lines: string[] = [];
        const reading = (async () => {
          for (const number of [1, 2, 3])
            lines.push(...(await linesOf(rival.segment(number).follow(1, new AbortController().signal))));
        })();
        for (const number of [1, 2, 3]) {
          await journal.create(number);
          await fill(journal.segment(number), number);
          await journal.segment(number).seal();
        }
        await reading;
        expect(lines).toEqual([...filled(1, 1), ...filled(1, 2), ...filled(1, 3)]);
      });

      it("waits a moment for a segment that does not exist yet, and for a record ahead of the end", async () => {
        const followers = [new Follower(rival.segment(2)), new Follower(rival.segment(1), 3)];
        await journal.create(2);
        await fill(journal.segment(2), 2);
        await fill(segment, 4);
        for (const follower of followers) await follower.hasRead(2);
        for (const follower of followers) await follower.stop();
        expect(followers.map(({ lines }) => lines)).toEqual([filled(1, 2), filled(3, 4)]);
      });

      it(
        "throws when the segment stays missing or too short, and when it is removed",
        async () => {
          await fill(segment, 2);
          await journal.create(3);
          await fill(journal.segment(3), 1);
          await journal.create(4);
          await journal.segment(4).seal();
          const removed = new Follower(rival.segment(3));
          await removed.hasRead(1);
          await journal.remove(3);
          const missing = new Follower(rival.segment(2));
          const short = new Follower(rival.segment(1), 9);
          const sealed = new Follower(rival.segment(4), 3);
          const endings = await Promise.allSettled([missing.ended, short.ended, sealed.ended, removed.ended]);
          for (const ending of endings)
            expect(ending).toMatchObject({ status: "rejected", reason: expect.any(JournalDamagedError) });
          expect(removed.lines).toEqual(filled(1, 1));
        },
        SLOW_TEST_MS,
      );

      it(
        "waits while its handle is cut off, and goes on without a gap",
        async () => {
          if (world.cutOff === undefined) return; // the journal has no connection to lose
          await fill(segment, 2);
          const follower = new Follower(rival.segment(1));
          await follower.hasRead(2);
          const reconnected = new Promise<void>((resolve) => rival.onReconnected(resolve));
          const connect = await world.cutOff(rival);
          await fill(segment, 4, 3);
          expect(await rival.segment(1).append(bytesOf("lost"), 4)).toMatchObject({ kind: "unknown" });
          await expect(rival.list()).rejects.toThrow(UnreachableError);
          expect(follower.lines).toEqual(filled(1, 2));
          await connect();
          await reconnected;
          await follower.hasRead(4);
          await segment.seal();
          await follower.ended;
          expect(follower.lines.slice(0, 4)).toEqual(filled(1, 4));
        },
        SLOW_TEST_MS,
      );
    });

    describe("sealing", () => {
      beforeEach(() => journal.create(1));

      it("refuses every later append, at whatever position, from any writer", async () => {
        await fill(segment, 3);
        expect(await segment.seal()).toBe(true);
        for (const expected of [0, 2, 3, 4]) {
          expect(await segment.append(bytesOf("late"), expected)).toEqual({ kind: "sealed" });
          expect(await rival.segment(1).append(bytesOf("late"), expected)).toEqual({ kind: "sealed" });
        }
        expect(await segment.end()).toMatchObject({ position: 3, isSealed: true, missing: 0 });
        expect(await linesOf(rival.segment(1).replay(1))).toEqual(filled(1, 3));
        expect((await segment.read(3))?.bytes).toEqual(bytesOf("record 3"));
      });

      it("may be repeated, by another writer too", async () => {
        await fill(segment, 1);
        expect(await Promise.all([segment.seal(), rival.segment(1).seal(), segment.seal()])).toEqual([
          true,
          true,
          true,
        ]);
        expect(await rival.segment(1).seal()).toBe(true);
        expect(await segment.end()).toMatchObject({ position: 1, isSealed: true });
      });

      it("seals an empty segment, and no different segment", async () => {
        await journal.create(2);
        expect(await segment.seal()).toBe(true);
        expect(await segment.append(bytesOf("late"), 0)).toEqual({ kind: "sealed" });
        expect(await segment.end()).toMatchObject({ position: 0, isSealed: true });
        await fill(journal.segment(2), 2);
        expect(await journal.segment(2).end()).toMatchObject({ position: 2, isSealed: false });
      });

      it("settles appends in flight: each is stored before the end, or answered sealed", async () => {
        await fill(segment, 5);
        const appends = range(6, 105).map((position) =>
          segment.append(bytesOf(`record ${position}`), position - 1),
        );
        const sealing = rival.segment(1).seal();
        const later = range(106, 125).map((position) =>
          segment.append(bytesOf(`record ${position}`), position - 1),
        );
        expect(await sealing).toBe(true);
        const end = (await rival.segment(1).end())?.position ?? 0;
        const outcomes = await Promise.all([...appends, ...later]);
        for (const [at, { kind }] of outcomes.entries())
          expect(kind).toBe(at + 6 <= end ? "stored" : "sealed");
        expect(await segment.end()).toMatchObject({ position: end, isSealed: true });
        expect(await linesOf(segment.replay(1))).toEqual(filled(1, end));
      });

      it("is still sealed when the journal is opened again, and can be removed", async () => {
        await fill(segment, 2);
        await segment.seal();
        await close();
        await open();
        expect(await segment.end()).toMatchObject({ position: 2, isSealed: true });
        expect(await segment.append(bytesOf("late"), 2)).toEqual({ kind: "sealed" });
        expect(await linesOf(segment.replay(1))).toEqual(filled(1, 2));
        await journal.remove(1);
        expect(await journal.list()).toEqual([]);
        expect(await segment.seal()).toBe(false);
      });
    });

    describe("close", () => {
      beforeEach(() => journal.create(1));

      it("ends appends in flight as unknown, unless stored", async () => {
        const appends = [segment.append(noise(200_000), 0), segment.append(noise(200_000), 1)];
        await journal.close();
        const outcomes = await Promise.all(appends);
        for (const { kind } of outcomes) expect(["unknown", "stored"]).toContain(kind);
        await close();
        await open();
        const stored = outcomes.filter(({ kind }) => kind === "stored").length;
        expect((await segment.end())?.position).toBeGreaterThanOrEqual(stored);
      });

      it("ends followers", async () => {
        await fill(segment, 1);
        const follower = new Follower(segment);
        await follower.hasRead(1);
        await journal.close();
        await follower.ended;
        expect(follower.lines).toEqual(filled(1, 1));
      });

      it("leaves a handle that reaches nothing", async () => {
        await fill(segment, 1);
        await journal.close();
        await journal.close();
        expect((await segment.append(bytesOf("late"), 1)).kind).toBe("unknown");
        for (const call of [
          () => journal.list(),
          () => journal.create(2),
          () => journal.remove(1),
          () => journal.usage(),
          () => segment.end(),
          () => segment.read(1),
          () => segment.opened(),
          () => segment.seal(),
          () => linesOf(segment.replay(1)),
        ])
          await expect(call()).rejects.toThrow(UnreachableError);
        expect(await linesOf(segment.follow(1, new AbortController().signal))).toEqual([]);
      });
    });
  });
}
