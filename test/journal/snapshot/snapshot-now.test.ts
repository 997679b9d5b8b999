// A snapshot written from memory, where the journal has lost what led to it: readers begin there, and those that came
// from before it halt.

import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/clock.ts";
import { instant, taskId, term } from "../../../src/ids.ts";
import { encodeBatch } from "../../../src/journal/batch.ts";
import { snapshotNow } from "../../../src/journal/snapshot/snapshot-now.ts";
import { fingerprint } from "../../support/fingerprint.ts";
import { StoredHistory } from "../../support/stored-history.ts";
import { silentLogger } from "../../support/swarm.ts";
import { aTask, submit, Turns } from "../../support/turns.ts";

function lostTail() {
  const turns = new Turns();
  for (let number = 1; number <= 8; number += 1) turns.turn(submit(aTask({ id: taskId(`t${number}`) })));
  const stored = new StoredHistory(turns.records);
  const { whole } = stored;
  stored.journal.loseTail(3);
  const { lastSeq } = stored.journal;
  const position = { ...whole.position, seq: lastSeq };
  const folded = { ...whole, state: whole.state, places: whole.places, position };
  const now = () =>
    snapshotNow(folded, { store: stored.snapshots.open(), clock: systemClock, logger: silentLogger });
  /** The batch after all, at the end that the journal has now. */
  const goOn = () => {
    const { journal, idx, hash } = position;
    const header = { journal, idx: (idx + 1) as typeof idx, prev: hash, at: whole.state.at };
    const events = ['{"type":"TermRenewed"}'];
    stored.journal.insertRival(encodeBatch({ ...header, term: term(1), at: instant(header.at) }, events));
  };
  return { stored, whole, folded, now, goOn, lastSeq };
}

describe("a snapshot of what the journal lost", () => {
  it("is where readers begin, and the next batch stands at the end that is left", async () => {
    const { stored, whole, now, goOn, lastSeq } = lostTail();
    await now();
    const restarted = await stored.restart();
    expect(fingerprint(restarted.state)).toBe(fingerprint(whole.state));
    expect(restarted.position.seq).toBe(lastSeq);
    goOn();
    const again = await stored.restart();
    expect(again.position).toMatchObject({ idx: whole.position.idx + 1, seq: lastSeq + 1 });
    expect(again.deadRecords).toBe(0);
  });

  it("is kept beside the one before it that is whole, not beside one that is not", async () => {
    const { stored, now } = lostTail();
    const whole = await stored.snapshot(2);
    const spoilt = await stored.snapshot(4);
    for (const [place] of spoilt.chunks) stored.snapshots.lose(place);
    await now();
    for (const [place] of whole.chunks) expect(stored.snapshots.at(place)).toBeDefined();
    await now();
    expect(stored.snapshots.places("manifest")).toHaveLength(2);
  });

  it("is kept alone where none before it can be read", async () => {
    const { stored, now } = lostTail();
    for (const upTo of [2, 4])
      for (const [place] of (await stored.snapshot(upTo)).chunks) stored.snapshots.lose(place);
    const { chunks } = await now();
    expect(stored.snapshots.places("manifest")).toHaveLength(1);
    expect(stored.snapshots.places("chunk")).toEqual(chunks.map(([place]) => place));
  });

  it("is made by the next try where the storage gives nothing back until it is emptied", async () => {
    const { stored, folded, now } = lostTail();
    await stored.snapshot(2);
    const store = stored.snapshots.open();
    const [chunk, removeBelow] = [store.chunk.bind(store), store.removeBelow.bind(store)];
    let isRotten = true;
    store.chunk = async (place) => (isRotten ? undefined : await chunk(place));
    store.removeBelow = async (place) => {
      await removeBelow(place);
      isRotten = false;
    };
    const deps = { store, clock: systemClock, logger: silentLogger };
    await expect(snapshotNow(folded, deps)).rejects.toThrow("does not give back the chunk");
    expect(stored.snapshots.places("manifest")).toEqual([]);
    await snapshotNow(folded, deps);
    await now();
    expect(stored.snapshots.places("manifest")).toHaveLength(2);
  });

  it("empties nothing of which something can be read", async () => {
    const { stored, folded } = lostTail();
    const { chunks } = await stored.snapshot(2);
    const store = stored.snapshots.open();
    const chunk = store.chunk.bind(store);
    store.chunk = async (place) => (place > 2 ? undefined : await chunk(place));
    const failing = snapshotNow(folded, { store, clock: systemClock, logger: silentLogger });
    await expect(failing).rejects.toThrow("does not give back the chunk");
    for (const [place] of chunks) expect(stored.snapshots.at(place)).toBeDefined();
  });

  it("halts who comes from before it, rather than that it takes the rest for dead", async () => {
    const { stored, now, goOn } = lostTail();
    const { chunks } = await now();
    goOn();
    for (const [place] of chunks) stored.snapshots.damage(place);
    await expect(stored.restart()).rejects.toThrow("history was lost");
  });
});
