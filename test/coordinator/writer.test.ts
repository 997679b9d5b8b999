// A leader's batches on the way into the segment: consequences of each outcome of an append, the order of commits, and
// the end of a segment.

import { beforeEach, describe, expect, it } from "vitest";
import { type Full, type PendingBatch, Writer } from "../../src/coordinator/leader/writer.ts";
import { batchIndex, instant, term } from "../../src/ids.ts";
import {
  type AnswerFate,
  MemoryJournal,
  type MemoryRequest,
  type RequestFate,
} from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { encodeBatch, encodeRecord, hashOf } from "../../src/journal/records.ts";
import { limits } from "../../src/limits.ts";
import { Gate } from "../support/gate.ts";
import { ManualClock } from "../support/manual-clock.ts";

const session = "own";
let clock: ManualClock;
let store: MemoryJournalStore;
let journal: MemoryJournal;
let writer: Writer;
let happened: string[];
/** By the number of an append, from 1. */
let requests: Map<number, RequestFate | (() => RequestFate)>;
let answers: Map<number, AnswerFate | Promise<AnswerFate>>;
let appends: number;
let prev: string;
/** At this age an acknowledgement counts as none. */
let lateMs: number;

beforeEach(() => {
  clock = new ManualClock();
  store = new MemoryJournalStore({ clock });
  store.create(1);
  store.insert(1, encodeRecord({ kind: "claim", segment: 1, session, attempt: "a" }));
  [requests, answers, appends, happened, prev] = [new Map(), new Map(), 0, [], ""];
  lateMs = Number.POSITIVE_INFINITY;
  const numbers = new WeakMap<MemoryRequest, number>();
  journal = new MemoryJournal(store, {
    onRequest: (request) => {
      if (request.op !== "append") return "deliver";
      appends += 1;
      numbers.set(request, appends);
      const fate = requests.get(appends) ?? "deliver";
      return typeof fate === "function" ? fate() : fate;
    },
    onAnswer: (request) => answers.get(numbers.get(request) ?? 0) ?? "deliver",
  });
  writer = aWriter();
});

function aWriter(): Writer {
  return new Writer(
    {
      session,
      segment: journal.segment(1),
      position: 1,
      clock,
      lease: {
        isLate: (sentMonotonicMs) => clock.monotonicMs() - sentMonotonicMs >= lateMs,
        isYoung: (monotonicMs) => clock.monotonicMs() - monotonicMs < lateMs,
      },
    },
    {
      onCommitted: ({ idx }, { position, sentMonotonicMs }) =>
        happened.push(
          `committed ${idx} at ${position}${sentMonotonicMs === 0 ? "" : `, sent at ${sentMonotonicMs}`}`,
        ),
      onFull: (full: Full | undefined) =>
        happened.push(full === undefined ? "has room" : `full for ${full.bytes}`),
      onSealed: () => happened.push("sealed"),
      onFaulty: ({ message }) => happened.push(`faulty: ${message}`),
      onSuspect: () => happened.push("suspect"),
      onLate: () => {
        happened.push("late");
        writer.hold();
      },
      onUnacknowledged: () => happened.push("unacknowledged"),
      onForeign: (position) => happened.push(`foreign at ${position}`),
    },
  );
}

function aBatch(idx: number, of = session): PendingBatch {
  const header = {
    journal: "j",
    session: of,
    term: term(1),
    idx: batchIndex(idx),
    prev,
    at: instant(idx),
  };
  const bytes = encodeBatch(header, ['{"type":"TermRenewed"}']);
  const hash = hashOf(bytes);
  prev = hash;
  return { term: term(1), idx: batchIndex(idx), bytes, hash };
}

function append(...numbers: number[]): PendingBatch[] {
  const batches = numbers.map((idx) => aBatch(idx));
  for (const batch of batches) writer.append(batch);
  return batches;
}

const storedAt = (position: number) => store.read(1, position)?.bytes;

describe("batches", () => {
  it("are committed in order, two in flight at most", async () => {
    append(1);
    expect(writer.hasRoom).toBe(true);
    const [, second] = [undefined, ...append(2)];
    expect([writer.hasRoom, writer.pending.map(({ idx }) => idx)]).toEqual([false, [1, 2]]);
    await clock.settle();
    expect(happened).toEqual(["committed 1 at 2", "committed 2 at 3"]);
    expect([writer.hasRoom, writer.position, writer.recordHash]).toEqual([true, 3, second?.hash]);
  });

  it("are committed in order though the second is acknowledged first", async () => {
    const gate = new Gate();
    answers.set(
      1,
      gate.opened.then(() => "deliver" as const),
    );
    append(1, 2);
    await clock.settle();
    expect(happened).toEqual([]);
    gate.open();
    await clock.settle();
    expect(happened).toEqual(["committed 1 at 2", "committed 2 at 3"]);
  });

  it("that are acknowledged too late are committed only when the segment, looked at anew, holds them", async () => {
    const gate = new Gate();
    answers.set(
      1,
      gate.opened.then(() => "deliver" as const),
    );
    lateMs = 2_400;
    const [batch] = append(1, 2);
    await clock.advance(lateMs);
    gate.open();
    await clock.settle();
    expect(happened).toEqual(["late"]);
    writer.resume(clock.monotonicMs());
    await clock.settle();
    expect(happened).toEqual(["late", "committed 1 at 2, sent at 2400", "committed 2 at 3, sent at 2400"]);
    expect(storedAt(2)).toEqual(batch?.bytes);
  });

  it("that are lost after the look, and stored anew too late, wait for another look", async () => {
    const gate = new Gate();
    answers.set(
      1,
      gate.opened.then(() => "deliver" as const),
    );
    lateMs = 2_400;
    append(1);
    await clock.advance(lateMs);
    gate.open();
    await clock.settle();
    const lookedMonotonicMs = clock.monotonicMs();
    store.loseTail(1, 1);
    const anew = new Gate();
    answers.set(
      2,
      anew.opened.then(() => "deliver" as const),
    );
    writer.resume(lookedMonotonicMs);
    await clock.advance(lateMs);
    anew.open();
    await clock.settle();
    expect(happened).toEqual(["late", "late"]);
  });

  it("that are acknowledged too late, and lost since, are not committed", async () => {
    const gate = new Gate();
    answers.set(
      1,
      gate.opened.then(() => "deliver" as const),
    );
    lateMs = 2_400;
    append(1);
    await clock.advance(lateMs);
    store.seal(1);
    store.loseTail(1, 1);
    gate.open();
    await clock.settle();
    writer.resume(clock.monotonicMs());
    await clock.settle();
    expect(happened).toEqual(["late", "sealed"]);
  });

  it("are sent no more after a stop, and no event follows", async () => {
    requests.set(1, "lose");
    append(1, 2);
    writer.stop();
    await clock.advance(10 * limits.appendRetryMs);
    expect([happened, appends]).toEqual([[], 2]);
  });
});

describe("an append with unknown outcome", () => {
  it.each(["lost on its way", "stored and not acknowledged"])(
    "because it was %s is sent again unchanged",
    async (what) => {
      if (what === "lost on its way") requests.set(1, "lose");
      else answers.set(1, "lose");
      const [first, second] = append(1, 2);
      await clock.advance(limits.appendRetryMs);
      expect(happened.filter((line) => line !== "unacknowledged")).toEqual([
        expect.stringMatching(/^committed 1 at 2/),
        expect.stringMatching(/^committed 2 at 3/),
      ]);
      expect([storedAt(2), storedAt(3), storedAt(4)]).toEqual([first?.bytes, second?.bytes, undefined]);
    },
  );

  it("is committed once though the first sending arrives late, behind the second", async () => {
    const gate = new Gate();
    requests.set(1, { kind: "late", until: gate.opened });
    const [first] = append(1);
    await clock.advance(limits.appendRetryMs);
    gate.open();
    await clock.settle();
    expect(happened.filter((line) => line.startsWith("committed"))).toHaveLength(1);
    expect([storedAt(2), storedAt(3)]).toEqual([first?.bytes, undefined]);
  });

  it("proves the leader's lease from when it was sent that was acknowledged", async () => {
    requests.set(1, "lose");
    append(1);
    await clock.advance(limits.appendRetryMs);
    expect(happened).toEqual(["unacknowledged", `committed 1 at 2, sent at ${limits.appendRetryMs}`]);
  });

  it("of the second batch, when the first is lost: both are stored once, in order", async () => {
    requests.set(1, "lose"); // the second is refused, for the segment is shorter
    const [first, second] = append(1, 2);
    await clock.advance(3 * limits.appendRetryMs);
    expect([storedAt(2), storedAt(3), storedAt(4)]).toEqual([first?.bytes, second?.bytes, undefined]);
    expect(happened.filter((line) => line.startsWith("committed"))).toHaveLength(2);
  });
});

describe("a segment with an unexpected end", () => {
  it("because of foreign records is appended to behind them", async () => {
    store.insert(1, Buffer.from("foreign"));
    store.insert(1, aBatch(9, "another session").bytes);
    prev = "";
    const [first, second] = append(1, 2);
    await clock.settle();
    expect(happened.slice(0, 2)).toEqual(["foreign at 2", "foreign at 3"]);
    expect(happened.filter((line) => line.startsWith("committed"))).toEqual([
      "committed 1 at 4",
      "committed 2 at 5",
    ]);
    expect([storedAt(4), storedAt(5), storedAt(6)]).toEqual([first?.bytes, second?.bytes, undefined]);
  });

  it("because another coordinator claimed its number after a power loss gets no batch", async () => {
    store.loseSegment(1);
    store.create(1);
    store.insert(1, encodeRecord({ kind: "claim", segment: 1, session: "another", attempt: "b" }));
    store.insert(1, aBatch(9, "another").bytes);
    prev = "";
    append(1);
    await clock.advance(3 * limits.appendRetryMs);
    expect(new Set(happened)).toEqual(new Set(["suspect"]));
    expect(storedAt(3)).toBeUndefined();
  });

  it("because a foreign record came between two of its own has the second sent again", async () => {
    requests.set(2, () => {
      store.insert(1, Buffer.from("foreign"));
      return "deliver";
    });
    append(1, 2);
    await clock.settle();
    expect(happened).toEqual(["committed 1 at 2", "foreign at 3", "committed 2 at 4"]);
    expect(writer.position).toBe(4);
  });

  it("because of an unacknowledged own batch at the position continues", async () => {
    answers.set(1, "lose");
    const [first] = append(1);
    await clock.advance(limits.appendRetryMs);
    expect(happened).toContain(`committed 1 at 2, sent at ${limits.appendRetryMs}`);
    expect(storedAt(2)).toEqual(first?.bytes);
  });

  it("because of an unknown batch of its own session at the position is faulty", async () => {
    store.insert(1, aBatch(7).bytes);
    append(1);
    await clock.settle();
    expect(happened).toEqual(["faulty: segment 1 is faulty: record 2 is not as it was written"]);
  });

  it("because of a lost end is suspect", async () => {
    append(1, 2);
    await clock.settle();
    happened.length = 0;
    store.loseTail(1, 1);
    append(3);
    await clock.settle();
    expect(happened).toEqual(["suspect"]); // inspected first, and sent again
  });

  it("because the record there cannot be read is suspect", async () => {
    store.insert(1, Buffer.from("foreign"));
    store.damageRecord(1, 2);
    append(1);
    await clock.settle();
    expect(happened).toEqual(["suspect"]);
  });

  it("and cannot be read just now is asked again", async () => {
    const [first] = [aBatch(1)];
    store.insert(1, Buffer.from("foreign"));
    writer.append(first as PendingBatch);
    journal.setOffline(true);
    await clock.advance(limits.appendRetryMs);
    expect(happened.filter((line) => line !== "unacknowledged")).toEqual([]);
    journal.setOffline(false);
    await clock.advance(limits.appendRetryMs);
    expect(happened.at(-1)).toMatch(/^committed 1 at 3/);
  });
});

describe("a segment", () => {
  it("that is sealed deposes its leader, and commits nothing behind the seal", async () => {
    append(1);
    await clock.settle();
    store.seal(1);
    append(2, 3);
    await clock.advance(limits.appendRetryMs);
    expect(happened).toEqual(["committed 1 at 2", "sealed"]);
  });

  it("that is gone is faulty", async () => {
    store.loseSegment(1);
    append(1);
    await clock.settle();
    expect(happened).toEqual(["faulty: segment 1 is faulty: it is gone"]);
  });

  it("without room says so once, and takes the same batches in order when it has some", async () => {
    store.bytesMax = store.usage.bytes;
    const [first, second] = append(1, 2);
    await clock.advance(3 * limits.journalFullRetryMs);
    expect(happened).toEqual([`full for ${first?.bytes.length}`]);
    store.bytesMax = undefined;
    await clock.advance(limits.journalFullRetryMs);
    expect(happened.slice(1)).toEqual([
      "has room",
      expect.stringMatching(/^committed 1 at 2/),
      expect.stringMatching(/^committed 2 at 3/),
    ]);
    expect([storedAt(2), storedAt(3)]).toEqual([first?.bytes, second?.bytes]);
  });

  it("with room for the second alone takes neither before the first", async () => {
    store.bytesMax = store.usage.bytes;
    append(1);
    await clock.settle();
    store.bytesMax = undefined;
    append(2);
    await clock.advance(limits.journalFullRetryMs);
    expect(happened.slice(1)).toEqual([
      "has room",
      expect.stringMatching(/^committed 1 at 2/),
      expect.stringMatching(/^committed 2 at 3/),
    ]);
  });
});

describe("after a reconnection", () => {
  it("nothing is sent, and no earlier acknowledgement counts, until the segment was found as it was left", async () => {
    const gate = new Gate();
    answers.set(
      1,
      gate.opened.then(() => "deliver" as const),
    );
    const [first] = append(1);
    await clock.settle();
    writer.hold();
    gate.open();
    append(2);
    await clock.advance(3 * limits.appendRetryMs);
    expect([happened, appends]).toEqual([[], 1]);
    writer.resume(clock.monotonicMs());
    await clock.settle();
    expect(happened.map((line) => line.replace(/,.*/, ""))).toEqual(["committed 1 at 2", "committed 2 at 3"]);
    expect(storedAt(2)).toEqual(first?.bytes);
  });

  it("a batch that was acknowledged before and is lost is not committed", async () => {
    const gate = new Gate();
    answers.set(
      1,
      gate.opened.then(() => "deliver" as const),
    );
    append(1);
    await clock.settle();
    writer.hold();
    store.loseTail(1, 1);
    gate.open();
    writer.resume(clock.monotonicMs());
    await clock.settle();
    expect(happened.map((line) => line.replace(/,.*/, ""))).toEqual(["committed 1 at 2"]);
    expect(appends).toBe(2);
  });

  it("a pause that ends meanwhile sends nothing", async () => {
    requests.set(1, "lose");
    append(1);
    await clock.settle();
    writer.hold();
    await clock.advance(2 * limits.appendRetryMs);
    expect(appends).toBe(1);
    writer.resume(clock.monotonicMs());
    await clock.settle();
    expect(happened.at(-1)).toMatch(/^committed 1 at 2/);
  });
});
