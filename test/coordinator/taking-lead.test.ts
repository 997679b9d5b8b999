// Taking the lead: the winner of a race, the comparison of memory with storage, faults that restart the procedure, and
// halts.

import { beforeEach, describe, expect, it, vi } from "vitest";
import { systemRandom } from "../../src/clock.ts";
import {
  type TakeLeadDeps,
  type TakenLead,
  takeLead,
  type Writing,
} from "../../src/coordinator/taking-lead/take-lead.ts";
import { timingOf } from "../../src/coordinator/timing.ts";
import { JournalDamagedError } from "../../src/errors.ts";
import { term } from "../../src/ids.ts";
import { findLive } from "../../src/journal/live.ts";
import { restore } from "../../src/journal/log.ts";
import { type AnswerFate, MemoryJournal, type RequestFate } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { type ChainTail, decodeRecord, encodeRecord } from "../../src/journal/records.ts";
import type { Replay } from "../../src/journal/replay.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { liveOf, Rival } from "../support/stored.ts";
import { silentLogger } from "../support/swarm.ts";

const timing = timingOf(limits.leaderTimeoutMs);
const renewed = { type: "TermRenewed" } as const;
const never = new AbortController().signal;
let clock: ManualClock;
let store: MemoryJournalStore;
let writer: Rival;

beforeEach(() => {
  clock = new ManualClock();
  store = new MemoryJournalStore({ clock });
  writer = new Rival(store, "earlier");
});

function depsOf(
  id: string,
  journal = new MemoryJournal(store),
  more: Partial<TakeLeadDeps> = {},
): TakeLeadDeps {
  return {
    id,
    session: `session-of-${id}`,
    journal,
    timing,
    silentSegment: undefined,
    seen: { highest: 0 },
    isLed: () => false,
    isMoreHeld: async () => false,
    clock,
    random: systemRandom,
    logger: silentLogger,
    ...more,
  };
}

/** Takes the lead while time passes. */
async function taking(
  held: Replay | undefined,
  deps = depsOf("c1"),
  { writing, ms = 20_000 }: { writing?: Writing; ms?: number } = {},
): Promise<TakenLead> {
  const taken = takeLead(held, deps, never, writing);
  taken.catch(() => undefined); // awaited below
  await clock.advance(ms);
  return await taken;
}

async function won(...given: Parameters<typeof taking>) {
  const taken = await taking(...given);
  return taken.kind === "won" ? taken : expect.fail("it stands by");
}

/** The log of a coordinator that starts now. */
async function read(): Promise<Replay> {
  const journal = new MemoryJournal(store);
  const { live } = await findLive(journal);
  return await restore(live ?? expect.fail("a segment is live"), { journal, clock });
}

/** The log of a standby that followed to the end, before the segment lost its last records. */
async function heldBefore(lost: number): Promise<{ readonly held: Replay; readonly tail: ChainTail }> {
  writer.begin(5);
  const held = await read();
  store.loseTail(1, lost);
  return { held, tail: held.tail };
}

describe("a start", () => {
  it("in an empty journal opens segment 1, with an identity of its own and no base", async () => {
    const { log, base } = await won(undefined, depsOf("c1"), { ms: 0 });
    expect(log.live).toMatchObject({
      number: 1,
      opened: { term: 1, leader: "c1", session: "session-of-c1" },
    });
    expect(log.tail).toMatchObject({ idx: 0, journal: expect.stringMatching(/.{8}/) });
    expect(base).toBeUndefined();
  });

  it("behind an earlier leader seals the leader's segment, and continues the segment by reference", async () => {
    const tail = writer.begin(3);
    const { log } = await won(undefined);
    expect(store.end(1)?.isSealed).toBe(true);
    expect(log.tail).toEqual(tail);
    expect(log.live?.opened).toMatchObject({
      segment: 2,
      tail,
      previous: { segment: 1, idx: 3, hash: tail.hash },
    });
    expect(log.live?.opened.recent.at(-1)).toBe(tail.hash);
    expect((await read()).tail).toEqual(tail);
  });

  it("reads the leader's appends up to the seal", async () => {
    let tail = writer.begin(3);
    const held = await read();
    const journal = new MemoryJournal(store, {
      onRequest: ({ op }) => {
        if (op === "seal" && store.end(1)?.isSealed === false) tail = writer.batch(1, tail, [renewed]);
        return "deliver";
      },
    });
    const { log } = await won(held, depsOf("c1", journal));
    expect(log.tail).toEqual(tail);
  });

  it("leaves the lead to a leader with a record since the silence began, and seals nothing", async () => {
    const tail = writer.begin(3);
    const held = await read();
    const written = writer.batch(1, tail, [renewed]);
    const taken = await taking(held);
    expect([taken.kind, taken.log?.tail]).toEqual(["stand-by", written]);
    expect([store.list(), store.end(1)?.isSealed]).toEqual([[1], false]);
    expect((await won(held)).log.tail).toEqual(written);
  });

  it("ignores foreign records as signs of life", async () => {
    writer.begin(3);
    const held = await read();
    store.insert(1, Buffer.from("nobody's"));
    const journal = new MemoryJournal(store, {
      onRequest: ({ op }) => {
        if (op === "seal" && store.end(1)?.isSealed === false) store.insert(1, Buffer.from("nobody's"));
        return "deliver";
      },
    });
    await won(held, depsOf("c1", journal), { ms: 0 });
  });

  it("leaves the lead to a leader that wrote on after a power loss took the seal", async () => {
    const tail = writer.begin(3);
    const held = await read();
    let isLost = false;
    const journal = new MemoryJournal(store, {
      onRequest: ({ op }) => {
        if (op !== "create" || isLost) return "deliver";
        isLost = true;
        store.loseSeal(1);
        writer.batch(1, tail, [renewed]);
        return "deliver";
      },
    });
    const taken = await taking(held, depsOf("c1", journal));
    expect([taken.kind, taken.log?.tail.idx, store.opened(2)]).toEqual(["stand-by", tail.idx + 1, undefined]);
  });

  it("waits for T if the leader wrote between the look and the seal: that leader may still answer", async () => {
    const tail = writer.begin(3);
    const held = await read();
    const journal = new MemoryJournal(store, {
      onRequest: ({ op }) => {
        if (op === "seal" && store.end(1)?.isSealed === false) writer.batch(1, tail, [renewed]);
        return "deliver";
      },
    });
    const taken = takeLead(held, depsOf("c1", journal), never);
    await clock.advance(timing.timeoutMs - 1);
    expect([store.list(), store.end(1)?.isSealed]).toEqual([[1], true]);
    await clock.advance(1);
    expect(await taken).toMatchObject({ kind: "won" });
  });

  it("that died between claim and `Opened` is passed over after T, and the journal begins", async () => {
    writer.claim();
    const taken = takeLead(undefined, depsOf("c1"), never);
    await clock.advance(timing.timeoutMs - timing.heartbeatMs);
    expect(store.list()).toEqual([1]);
    await clock.advance(2 * timing.heartbeatMs);
    expect(await taken).toMatchObject({ kind: "won" });
    expect(liveOf(store).number).toBe(2);
    expect(store.end(1)?.isSealed).toBe(true);
  });

  it("finds a claim of its own session and waits for none", async () => {
    new Rival(store, "session-of-c1").claim();
    await won(undefined, depsOf("c1"), { ms: 0 });
    expect(liveOf(store).number).toBe(2);
  });

  it("ends with the reason when it is asked to", async () => {
    writer.claim();
    const ending = new AbortController();
    const taken = takeLead(undefined, depsOf("c1"), ending.signal);
    const rejected = expect(taken).rejects.toThrow("enough");
    await clock.advance(timing.heartbeatMs);
    ending.abort(new Error("enough"));
    await clock.settle();
    await rejected;
    expect(store.list()).toEqual([1]);
  });

  it("says that the journal is full, and leads nothing", async () => {
    const tail = writer.begin(3);
    store.bytesMax = store.usage.bytes;
    await expect(taking(undefined)).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_FULL" });
    expect(liveOf(store).number).toBe(1);
    store.bytesMax = undefined;
    expect((await won(undefined)).log.tail).toEqual(tail);
  });
});

describe("a segment that was claimed and is not open", () => {
  it("is waited for while it grows, and leads when it opens", async () => {
    const tail = writer.begin(3);
    const other = new Rival(store, "other");
    const number = other.claim();
    const taken = takeLead(undefined, depsOf("c1"), never);
    for (let n = 0; n < 3; n += 1) {
      await clock.advance(timing.timeoutMs - timing.heartbeatMs);
      store.insert(number, encodeRecord({ kind: "chunk", session: "other", bytes: Buffer.of(n) }));
    }
    expect(store.end(number)?.isSealed).toBe(false);
    other.open(number, tail, 1);
    await clock.advance(2 * timing.heartbeatMs);
    expect(await taken).toMatchObject({ kind: "stand-by" });
    expect(store.end(1)?.isSealed).toBe(false);
  });

  it("is not waited for while a foreign client writes into the segment", async () => {
    writer.begin(3);
    const number = new Rival(store, "other").claim();
    const taken = takeLead(undefined, depsOf("c1"), never);
    for (let n = 0; n < 3; n += 1) {
      await clock.advance(timing.timeoutMs / 2);
      if (store.end(number)?.isSealed !== true) store.insert(number, Buffer.from("not a record of ours"));
    }
    await clock.advance(timing.timeoutMs / 2);
    expect((await taken).kind).toBe("won");
  });

  it("is sealed after T without growth: the claimant cannot open the segment any more", async () => {
    const tail = writer.begin(3);
    const number = new Rival(store, "other").claim();
    const { log } = await won(undefined);
    expect(store.append({ segment: number, bytes: Buffer.of(1), expected: 1, isOpened: true }).kind).toBe(
      "sealed",
    );
    expect(log.live?.number).toBe(number + 1);
    expect(log.tail).toEqual(tail);
  });

  it("is sealed at once while it holds no record: no coordinator has begun to work in it", async () => {
    const tail = writer.begin(3);
    const held = await read();
    await new MemoryJournal(store).create(2);
    const taken = takeLead(held, depsOf("c1"), never);
    await clock.advance(0);
    expect(store.list()).toEqual([1, 2, 3]);
    expect(await taken).toMatchObject({ kind: "won", log: { tail } });
    expect(store.append({ segment: 2, bytes: Buffer.of(1), expected: 0, isOpened: false }).kind).toBe(
      "sealed",
    );
  });

  it("of the silent leader is sealed as soon as the leader's last announcement is older than T", async () => {
    writer.begin(3);
    const held = await read();
    writer.claim();
    let isLed = true;
    const taken = takeLead(held, depsOf("c1", undefined, { isLed: () => isLed }), never);
    await clock.advance(timing.heartbeatMs / 2);
    expect(store.end(2)?.isSealed).toBe(false);
    isLed = false;
    await clock.advance(timing.heartbeatMs);
    expect((await taken).kind).toBe("won");
  });

  it("leads all the same if it was opened just before the seal", async () => {
    const tail = writer.begin(3);
    const other = new Rival(store, "other");
    const number = other.claim();
    const journal = new MemoryJournal(store, {
      onRequest: (request) => {
        if (request.op === "seal" && request.segment === number && store.opened(number) === undefined)
          other.open(number, tail, 1);
        return "deliver";
      },
    });
    expect((await taking(undefined, depsOf("c1", journal))).kind).toBe("stand-by");
    expect(liveOf(store).number).toBe(number);
  });
});

describe("two that take the lead together", () => {
  it("never both lead, whichever is slower at any step", async () => {
    for (let slow = 0; slow < 14; slow += 1) {
      store = new MemoryJournalStore({ clock });
      const tail = new Rival(store, "earlier").begin(3);
      let asked = 0;
      const slowed = new MemoryJournal(store, {
        onRequest: async (): Promise<RequestFate> => {
          asked += 1;
          if (asked === slow) await new Promise<void>((resolve) => void clock.after(500, resolve));
          return "deliver";
        },
      });
      const both = [
        takeLead(undefined, depsOf("c1", slowed), never),
        takeLead(undefined, depsOf("c2"), never),
      ];
      await clock.advance(20_000);
      const opened = (await Promise.all(both)).flatMap((taken) =>
        taken.kind === "won" ? [taken.log.live?.number ?? 0] : [],
      );
      expect(new Set(opened).size, `slow at ${slow}`).toBe(opened.length);
      const mayAppend = opened.filter((number) => store.end(number)?.isSealed === false);
      expect(mayAppend, `slow at ${slow}`).toEqual(opened.length === 0 ? [] : [Math.max(...opened)]);
      expect((await read()).tail.hash).toBe(tail.hash);
      if (opened.length === 0) expect((await taking(undefined)).kind).toBe("won");
    }
  });

  it("at separate numbers: the rival with the older claim list stands by", async () => {
    const tail = writer.begin(3);
    const other = new Rival(store, "other");
    const journal = new MemoryJournal(store, {
      onRequest: ({ op }) => {
        if (op === "create" && store.list().length === 1) {
          store.create(3);
          store.insert(
            3,
            Buffer.from(
              JSON.stringify({ v: 2, kind: "claim", segment: 3, session: other.session, attempt: "a" }),
            ),
          );
        }
        return "deliver";
      },
    });
    expect((await taking(await read(), depsOf("c1", journal))).kind).toBe("stand-by");
    expect(liveOf(store).number).toBe(1);
    expect((await read()).tail).toEqual(tail);
  });

  it("a foreign client that writes the first record of a new segment is no rival: the next number is claimed", async () => {
    const tail = writer.begin(3);
    let isWritten = false;
    const journal = new MemoryJournal(store, {
      onRequest: ({ op }) => {
        if (op === "append" && !isWritten) {
          isWritten = true;
          store.insert(2, Buffer.from("not a record of ours"));
        }
        return "deliver";
      },
    });
    const { log } = await won(await read(), depsOf("c1", journal), {
      ms: timing.timeoutMs + timing.heartbeatMs,
    });
    expect([log.live?.number, log.tail]).toEqual([3, tail]);
  });

  it("the coordinator with the shorter log lets the other go first", async () => {
    writer.begin(3);
    const asked: unknown[] = [];
    const isMoreHeld = async (log: Replay | undefined) => asked.push(log?.tail.idx) > 0;
    expect((await taking(undefined, depsOf("c1", undefined, { isMoreHeld }))).kind).toBe("stand-by");
    expect(asked).toEqual([3]);
    expect(store.list()).toEqual([1]);
  });
});

describe("a log without an end", () => {
  it("goes on from a standby's memory, in a segment with a base", async () => {
    const { held, tail } = await heldBefore(2);
    const { log, base } = await won(held);
    expect(base).toMatchObject({ idx: 5 });
    expect(log.tail).toEqual(tail);
    const { tail: restarted, state } = await read();
    expect(restarted).toEqual(tail);
    expect(state.idx).toBe(5);
  });

  it("also with a lost seal, and with a lost newest segment", async () => {
    const { held } = await heldBefore(2);
    store.seal(1);
    store.loseSeal(1);
    const first = await won(held);
    const { log } = await won(first.log, depsOf("c2"));
    const number = log.live?.number ?? 0;
    const tail = new Rival(store, "session-of-c2").start(number, log.tail, log.live?.openedHash ?? "");
    const more = await read();
    expect(more.tail).toEqual(tail);
    store.loseSegment(number);
    expect((await won(more, depsOf("c3"))).log.tail).toEqual(tail);
    expect((await read()).tail).toEqual(tail);
  });

  it.each(["newest segment", "segments"])(
    "has lost the end only if the loss lasts: after a takeover a server may not list the %s yet",
    async (what) => {
      writer.takeLead(writer.begin(5));
      const held = await read();
      const known = what === "segments" ? [] : [1];
      class BehindJournal extends MemoryJournal {
        override readonly durability = { class: "replicated", sentence: "" } as const;
        override async list(): Promise<readonly number[]> {
          return clock.monotonicMs() < untilMs ? known : await super.list();
        }
      }
      const untilMs = clock.monotonicMs() + 2_500;
      await taking(held, depsOf("c1", new BehindJournal(store), { silentSegment: 2 }));
      const { live } = await findLive(new MemoryJournal(store));
      expect(live?.opened.base).toBeUndefined();
    },
  );

  it("without a longer log in memory is shorter, as it stands: no coordinator knows better", async () => {
    await heldBefore(2);
    expect((await won(undefined)).log.tail.idx).toBe(3);
  });

  it("and went on differently halts the coordinator with the other branch, and changes nothing", async () => {
    const { held } = await heldBefore(2);
    let tail = (await read()).tail;
    for (let n = 0; n < 3; n += 1) tail = writer.batch(1, tail, [renewed], clock.now() + 1 + n);
    await expect(taking(held)).rejects.toBeInstanceOf(JournalDamagedError);
    expect(store.list()).toEqual([1]);
  });

  it("…unless a second coordinator holds more: the second goes first", async () => {
    const { held } = await heldBefore(2);
    const tail = (await read()).tail;
    writer.batch(1, tail, [renewed], clock.now() + 1);
    const isMoreHeld = async () => true;
    expect((await taking(held, depsOf("c1", undefined, { isMoreHeld }))).kind).toBe("stand-by");
  });

  it("of another journal halts", async () => {
    writer.begin(5);
    const held = await read();
    store.loseSegment(1);
    writer.begin(5, "another");
    await expect(taking(held)).rejects.toBeInstanceOf(JournalDamagedError);
  });
});

describe("a log that cannot be read", () => {
  it("to the end continues from a coordinator with the whole log", async () => {
    for (const damage of [() => store.loseRecords(1, 5), () => store.damageRecord(1, 7)]) {
      store = new MemoryJournalStore({ clock });
      const tail = new Rival(store).begin(5);
      const held = await read();
      damage();
      expect((await won(held)).log.tail).toEqual(tail);
      expect((await read()).tail).toEqual(tail);
    }
  });

  it("before the held position is read on in, and not needed any more", async () => {
    const tail = writer.begin(5);
    const held = await read();
    store.loseRecords(1, 4);
    const journal = new MemoryJournal(store, {
      onRequest: ({ op }) => {
        if (op === "seal" && store.end(1)?.isSealed === false) writer.batch(1, tail, [renewed]);
        return "deliver";
      },
    });
    const { log, base } = await won(held, depsOf("c1", journal));
    expect([log.tail.idx, base?.idx]).toEqual([6, 6]);
    expect((await read()).tail).toEqual(log.tail);
  });

  it("halts a coordinator without a log, or with a log that may be too short", async () => {
    writer.begin(5);
    store.loseRecords(1, 5);
    await expect(taking(undefined)).rejects.toBeInstanceOf(JournalDamagedError);
    store = new MemoryJournalStore({ clock });
    writer = new Rival(store, "earlier");
    let tail = writer.begin(5);
    tail = writer.batch(1, tail, [renewed]);
    const held = await read();
    writer.batch(1, tail, [renewed]);
    store.damageRecord(1, 9);
    await expect(taking(held)).rejects.toBeInstanceOf(JournalDamagedError);
    expect(liveOf(store).number).toBe(1);
  });

  it("for a moment, at a server that takes over, halts no coordinator", async () => {
    const tail = writer.begin(5);
    const healsMs = clock.monotonicMs() + limits.lossPatienceMs - 1_000;
    const journal = new MemoryJournal(store, {
      onRequest: ({ op }) => {
        if (op === "replay" && clock.monotonicMs() < healsMs) throw new JournalDamagedError("gap");
        return "deliver";
      },
    });
    expect((await won(undefined, depsOf("c1", journal))).log.tail).toEqual(tail);
  });

  it("because of a damaged opened record of the newest segment halts a start: batches follow the record", async () => {
    for (const damage of [() => store.loseRecords(2, 2), () => store.damageRecord(2, 2)]) {
      store = new MemoryJournalStore({ clock });
      const tail = new Rival(store, "earlier").begin(3);
      new Rival(store, "other").takeLead(tail);
      const held = await read();
      damage();
      await expect(taking(undefined)).rejects.toThrow("segment 2 cannot be read");
      await expect(taking(undefined, depsOf("c2"))).rejects.toBeInstanceOf(JournalDamagedError);
      expect(store.list()).toEqual([1, 2]);
      expect((await won(held, depsOf("c3"))).log.tail).toEqual(held.tail);
      expect((await read()).tail).toEqual(held.tail);
    }
  });

  it("because the record that opens its only segment is damaged begins no new journal", async () => {
    writer.begin(3);
    store.damageRecord(1, 2);
    await expect(taking(undefined)).rejects.toThrow("segment 1 cannot be read");
    expect(store.list()).toEqual([1]);
  });

  it("because all segments are gone goes on from memory", async () => {
    const tail = writer.begin(5);
    const held = await read();
    store.loseSegment(1);
    const { log } = await won(held);
    expect(log.tail).toEqual(tail);
    expect((await read()).tail).toEqual(tail);
  });
});

describe("while the journal answers badly", () => {
  const ops = ["list", "read", "opened", "end", "replay", "seal", "create", "append"] as const;

  it.each(ops)(
    "a lost request or answer of %s, each in turn, leaves one leader and the whole log",
    async (op) => {
      for (let nth = 1; nth <= 4; nth += 1)
        for (const leg of ["onRequest", "onAnswer"] as const) {
          store = new MemoryJournalStore({ clock });
          const tail = new Rival(store, "earlier").begin(5);
          const held = await read();
          store.loseTail(1, 1); // a base is written
          let count = 0;
          const fate = (request: { readonly op: string }): RequestFate & AnswerFate => {
            if (request.op === op) count += 1;
            return request.op === op && count === nth ? "lose" : "deliver";
          };
          const journal = new MemoryJournal(store, { [leg]: fate });
          expect((await won(held, depsOf("c1", journal))).log.tail, `${leg} ${nth}`).toEqual(tail);
          expect((await read()).tail).toEqual(tail);
        }
    },
  );

  it("it begins again after a reconnection, from any step", async () => {
    for (let step = 1; step <= 14; step += 1) {
      store = new MemoryJournalStore({ clock });
      const tail = new Rival(store, "earlier").begin(3);
      let steps = 0;
      const journal: MemoryJournal = new MemoryJournal(store, {
        onRequest: () => {
          steps += 1;
          if (steps === step) {
            journal.setOffline(true);
            clock.after(100, () => journal.setOffline(false));
          }
          return "deliver";
        },
      });
      const { log } = await won(undefined, depsOf("c1", journal));
      expect(log.tail, `at step ${step}`).toEqual(tail);
      expect(log.live?.number).toBe(liveOf(store).number);
      expect((await read()).tail).toEqual(tail);
    }
  });

  it("a coordinator leaves the lead to a rival that opened a segment during the absence", async () => {
    const tail = writer.begin(3);
    const other = new Rival(store, "other");
    let isAway = false;
    const journal: MemoryJournal = new MemoryJournal(store, {
      onRequest: ({ op }) => {
        if (op !== "seal" || isAway) return "deliver";
        isAway = true;
        journal.setOffline(true);
        other.takeLead(tail);
        clock.after(100, () => journal.setOffline(false));
        return "deliver";
      },
    });
    expect((await taking(await read(), depsOf("c1", journal))).kind).toBe("stand-by");
    expect(store.end(2)?.isSealed).toBe(false);
  });

  it.each([
    ["its claim", 1],
    ["a part of its base", 2],
    ["its base", 3],
  ])("a new segment that loses %s at once is given up for another", async (_, position) => {
    const { held, tail } = await heldBefore(2);
    let isLost = false;
    const journal = new MemoryJournal(store, {
      onAnswer: (request) => {
        if (request.op !== "append" || request.expected !== position - 1 || isLost) return "deliver";
        isLost = true;
        store.loseTail(request.segment, 1);
        return "deliver";
      },
    });
    const { log } = await won(held, depsOf("c1", journal));
    expect(isLost).toBe(true);
    expect(log.tail).toEqual(tail);
    expect((await read()).tail).toEqual(tail);
  });

  it("a number that it claimed once is never claimed again, though the segment is lost", async () => {
    const { held, tail } = await heldBefore(2);
    const deps = depsOf("c1");
    await won(held, deps);
    store.loseSegment(2);
    expect((await won(undefined, { ...deps, session: "another" })).log.tail.idx).toBe(3);
    expect(store.list()).toEqual([1, 3]);
    expect(tail.idx).toBe(5);
  });

  it("a new segment that is lost at once is given up for another", async () => {
    const { held, tail } = await heldBefore(2);
    let isLost = false;
    const journal = new MemoryJournal(store, {
      onRequest: (request) => {
        if (request.op !== "append" || request.expected !== 1 || isLost) return "deliver";
        isLost = true;
        store.loseSegment(request.segment);
        return "deliver";
      },
    });
    expect((await won(held, depsOf("c1", journal))).log.tail).toEqual(tail);
    expect((await read()).tail).toEqual(tail);
  });
});

describe("a new segment lost before its opening record was acknowledged", () => {
  /** Loses the first `Opened`, then the segment. A second coordinator begins a segment of that number. */
  function losing(begin: (rival: Rival) => void): MemoryJournal {
    let isLost = false;
    return new MemoryJournal(store, {
      onRequest: (request) => {
        if (request.op !== "append" || request.expected !== 1 || isLost) return "deliver";
        isLost = true;
        store.loseSegment(request.segment);
        begin(new Rival(store, "other"));
        return "lose";
      },
    });
  }

  it("is given up if a rival coordinator leads in the same number", async () => {
    const tail = writer.begin(3);
    const journal = losing((rival) => void rival.takeLead(tail));
    expect((await taking(undefined, depsOf("c1", journal))).kind).toBe("stand-by");
  });

  it("is given up if a rival coordinator has only claimed the same number", async () => {
    writer.begin(3);
    const journal = losing((rival) => void rival.claim());
    expect((await taking(undefined, depsOf("c1", journal))).kind).toBe("stand-by");
  });
});

describe("a leader that takes the lead again", () => {
  /** A leader of segment 2, behind a segment of another session. */
  async function leading() {
    writer.begin(3);
    const { log } = await won(undefined);
    const own = new Rival(store, "session-of-c1");
    const tail = own.start(2, log.tail, log.live?.openedHash ?? "");
    const held = await read();
    return { held, own, tail, writing: { segment: 2, term: term(2) } };
  }

  it.each([
    ["its end is lost", () => store.loseTail(2, 1)],
    ["a record is lost", () => store.loseRecords(2, 2)],
    ["its seal is lost later", () => store.loseSeal(1)],
    ["the segment is gone", () => store.loseSegment(2)],
    ["all segments are gone", () => store.list().map((number) => store.loseSegment(number))],
  ])("begins the next segment with all held batches where %s", async (_, lose) => {
    const { held, tail, writing } = await leading();
    lose();
    const { log, base } = await won(held, depsOf("c1"), { writing });
    expect(base).toMatchObject({ idx: tail.idx });
    expect(log.tail).toEqual(tail);
    expect((await read()).tail).toEqual(tail);
  });

  it("stands by where another coordinator opened a newer segment", async () => {
    const { held, tail, writing } = await leading();
    new Rival(store, "other").takeLead(tail);
    expect((await taking(held, depsOf("c1"), { writing })).kind).toBe("stand-by");
    expect(store.end(3)?.isSealed).toBe(false);
  });

  it("stands by if the segment was lost, and a rival coordinator opened a segment of the same number", async () => {
    const { held, writing } = await leading();
    store.loseSegment(2);
    new Rival(store, "other").takeLead((await read()).tail);
    expect((await taking(held, depsOf("c1"), { writing })).kind).toBe("stand-by");
  });

  it("leads on if a server after a takeover does not show the segment's opened record", async () => {
    const { held, tail, writing } = await leading();
    vi.spyOn(store, "opened").mockReturnValueOnce(undefined);
    const { log } = await won(held, depsOf("c1"), { writing });
    expect([log.live?.number, log.tail, store.end(2)?.isSealed]).toEqual([3, tail, true]);
  });

  it("leads on if a server after a takeover hides its segment, and then lists the segment again", async () => {
    const { held, tail, writing } = await leading();
    vi.spyOn(store, "list").mockReturnValueOnce([1]);
    const { log } = await won(held, depsOf("c1"), { writing });
    expect([log.live?.number, log.tail, store.end(2)?.isSealed]).toEqual([3, tail, true]);
  });

  it("with a missing segment stands by if a rival coordinator holds more: the rival may have led in a lost segment", async () => {
    const { held, writing } = await leading();
    store.loseSegment(2);
    const asked: (number | undefined)[] = [];
    const isMoreHeld = async (log: Replay | undefined) => asked.push(log?.tail.idx) > 0;
    const taken = await taking(held, depsOf("c1", undefined, { isMoreHeld }), { writing });
    expect([taken.kind, asked, store.list()]).toEqual(["stand-by", [held.tail.idx], [1]]);
  });

  it("stands by where a successor led, and the successor's segment was lost", async () => {
    const { held, tail, writing } = await leading();
    new Rival(store, "other").takeLead(tail);
    store.loseSegment(3);
    const isMoreHeld = async () => true;
    const taken = await taking(held, depsOf("c1", undefined, { isMoreHeld }), { writing });
    expect([taken.kind, store.list()]).toEqual(["stand-by", [1, 2]]);
  });
});

it("the first record names its writer, so that no foreign `Opened` opens the segment", async () => {
  const tail = writer.begin(3);
  new Rival(store, "stranger").open(1, tail, undefined);
  const { log } = await won(undefined);
  expect(log.tail).toEqual(tail);
  const record = decodeRecord(store.opened(2)?.bytes ?? new Uint8Array());
  expect(record).toMatchObject({ kind: "opened", session: "session-of-c1" });
});
