// The committer against a journal that fails in every way a journal may: what is committed, in which order, and
// that everybody who reads the journal agrees.

import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { Committer, type CommitterDeps } from "../../src/coordinator/append/committer.ts";
import type { PendingBatch } from "../../src/coordinator/append/sends.ts";
import type { SavedCheck } from "../../src/coordinator/repair/saved-end.ts";
import { UnreachableError } from "../../src/errors.ts";
import { batchIndex, instant, type Term, term } from "../../src/ids.ts";
import { encodeBatch, hashOf } from "../../src/journal/batch.ts";
import {
  type AnswerFate,
  type MemoryJournalFaults,
  MemoryJournalStore,
  type RequestFate,
} from "../../src/journal/memory.ts";
import { RecentRecords } from "../../src/journal/recent-records.ts";
import { type ChainTail, Replay } from "../../src/journal/replay.ts";
import { limits } from "../../src/limits.ts";
import type { Event } from "../../src/state/event.ts";
import { Gate } from "../support/gate.ts";
import { ManualClock } from "../support/manual-clock.ts";

const nothing: ChainTail = { idx: batchIndex(0), term: term(0), hash: "", journal: "" };
const alien = Buffer.from("not a batch");

interface BatchOptions {
  readonly tail: ChainTail;
  readonly term: Term;
  readonly events?: readonly Event[];
  readonly at?: number;
}

function aBatch({ tail, term: of, events, at = 1_000 }: BatchOptions): PendingBatch {
  const startsTerm = of > tail.term;
  const all: readonly Event[] =
    events ??
    (startsTerm
      ? [{ type: "TermStarted", term: of, leader: "c", campaign: "k1", timeoutMs: 3_000 }]
      : [{ type: "TermRenewed" }]);
  const idx = batchIndex(tail.idx + 1);
  const header = { journal: "j", term: of, idx, prev: tail.hash, at: instant(at) };
  const bytes = encodeBatch(
    header,
    all.map((event) => JSON.stringify(event)),
  );
  return { journal: "j", term: of, idx, bytes, hash: hashOf(bytes), startsTerm };
}

/** A leader's end of the journal: one committer, its batches, and a log of what it said. */
class Writer {
  readonly clock = new ManualClock();
  readonly store: MemoryJournalStore;
  readonly log: string[] = [];
  /** When each committed batch was sent, by the proof of it. */
  readonly sentMs: (number | undefined)[] = [];
  /** Whether somebody is told of what is committed. */
  isTold = true;
  /** Called when the end was lost, a moment later. */
  rescue: ((lastSeq: number) => void) | undefined;
  readonly journal;
  readonly committer: Committer;
  tail: ChainTail;

  constructor(
    faults: MemoryJournalFaults = {},
    store = new MemoryJournalStore(),
    more: Pick<CommitterDeps, "rivals" | "ownerOfEnd" | "isSaved"> = {},
  ) {
    this.store = store;
    this.journal = store.open(faults);
    const { position } = replayOf(store);
    this.tail = position;
    const recent = recordsOf(store);
    const deps = { journal: this.journal, clock: this.clock, position, recent, ...more };
    this.committer = new Committer(deps, {
      onCommitted: ({ idx }, stored) => {
        if (this.isTold) this.committer.told(idx);
        this.log.push(`committed ${idx}@${stored?.seq ?? "none"}`);
        this.sentMs.push(stored?.sentMonotonicMs);
      },
      onDead: ({ seq }) => this.log.push(`dead @${seq}`),
      onRefilled: (records) => this.log.push(`refilled ${records}`),
      onTailLost: (lastSeq) => {
        this.log.push(`tail lost behind @${lastSeq}`);
        queueMicrotask(() => this.rescue?.(lastSeq));
      },
      onTailKeptOut: (cause) => this.log.push(`kept out: ${(cause as Error).message}`),
      onPlaceRefused: ({ message }) => this.log.push(`place refused: ${message}`),
      onPlaceLost: () => this.log.push("place lost"),
      onDeposed: () => this.log.push("deposed"),
      onHalted: ({ code }) => this.log.push(`halted ${code}`),
      onUnacknowledged: () => undefined,
      onFull: (full) => this.log.push(full === undefined ? "room" : "full"),
    });
  }

  append(options: Partial<BatchOptions> = {}): PendingBatch {
    const batch = aBatch({ tail: this.tail, term: term(Math.max(1, this.tail.term)), ...options });
    this.tail = batch;
    this.committer.append(batch);
    return batch;
  }

  /** Plays what is under way, retries included. */
  async play(ms = 0): Promise<string[]> {
    await this.clock.advance(ms);
    return this.log;
  }
}

function recordsOf(store: MemoryJournalStore): RecentRecords {
  const recent = new RecentRecords();
  for (let seq = 1; seq <= store.lastSeq; seq += 1) {
    const record = store.at(seq);
    if (record !== undefined) recent.add(record, 0);
  }
  return recent;
}

function replayOf(store: MemoryJournalStore): Replay {
  const replay = new Replay();
  for (let seq = 1; seq <= store.lastSeq; seq += 1)
    replay.take(store.at(seq) as { seq: number; bytes: Uint8Array });
  return replay;
}

/** What every reader makes of the journal, in the words of the log. */
function readerOf(store: MemoryJournalStore): string[] {
  const replay = new Replay();
  return Array.from({ length: store.lastSeq }, (_, at) => {
    const verdict = replay.take(store.at(at + 1) as { seq: number; bytes: Uint8Array });
    return verdict.kind === "dead" ? `dead @${at + 1}` : `committed ${verdict.batch.idx}@${at + 1}`;
  });
}

/** Faults of the first so many requests or answers, each as given; the others go through. */
function firstFates<Fate>(...fates: Fate[]): () => Fate | "deliver" {
  return () => fates.shift() ?? "deliver";
}

describe("a batch is committed", () => {
  it("when it is acknowledged; two may be in flight, no more", async () => {
    const writer = new Writer();
    writer.append();
    expect(writer.committer.hasRoom).toBe(true);
    writer.append();
    expect(writer.committer.hasRoom).toBe(false);
    expect(await writer.play()).toEqual(["committed 1@1", "committed 2@2"]);
    expect(writer.committer.hasRoom).toBe(true);
  });

  it("only after every earlier one, though its acknowledgement comes first", async () => {
    const gate = new Gate();
    const writer = new Writer({
      onAnswer: async ({ expectedSeq }): Promise<AnswerFate> => {
        if (expectedSeq === 0) await gate.opened;
        return "deliver";
      },
    });
    writer.append();
    writer.append();
    expect(await writer.play()).toEqual([]);
    gate.open();
    expect(await writer.play()).toEqual(["committed 1@1", "committed 2@2"]);
  });

  it("when its answer was lost but it was stored: found by sending the same bytes again", async () => {
    const writer = new Writer({ onAnswer: firstFates("lose") });
    writer.append();
    expect(await writer.play()).toEqual([]);
    expect(await writer.play(limits.appendRetryMs)).toEqual(["committed 1@1"]);
    expect(writer.store.lastSeq).toBe(1);
  });

  it("as of its first sending, where it is found stored after a later one was refused: a rival may stand behind it", async () => {
    const answers: AnswerFate[] = ["lose"];
    const writer = new Writer({ onAnswer: () => answers.shift() ?? "deliver" });
    const sentMs = writer.clock.monotonicMs();
    writer.append();
    await writer.play(5_000);
    expect(writer.log).toEqual(["committed 1@1"]);
    expect(writer.sentMs).toEqual([sentMs]);
  });

  it("when its request was lost: sent again", async () => {
    const writer = new Writer({ onRequest: firstFates("lose") });
    writer.append();
    writer.append();
    expect(await writer.play(limits.appendRetryMs)).toEqual(["committed 1@1", "committed 2@2"]);
    expect(writer.store.lastSeq).toBe(2);
  });

  it("when it was refused for a record that no majority ever had: nothing stands there, so it is sent again", async () => {
    const writer = new Writer();
    vi.spyOn(writer.journal, "append").mockResolvedValueOnce({ kind: "refused" });
    writer.append();
    writer.append();
    expect(await writer.play()).toEqual([]);
    expect(await writer.play(10 * limits.appendRetryMs)).toEqual(["committed 1@1", "committed 2@2"]);
    expect(writer.store.lastSeq).toBe(2);
  });

  it("once, where a reader that lags does not find it at first: that proves nothing", async () => {
    const writer = new Writer({ onAnswer: firstFates("lose") });
    vi.spyOn(writer.journal, "read").mockResolvedValueOnce(undefined).mockResolvedValueOnce(undefined);
    writer.append();
    expect(await writer.play(10 * limits.appendRetryMs)).toEqual(["committed 1@1"]);
    expect(writer.store.lastSeq).toBe(1);
  });

  it("once, when its first request was late and arrives after, or before, it was sent again", async () => {
    for (const isBefore of [true, false]) {
      const gate = new Gate();
      const writer = new Writer({
        onRequest: firstFates({ kind: "late", until: gate.opened } as RequestFate),
      });
      writer.append();
      await writer.play();
      if (isBefore) gate.open();
      await writer.play(limits.appendRetryMs);
      gate.open();
      expect(await writer.play()).toEqual(["committed 1@1"]);
      expect(writer.store.lastSeq).toBe(1);
    }
  });

  it("when the second one's answer is lost before the first one's comes", async () => {
    const gate = new Gate();
    let lost = false;
    const writer = new Writer({
      onAnswer: async ({ expectedSeq }): Promise<AnswerFate> => {
        if (expectedSeq === 0) await gate.opened;
        const isToLose = expectedSeq === 1 && !lost;
        lost ||= isToLose;
        return isToLose ? "lose" : "deliver";
      },
    });
    writer.append();
    writer.append();
    await writer.play();
    gate.open();
    expect(await writer.play(10 * limits.appendRetryMs)).toEqual(["committed 1@1", "committed 2@2"]);
  });

  it("behind a record that is none of ours, which everybody skips", async () => {
    const store = new MemoryJournalStore();
    const writer = new Writer(
      {
        onRequest: ({ expectedSeq }) => {
          if (store.lastSeq === 1 && expectedSeq === 1) store.insertRival(alien);
          return "deliver";
        },
      },
      store,
    );
    writer.append();
    await writer.play();
    writer.append();
    writer.append();
    await writer.play(limits.appendRetryMs);
    expect(writer.log.filter((line) => line.startsWith("committed"))).toEqual(
      readerOf(store).filter((line) => line.startsWith("committed")),
    );
    expect(replayOf(store).position.idx).toBe(3);
    expect(writer.log).toContain("dead @2");
  });

  it("though the journal cannot be read for a while", async () => {
    const writer = new Writer({ onAnswer: firstFates("lose") });
    const { read } = writer.journal;
    let failures = 3;
    writer.journal.read = (seq) => {
      failures -= 1;
      return failures >= 0 ? Promise.reject(new UnreachableError("away")) : read.call(writer.journal, seq);
    };
    writer.append();
    expect(await writer.play(20 * limits.appendRetryMs)).toEqual(["committed 1@1"]);
  });

  it("after a journal that was full has room again; it is said once, and nothing is lost", async () => {
    const full = { kind: "full", message: "no room" } as const;
    const writer = new Writer({ onRequest: firstFates<RequestFate>(full, full, full, full, full) });
    writer.append();
    writer.append();
    expect(await writer.play(limits.journalFullRetryMs)).toEqual(["full"]);
    expect(await writer.play(5 * limits.journalFullRetryMs)).toEqual([
      "full",
      "room",
      "committed 1@1",
      "committed 2@2",
    ]);
  });
});

describe("a rival", () => {
  /** Two of our batches are in flight behind batch 1 of term 1 when the rival's record takes the first one's place. */
  async function surprised(
    rivalOf: (tail: ChainTail) => Uint8Array,
    onAnswer?: MemoryJournalFaults["onAnswer"],
  ) {
    const store = new MemoryJournalStore();
    let rival: Uint8Array | undefined;
    const writer = new Writer(
      {
        onRequest: () => {
          if (rival !== undefined) store.insertRival(rival);
          rival = undefined;
          return "deliver";
        },
        ...(onAnswer === undefined ? {} : { onAnswer }),
      },
      store,
    );
    writer.append();
    await writer.play();
    rival = rivalOf(writer.tail);
    const first = writer.append();
    const second = writer.append();
    await writer.play(10 * limits.appendRetryMs);
    return { writer, store, first, second };
  }

  const elected = (tail: ChainTail) => aBatch({ tail, term: term(2) }).bytes;

  it("elected between two batches in flight voids both, though the second was acknowledged", async () => {
    const outcomes: string[] = [];
    const { writer, store, second } = await surprised(elected, ({ expectedSeq }, { kind }) => {
      outcomes.push(`${expectedSeq}: ${kind}`);
      return "deliver";
    });
    // The journal took the second batch at the very position it expected.
    expect(outcomes.slice(1)).toEqual(["1: refused", "2: stored"]);
    expect(Buffer.compare(store.at(3)?.bytes ?? alien, second.bytes)).toBe(0);
    expect(writer.log).toEqual(["committed 1@1", "deposed"]);
    expect(readerOf(store)).toEqual(["committed 1@1", "committed 2@2", "dead @3"]);
    expect(replayOf(store).state.term).toBe(2);
    expect(writer.committer.hasRoom).toBe(false);
  });

  it.each([
    ["the first answer is lost", 1],
    ["the second answer is lost", 2],
  ])("is found out too when %s", async (_, lostSeq) => {
    let isLost = false;
    const { writer } = await surprised(elected, ({ expectedSeq }) => {
      if (isLost || expectedSeq !== lostSeq) return "deliver";
      isLost = true;
      return "lose";
    });
    expect(writer.log).toEqual(["committed 1@1", "deposed"]);
  });

  it("is found out by the first batch alone, when both are sent again: the second may not land behind it", async () => {
    let isAway = true;
    const onRequest = (): RequestFate => (isAway && writer.tail.idx > 1 ? "lose" : "deliver");
    const writer = new Writer({ onRequest });
    writer.append();
    await writer.play();
    const { tail } = writer;
    writer.append();
    writer.append();
    await writer.play();
    isAway = false;
    writer.store.insertRival(elected(tail));
    expect(await writer.play(limits.appendRetryMs)).toEqual(["committed 1@1", "deposed"]);
    expect(writer.store.lastSeq).toBe(2);
  });

  /** Of one batch and a dead record, in whose place two batches of a later term stand by now. */
  function writerOfLostDeadRecord(): Writer {
    const store = new MemoryJournalStore();
    store.insertRival(aBatch({ tail: nothing, term: term(1) }).bytes);
    store.insertRival(alien);
    const writer = new Writer({}, store);
    store.loseTail(1);
    const start = aBatch({ tail: writer.tail, term: term(2) });
    store.insertRival(start.bytes);
    store.insertRival(aBatch({ tail: start, term: term(2) }).bytes);
    return writer;
  }

  it("is found out though dead records were lost, and it stands in their place", async () => {
    const writer = writerOfLostDeadRecord();
    writer.append();
    expect(await writer.play(limits.appendRetryMs)).toEqual(["deposed"]);
  });

  it.each([
    ["is not found", () => Promise.resolve(undefined)],
    ["cannot be asked for", () => Promise.reject(new UnreachableError("away"))],
  ])("…and though our last batch %s for a while", async (_, hides) => {
    const writer = writerOfLostDeadRecord();
    const read = writer.journal.read.bind(writer.journal);
    writer.journal.read = (seq) => (seq === 1 ? hides() : read(seq));
    writer.append();
    expect(await writer.play(10 * limits.appendRetryMs)).toEqual([]);
    writer.journal.read = read;
    expect(await writer.play(10 * limits.appendRetryMs)).toEqual(["deposed"]);
  });

  it("that went on behind other batches than ours is a fork", async () => {
    const writer = new Writer();
    writer.append();
    const { tail } = writer;
    writer.append();
    await writer.play();
    writer.store.loseTail(1);
    const start = aBatch({ tail, term: term(2) });
    writer.store.insertRival(start.bytes);
    writer.store.insertRival(aBatch({ tail: start, term: term(2) }).bytes);
    writer.append();
    expect((await writer.play()).slice(2)).toEqual(["halted WAGGLE_JOURNAL_DAMAGED"]);
  });

  it("that has purged our place along with its own has deposed us", async () => {
    const writer = new Writer();
    writer.append();
    await writer.play();
    const rival = aBatch({ tail: writer.tail, term: term(2) });
    const place = writer.store.insertRival(rival.bytes);
    writer.store.purgeBelow(place + 1);
    writer.append();
    expect(await writer.play()).toEqual(["committed 1@1", "deposed"]);
  });

  it("of our own term is a fork: nothing more is written", async () => {
    const forked = (tail: ChainTail) => aBatch({ tail, term: term(1), at: 2_000 }).bytes;
    const { writer, store } = await surprised(forked);
    expect(writer.log).toEqual(["committed 1@1", "halted WAGGLE_JOURNAL_DAMAGED"]);
    expect(store.lastSeq).toBe(3);
  });

  it("of a lower term, or of another journal, is dead", async () => {
    for (const bytes of [
      aBatch({ tail: nothing, term: term(1) }).bytes,
      Buffer.from(
        Buffer.from(aBatch({ tail: nothing, term: term(1) }).bytes)
          .toString()
          .replace('"j"', '"other"'),
      ),
    ]) {
      const { writer, store } = await surprised(() => bytes);
      expect(writer.log.filter((line) => line !== "dead @2" && line !== "dead @3")).toEqual([
        "committed 1@1",
        expect.stringMatching(/^committed 2@/),
        expect.stringMatching(/^committed 3@/),
      ]);
      expect(replayOf(store).position.idx).toBe(3);
    }
  });

  it.each([
    ["another standby's", 2, 2],
    ["a later one's", 2, 3],
    ["the old leader's last batch", 2, 1],
  ])(
    "that comes first when we campaign has won the place, and that is no halt: %s",
    async (_, ours, theirs) => {
      const store = new MemoryJournalStore();
      const old = new Writer({}, store);
      old.append();
      await old.play();
      const writer = new Writer({}, store);
      store.insertRival(aBatch({ tail: writer.tail, term: term(theirs), at: 3_000 }).bytes);
      writer.append({ term: term(ours) });
      expect(await writer.play(limits.appendRetryMs)).toEqual(["deposed"]);
    },
  );
});

describe("whether another leads by now", () => {
  it("is asked again where nobody answered, before anything is sent", async () => {
    let answers = 0;
    const passes: number[] = [];
    const rivals = {
      isDue: true,
      async pass(lastSeq: number) {
        passes.push(lastSeq);
        if (passes.length > answers) throw new UnreachableError("nobody answers");
        this.isDue = false;
        return true;
      },
      unanswered: () => undefined,
    };
    const writer = new Writer({}, new MemoryJournalStore(), { rivals });
    writer.append();
    await writer.play(5 * limits.appendRetryMs);
    expect([writer.store.lastSeq, passes.length]).toEqual([0, 6]);
    answers = 7;
    await writer.play(limits.appendRetryMs);
    expect(writer.log).toEqual(["committed 1@1"]);
  });
});

describe("a leader that finds that the journal goes on", () => {
  it("reads what stands there, and sends nothing into that place", async () => {
    const store = new MemoryJournalStore();
    const rivals = {
      isDue: false,
      pass: async (lastSeq: number) => store.lastSeq === lastSeq,
      unanswered: () => undefined,
    };
    let sent = 0;
    const writer = new Writer({ onRequest: () => (sent++ > 0 ? "lose" : "deliver") }, store, { rivals });
    writer.append();
    await writer.play();
    store.insertRival(aBatch({ tail: writer.tail, term: term(2), at: 3_000 }).bytes);
    rivals.isDue = true;
    writer.append();
    expect([await writer.play(), sent]).toEqual([["committed 1@1", "deposed"], 1]);
  });
});

describe("a leader that finds that the journal does not end where it read to", () => {
  /** Asks each time, and may send where the journal ends there. */
  class Asking {
    isDue = false;
    readonly #store: MemoryJournalStore;
    asked = 0;

    constructor(store: MemoryJournalStore) {
      this.#store = store;
    }

    async pass(lastSeq: number): Promise<boolean> {
      this.asked += 1;
      if (this.asked > 1_000) throw new Error("asked on and on, at one instant");
      return this.#store.lastSeq === lastSeq;
    }

    unanswered(): void {
      this.isDue = true;
    }
  }

  it("puts back what was lost, also behind dead records that it met meanwhile", async () => {
    const store = new MemoryJournalStore();
    const rivals = new Asking(store);
    const writer = new Writer({}, store, { rivals });
    writer.append();
    writer.append();
    await writer.play();
    rivals.isDue = true;
    for (const text of ["somebody", "else's"]) store.insertRival(Buffer.from(text));
    const { pass } = rivals;
    rivals.pass = async (lastSeq) => {
      if (rivals.asked === 1) store.loseTail(3); // what was read just now, and a batch with it
      return await pass.call(rivals, lastSeq);
    };
    writer.append();
    await writer.play(10 * limits.appendRetryMs);
    expect(writer.log.filter((line) => !line.startsWith("dead"))).toEqual([
      "committed 1@1",
      "committed 2@2",
      "refilled 3",
      "committed 3@5",
    ]);
    expect(readerOf(store).filter((line) => line.startsWith("committed"))).toHaveLength(3);
  });

  it("sends nothing where it could not read what stands there, until it is asked anew", async () => {
    const store = new MemoryJournalStore();
    const rivals = new Asking(store);
    const sent: number[] = [];
    const faults: MemoryJournalFaults = {
      onRequest: ({ expectedSeq }) => {
        sent.push(expectedSeq);
        return "deliver";
      },
    };
    const writer = new Writer(faults, store, { rivals });
    writer.append();
    await writer.play();
    const pass = rivals.pass.bind(rivals);
    rivals.pass = (lastSeq) => {
      rivals.isDue = false; // it has listened for long, and nobody was heard
      return pass(lastSeq);
    };
    const { read } = writer.journal;
    let isAway = true;
    writer.journal.read = async (seq) => {
      if (isAway) throw new UnreachableError("nobody answers");
      return await read.call(writer.journal, seq);
    };
    store.insertRival(aBatch({ tail: writer.tail, term: term(2), at: 3_000 }).bytes);
    rivals.isDue = true;
    writer.append();
    await writer.play(10 * limits.appendRetryMs);
    isAway = false;
    expect([await writer.play(limits.appendRetryMs), sent]).toEqual([["committed 1@1", "deposed"], [0]]);
  });

  it("asks anew whether another leads where nobody answered what it sent", async () => {
    const store = new MemoryJournalStore();
    const rivals = new Asking(store);
    let isLosing = false;
    const writer = new Writer({ onRequest: () => (isLosing ? "lose" : "deliver") }, store, { rivals });
    writer.append();
    await writer.play();
    isLosing = true;
    const unanswered = vi.spyOn(rivals, "unanswered");
    writer.append();
    await writer.clock.settle();
    expect([unanswered.mock.calls.length, rivals.isDue]).toEqual([1, true]);
  });

  it("takes its own batch for committed only where no other record than its own stands before it", async () => {
    const store = new MemoryJournalStore();
    const rivals = new Asking(store);
    let isLosing = false;
    const writer = new Writer({ onAnswer: () => (isLosing ? "lose" : "deliver") }, store, { rivals });
    writer.append();
    writer.append();
    await writer.play();
    const first = replayOf(store);
    isLosing = true;
    const third = writer.append();
    await writer.clock.settle();
    store.loseTail(2); // and another is elected in the place of the second, before what was sent arrives
    store.insertRival(aBatch({ tail: { ...first.position, idx: batchIndex(1) }, term: term(2) }).bytes);
    store.insertRival(third.bytes);
    const { read } = writer.journal;
    let misses = 1;
    writer.journal.read = async (seq) =>
      seq === 2 && misses-- > 0 ? undefined : read.call(writer.journal, seq);
    rivals.isDue = true;
    isLosing = false;
    await writer.play(limits.readBackPatienceMs);
    expect(writer.log).toEqual(["committed 1@1", "committed 2@2", "halted WAGGLE_JOURNAL_DAMAGED"]);
  });

  it("asks anew before it sends what is behind the batch that it finds stored", async () => {
    const store = new MemoryJournalStore();
    const rivals = new Asking(store);
    const sent: number[] = [];
    let isLosing = false;
    const faults: MemoryJournalFaults = {
      onRequest: ({ expectedSeq }) => {
        sent.push(expectedSeq);
        return "deliver";
      },
      onAnswer: () => (isLosing ? "lose" : "deliver"),
    };
    const writer = new Writer(faults, store, { rivals });
    writer.append();
    await writer.play();
    isLosing = true;
    writer.append();
    await writer.clock.settle();
    rivals.isDue = true;
    store.insertRival(aBatch({ tail: writer.tail, term: term(2), at: 3_000 }).bytes);
    writer.append();
    isLosing = false;
    sent.length = 0;
    await writer.play(10 * limits.appendRetryMs);
    expect([writer.log, sent]).toEqual([["committed 1@1", "committed 2@2", "deposed"], []]);
  });
});

describe("a place that the journal counts and never finds", () => {
  /** Batch 1 is committed; the answers to 2 and 3 are lost, and then what stands in the place of 2, the first of
   *  them. */
  async function unanswered() {
    const store = new MemoryJournalStore();
    let isLosing = false;
    const writer = new Writer({ onAnswer: () => (isLosing ? "lose" : "deliver") }, store);
    writer.append();
    await writer.play();
    const standby = replayOf(store);
    isLosing = true;
    const [second, third] = [writer.append(), writer.append()];
    await writer.clock.settle();
    isLosing = false;
    const reads = (from: number) => {
      for (let seq = from; seq <= store.lastSeq; seq += 1)
        standby.take(store.at(seq) ?? expect.fail(`record ${seq} is there`));
    };
    return { writer, store, standby, reads, second, third };
  }

  it("counts as dead after patience: the batch stands behind it, and who read it there agrees", async () => {
    const { writer, store, standby, reads } = await unanswered();
    reads(2);
    store.loseMiddle(2, 1);
    await writer.play(limits.readBackPatienceMs);
    expect([store.lastSeq, writer.log]).toEqual([3, ["committed 1@1"]]);
    await writer.play(10 * limits.appendRetryMs);
    writer.append();
    await writer.play(limits.appendRetryMs);
    expect(writer.log.filter((line) => line.startsWith("committed"))).toEqual([
      "committed 1@1",
      "committed 2@4",
      "committed 3@5",
      "committed 4@6",
    ]);
    expect(writer.log.indexOf("place lost")).toBe(1);
    reads(4);
    expect(standby.position).toMatchObject({ idx: 4, hash: writer.tail.hash });
    expect(standby.deadRecords).toBe(2);
  });

  it("at the journal's end counts as dead, too", async () => {
    const { writer, store } = await unanswered();
    store.loseMiddle(2, 2);
    await writer.play(3 * limits.readBackPatienceMs);
    expect(writer.log.filter((line) => line.startsWith("committed"))).toEqual([
      "committed 1@1",
      "committed 2@4",
      "committed 3@5",
    ]);
  });

  it("takes no longer where many follow, and none that is found again counts", async () => {
    const { writer, store } = await unanswered();
    for (let count = 0; count < 40; count += 1) store.insertRival(Buffer.from("somebody else's"));
    store.loseMiddle(2, 20);
    store.loseMiddle(30, 10);
    await writer.play(limits.readBackPatienceMs + 10 * limits.appendRetryMs);
    expect(writer.log.filter((line) => line === "place lost")).toHaveLength(20);
    await writer.play(limits.readBackPatienceMs + 10 * limits.appendRetryMs);
    expect(writer.log.filter((line) => line.startsWith("committed"))).toEqual([
      "committed 1@1",
      "committed 2@44",
      "committed 3@45",
    ]);
  });

  it("is where it was when it is found within patience", async () => {
    const { writer, store } = await unanswered();
    const { read } = writer.journal;
    writer.journal.read = async (seq) => (seq === 1 ? read.call(writer.journal, seq) : undefined);
    await writer.play(limits.readBackPatienceMs - limits.appendRetryMs);
    writer.journal.read = read;
    await writer.play(10 * limits.appendRetryMs);
    expect(writer.log).toEqual(["committed 1@1", "committed 2@2", "committed 3@3"]);
    expect(store.lastSeq).toBe(3);
  });

  it("is not believed to be lost while nobody answers in between", async () => {
    const { writer, store } = await unanswered();
    store.loseMiddle(2, 1);
    await writer.play(limits.readBackPatienceMs - limits.appendRetryMs);
    writer.journal.setOffline(true);
    await writer.play(limits.readBackPatienceMs);
    writer.journal.setOffline(false);
    await writer.play(limits.readBackPatienceMs - limits.appendRetryMs);
    expect(writer.log).toEqual(["committed 1@1"]);
  });

  it("is none any more where the server cut its store there", async () => {
    const { writer, store } = await unanswered();
    store.loseMiddle(2, 2);
    const isForgotten = () => writer.log.filter((line) => line === "place lost").length > 1;
    let isCut = false;
    const { append } = writer.journal;
    writer.journal.append = (bytes, expectedSeq) => {
      if (isForgotten() && !isCut) {
        isCut = true;
        store.loseTail(2);
      }
      return append.call(writer.journal, bytes, expectedSeq);
    };
    await writer.play(3 * limits.readBackPatienceMs);
    expect([isCut, store.lastSeq]).toEqual([true, 3]);
    expect(writer.log.slice(-2)).toEqual(["committed 2@2", "committed 3@3"]);
  });

  it.each([["read before it was lost"], ["lost with it"]])(
    "may be what another has continued: then we are deposed, and that is no halt; its first record was %s",
    async (fate) => {
      const { writer, store, third } = await unanswered();
      const start = aBatch({ tail: third, term: term(2) });
      store.insertRival(start.bytes);
      store.insertRival(aBatch({ tail: start, term: term(2) }).bytes);
      store.loseMiddle(2, fate === "lost with it" ? 3 : 2);
      await writer.play(4 * limits.readBackPatienceMs);
      expect(writer.log.filter((line) => line !== "place lost")).toEqual(["committed 1@1", "deposed"]);
      expect(store.lastSeq).toBe(5);
    },
  );

  it("may be continued while the batch is sent again: deposed by who read more of it", async () => {
    const { writer, store, third } = await unanswered();
    store.loseMiddle(2, 2);
    const { append } = writer.journal;
    let sent = 0;
    writer.journal.append = (bytes, expectedSeq) => {
      sent += expectedSeq === 4 ? 1 : 0;
      if (expectedSeq === 4 && sent === 1) store.insertRival(aBatch({ tail: third, term: term(2) }).bytes);
      return append.call(writer.journal, bytes, expectedSeq);
    };
    await writer.play(3 * limits.readBackPatienceMs);
    expect(writer.log.filter((line) => line !== "place lost")).toEqual([
      "committed 1@1",
      "committed 2@4",
      "deposed",
    ]);
  });
});

describe("a batch that is sent again", () => {
  it("behind the line that another wrote in the place of a lost end is not committed", async () => {
    const writer = new Writer({ onRequest: firstFates<RequestFate>("deliver", "deliver", "lose") });
    writer.append();
    const { tail } = writer;
    writer.append();
    await writer.play();
    writer.append();
    await writer.play();
    writer.store.loseTail(1);
    writer.store.insertRival(aBatch({ tail, term: term(2) }).bytes); // as long as before
    await writer.play(10 * limits.appendRetryMs);
    expect(writer.store.lastSeq).toBe(3);
    expect(writer.log).toEqual(["committed 1@1", "committed 2@2", "halted WAGGLE_JOURNAL_DAMAGED"]);
  });

  it("waits for its commit until the record before it can be read", async () => {
    const writer = new Writer({ onRequest: firstFates<RequestFate>("deliver", "lose") });
    writer.append();
    await writer.play();
    writer.append();
    const { read } = writer.journal;
    writer.journal.read = () => Promise.reject(new UnreachableError("away"));
    await writer.play(10 * limits.appendRetryMs);
    expect([writer.store.lastSeq, writer.log]).toEqual([2, ["committed 1@1"]]);
    writer.journal.read = read;
    await writer.play(10 * limits.appendRetryMs);
    expect(writer.log).toEqual(["committed 1@1", "committed 2@2"]);
  });
});

describe("a batch that comes while the one before is looked into", () => {
  it("is sent once that one is committed", async () => {
    const gate = new Gate();
    const writer = new Writer({ onRequest: firstFates<RequestFate>("deliver", "lose") });
    writer.append();
    await writer.play();
    writer.append();
    const { read } = writer.journal;
    writer.journal.read = async (seq) => {
      await gate.opened;
      return read.call(writer.journal, seq);
    };
    await writer.play(limits.appendRetryMs);
    writer.append();
    expect(await writer.play()).toEqual(["committed 1@1"]);
    gate.open();
    expect(await writer.play()).toEqual(["committed 1@1", "committed 2@2", "committed 3@3"]);
  });
});

describe("whatever the way to the journal does", () => {
  const fate = fc.oneof(
    { weight: 3, arbitrary: fc.constant("deliver" as const) },
    fc.constantFrom("lose" as const, "late" as const, "alien" as const, "full" as const),
  );
  const fates = fc.record({
    requests: fc.array(fate, { maxLength: 12 }),
    answers: fc.array(fc.constantFrom("deliver" as const, "lose" as const), { maxLength: 12 }),
    /** Whether an answer is put off behind the next one. */
    slow: fc.array(fc.boolean(), { maxLength: 12 }),
  });

  it("each batch is committed once, in order, and every reader agrees", async () => {
    await fc.assert(
      fc.asyncProperty(fates, async (given) => {
        const [requests, answers, slow] = [[...given.requests], [...given.answers], [...given.slow]];
        const store = new MemoryJournalStore();
        const clock: { current?: ManualClock } = {};
        const pass = (ms: number) => new Promise<void>((resolve) => void clock.current?.after(ms, resolve));
        const writer = new Writer(
          {
            onRequest: () => {
              const next = requests.shift() ?? "deliver";
              if (next === "late") return { kind: "late", until: pass(250) };
              if (next === "full") return { kind: "full", message: "" };
              if (next !== "alien") return next;
              store.insertRival(alien);
              return "deliver";
            },
            onAnswer: async () => {
              if (slow.shift() === true) await pass(60);
              return answers.shift() ?? "deliver";
            },
          },
          store,
        );
        clock.current = writer.clock;
        for (
          let sent = 0, rounds = 0;
          writer.log.filter((line) => line.startsWith("committed")).length < 8;
          rounds += 1
        ) {
          if (rounds > 1_000) throw new Error(`stuck after ${writer.log.join(", ")}`);
          for (; sent < 8 && writer.committer.hasRoom; sent += 1) writer.append();
          await writer.play(50);
        }
        const committed = writer.log.filter((line) => line.startsWith("committed"));
        expect(committed).toEqual(readerOf(store).filter((line) => line.startsWith("committed")));
        expect(writer.log.filter((line) => line.startsWith("halted") || line === "deposed")).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("stopped", () => {
  it("it says nothing more, whatever the journal still answers", async () => {
    const gate = new Gate();
    const writer = new Writer({ onAnswer: () => gate.opened.then((): AnswerFate => "deliver") });
    writer.append();
    await writer.play();
    writer.committer.stop();
    gate.open();
    expect(await writer.play(limits.appendRetryMs)).toEqual([]);
    expect(writer.store.lastSeq).toBe(1);
  });
});

it("a journal that refuses all and seems to lack what it has is asked again after a pause, not at once", async () => {
  const writer = new Writer();
  for (let batches = 0; batches < 2; batches += 1) writer.append();
  await writer.play();
  const usage = await writer.journal.position();
  vi.spyOn(writer.journal, "position").mockResolvedValue({ ...usage, lastSeq: 1 });
  vi.spyOn(writer.journal, "read").mockResolvedValue(undefined);
  const appends = vi.spyOn(writer.journal, "append").mockResolvedValue({ kind: "refused" });
  writer.append();
  await writer.play(10 * limits.appendRetryMs);
  expect(appends.mock.calls.length).toBeLessThan(40);
  const log = await writer.play(limits.readBackPatienceMs);
  expect(log.filter((line) => line.startsWith("kept out"))).toEqual([
    expect.stringMatching(/ends at record 1, ended at 2 before.*restart the nats-server/),
  ]);
  vi.restoreAllMocks();
  expect((await writer.play(limits.appendRetryMs)).filter((line) => line.startsWith("committed"))).toEqual([
    "committed 1@1",
    "committed 2@2",
    "committed 3@3",
  ]);
});

describe("an end that is not held any more", () => {
  const appendRetriesMs = 5 * limits.appendRetryMs;

  /** Three batches, of which the last alone is held, behind a server that answers as of the first. */
  async function aForgetfulWriter(
    ownerOfEnd?: CommitterDeps["ownerOfEnd"],
  ): Promise<{ readonly writer: Writer; readonly recall: () => void }> {
    const writer = new Writer({}, new MemoryJournalStore(), { ownerOfEnd });
    for (let batches = 0; batches < 2; batches += 1) writer.append();
    await writer.play(limits.recentRecordsMs + 1);
    writer.append();
    await writer.play();
    const usage = await writer.journal.position();
    vi.spyOn(writer.journal, "position").mockResolvedValue({ ...usage, lastSeq: 1 });
    vi.spyOn(writer.journal, "read").mockResolvedValue(undefined);
    vi.spyOn(writer.journal, "append").mockResolvedValue({ kind: "refused" });
    writer.append();
    return { writer, recall: () => vi.restoreAllMocks() };
  }

  /** Four batches, of which the journal lost the last two. */
  async function aWriterWhoseEndIsLost(more: Pick<CommitterDeps, "isSaved"> = {}): Promise<Writer> {
    const writer = new Writer({}, undefined, more);
    for (let batches = 0; batches < 4; batches += 1) {
      writer.append();
      await writer.play();
    }
    writer.store.loseTail(2);
    return writer;
  }

  it("is only the word of a server that does not know yet, where it is there again soon", async () => {
    const { writer, recall } = await aForgetfulWriter();
    const log = await writer.play(limits.journalHoleMs - 5 * limits.appendRetryMs);
    expect(log).toEqual(["committed 1@1", "committed 2@2", "committed 3@3"]);
    recall();
    expect((await writer.play(limits.journalHoleMs)).at(-1)).toBe("committed 4@4");
    expect(log).not.toContain("tail lost behind @1");
  });

  it("is only the word of such a server, too, where another said so long ago, and all was there meanwhile", async () => {
    const { writer, recall } = await aForgetfulWriter();
    await writer.play();
    recall();
    await writer.play(2 * limits.journalHoleMs);
    const usage = await writer.journal.position();
    vi.spyOn(writer.journal, "position").mockResolvedValue({ ...usage, lastSeq: 1 });
    vi.spyOn(writer.journal, "append").mockResolvedValueOnce({ kind: "refused" });
    vi.spyOn(writer.journal, "read").mockResolvedValueOnce(undefined);
    writer.append();
    const log = await writer.play();
    vi.restoreAllMocks();
    expect(log.at(-1)).toBe("committed 4@4");
    expect((await writer.play(limits.journalHoleMs)).at(-1)).toBe("committed 5@5");
  });

  it("is only that, too, where nobody answered in between", async () => {
    const { writer, recall } = await aForgetfulWriter();
    await writer.play();
    const looks = vi.spyOn(writer.journal, "position");
    looks.mockRejectedValue(new UnreachableError("nobody answers"));
    await writer.play(2 * limits.journalHoleMs);
    looks.mockResolvedValue({ firstSeq: 1, lastSeq: 1, missing: 0 });
    const log = await writer.play(5 * limits.appendRetryMs);
    recall();
    expect(log).toEqual(["committed 1@1", "committed 2@2", "committed 3@3"]);
    expect((await writer.play(limits.journalHoleMs)).at(-1)).toBe("committed 4@4");
  });

  it("is lost, too, where somebody else wrote on in its place", async () => {
    const writer = await aWriterWhoseEndIsLost();
    for (let aliens = 0; aliens < 3; aliens += 1) writer.store.insertRival(alien);
    writer.append();
    expect((await writer.play(limits.appendRetryMs)).slice(4)).toEqual(["dead @5", "tail lost behind @5"]);
    writer.committer.continueBehind(5); // it was saved
    writer.append();
    expect((await writer.play()).slice(6)).toEqual(["committed 5@none", "committed 6@6"]);
  });

  it("is safe where another saved all that was told of: of what came after nobody was", async () => {
    const isSaved = vi.fn<SavedCheck>(async () => false);
    const writer = await aWriterWhoseEndIsLost({ isSaved });
    const asked = async () => {
      await writer.committer.isSaved();
      const { committed, inFlight = [] } = isSaved.mock.lastCall?.[0] ?? { committed: [] };
      return [committed, inFlight].map((batches) => batches.map(({ idx }) => Number(idx)));
    };
    expect(await asked()).toEqual([[4], []]); // that was told of
    writer.isTold = false;
    for (let aliens = 0; aliens < 3; aliens += 1) writer.store.insertRival(alien);
    for (const idx of [5, 6]) {
      writer.append();
      await writer.play(limits.appendRetryMs);
      expect((await asked())[1]).toEqual([idx]);
      writer.committer.continueBehind(writer.store.lastSeq); // its own snapshot holds it
      expect(writer.log.at(-1)).toBe(`committed ${idx}@none`);
      if (idx === 5) writer.store.loseTail(1);
    }
    writer.append();
    await writer.play(); // behind its own snapshots the journal takes it
    expect(await asked()).toEqual([[4, 5, 6, 7], []]);
    writer.committer.told(batchIndex(6));
    expect(await asked()).toEqual([[6, 7], []]);
    isSaved.mockResolvedValue(true);
    expect(await writer.committer.isSaved()).toBe(true);
  });

  it("is gone on behind by who saved it alone, however soon that is", async () => {
    const { writer, recall } = await aForgetfulWriter();
    const append = vi.mocked(writer.journal.append);
    writer.rescue = (lastSeq) => {
      append.mockReset().mockReturnValue(new Promise(() => undefined));
      writer.committer.continueBehind(lastSeq);
      writer.append();
    };
    await writer.play(limits.journalHoleMs + 2 * appendRetriesMs);
    expect(writer.log.slice(-2)).toEqual(["tail lost behind @1", "committed 4@none"]);
    expect(append).toHaveBeenCalledOnce();
    recall();
  });

  it("is not lost once more after it was saved", async () => {
    const { writer, recall } = await aForgetfulWriter();
    await writer.play(limits.journalHoleMs + 5 * limits.appendRetryMs);
    writer.committer.continueBehind(1); // it was saved
    writer.append(); // and refused, as by a server that does not know yet what it holds
    await writer.play(5 * limits.appendRetryMs);
    expect(writer.log.filter((line) => line.startsWith("tail lost"))).toHaveLength(1);
    await writer.play(limits.readBackPatienceMs);
    expect(writer.log.at(-1)).toMatch(
      /^place refused: the journal ends at record 1, and refuses .*restart the nats-server/,
    );
    recall();
  });

  it("is not saved where another leads behind what somebody else wrote in its place", async () => {
    const writer = await aWriterWhoseEndIsLost();
    const { position } = replayOf(writer.store);
    for (let aliens = 0; aliens < 2; aliens += 1) writer.store.insertRival(alien);
    writer.store.insertRival(aBatch({ tail: position, term: term(2) }).bytes);
    writer.append();
    expect((await writer.play(limits.appendRetryMs)).slice(4)).toEqual(["halted WAGGLE_JOURNAL_DAMAGED"]);
  });

  it("is told of when it stays so", async () => {
    const { writer } = await aForgetfulWriter();
    const log = await writer.play(limits.journalHoleMs + 5 * limits.appendRetryMs);
    expect(log.at(-1)).toBe("tail lost behind @1");
    vi.restoreAllMocks();
  });

  it("is not saved where another went on from before it", async () => {
    const { writer } = await aForgetfulWriter(async () => "another");
    const log = await writer.play(limits.journalHoleMs + 5 * limits.appendRetryMs);
    expect(log.slice(3)).toEqual(["halted WAGGLE_JOURNAL_DAMAGED"]);
    vi.restoreAllMocks();
  });

  it("is saved only when what shows whose line it is has been missing for long", async () => {
    const { writer } = await aForgetfulWriter(async (_, { mayLack }) => (mayLack ? "ours" : "unknown"));
    const log = await writer.play(
      limits.journalHoleMs + limits.readBackPatienceMs - 5 * limits.appendRetryMs,
    );
    expect(log).toHaveLength(3);
    await writer.play(10 * limits.appendRetryMs);
    expect(log.slice(3)).toEqual(["tail lost behind @1"]);
    vi.restoreAllMocks();
  });
});
