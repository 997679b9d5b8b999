// Whether a leader that was out of touch may append: what others say, and how long it listens.

import { beforeEach, describe, expect, it } from "vitest";
import { Announcements } from "../../src/coordinator/announcements.ts";
import { RivalCheck } from "../../src/coordinator/leader/rival-check.ts";
import { timingOf } from "../../src/coordinator/timing.ts";
import { UnreachableError } from "../../src/errors.ts";
import { batchIndex, term } from "../../src/ids.ts";
import { MemoryJournal } from "../../src/chain/memory.ts";
import { MemoryJournalStore } from "../../src/chain/memory-store.ts";
import { limits } from "../../src/limits.ts";
import { following } from "../support/following.ts";
import { ManualClock } from "../support/manual-clock.ts";

const timing = timingOf(3_000);
const { timeoutMs, beatMs } = timing;
const heardMs = limits.announcementTimeouts * timeoutMs;

let clock: ManualClock;
let store: MemoryJournalStore;
let journal: ReturnType<MemoryJournalStore["open"]>;
let announcements: Announcements;
let check: RivalCheck;
let hasPassed: boolean;
/** What it said, once it has. */
let mayAppend: boolean | undefined;
let provenMs: number;

beforeEach(() => {
  clock = new ManualClock();
  store = new MemoryJournalStore();
  journal = new MemoryJournal(store);
  announcements = new Announcements();
  hasPassed = false;
  mayAppend = undefined;
  provenMs = 0;
  check = new RivalCheck({
    ...{ journal, announcements, clock, timing, term: term(2) },
    provenMonotonicMs: () => provenMs,
    isOver: () => false,
    of: () => "j",
  });
});

const isHeard = (of: number, { leading = true } = {}) =>
  announcements.note({ id: "c2", term: of, idx: 10, leading }, clock.monotonicMs());

async function begin(lastSeq = store.lastSeq): Promise<void> {
  void check.pass(lastSeq).then((may) => {
    hasPassed = true;
    mayAppend = may;
  });
  await clock.settle();
}

describe("a leader", () => {
  it("is sure of itself for T after what proved it, and after it passed", async () => {
    await clock.advance(timeoutMs - 1);
    expect(check.isDue).toBe(false);
    await clock.advance(1);
    expect(check.isDue).toBe(true);
    await begin();
    expect(check.isDue).toBe(false);
    await clock.advance(timeoutMs);
    expect(check.isDue).toBe(true);
  });

  it("is no surer than before where the journal went on: what stands there is to be read first", async () => {
    await clock.advance(timeoutMs);
    isHeard(2, { leading: false });
    const { lastSeq } = store;
    store.insertRival(Buffer.from("another's"));
    await begin(lastSeq);
    await clock.advance(beatMs);
    expect([mayAppend, check.isDue]).toEqual([false, true]);
  });

  it("is always sure where nobody else can stand by", async () => {
    Object.assign(journal, { sharable: false });
    await clock.advance(10 * timeoutMs);
    expect(check.isDue).toBe(false);
  });
});

describe("a leader that was out of touch", () => {
  it("goes on at once where nobody was heard for minutes", async () => {
    isHeard(2, { leading: false });
    await clock.advance(limits.recentRecordsMs + 1);
    await begin();
    expect(hasPassed).toBe(true);
  });

  it("goes on as soon as somebody is heard who knows of no later term", async () => {
    isHeard(2, { leading: false });
    await clock.advance(timeoutMs);
    await begin();
    isHeard(2, { leading: false });
    await clock.advance(beatMs - 1);
    expect(hasPassed).toBe(false);
    await clock.advance(1);
    expect(hasPassed).toBe(true);
  });

  it("goes on after 2·T where who was there is silent", async () => {
    isHeard(2, { leading: false });
    await clock.advance(timeoutMs);
    await begin();
    await clock.advance(heardMs - 1);
    expect(hasPassed).toBe(false);
    await clock.advance(beatMs);
    expect(hasPassed).toBe(true);
  });

  it("goes on after 2·T, too, where the journal goes on each time by what nobody applies", async () => {
    isHeard(2, { leading: false });
    await clock.advance(timeoutMs);
    const sinceMs = clock.monotonicMs();
    while (check.isDue && clock.monotonicMs() < sinceMs + 3 * heardMs) {
      await begin();
      store.insertRival(Buffer.from("not a batch"));
      await clock.advance(beatMs);
    }
    expect(check.isDue).toBe(false);
    expect(clock.monotonicMs() - sinceMs).toBeGreaterThanOrEqual(heardMs);
    expect(clock.monotonicMs() - sinceMs).toBeLessThanOrEqual(heardMs + 2 * beatMs);
  });

  it("sends behind what it reads after 2·T where the journal never ends where it was read to", async () => {
    isHeard(2, { leading: false });
    await clock.advance(timeoutMs);
    const sinceMs = clock.monotonicMs();
    while (check.isDue && clock.monotonicMs() < sinceMs + 3 * heardMs) {
      const { lastSeq } = store;
      store.insertRival(Buffer.from("not a batch"));
      await begin(lastSeq);
      await clock.advance(beatMs);
      expect(mayAppend).toBe(false);
    }
    expect(check.isDue).toBe(false);
    expect(clock.monotonicMs() - sinceMs).toBeGreaterThanOrEqual(heardMs);
    expect(clock.monotonicMs() - sinceMs).toBeLessThanOrEqual(heardMs + 2 * beatMs);
  });

  /** Looks at a journal that goes on by a record each time, until it may pass. @returns how long that took, ms */
  async function readOn(record: () => Uint8Array, forMs: number): Promise<number> {
    await clock.advance(timeoutMs);
    const sinceMs = clock.monotonicMs();
    while (check.isDue && clock.monotonicMs() < sinceMs + forMs) {
      const { lastSeq } = store;
      store.insertRival(record());
      isHeard(3);
      await begin(lastSeq);
      await clock.advance(beatMs);
      expect(mayAppend).toBe(false);
    }
    return clock.monotonicMs() - sinceMs;
  }
  const longMs = 2 * limits.announcementWaitsMax * timeoutMs;

  it("reads on while somebody says that it is in a later term, where the journal goes on by batches", async () => {
    let idx = 10;
    const tail = () => ({ idx: batchIndex(idx++), hash: "of-another", term: term(3) });
    await readOn(() => following(tail(), 3), longMs);
    expect(check.isDue).toBe(true);
  });

  it("…but not for ever where it goes on by what nobody applies", async () => {
    expect(await readOn(() => Buffer.from("not a batch"), longMs)).toBeLessThan(longMs);
    expect(check.isDue).toBe(false);
  });

  it("counts no time in which nobody answered who was asked what stands behind", async () => {
    isHeard(2, { leading: false });
    await clock.advance(timeoutMs);
    const { lastSeq } = store;
    store.insertRival(following({ idx: batchIndex(10), hash: "of-another", term: term(3) }, 3));
    const { read } = journal;
    journal.read = async () => {
      await new Promise<void>((resolve) => void clock.after(heardMs, resolve));
      throw new UnreachableError("nobody answers");
    };
    await begin(lastSeq);
    await clock.advance(beatMs + heardMs);
    expect([mayAppend, check.isDue]).toEqual([false, true]);
    journal.read = read;
    store.loseTail(1);
    hasPassed = false;
    await begin(lastSeq);
    await clock.advance(heardMs - beatMs);
    expect(hasPassed).toBe(false);
    await clock.advance(2 * beatMs);
    expect(mayAppend).toBe(true);
  });

  it("waits anew for whoever wrote a batch, though it was waited for in vain before", async () => {
    await clock.advance(timeoutMs);
    const say = async (ms: number) => {
      for (let passedMs = 0; passedMs < ms; passedMs += beatMs) {
        isHeard(3);
        await clock.advance(beatMs);
      }
    };
    const { lastSeq } = store;
    isHeard(3);
    await begin();
    await say((limits.announcementWaitsMax - 1) * timeoutMs);
    store.insertRival(following({ idx: batchIndex(10), hash: "of-another", term: term(3) }, 3));
    await say(beatMs);
    expect(mayAppend).toBe(false);
    store.loseTail(1);
    hasPassed = false;
    await begin(lastSeq);
    await say(2 * timeoutMs);
    expect(hasPassed).toBe(false);
  });

  it("listens anew where it was sure of itself since", async () => {
    isHeard(2, { leading: false });
    await clock.advance(timeoutMs);
    await begin();
    store.insertRival(Buffer.from("not a batch"));
    await clock.advance(beatMs);
    expect(hasPassed).toBe(true);
    provenMs = clock.monotonicMs();
    await clock.advance(2 * heardMs);
    hasPassed = false;
    await begin();
    await clock.advance(heardMs - beatMs);
    expect(hasPassed).toBe(false);
    await clock.advance(2 * beatMs);
    expect(hasPassed).toBe(true);
  });

  it("waits while somebody says that it is in a later term, and 2·T more", async () => {
    await clock.advance(timeoutMs);
    isHeard(3);
    await begin();
    for (let beat = 0; beat < 6; beat += 1) {
      await clock.advance(beatMs);
      isHeard(3);
    }
    await clock.advance(heardMs - 1);
    expect(hasPassed).toBe(false);
    await clock.advance(2 * beatMs);
    expect(hasPassed).toBe(true);
  });

  it("does not wait for ever for words that no deeds follow", async () => {
    await clock.advance(timeoutMs);
    isHeard(3);
    await begin();
    for (let ms = 0; ms < limits.announcementWaitsMax * timeoutMs; ms += beatMs) {
      expect(hasPassed).toBe(false);
      isHeard(3);
      await clock.advance(beatMs);
    }
    isHeard(3);
    await clock.advance(2 * beatMs);
    expect(hasPassed).toBe(true);
    provenMs = clock.monotonicMs(); // and led on
    await clock.advance(timeoutMs);
    hasPassed = false;
    isHeard(3);
    await begin();
    await clock.advance(2 * beatMs);
    expect(hasPassed, "what was said and came to nothing says nothing of what is said now").toBe(false);
  });

  it("goes on when the journal shows what the other wrote", async () => {
    await clock.advance(timeoutMs);
    isHeard(3);
    await begin();
    journal.setOffline(true);
    await clock.advance(beatMs);
    store.insertRival(Buffer.from("another's"));
    isHeard(3);
    await clock.advance(beatMs);
    expect(hasPassed).toBe(false);
    journal.setOffline(false);
    await clock.advance(beatMs);
    expect(hasPassed).toBe(true);
  });
});
