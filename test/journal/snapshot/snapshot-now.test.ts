// A snapshot written from memory, where the journal has lost what led to it: readers begin there, and those that came
// from before it halt.

import { describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/clock.ts";
import { decodeState } from "../../../src/core/snapshot/decode.ts";
import { encodeState } from "../../../src/core/snapshot/encode.ts";
import { UnreachableError } from "../../../src/errors.ts";
import { batchIndex, instant, taskId, term } from "../../../src/ids.ts";
import { encodeBatch } from "../../../src/journal/batch.ts";
import type { Journal } from "../../../src/journal/journal.ts";
import { foldedBehind, Replay } from "../../../src/journal/replay.ts";
import { snapshotNow } from "../../../src/journal/snapshot/snapshot-now.ts";
import type { SnapshotStore } from "../../../src/journal/snapshot-store.ts";
import { limits } from "../../../src/limits.ts";
import { fingerprint } from "../../support/fingerprint.ts";
import { Gate } from "../../support/gate.ts";
import { ManualClock } from "../../support/manual-clock.ts";
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
  const now = (store: SnapshotStore = stored.snapshots.open(), journal: Journal = stored.journal.open()) =>
    snapshotNow(folded, { store, journal, clock: systemClock, logger: silentLogger });
  /** Of the same term, or of one that begins with it. */
  const nextBatch = (of: number) => {
    const { journal, idx, hash } = position;
    const header = { journal, idx: batchIndex(idx + 1), prev: hash, at: instant(whole.state.at) };
    const started = { type: "TermStarted", term: of, leader: "c2", campaign: "k1", timeoutMs: 3_000 };
    const event = of > position.term ? started : { type: "TermRenewed" };
    return encodeBatch({ ...header, term: term(of) }, [JSON.stringify(event)]);
  };
  /** The batch after all, at the end that the journal has now. */
  const goOn = () => stored.journal.insertRival(nextBatch(1));
  return { stored, whole, folded, now, nextBatch, goOn, lastSeq };
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

  it("leaves the one that leads through the journal, where one that reaches further is of another line", async () => {
    const { stored, whole, folded, now, nextBatch, lastSeq } = lostTail();
    await now();
    const further = new Replay({ ...folded, state: decodeState(encodeState(folded.state)) });
    further.take({ seq: lastSeq + 1, bytes: nextBatch(1) });
    await stored.saveNow(foldedBehind(further, lastSeq)); // by who was alone, and deposed
    stored.journal.insertRival(nextBatch(2));
    stored.journal.purgeBelow(lastSeq);
    await stored.saveNow(foldedBehind(folded, lastSeq - 2)); // by who was told of an earlier end
    const { position } = await stored.restart();
    expect(position).toMatchObject({ idx: whole.position.idx + 1, term: 2, seq: lastSeq + 1 });
  });

  it("leaves the one that leads, behind which the journal was purged, though its storage does not give that back just then", async () => {
    const { stored, folded, now, nextBatch, lastSeq } = lostTail();
    const { chunks } = await now();
    stored.journal.insertRival(nextBatch(2));
    stored.journal.purgeBelow(lastSeq);
    const store = stored.snapshots.open();
    const chunk = store.chunk.bind(store);
    store.chunk = async (place) => (chunks.some(([own]) => own === place) ? undefined : await chunk(place));
    const deps = { store, journal: stored.journal.open(), clock: systemClock, logger: silentLogger };
    await snapshotNow(foldedBehind(folded, lastSeq - 2), deps); // by who was told of an earlier end
    expect((await stored.restart()).position).toMatchObject({ term: 2, seq: lastSeq + 1 });
  });

  it("removes nothing while nobody says what the journal goes on with", async () => {
    const { stored, whole, now } = lostTail();
    const { chunks } = await stored.snapshot(2);
    await stored.snapshot(4);
    const journal = stored.journal.open();
    vi.spyOn(journal, "position").mockRejectedValue(new UnreachableError("nobody answers"));
    const { position } = await now(stored.snapshots.open(), journal);
    expect(position.idx).toBe(whole.position.idx);
    for (const [place] of chunks) expect(stored.snapshots.at(place)).toBeDefined();
  });

  it("is kept alone where none before it can be read", async () => {
    const { stored, now } = lostTail();
    for (const upTo of [2, 4])
      for (const [place] of (await stored.snapshot(upTo)).chunks) stored.snapshots.lose(place);
    const { chunks } = await now();
    expect(stored.snapshots.places("manifest")).toHaveLength(1);
    expect(stored.snapshots.places("chunk")).toEqual(chunks.map(([place]) => place));
  });

  it("leaves alone what another is writing, whose manifest comes last", async () => {
    const { stored, now } = lostTail();
    const { chunks } = await stored.snapshot(2);
    for (const [place] of chunks) stored.snapshots.lose(place);
    const store = stored.snapshots.open();
    const written = new Gate();
    const others = now({
      putChunk: (bytes) => store.putChunk(bytes),
      putManifest: async (bytes) => {
        await written.opened;
        return await store.putManifest(bytes);
      },
      manifests: () => store.manifests(),
      chunk: (place) => store.chunk(place),
      removeBelow: (place) => store.removeBelow(place),
      usage: () => store.usage(),
      close: () => store.close(),
    });
    await vi.waitUntil(() => stored.snapshots.places("chunk").length > 0);
    await now();
    written.open();
    for (const [place] of (await others).chunks) expect(stored.snapshots.at(place)).toBeDefined();
    expect(stored.snapshots.places("manifest")).toHaveLength(2);
  });

  it("is none where others, who saved meanwhile, removed what it was written with", async () => {
    const { stored, folded } = lostTail();
    const clock = new ManualClock();
    const store = stored.snapshots.open();
    const putManifest = store.putManifest.bind(store);
    store.putManifest = async (bytes) => {
      await store.removeBelow(1 + Math.max(...stored.snapshots.places("chunk")));
      return await putManifest(bytes);
    };
    const deps = { store, journal: stored.journal.open(), clock, logger: silentLogger };
    const making = snapshotNow(folded, deps).catch(({ message }: Error) => message);
    await clock.advance(2 * limits.readBackPatienceMs + limits.appendRetryMs);
    expect(await making).toContain("does not give back the chunk");
  });

  it("halts who comes from before it, rather than that it takes the rest for dead", async () => {
    const { stored, now, goOn } = lostTail();
    const { chunks } = await now();
    goOn();
    for (const [place] of chunks) stored.snapshots.damage(place);
    await expect(stored.restart()).rejects.toThrow("history was lost");
  });
});

/** A storage of which a snapshot is read in vain while `isHidden` says so of a place. */
async function hiding(isHidden: (place: number) => boolean) {
  const { stored, folded } = lostTail();
  const older = await stored.snapshot(2);
  const olderPlaces = [...older.chunks.map(([place]) => place), ...stored.snapshots.places("manifest")];
  const clock = new ManualClock();
  const store = stored.snapshots.open();
  const [chunk, manifests] = [store.chunk.bind(store), store.manifests.bind(store)];
  store.chunk = async (place) => (isHidden(place) ? undefined : await chunk(place));
  store.manifests = async () => (await manifests()).filter(({ place }) => !isHidden(place));
  const begin = () => {
    const deps = { store, journal: stored.journal.open(), clock, logger: silentLogger };
    return snapshotNow(folded, deps).catch((error: Error) => error.message);
  };
  const areOlderKept = () => olderPlaces.every((place) => stored.snapshots.at(place) !== undefined);
  return { stored, store, clock, begin, areOlderKept, olderPlaces };
}

describe("where the storage of snapshots does not find what was put", () => {
  const untilSure = 2 * limits.readBackPatienceMs + limits.appendRetryMs;

  it("it is asked again: a server that has just taken over may not know yet what it holds", async () => {
    let isBehind = true;
    const { stored, clock, begin, areOlderKept } = await hiding(() => isBehind);
    const making = begin();
    await clock.advance(limits.readBackPatienceMs - 2 * limits.appendRetryMs);
    isBehind = false;
    await clock.advance(limits.appendRetryMs);
    expect(await making).toMatchObject({ position: { idx: stored.whole.position.idx } });
    expect(areOlderKept()).toBe(true);
    expect(stored.snapshots.places("manifest")).toHaveLength(2);
  });

  it("nor anything else, it is emptied, and the next try is the better one", async () => {
    let isRotten = true;
    const { stored, store, clock, begin } = await hiding(() => isRotten);
    const removeBelow = store.removeBelow.bind(store);
    store.removeBelow = async (place) => {
      await removeBelow(place);
      isRotten = false;
    };
    const making = begin();
    await clock.advance(untilSure);
    expect(await making).toContain("does not give back the chunk");
    expect(stored.snapshots.places("chunk")).toEqual([]);
    expect(stored.snapshots.places("manifest")).toEqual([]);
    expect(await begin()).toMatchObject({ position: { idx: stored.whole.position.idx } });
  });

  it("nothing is emptied of which something can be read", async () => {
    const { clock, begin, areOlderKept } = await hiding((place) => place > 2);
    const making = begin();
    await clock.advance(untilSure);
    expect(await making).toContain("does not give back the chunk");
    expect(areOlderKept()).toBe(true);
  });

  it("nothing is emptied of which something is found when it is asked again", async () => {
    let isBehind = false;
    const { clock, begin, areOlderKept } = await hiding((place) => isBehind || place > 2);
    const making = begin();
    await clock.advance(limits.readBackPatienceMs - limits.appendRetryMs);
    isBehind = true;
    await clock.advance(limits.readBackPatienceMs - limits.appendRetryMs);
    isBehind = false;
    await clock.advance(limits.appendRetryMs * 2);
    expect(await making).toContain("does not give back the chunk");
    expect(areOlderKept()).toBe(true);
  });

  it("nothing is emptied while nobody answers", async () => {
    const { store, clock, begin, areOlderKept } = await hiding(() => true);
    const making = begin();
    await clock.advance(untilSure - 2 * limits.appendRetryMs);
    store.setCutOff(true);
    await clock.advance(2 * limits.appendRetryMs);
    expect(await making).toContain("cut off");
    expect(areOlderKept()).toBe(true);
  });

  it("what another put behind it stays", async () => {
    const { stored, clock, begin, olderPlaces } = await hiding(() => true);
    const making = begin();
    await clock.settle();
    const bytes = Buffer.from("another's");
    const place = stored.snapshots.put({ kind: "chunk", bytes });
    await clock.advance(untilSure);
    expect(await making).toContain("does not give back the chunk");
    for (const older of olderPlaces) expect(stored.snapshots.at(older)).toBeUndefined();
    expect(stored.snapshots.at(place)).toBeDefined();
  });
});
