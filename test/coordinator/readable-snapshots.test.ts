// A snapshot counts where it can be read, and its manifest alone for nothing; nobody is asked twice for one.

import { expect, it } from "vitest";
import { ReadableSnapshots } from "../../src/coordinator/compaction/readable-snapshots.ts";
import { isOvertaken } from "../../src/coordinator/standby/begin-anew.ts";
import { taskId, term } from "../../src/ids.ts";
import { Replay } from "../../src/journal/replay.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { StoredHistory } from "../support/stored-history.ts";
import { silentLogger } from "../support/swarm.ts";
import { aTask, submit, Turns } from "../support/turns.ts";

/** With snapshots at records 4 and 8 of 8, and how often a chunk was asked for. */
async function aStore() {
  const turns = new Turns();
  for (let number = 1; turns.records.length < 8; number += 1)
    turns.turn(submit(aTask({ id: taskId(`t${number}`) })));
  const stored = new StoredHistory(turns.records);
  await stored.make(4);
  const newest = await stored.snapshot(8);
  const store = stored.snapshots.open();
  const chunk = store.chunk.bind(store);
  const asked = { chunks: 0 };
  store.chunk = (place) => {
    asked.chunks += 1;
    return chunk(place);
  };
  const spoilNewest = () => {
    for (const [place] of newest.chunks) stored.snapshots.damage(place);
  };
  return { stored, store, asked, newest, spoilNewest, readable: new ReadableSnapshots(store, deps) };
}

const deps = { clock: new ManualClock(), logger: silentLogger };
const behind = (seq: number) => (position: { readonly seq: number }) => position.seq > seq;

it("is asked for once, and of one that was read nothing", async () => {
  const { asked, readable, stored, store } = await aStore();
  expect(await readable.has(behind(6))).toBe(true);
  expect(asked.chunks).toBe(1);
  expect(await readable.has(behind(6))).toBe(true);
  expect(asked.chunks).toBe(1);
  const { found } = await stored.make();
  const other = new ReadableSnapshots(store, deps);
  other.found(found);
  expect(await other.has(behind(6))).toBe(true);
  expect(asked.chunks).toBe(1);
});

it("who starts would begin at the furthest that can be read, and of this term or a later one", async () => {
  const { readable, asked, stored, newest, spoilNewest } = await aStore();
  const own = newest.position;
  expect(await readable.beginBehind(own)).toBe(false);
  expect(await readable.beginBehind({ ...own, seq: own.seq - 1 })).toBe(true);
  expect(await readable.beginBehind({ ...own, seq: own.seq - 1, term: term(own.term + 1) })).toBe(false);
  const { chunks } = asked;
  spoilNewest();
  expect(await readable.beginBehind({ ...own, seq: own.seq - 1 })).toBe(true); // it was read before
  const place = stored.snapshots.places("manifest").at(-1) ?? expect.fail("there are two");
  readable.found({ read: undefined, unreadable: [{ place, why: "it rotted" }] });
  expect(await readable.beginBehind({ ...own, seq: own.seq - 1 })).toBe(false);
  expect(asked.chunks).toBeGreaterThan(chunks);
});

it("one that is damaged does not count, and one that reaches less does", async () => {
  const { readable, spoilNewest } = await aStore();
  spoilNewest();
  expect(await readable.has(behind(6))).toBe(false);
  expect(await readable.has(behind(2))).toBe(true);
});

it("nobody begins anew at one that cannot be read", async () => {
  const { readable, spoilNewest, stored } = await aStore();
  const folded = new Replay();
  for await (const record of stored.journal.open().replay(1)) if (record.seq <= 5) folded.take(record);
  const deps = { readable, folded: () => folded };
  spoilNewest();
  expect(await isOvertaken(deps)).toBe(false);
});

it("there is none where there are no snapshots", async () => {
  expect(await new ReadableSnapshots(undefined, deps).has(() => true)).toBe(false);
});
