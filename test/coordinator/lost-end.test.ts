// A journal that loses its end under coordinators that still hold it, as after a server's power failure: who puts it
// back, who waits for that, and what is said when nobody can.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Coordinator } from "../../src/coordinator/coordinator.ts";
import { timingOf } from "../../src/coordinator/timing.ts";
import { UnreachableError } from "../../src/errors.ts";
import type { JournalRecord } from "../../src/journal/journal.ts";
import { MemoryJournal, MemoryJournalStore } from "../../src/journal/memory.ts";
import { limits } from "../../src/limits.ts";
import { encode } from "../../src/protocol/codec.ts";
import { keptLog } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { noJitter, roleOf, startTestSwarm, stopped, subjects, type TestSwarm } from "../support/swarm.ts";
import { liveIds } from "../support/task-refs.ts";

const timeoutMs = limits.leaderTimeoutMs;
let clock: ManualClock;
let store: MemoryJournalStore;
let first: ReturnType<MemoryJournalStore["open"]>;
let swarm: TestSwarm;
let log: ReturnType<typeof keptLog>;

beforeEach(async () => {
  clock = new ManualClock();
  store = new MemoryJournalStore();
  first = store.open();
  log = keptLog();
  swarm = await startTestSwarm({ clock, store, journal: first, random: noJitter, logger: log.logger });
});
afterEach(async () => {
  first.setCutOff(false);
  await stopped(swarm, clock);
});

const bytesFrom = (seq: number) =>
  Array.from({ length: store.lastSeq - seq + 1 }, (_, at) => Buffer.from(store.at(seq + at)?.bytes ?? []));

/** May not find what is there, or not answer. */
class HidingJournal extends MemoryJournal {
  how: string | undefined;

  override async read(seq: number): Promise<JournalRecord | undefined> {
    if (this.how === "cannot be asked for") throw new UnreachableError("nobody answers");
    return this.how === undefined ? super.read(seq) : undefined;
  }
}

describe("a leader whose journal lost its end", () => {
  it("holds it from the first record on, a batch in flight or not", async () => {
    await swarm.submit("t1");
    expect(swarm.coordinator.heldFromSeq).toBe(1);
    first.setCutOff(true);
    const answer = swarm.submit("t2");
    await clock.settle();
    expect([swarm.coordinator.settledState, swarm.coordinator.heldFromSeq]).toEqual([undefined, 1]);
    first.setCutOff(false);
    await clock.advance(timeoutMs);
    await answer;
  });

  it("puts it back byte for byte, and goes on with what was in flight", async () => {
    await swarm.submit("t1");
    await swarm.submit("t2");
    const before = bytesFrom(1);
    store.loseTail(2);
    const answer = swarm.submit("t3");
    await clock.advance(limits.appendRetryMs);
    expect(await answer).toMatchObject({ term: 1, answers: [{ ok: true }] });
    expect(bytesFrom(1).slice(0, before.length)).toEqual(before);
    expect(swarm.watched.settled().state.taskById.size).toBe(3);
    expect(log.lines.filter(({ level }) => level === "error")).toMatchObject([
      { records: 2, msg: expect.stringContaining("lost its end") },
    ]);
  });

  it("says that there is no room to put it back, and does once there is", async () => {
    await swarm.submit("t1");
    await swarm.submit("t2");
    const { lastSeq } = store;
    store.loseTail(2);
    const append = vi
      .spyOn(first, "append")
      .mockImplementation(async (_, seq) =>
        seq < lastSeq ? { kind: "full", message: "it is bounded" } : { kind: "refused" },
      );
    swarm.submit("t3").catch(() => undefined); // its request ends before
    await clock.advance(2 * limits.readBackPatienceMs);
    expect(log.lines).toContainEqual(
      expect.objectContaining({
        reason: "it is bounded",
        msg: expect.stringMatching(/lost its end.*no room.*give it more/),
      }),
    );
    append.mockRestore();
    await clock.advance(limits.rescueProbeMs);
    const answer = swarm.submit("t4");
    await clock.advance(limits.appendRetryMs);
    expect(await answer).toMatchObject({ term: 1, answers: [{ ok: true }] });
    expect(swarm.watched.settled().state.taskById.size).toBe(4);
  });

  it("finds out by its next beat when nobody asks anything", async () => {
    await swarm.submit("t1");
    const { lastSeq } = store;
    store.loseTail(3);
    await clock.advance(timeoutMs);
    expect(store.lastSeq).toBeGreaterThan(lastSeq);
    expect(swarm.watched.settled().state.taskById.size).toBe(1);
    expect(roleOf(swarm.coordinator)).toBe("leading");
  });

  it("halts where it went on differently: nobody can put that back", async () => {
    await swarm.submit("t1");
    await swarm.submit("t2");
    store.loseTail(2);
    store.insertRival(Buffer.from("another's"));
    const unanswered = expect(swarm.submit("t3")).rejects.toThrow(/timeout/);
    await clock.advance(limits.appendRetryMs);
    expect(await swarm.coordinator.closed).toMatchObject({
      code: "WAGGLE_JOURNAL_DAMAGED",
      message: expect.stringMatching(/Start this coordinator again/),
    });
    await clock.advance(limits.askTimeoutMs);
    await unanswered;
  });
});

describe("a leader that was out of touch while another was elected", () => {
  it("leaves it to that one to put back what the journal lost of both", async () => {
    const second = store.open();
    const successor = await swarm.startAnother("c2", second);
    await swarm.submit("t1");
    const { lastSeq } = store;
    first.setCutOff(true);
    swarm.submit("void").catch(() => undefined); // sent to the journal again and again
    await clock.advance(2 * timeoutMs);
    expect(roleOf(successor)).toBe("leading");
    await swarm.submit("t2");
    second.setCutOff(true);
    store.loseTail(store.lastSeq - lastSeq);
    first.setCutOff(false);
    await clock.advance(4 * timeoutMs);
    expect(store.lastSeq).toBe(lastSeq);
    second.setCutOff(false);
    await clock.advance(timeoutMs);
    expect([roleOf(swarm.coordinator), roleOf(successor)]).toEqual(["standing-by", "leading"]);
    expect(liveIds(swarm.watched.settled().state)).toEqual(["t1", "t2"]);
  });
});

/** A way to the store that ends when something is to be appended. */
function openUntilAppend(): ReturnType<MemoryJournalStore["open"]> {
  let isOnce = true;
  const journal: ReturnType<MemoryJournalStore["open"]> = store.open({
    onRequest: () => {
      if (isOnce) journal.setCutOff(true);
      isOnce = false;
      return "deliver";
    },
  });
  return journal;
}

describe("a candidate whose election found no way to the journal while another was elected", () => {
  let own: ReturnType<MemoryJournalStore["open"]>;
  let elected: ReturnType<MemoryJournalStore["open"]>;
  let successor: Coordinator;
  let candidate: Coordinator;

  beforeEach(async () => {
    own = openUntilAppend();
    candidate = await swarm.startAnother("c2", own);
    elected = store.open();
    successor = await swarm.startAnother("c3", elected);
    await swarm.submit("t1");
    const { lastSeq } = store;
    first.setCutOff(true);
    await clock.advance(1.5 * timeoutMs);
    expect([roleOf(candidate), roleOf(successor)]).toEqual(["standing-by", "leading"]);
    await swarm.submit("t2");
    elected.setCutOff(true);
    store.loseTail(store.lastSeq - lastSeq);
    own.setCutOff(false);
  });

  it("leaves it to that one to put back what the journal lost", async () => {
    const { lastSeq } = store;
    await clock.advance(3 * timeoutMs);
    expect(store.lastSeq).toBe(lastSeq);
    elected.setCutOff(false);
    await clock.advance(timeoutMs);
    expect([roleOf(candidate), roleOf(successor)]).toEqual(["standing-by", "leading"]);
    expect(liveIds(swarm.watched.settled().state)).toEqual(["t1", "t2"]);
  });

  it("waits for that one no longer than a standby would", async () => {
    await clock.advance((limits.announcementWaitsMax + 2) * timeoutMs);
    expect(roleOf(candidate)).toBe("leading");
    // Whoever holds what is lost finds another line in its place, and says so.
    elected.setCutOff(false);
    await clock.advance(2 * timeoutMs);
    expect(await successor.closed).toMatchObject({ code: "WAGGLE_JOURNAL_DAMAGED" });
  });
});

describe("a candidate whose election found no way to the journal while the leader wrote on", () => {
  let isAway: boolean;
  let own: ReturnType<MemoryJournalStore["open"]>;
  let candidate: Coordinator;
  /** Where it had read a dead record. */
  let lastSeq: number;

  /** @param batches of the leader, which stand there now
   *  @param changed called right before anything does */
  async function writeOn(batches: number, changed: () => void = () => undefined): Promise<void> {
    isAway = true;
    own = store.open({ onRequest: () => (isAway ? "lose" : "deliver") });
    candidate = await swarm.startAnother("c2", own);
    await swarm.submit("t1");
    store.insertRival(Buffer.from("somebody else's"));
    await clock.settle();
    lastSeq = store.lastSeq;
    first.setCutOff(true);
    swarm.submit("t2").catch(() => undefined); // where that one stood
    await clock.advance(1.5 * timeoutMs); // a candidate by now
    changed();
    store.loseTail(1);
    first.setCutOff(false);
    while (store.lastSeq < lastSeq + 1) await clock.advance(limits.pulseMs);
    first.setCutOff(true);
    store.loseTail(2 - batches);
    isAway = false;
  }

  async function expectAllKnown(): Promise<void> {
    await clock.advance((limits.announcementWaitsMax + 4) * timeoutMs);
    expect(roleOf(candidate)).toBe("leading");
    expect(liveIds(candidate.settledState)).toEqual(["t1", "t2"]);
  }

  it.each([
    ["one batch", 1],
    ["two batches", 2],
  ])("does not send it behind %s of the leader where it had read a dead record", async (_, batches) => {
    await writeOn(batches);
    await expectAllKnown();
  });

  it("…nor while a server that lags says that the journal ends before that", async () => {
    let isLagging = true;
    await writeOn(1, () => {
      const { position, read } = own;
      own.position = async () => {
        const at = await position.call(own);
        return isLagging ? { ...at, lastSeq: lastSeq - 1 } : at;
      };
      own.read = async (seq) => (isLagging && seq >= lastSeq ? undefined : await read.call(own, seq));
    });
    await clock.advance(limits.readBackPatienceMs / 2);
    isLagging = false;
    expect(store.lastSeq).toBe(lastSeq);
    await expectAllKnown();
  });
});

describe("a candidate that was not elected", () => {
  it("knows what it read of somebody else's records, also where they are lost right after", async () => {
    const own = openUntilAppend();
    const candidate = await swarm.startAnother("c2", own);
    await swarm.submit("t1");
    first.setCutOff(true);
    await clock.advance(1.5 * timeoutMs);
    const fromSeq = store.lastSeq + 1;
    for (const text of ["somebody", "else's", "records"]) store.insertRival(Buffer.from(text));
    first.setCutOff(false);
    swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
    while (store.lastSeq < fromSeq + 3) await clock.advance(limits.pulseMs); // the leader goes on behind them
    const { read } = own;
    own.read = async (seq) => {
      const found = await read.call(own, seq);
      if (seq === fromSeq + 3) {
        swarm.watched.settled();
        store.loseMiddle(fromSeq, 3);
      }
      return found;
    };
    own.setCutOff(false);
    await clock.advance(timingOf(timeoutMs).beatMs); // it looks again once in each
    own.read = read;
    await clock.advance(limits.pulseMs);
    expect(store.at(fromSeq)).toBeUndefined();
    expect(roleOf(candidate)).toBe("standing-by");
    expect(candidate.settledState?.idx).toBe(swarm.watched.settled().state.idx);
  });
});

describe("a standby whose journal lost its end", () => {
  it("puts it back before it campaigns, when the leader is gone with it", async () => {
    const standby = await swarm.startAnother("c2");
    await swarm.submit("t1");
    await swarm.submit("t2");
    const before = bytesFrom(1);
    first.setCutOff(true);
    store.loseTail(2);
    await clock.advance(2 * timeoutMs);
    expect(roleOf(standby)).toBe("leading");
    expect(bytesFrom(1).slice(0, before.length)).toEqual(before);
    expect(swarm.watched.settled().state).toMatchObject({ term: 2 });
    expect(swarm.watched.replay.state.taskById.size).toBe(2);
  });

  it("that holds less than another leaves it to that one", async () => {
    const whole = await swarm.startAnother("c2");
    await swarm.submit("t1");
    await swarm.submit("t2");
    first.setCutOff(true);
    store.loseTail(2);
    const short = await swarm.startAnother("c3"); // begins with what is left
    await clock.advance(2 * timeoutMs);
    expect([roleOf(whole), roleOf(short)]).toEqual(["leading", "standing-by"]);
    expect(swarm.watched.settled().state.taskById.size).toBe(2);
  });

  it("that holds less asks before it campaigns: another may hold more since it last said so", async () => {
    const second = store.open();
    const behind = await swarm.startAnother("c2", second);
    await swarm.submit("t1");
    first.setCutOff(true);
    const betweenMs = timeoutMs / limits.leaderBeatsPerTimeout / 2;
    await clock.advance(betweenMs);
    const whole = await swarm.startAnother("c3"); // says what it holds between two words of the others
    await clock.advance(0.93 * timeoutMs - betweenMs);
    second.setCutOff(true);
    first.setCutOff(false);
    const { lastSeq } = store;
    const answer = swarm.submit("t2");
    await clock.advance(limits.appendRetryMs);
    expect(await answer).toMatchObject({ answers: [{ ok: true }] });
    first.setCutOff(true);
    swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
    store.loseTail(store.lastSeq - lastSeq);
    second.setCutOff(false);
    await clock.advance(2 * timeoutMs);
    expect([roleOf(behind), roleOf(whole)]).toEqual(["standing-by", "leading"]);
    expect(liveIds(swarm.watched.settled().state)).toEqual(["t1", "t2"]);
  });

  it("that holds less waits 2·T for who holds more, and no longer", async () => {
    await swarm.startAnother("c2");
    await swarm.submit("t1");
    const whole = swarm.transportById.get("c2") ?? expect.fail("c2 has a connection");
    first.setCutOff(true);
    store.loseTail(1);
    const short = await swarm.startAnother("c3");
    await clock.advance(timeoutMs / limits.leaderBeatsPerTimeout); // c2 says what it holds
    swarm.hub.cut(whole);
    swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
    await clock.advance(2 * timeoutMs - limits.pulseMs);
    expect(roleOf(short)).toBe("standing-by");
    await clock.advance(2 * timeoutMs);
    expect(roleOf(short)).toBe("leading");
    swarm.hub.heal(whole);
  });

  it("does not believe for ever who says that it holds more", async () => {
    const standby = await swarm.startAnother("c2");
    const liar = { id: "c9", term: 1e9, idx: 1e12, leading: false };
    swarm.client.transport.publish(subjects.coordinator, encode(liar));
    first.setCutOff(true);
    await clock.advance(limits.announcementTimeouts * timeoutMs);
    expect(roleOf(standby)).toBe("standing-by");
    await clock.advance(2 * timeoutMs);
    expect(roleOf(standby)).toBe("leading");
  });

  it("does not wait for ever for what somebody announces again and again, under one name after the other", async () => {
    const standby = await swarm.startAnother("c2");
    await swarm.submit("t1");
    first.setCutOff(true);
    let names = 0;
    const lie = () => {
      names += 1;
      const liar = { id: `liar-${names}`, term: 1e9, idx: 1e12 + names, leading: false };
      swarm.client.transport.publish(subjects.coordinator, encode(liar));
    };
    const until = async (timeouts: number) => {
      for (let third = 0; third < 3 * timeouts; third += 1) {
        lie();
        await clock.advance(timeoutMs / 3);
      }
    };
    await until(limits.announcementWaitsMax);
    expect(roleOf(standby)).toBe("standing-by");
    await until(2);
    expect(roleOf(standby)).toBe("leading");
    expect(log.lines).toContainEqual(
      expect.objectContaining({ level: "error", msg: expect.stringContaining("no longer waited for") }),
    );
  });

  it("begins anew where only a dead record was replaced, which no leader knew of", async () => {
    const standby = await swarm.startAnother("c2");
    await swarm.submit("t1");
    store.insertRival(Buffer.from("somebody else's"));
    await clock.settle();
    store.loseTail(1);
    await swarm.submit("t2");
    await clock.advance(timeoutMs);
    expect(roleOf(standby)).toBe("standing-by");
    expect(liveIds(standby.settledState)).toEqual(["t1", "t2"]);
  });

  it("begins anew, before it campaigns, where the leader's last batch stands among the dead records that it had read", async () => {
    const standby = await swarm.startAnother("c2");
    await swarm.submit("t1");
    for (let count = 0; count < 2; count += 1) store.insertRival(Buffer.from("somebody else's"));
    await clock.settle();
    store.loseTail(2);
    await swarm.submit("t2"); // where the first of them stood
    first.setCutOff(true);
    for (let count = 0; count < 2; count += 1) store.insertRival(Buffer.from("somebody else's"));
    await clock.advance((limits.announcementWaitsMax + 3) * timeoutMs);
    expect(roleOf(standby)).toBe("leading");
    expect(liveIds(standby.settledState)).toEqual(["t1", "t2"]);
  });

  /** A standby that read a dead record in whose place `t2` stands, and of which nothing before it is found. */
  async function replacedBehind(how: string): Promise<{ standby: Coordinator; hiding: HidingJournal }> {
    const hiding = new HidingJournal(store, {});
    const standby = await swarm.startAnother("c2", hiding);
    await swarm.submit("t1");
    store.insertRival(Buffer.from("somebody else's"));
    await clock.settle();
    store.loseTail(1);
    hiding.how = how;
    await swarm.submit("t2");
    return { standby, hiding };
  }

  it.each(["is not found", "cannot be asked for"])(
    "…and waits meanwhile where its last batch %s: that proves nothing",
    async (how) => {
      const { standby, hiding } = await replacedBehind(how);
      await clock.advance(timeoutMs);
      hiding.how = undefined;
      await clock.advance(timeoutMs);
      expect(roleOf(standby)).toBe("standing-by");
      expect(liveIds(standby.settledState)).toEqual(["t1", "t2"]);
    },
  );

  it("…and however long nobody answers, while nobody leads", async () => {
    const { standby, hiding } = await replacedBehind("cannot be asked for");
    await clock.advance(timeoutMs / 2); // more of the leader's, behind which it finds what was replaced
    first.setCutOff(true);
    swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
    await clock.advance(3 * limits.lossPatienceRunningMs);
    hiding.how = undefined;
    await clock.advance(3 * timeoutMs);
    expect(roleOf(standby)).toBe("leading");
    expect(liveIds(standby.settledState)).toEqual(["t1", "t2"]);
  });

  it("leaves dead records at its end away where another has read what stood in their place", async () => {
    const second = store.open();
    const behind = await swarm.startAnother("c2", second);
    const whole = await swarm.startAnother("c3");
    await swarm.submit("t1");
    store.insertRival(Buffer.from("somebody else's"));
    await clock.settle();
    second.setCutOff(true);
    store.loseTail(1);
    const { lastSeq } = store;
    await swarm.submit("t2"); // where that one stood
    await clock.advance(timeoutMs / limits.leaderBeatsPerTimeout - 1);
    first.setCutOff(true);
    store.loseTail(store.lastSeq - lastSeq);
    second.setCutOff(false);
    await clock.advance(4 * timeoutMs);
    expect([roleOf(behind), roleOf(whole)]).toEqual(["standing-by", "leading"]);
    expect(liveIds(swarm.watched.settled().state)).toEqual(["t1", "t2"]);
    expect(liveIds(behind.settledState)).toEqual(["t1", "t2"]);
  });

  it("halts where it went on differently", async () => {
    const standby = await swarm.startAnother("c2");
    await swarm.submit("t1");
    await swarm.submit("t2");
    first.setCutOff(true);
    store.loseTail(2);
    for (const text of ["x", "y"]) store.insertRival(Buffer.from(text)); // as long as before
    await clock.advance(2 * timeoutMs);
    expect(await standby.closed).toMatchObject({ code: "WAGGLE_JOURNAL_DAMAGED" });
  });
});

describe("a coordinator that starts", () => {
  it("does not lead at once where another is there that holds more", async () => {
    await swarm.submit("t1");
    await swarm.coordinator.stop();
    const ended = store.lastSeq; // its goodbye
    const second = await swarm.startAnother("c2");
    await second.whenLeading();
    await swarm.submit("t2");
    store.loseTail(store.lastSeq - ended);
    const third = await swarm.startAnother("c3");
    expect(roleOf(third)).toBe("standing-by");
    await clock.advance(timeoutMs);
    expect([roleOf(second), roleOf(third)]).toEqual(["leading", "standing-by"]);
    expect(swarm.watched.settled().state.taskById.size).toBe(2);
  });
});
