// Beginning anew while the journal changes: what is not found is looked for again, and believed only when that lasts.

import { beforeEach, describe, expect, it } from "vitest";
import { type CatchUpDeps, catchUp } from "../../src/coordinator/standby/catch-up.ts";
import { MissingRecordsError, UnreachableError } from "../../src/errors.ts";
import { batchIndex, taskId, term } from "../../src/ids.ts";
import { encodeBatch } from "../../src/journal/batch.ts";
import { rewrittenError } from "../../src/journal/journal-errors.ts";
import { Replay } from "../../src/journal/replay.ts";
import type { EndLostError } from "../../src/journal/snapshot/losses.ts";
import { limits } from "../../src/limits.ts";
import { pause } from "../../src/pause.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { StoredHistory } from "../support/stored-history.ts";
import { silentLogger } from "../support/swarm.ts";
import { aTask, join, submit, Turns } from "../support/turns.ts";

const timeoutMs = 1_000;
const records = twelveBatches();
let clock: ManualClock;
let stored: StoredHistory;
let journal: ReturnType<StoredHistory["journal"]["open"]>;
let replay: Replay;
let outcome: unknown;
/** Where the journal ended when it was gone on behind the snapshot. */
let wentOnBehind: number[];

beforeEach(() => {
  clock = new ManualClock();
  stored = new StoredHistory(records);
  journal = stored.journal.open();
  replay = new Replay();
  outcome = "reading";
  wentOnBehind = [];
});

function twelveBatches() {
  const turns = new Turns();
  turns.turn(join("a1"));
  for (let number = 1; turns.records.length < 12; number += 1)
    turns.turn(submit(aTask({ id: taskId(`t${number}`) })));
  return turns.records;
}

/** Looks for the first time; `outcome` says what became of it. */
async function begin(deps: Partial<CatchUpDeps> = {}): Promise<void> {
  const ended = catchUp({
    journal,
    snapshots: stored.snapshots.open(),
    clock,
    logger: silentLogger,
    timeoutMs,
    isPatient: false,
    isOver: () => false,
    isLed: () => false,
    isHeld: () => false,
    onRestored: (restored) => {
      replay = restored.replay;
    },
    take: (record) => void replay.take(record),
    goOnBehind: async ({ lastSeq }) => {
      wentOnBehind.push(lastSeq);
      return true;
    },
    isMoreHeld: () => false,
    onSnapshotsLost: () => undefined,
    ...deps,
  });
  ended.then(
    () => {
      outcome = "read";
    },
    (error: unknown) => {
      outcome = error;
    },
  );
  await clock.settle();
}

/** The snapshots as a server shows them that does not know the newest yet. */
function hiddenSnapshots() {
  const snapshots = stored.snapshots.open();
  const all = snapshots.manifests.bind(snapshots);
  let isHidden = true;
  snapshots.manifests = async () => (isHidden ? [] : await all());
  return {
    snapshots,
    show: () => {
      isHidden = false;
    },
  };
}

function expectWhole(): void {
  expect(outcome).toBe("read");
  expect(fingerprint(replay.state)).toBe(fingerprint(stored.whole.state));
  expect(replay.position).toEqual(stored.whole.position);
}

/** By who runs, or has heard who could save it. */
async function expectLostAfterLonger(): Promise<void> {
  await clock.advance(limits.lossPatienceRunningMs - limits.catchUpRetryMs);
  expect(outcome).toBe("reading");
  await clock.advance(2 * limits.catchUpRetryMs);
  expect(outcome).toBeInstanceOf(MissingRecordsError);
}

describe("records that are not found", () => {
  it("are looked for again where they were purged while it was read", async () => {
    const { snapshots, show } = hiddenSnapshots();
    await stored.snapshot(9);
    const replaying = journal.replay.bind(journal);
    journal.replay = (fromSeq) => {
      show();
      stored.journal.purgeBelow(8);
      return replaying(Math.max(fromSeq, 8)); // as a reader that was open gives what is left
    };
    await begin({ snapshots });
    expect(outcome).toBe("reading");
    await clock.advance(limits.catchUpRetryMs);
    expectWhole();
  });

  it("are looked for again: the snapshot that stands for them may not be known yet", async () => {
    await stored.snapshot(9);
    stored.journal.purgeBelow(9);
    const { snapshots, show } = hiddenSnapshots();
    await begin({ snapshots });
    await clock.advance(limits.lossPatienceMs - 1);
    expect(outcome).toBe("reading");
    show();
    await clock.advance(limits.catchUpRetryMs);
    expectWhole();
  });

  it("are believed to be lost when that lasts", async () => {
    stored.journal.loseMiddle(5, 2);
    await begin();
    await clock.advance(limits.lossPatienceMs - 1);
    expect(outcome).toBe("reading");
    await clock.advance(limits.catchUpRetryMs);
    expect(outcome).toBeInstanceOf(MissingRecordsError);
  });

  it("are not believed to be lost for looks between which a server did not answer", async () => {
    await stored.snapshot(9);
    stored.journal.purgeBelow(9);
    const { snapshots, show } = hiddenSnapshots();
    const manifests = snapshots.manifests.bind(snapshots);
    let looks = 0;
    snapshots.manifests = async () => {
      looks += 1;
      if (looks === 2) await pause(clock, 2 * limits.lossPatienceMs);
      return await manifests();
    };
    await begin({ snapshots });
    await clock.advance(limits.catchUpRetryMs + 2 * limits.lossPatienceMs);
    expect(looks).toBe(2);
    expect(outcome).toBe("reading");
    show();
    await clock.advance(limits.catchUpRetryMs);
    expectWhole();
  });

  it("are not believed to be lost by who runs for a time in which nobody answered", async () => {
    stored.journal.loseMiddle(5, 2);
    const journal = stored.journal.open();
    const position = journal.position.bind(journal);
    await begin({ journal, isPatient: true });
    journal.position = async () => {
      throw new UnreachableError("nobody answers");
    };
    await clock.advance(2 * limits.lossPatienceRunningMs);
    journal.position = position;
    await clock.advance(limits.lossPatienceRunningMs - 2 * limits.catchUpRetryMs);
    expect(outcome).toBe("reading");
    await clock.advance(4 * limits.catchUpRetryMs);
    expect(outcome).toBeInstanceOf(MissingRecordsError);
  });

  it("are waited for longer by who runs already", async () => {
    stored.journal.loseMiddle(5, 2);
    await begin({ isPatient: true });
    await expectLostAfterLonger();
  });

  it("are waited for while another leads, who saves what it holds", async () => {
    await stored.snapshot(11);
    stored.journal.loseMiddle(5, 2);
    const { snapshots, show } = hiddenSnapshots();
    await begin({ snapshots, isLed: () => true });
    await clock.advance(10 * limits.lossPatienceMs);
    expect(outcome).toBe("reading");
    show();
    await clock.advance(limits.catchUpRetryMs);
    expectWhole();
  });

  it("are waited for longer by who heard a leader, which may be out of reach before it has saved", async () => {
    stored.journal.loseMiddle(5, 2);
    let isLed = true;
    await begin({ isLed: () => isLed });
    isLed = false;
    await expectLostAfterLonger();
  });

  it("are waited for while a leader is heard at times, however long each look takes", async () => {
    stored.journal.loseMiddle(5, 2);
    const lookMs = 8_000;
    const position = journal.position.bind(journal);
    journal.position = async () => {
      await pause(clock, lookMs);
      return await position();
    };
    let heardMonotonicMs = 0;
    const isLed = (begunMonotonicMs: number) =>
      heardMonotonicMs >= begunMonotonicMs - limits.announcementTimeouts * timeoutMs;
    await begin({ isPatient: true, isLed });
    for (let passedMs = 0; passedMs < 2 * limits.lossPatienceRunningMs; passedMs += 500) {
      await clock.advance(500);
      const isReading = clock.monotonicMs() % (lookMs + limits.catchUpRetryMs) < 2_000;
      if (isReading) heardMonotonicMs = clock.monotonicMs();
    }
    expect(outcome).toBe("reading");
  });

  it("are waited for while another says that it holds more, and for longer once nobody does", async () => {
    stored.journal.loseMiddle(5, 2);
    let isMoreHeld = true;
    await begin({ isMoreHeld: () => isMoreHeld });
    await clock.advance(2 * limits.lossPatienceRunningMs);
    isMoreHeld = false;
    await expectLostAfterLonger();
  });

  it("are said to be missed where they are the snapshots of what was purged", async () => {
    await stored.snapshot(9);
    stored.journal.purgeBelow(9);
    let times = 0;
    const onSnapshotsLost = () => {
      times += 1;
    };
    await begin({ snapshots: hiddenSnapshots().snapshots, onSnapshotsLost });
    await clock.advance(limits.catchUpRetryMs);
    expect(times).toBe(2);
  });

  it("are looked for again where what was read is replaced meanwhile", async () => {
    const { replay: replayed } = journal;
    let times = 0;
    journal.replay = (fromSeq) => {
      times += 1;
      if (times < 3) throw rewrittenError(5);
      return replayed.call(journal, fromSeq);
    };
    await begin();
    await clock.advance(2 * limits.catchUpRetryMs);
    expectWhole();
  });

  it("are a loss at once in a journal that nobody else has", async () => {
    Object.assign(journal, { sharable: false });
    stored.journal.loseMiddle(5, 2);
    await begin();
    expect(outcome).toBeInstanceOf(MissingRecordsError);
  });
});

describe("a journal that goes on in a later term behind what was read", () => {
  it("misses batches: nobody begins from there", async () => {
    const { at, seq, ...tail } = { ...stored.whole.position, at: stored.whole.state.at };
    const header = { ...tail, term: term(tail.term + 1), idx: batchIndex(seq + 9), prev: "another's", at };
    stored.journal.insertRival(encodeBatch(header, [JSON.stringify({ type: "TermRenewed" })]));
    await begin();
    await clock.advance(limits.lossPatienceMs + limits.catchUpRetryMs);
    expect(outcome).toBeInstanceOf(MissingRecordsError);
  });
});

describe("what is found and is damaged", () => {
  it("is damage at once", async () => {
    stored.journal.insertRival(records[11]?.bytes ?? Buffer.from(""));
    await begin({
      take: () => {
        throw new Error("it does not fit");
      },
    });
    expect(outcome).toMatchObject({ message: "it does not fit" });
  });
});

describe("a server that does not answer", () => {
  it("is an error to who starts", async () => {
    journal.setOffline(true);
    await begin();
    expect(outcome).toBeInstanceOf(UnreachableError);
  });

  it("is waited for by who runs", async () => {
    journal.setOffline(true);
    await begin({ isPatient: true });
    await clock.advance(10 * limits.lossPatienceMs);
    expect(outcome).toBe("reading");
    journal.setOffline(false);
    await clock.advance(limits.catchUpRetryMs);
    expectWhole();
  });
});

describe("a journal that ends before its snapshot goes on", () => {
  const lost = 3;
  beforeEach(async () => {
    await stored.snapshot(12);
    stored.journal.loseTail(lost);
  });

  it("is gone on with behind the snapshot, when for 2·T nobody says that it holds the end", async () => {
    await begin();
    await clock.advance(limits.announcementTimeouts * timeoutMs - 1);
    expect(wentOnBehind).toEqual([]);
    await clock.advance(limits.catchUpRetryMs);
    expect(wentOnBehind).toEqual([12 - lost]);
  });

  it("is looked at again while it is not found what it ends with, and is lost where that lasts", async () => {
    await begin({ goOnBehind: async () => false });
    await clock.advance(limits.announcementTimeouts * timeoutMs + limits.lossPatienceMs - 1);
    expect(outcome).toBe("reading");
    await clock.advance(2 * limits.catchUpRetryMs);
    expect(outcome).toBeInstanceOf(MissingRecordsError);
  });

  it("…and while it ends with another line: who saved that may not be known yet", async () => {
    const goOnBehind = async (lost: EndLostError) => {
      throw lost;
    };
    await begin({ goOnBehind });
    await clock.advance(limits.announcementTimeouts * timeoutMs + limits.lossPatienceMs - 1);
    expect(outcome).toBe("reading");
    for (const { bytes } of records.slice(-lost)) stored.journal.insertRival(bytes);
    await clock.advance(limits.catchUpRetryMs);
    expectWhole();
  });

  it.each([false, true])("…where nobody answers meanwhile, by who runs already: %s", async (isPatient) => {
    const goOnBehind = async () => {
      throw new UnreachableError("nobody answers");
    };
    await begin({ goOnBehind, isPatient });
    await clock.advance(2 * limits.lossPatienceRunningMs);
    if (isPatient) expect(outcome).toBe("reading");
    else expect(outcome).toBeInstanceOf(UnreachableError);
  });

  /** Puts so many records back, each just before nobody would be waited for any more. */
  async function expectAwaited(count: number): Promise<void> {
    for (const { bytes } of records.slice(-count)) {
      await clock.advance(limits.announcementTimeouts * timeoutMs - limits.catchUpRetryMs);
      stored.journal.insertRival(bytes);
    }
    await clock.advance(limits.catchUpRetryMs);
    expect(wentOnBehind).toEqual([]);
    expectWhole();
  }

  it("is waited for while somebody puts it back record by record, though nobody says so", async () => {
    await begin();
    await expectAwaited(lost);
  });

  it("…also where it had lost less before the server was away", async () => {
    await begin({ isPatient: true });
    journal.setOffline(true);
    await clock.advance(limits.catchUpRetryMs);
    stored.journal.loseTail(lost);
    journal.setOffline(false);
    await expectAwaited(2 * lost);
  });

  it("is not waited for where somebody else writes on, behind whom nobody puts it back", async () => {
    await begin();
    await clock.advance(limits.announcementTimeouts * timeoutMs - limits.catchUpRetryMs);
    stored.journal.insertRival(Buffer.from("not a batch"));
    await clock.advance(2 * limits.catchUpRetryMs);
    expect(wentOnBehind[0]).toBe(12 - lost + 1);
  });

  it("is waited for while another holds the end, and read when that one put it back", async () => {
    await begin({ isHeld: () => true });
    await clock.advance(10 * limits.announcementTimeouts * timeoutMs);
    expect(wentOnBehind).toEqual([]);
    for (const { bytes } of records.slice(-lost)) stored.journal.insertRival(bytes);
    await clock.advance(limits.catchUpRetryMs);
    expectWhole();
  });
});
