// A restart from a snapshot and the journal behind it is a fold from the first record: at any point of any history,
// with dead records anywhere, the journal purged, the newest snapshot damaged. And where history is lost, nobody goes
// on.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { batchIndex, taskId, term } from "../../../src/ids.ts";
import { hashOf } from "../../../src/journal/batch.ts";
import type { Manifest } from "../../../src/journal/snapshot/manifest.ts";
import { restoreAndRead } from "../../../src/journal/snapshot/restore.ts";
import { fingerprint } from "../../support/fingerprint.ts";
import { following } from "../../support/following.ts";
import { history, Model } from "../../support/random-history.ts";
import { StoredHistory } from "../../support/stored-history.ts";
import { silentLogger } from "../../support/swarm.ts";
import { aTask, join, submit, Turns } from "../../support/turns.ts";

const share = fc.double({ min: 0, max: 1, noNaN: true });
const historiesMs = 240_000;

/** So many batches, each of one task or of an agent. */
function someHistory(batches: number): StoredHistory {
  const turns = new Turns();
  turns.turn(join("a1"));
  for (let number = 1; turns.records.length < batches; number += 1)
    turns.turn(submit(aTask({ id: taskId(`t${number}`) })));
  return new StoredHistory(turns.records);
}

async function expectWhole(stored: StoredHistory): Promise<void> {
  const restarted = await stored.restart();
  const { whole } = stored;
  expect(fingerprint(restarted.state)).toBe(fingerprint(whole.state));
  expect(restarted.position).toEqual(whole.position);
  expect(restarted.lastEventType).toBe(whole.lastEventType);
  expect(restarted.deadRecords).toBe(whole.deadRecords);
  expect(restarted.alienRecords).toEqual(whole.alienRecords);
  expect(restarted.places.runs).toEqual(whole.places.runs);
}

/** Flips a bit of one of the chunks, or loses it. */
function spoil(stored: StoredHistory, { chunks }: Manifest, how: "damage" | "lose"): void {
  for (const [place] of chunks) stored.snapshots[how](place);
}

describe("a restart from a snapshot", () => {
  it(
    "is the fold from the start, at any points of any history",
    async () => {
      const spoiling = fc.constantFrom("nothing", "damage", "lose", "manifest");
      await fc.assert(
        fc.asyncProperty(
          history,
          fc.array(fc.constantFrom(0, 0, 0, 1, 2), { minLength: 1 }),
          fc.tuple(share, share),
          spoiling,
          async ({ isExperienced, turns }, deadBefore, shares, spoilt) => {
            const model = new Model();
            if (isExperienced) model.learn();
            model.run(turns);
            fc.pre(model.turns.records.length > 0);
            const stored = new StoredHistory(model.turns.records, deadBefore);
            const { lastSeq } = stored.journal;
            const firstSeq = stored.whole.places.seqOf(batchIndex(1)) ?? 1;
            const [first = 0, second = 0] = shares
              .map((each) => firstSeq + Math.floor((lastSeq - firstSeq) * each))
              .sort((a, b) => a - b);
            const older = await stored.snapshot(first);
            const newer = await stored.snapshot(second);
            stored.journal.purgeBelow(Math.min(older.position.seq + 1, lastSeq));
            const isTwo = newer.position.idx > older.position.idx;
            if (isTwo && (spoilt === "damage" || spoilt === "lose")) spoil(stored, newer, spoilt);
            if (isTwo && spoilt === "manifest")
              stored.snapshots.damage(stored.snapshots.places("manifest").at(-1) ?? 0);
            await expectWhole(stored);
          },
        ),
        { numRuns: 300 },
      );
    },
    historiesMs,
  );

  it("is one also where a record of another journal stands at its end, which everybody skips", async () => {
    const stored = someHistory(12);
    const bytes = Buffer.from(stored.journal.at(12)?.bytes ?? []);
    stored.add(Buffer.from(bytes.toString().replace('"journal":"j"', '"journal":"x"')));
    expect((await stored.snapshot()).position.seq).toBe(13);
    await expectWhole(stored);
  });

  it("keeps two snapshots, and takes the older one where the newest cannot be read", async () => {
    const stored = someHistory(12);
    for (const seq of [3, 6, 9]) await stored.snapshot(seq);
    expect(stored.snapshots.places("manifest")).toHaveLength(2);
    spoil(stored, await stored.snapshot(11), "damage");
    stored.journal.purgeBelow(10);
    await expectWhole(stored);
  });

  it("never gives up one that can be read for one that cannot, nor lets the journal go that stands behind it", async () => {
    const stored = someHistory(12);
    await stored.snapshot(3);
    const unread = await stored.snapshot(6);
    spoil(stored, unread, "lose");
    const made = await stored.make(9, { isShort: true });
    expect(made.trim).toEqual({ firstIdx: 4, reason: "storage-short" });
    expect(made.found.unreadable.map(({ why }) => why)).toEqual([
      expect.stringContaining("that of batch 6 cannot be read: the chunk at place"),
    ]);
    stored.journal.purgeBelow(4);
    spoil(stored, await stored.snapshot(9), "lose");
    await expectWhole(stored);
  });

  it("removes what could not be read once a later one was read", async () => {
    const stored = someHistory(12);
    await stored.snapshot(3);
    spoil(stored, await stored.snapshot(6), "damage");
    await stored.snapshot(9);
    expect(stored.snapshots.places("manifest")).toHaveLength(3);
    expect((await stored.make(11)).found.unreadable).toEqual([]);
    expect(stored.snapshots.places("manifest")).toHaveLength(2);
  });

  it("makes one anew where the one that reaches as far cannot be read, and trims by none that was not read", async () => {
    const stored = someHistory(12);
    await stored.snapshot(3);
    const unread = [await stored.snapshot(6), await stored.snapshot(9)];
    for (const each of unread) spoil(stored, each, "damage");
    const made = await stored.make(9, { isShort: true });
    expect([made.idx, made.found.read, made.trim]).toEqual([9, undefined, undefined]);
    stored.journal.purgeBelow(10);
    await expectWhole(stored);
  });

  it("makes no snapshot where one reaches as far, or came to reach further meanwhile", async () => {
    const stored = someHistory(12);
    const far = await stored.snapshot(10);
    expect(await stored.snapshot(10)).toEqual(far);
    expect(await stored.snapshot(4)).toEqual(far);
    expect(stored.snapshots.places("manifest")).toHaveLength(1);
  });
});

describe("an end that the journal lost, and that two saved", () => {
  const turns = new Turns();
  for (let number = 1; number <= 7; number += 1)
    turns.turn(number === 1 ? join("a1") : submit(aTask({ id: taskId(`t${number}`) })));

  /** Six batches, of which four are left and the journal goes on with the seventh. */
  async function savedTwice() {
    const stored = new StoredHistory(turns.records.slice(0, 6));
    stored.journal.loseTail(2);
    const folded = stored.foldedBehind(4);
    for (let times = 0; times < 2; times += 1) await stored.saveNow(folded);
    stored.journal.insertRival(turns.records[6]?.bytes ?? expect.fail("seven were made"));
    return stored;
  }

  it("is there where either can be read", async () => {
    for (const at of [0, 1]) {
      const stored = await savedTwice();
      const manifests = await stored.manifests();
      expect(manifests.map(({ position }) => position.idx)).toEqual([6, 6]);
      spoil(stored, manifests[at] ?? expect.fail("two were saved"), "damage");
      expect((await stored.restart()).position).toMatchObject({ idx: 7, seq: 5 });
    }
  });

  it("is lost where neither can", async () => {
    const stored = await savedTwice();
    for (const manifest of await stored.manifests()) spoil(stored, manifest, "damage");
    await expect(stored.restart()).rejects.toThrow(/history was lost/);
  });
});

describe("a snapshot of a line that the journal left", () => {
  /** Six batches, of which two were lost: one who held them saved them, and another, who did not, went on. */
  async function leftBehind({ older }: { readonly older: boolean }) {
    const stored = someHistory(6);
    if (older) await stored.snapshot(3);
    stored.journal.loseTail(2);
    await stored.saveNow(stored.foldedBehind(4));
    const fourth = hashOf(stored.journal.at(4)?.bytes ?? expect.fail("four are left"));
    const { at } = stored.whole.state;
    const fifth = following({ idx: batchIndex(4), hash: fourth, term: term(1) }, 2, at);
    stored.journal.insertRival(fifth);
    return { stored, sixth: following({ idx: batchIndex(5), hash: hashOf(fifth), term: term(2) }, 2, at) };
  }

  it("is left out, by who starts, by who makes the next and by who looks for one", async () => {
    const { stored } = await leftBehind({ older: true });
    expect((await stored.find()).read).toMatchObject({ idx: 3 });
    expect((await stored.restart()).position).toMatchObject({ idx: 5, term: 2, seq: 5 });
    expect(await stored.make()).toMatchObject({
      idx: 5,
      found: { unreadable: [{ why: "behind that of batch 6 the journal does not go on" }] },
    });
    expect((await stored.manifests()).map(({ position }) => position.idx)).toEqual([6, 5, 3]);
    expect(await stored.find()).toMatchObject({
      read: { idx: 5 },
      unreadable: [{ why: "behind that of batch 6 the journal does not go on" }],
    });
  });

  it("…also where its leader stored one more behind it, and dead records", async () => {
    const stored = someHistory(5);
    await stored.snapshot(3);
    stored.journal.loseTail(1);
    const { position } = await stored.saveNow(stored.foldedBehind(4));
    const fourth = hashOf(stored.journal.at(4)?.bytes ?? expect.fail("four are left"));
    stored.journal.insertRival(Buffer.from("somebody else's"));
    stored.journal.insertRival(following(position, 1, stored.whole.state.at));
    expect((await stored.find()).read).toMatchObject({ idx: 5 }); // it may be the swarm's
    const fifth = { idx: batchIndex(4), hash: fourth, term: term(1) };
    stored.journal.insertRival(following(fifth, 2, stored.whole.state.at));
    expect((await stored.find()).read).toMatchObject({ idx: 3 });
    expect((await stored.restart()).position).toMatchObject({ idx: 5, term: 2 });
  });

  it("is not one behind which its own line goes on, with another's batch among what everybody skips", async () => {
    const { stored } = await leftBehind({ older: true });
    const [saved] = await stored.manifests();
    stored.journal.loseTail(1);
    const { position } = saved ?? expect.fail("it was saved");
    const next = following(position, 2, stored.whole.state.at);
    stored.journal.insertRival(next);
    const third = { idx: batchIndex(3), hash: "of-the-third", term: term(1) };
    stored.journal.insertRival(following(third, 2, stored.whole.state.at));
    expect((await stored.find()).read).toMatchObject({ idx: 6 });
    expect((await stored.restart()).position).toMatchObject({ idx: 7, term: 2 });
  });

  it("…also where the journal was purged behind it", async () => {
    const { stored, sixth } = await leftBehind({ older: true });
    stored.journal.insertRival(Buffer.from("somebody else's"));
    await stored.make();
    stored.journal.insertRival(sixth);
    stored.journal.purgeBelow(7);
    expect((await stored.restart()).position).toMatchObject({ idx: 6, term: 2, seq: 7 });
    expect((await stored.find()).read).toMatchObject({ idx: 5 });
  });

  /** A snapshot of five batches, of which the last two were lost, and what these were. */
  async function endLost() {
    const stored = someHistory(5);
    await stored.snapshot(2);
    await stored.snapshot(5);
    const bytes = [4, 5].map((seq) =>
      Buffer.from(stored.journal.at(seq)?.bytes ?? expect.fail("five are there")),
    );
    stored.journal.loseTail(2);
    return { stored, bytes };
  }

  /** A snapshot of five batches, of which the last two were lost; `went` is what another wrote in their places. */
  async function writtenOver(went: (fourthFor: (term: number) => Buffer) => readonly Buffer[]) {
    const stored = someHistory(5);
    await stored.snapshot(2);
    await stored.snapshot(5);
    stored.journal.loseTail(2);
    const third = hashOf(stored.journal.at(3)?.bytes ?? expect.fail("three are left"));
    const { at } = stored.whole.state;
    const fourthFor = (of: number) =>
      Buffer.from(following({ idx: batchIndex(3), hash: third, term: term(1) }, of, at));
    for (const bytes of went(fourthFor)) stored.journal.insertRival(bytes);
    return stored;
  }

  it("is left out by who starts where another wrote on up to its end, and nothing stands behind that", async () => {
    const stored = await writtenOver((fourthFor) => [Buffer.from("somebody else's"), fourthFor(2)]);
    expect((await stored.restart()).position).toMatchObject({ idx: 4, term: 2, seq: 5 });
  });

  it("…or has written on from before it, and not come so far yet", async () => {
    const stored = await writtenOver((fourthFor) => [fourthFor(2)]);
    expect((await stored.restart()).position).toMatchObject({ idx: 4, term: 2, seq: 4 });
  });

  it.each([
    ["nothing", []],
    ["somebody else's record", [Buffer.from("somebody else's")]],
  ])("…and by who looks for one, with %s behind that", async (_, behind) => {
    const stored = await writtenOver((fourthFor) => [fourthFor(2), ...behind]);
    const left = { unreadable: [{ why: "behind that of batch 5 the journal does not go on" }] };
    expect(await stored.find()).toMatchObject({ read: { idx: 2 }, ...left });
    expect((await stored.restart()).position).toMatchObject({ idx: 4, term: 2 });
  });

  it("is looked at where the journal ended when that was asked, whoever writes on meanwhile", async () => {
    const { stored, bytes } = await endLost();
    const journal = stored.journal.open();
    const { position } = journal;
    let asked = 0;
    journal.position = async () => {
      const at = await position.call(journal);
      asked += 1;
      if (asked === 2) for (const each of bytes) stored.journal.insertRival(each);
      return at;
    };
    const { snapshots, clock } = stored;
    const deps = { journal, snapshots: snapshots.open(), clock, logger: silentLogger };
    await expect(restoreAndRead(deps, () => () => undefined)).rejects.toThrow("the journal ends at record 3");
  });

  it("…also where both are of one term, for another batch stands where its last one stood", async () => {
    const { at } = someHistory(1).whole.state;
    const stored = await writtenOver((fourthFor) => {
      const fourth = { idx: batchIndex(4), hash: hashOf(fourthFor(1)), term: term(1) };
      return [fourthFor(1), Buffer.from(following(fourth, 1, at))];
    });
    const { position } = await stored.restart();
    const fifth = stored.journal.at(5) ?? expect.fail("it was written over");
    expect(position).toMatchObject({ idx: 5, term: 1, seq: 5, hash: hashOf(fifth.bytes) });
  });

  it("is not one before whose last batch the next one was stored, and is dead", async () => {
    const whole = someHistory(6);
    const bytes = (seq: number) => Buffer.from(whole.journal.at(seq)?.bytes ?? expect.fail("there are six"));
    const stored = someHistory(4);
    for (const each of [Buffer.from("somebody else's"), bytes(6), bytes(5)]) stored.add(each);
    expect((await stored.snapshot()).position).toMatchObject({ idx: 5, seq: 7 });
    stored.journal.loseTail(1);
    await stored.saveNow(stored.foldedBehind(6));
    expect((await stored.restart()).position).toMatchObject({ idx: 5, seq: 6 });
  });

  it("is a loss where no other leads to what the journal holds", async () => {
    const { stored } = await leftBehind({ older: false });
    stored.journal.purgeBelow(4);
    const sentence = "the journal begins at record 4 and no snapshot can be read that leads there";
    await expect(stored.restart()).rejects.toThrow(sentence);
    await expect(stored.find()).rejects.toThrow(sentence);
  });
});

describe("lost history is never taken for all there was", () => {
  it("where no snapshot can be read and the journal was purged", async () => {
    const stored = someHistory(12);
    const only = await stored.snapshot(6);
    stored.journal.purgeBelow(5);
    spoil(stored, only, "lose");
    await expect(stored.restart()).rejects.toThrow(
      "the journal begins at record 5 and no snapshot can be read",
    );
  });

  it("where the journal ends before a snapshot that cannot be read", async () => {
    const stored = someHistory(12);
    const only = await stored.snapshot(10);
    spoil(stored, only, "damage");
    stored.journal.loseTail(5);
    await expect(stored.restart()).rejects.toThrow("a snapshot says that the journal had batch 10");
  });

  it("where the journal ends before the newest snapshot", async () => {
    const stored = someHistory(12);
    await stored.snapshot(10);
    stored.journal.loseTail(5);
    await expect(stored.restart()).rejects.toThrow("the journal ends at record 7");
  });

  it.each(["readable", "damaged"])(
    "where the journal is empty and its snapshots, %s, are not",
    async (how) => {
      const stored = someHistory(12);
      await stored.snapshot(10);
      if (how === "damaged") stored.snapshots.damage(stored.snapshots.places("manifest").at(-1) ?? 0);
      stored.journal.loseTail(12);
      await expect(stored.restart()).rejects.toThrow(
        /the journal is empty, but there are snapshots of one.*remove the snapshots as well/,
      );
    },
  );

  it("where records between snapshot and journal are gone", async () => {
    const stored = someHistory(12);
    await stored.snapshot(4);
    stored.journal.purgeBelow(8);
    await expect(stored.restart()).rejects.toThrow("the journal begins at record 8");
  });

  it("where records behind the snapshot are, which it is all the same", async () => {
    const stored = someHistory(12);
    await stored.snapshot(4);
    stored.journal.loseMiddle(5, 2);
    await expect(stored.restart()).rejects.toThrow("the journal lost record 5");
    expect((await stored.find()).read).toMatchObject({ idx: 4 });
  });

  it("where the snapshots are another journal's", async () => {
    const stored = someHistory(12);
    await stored.snapshot(4);
    const bytes = stored.journal.at(4)?.bytes ?? Buffer.from("");
    bytes.set(Buffer.from(Buffer.from(bytes).toString().replace('"journal":"j"', '"journal":"x"')));
    await expect(stored.restart()).rejects.toThrow("not the journal whose snapshots these are");
  });
});
