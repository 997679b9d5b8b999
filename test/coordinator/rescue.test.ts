// A journal that lost what nobody can put back: the leader's state is saved as a snapshot, and nothing is answered
// until it is. Whoever starts afterwards has all that was ever acknowledged.

import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { snapshotterHere } from "../../src/coordinator/compaction/snapshotter.ts";
import type { Coordinator } from "../../src/coordinator/coordinator.ts";
import { Turns } from "../../src/coordinator/leader/turns.ts";
import { UnreachableError } from "../../src/errors.ts";
import { hashOf } from "../../src/journal/batch.ts";
import type { AppendOutcome, JournalRecord } from "../../src/journal/journal.ts";
import { type AnswerFate, MemoryJournal, MemoryJournalStore } from "../../src/journal/memory.ts";
import { MemorySnapshotStore, MemorySnapshots, type PutFate } from "../../src/journal/memory-snapshots.ts";
import { decodeManifest } from "../../src/journal/snapshot/manifest.ts";
import { readManifests } from "../../src/journal/snapshot/manifests.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { noJitter, roleOf, silentLogger, startTestSwarm, stopped, type TestSwarm } from "../support/swarm.ts";
import { liveIds } from "../support/task-refs.ts";

const timeoutMs = limits.leaderTimeoutMs;
const none = new Uint8Array();
let clock: ManualClock;
let store: MemoryJournalStore;
let snapshots: MemorySnapshots;
let first: HidingJournal;
let second: MemoryJournal;
let swarm: TestSwarm;
/** What becomes of the next puts; a promise holds them. */
let onPut: () => PutFate | Promise<PutFate>;
/** Whether the store acknowledges records and does not keep them, as nats-server 2.9 does behind a flipped bit. */
let isForgetful: boolean;
/** …until it is purged. */
let isPurgeOfHelp: boolean;
/** Whether the next record is lost along with its acknowledgement. */
let isLostUnheard: boolean;

beforeEach(async () => {
  clock = new ManualClock();
  store = new MemoryJournalStore();
  snapshots = new MemorySnapshots();
  onPut = () => "deliver";
  isForgetful = false;
  isPurgeOfHelp = false;
  isLostUnheard = false;
  second = store.open();
  first = new HidingJournal(store, { onAnswer: (_, outcome) => forgetAgain(outcome) });
  swarm = await startTestSwarm({
    clock,
    store,
    random: noJitter,
    journal: first,
    compaction: (journal) => {
      const opened = snapshots.open({ onPut: () => onPut() });
      const snapshotter = snapshotterHere({ journal, snapshots: opened, clock, logger: silentLogger });
      return {
        snapshots: opened,
        snapshotter,
        retention: { ageMs: limits.auditRetentionMs, bytes: limits.auditRetentionBytes },
      };
    },
  });
});
afterEach(async () => {
  first.setCutOff(false);
  onPut = () => "deliver";
  await stopped(swarm, clock);
});

const looked = () => clock.advance(limits.journalLookMs + timeoutMs / limits.leaderBeatsPerTimeout);

/** Whoever checks the journal has read it before. */
function loseRecord(seq: number): void {
  swarm.watched.settled();
  store.loseMiddle(seq, 1);
}

/** May not find what is there. */
class HidingJournal extends MemoryJournal {
  isHiding = false;
  /** How often nobody answers who is asked for a record that is not there. */
  silences = 0;

  override async purgeThrough(seq: number): Promise<boolean> {
    swarm.watched.settled();
    const isPurged = await super.purgeThrough(seq);
    if (isPurged && isPurgeOfHelp) isForgetful = false;
    return isPurged;
  }

  override async read(seq: number): Promise<JournalRecord | undefined> {
    const found = this.isHiding ? undefined : await super.read(seq);
    if (found !== undefined || this.silences === 0) return found;
    this.silences -= 1;
    throw new UnreachableError("nobody answers");
  }
}

function forgetAgain(outcome: AppendOutcome): AnswerFate {
  if (outcome.kind !== "stored") return "deliver";
  if (isForgetful || isLostUnheard) loseRecord(outcome.seq);
  const isHeard = !isLostUnheard;
  isLostUnheard = false;
  return isHeard ? "deliver" : "lose";
}

/** How many tasks a coordinator knows that reads what there is now. */
async function tasksAfterRestart(): Promise<number> {
  await swarm.coordinator.stop();
  const next = await swarm.startAnother("c9");
  await next.whenLeading();
  const { tasks } = await swarm.client.status();
  return tasks.queued;
}

function aGate() {
  let open: () => void = () => undefined;
  const opened = new Promise<PutFate>((resolve) => {
    open = () => resolve("deliver");
  });
  return { opened, open };
}

describe("a hole under an unchanged end", () => {
  it("is found by a look; all that was accepted survives a restart, and the audit says where it begins", async () => {
    for (const id of ["t1", "t2", "t3"]) await swarm.submit(id);
    loseRecord(3);
    await looked();
    expect(snapshots.places("manifest")).toHaveLength(1);
    await swarm.submit("t4");
    expect(swarm.watched.settled().state.auditFirstIdx).toBe(4);
    expect(await tasksAfterRestart()).toBe(4);
  });

  it("is put on record though nobody answers at first who is asked how far it goes", async () => {
    for (const id of ["t1", "t2", "t3"]) await swarm.submit(id);
    loseRecord(3);
    first.silences = 2;
    await looked();
    await clock.advance(3 * limits.rescueRetryMs);
    expect(first.silences).toBe(0);
    expect(swarm.watched.settled().state.auditFirstIdx).toBe(4);
  });

  it("whose leader is gone once it saved its state is put on record by who comes after", async () => {
    for (const id of ["t1", "t2", "t3"]) await swarm.submit(id);
    const gate = aGate();
    onPut = () => gate.opened;
    loseRecord(3);
    await looked();
    first.setCutOff(true);
    gate.open();
    await clock.settle();
    const next = await swarm.startAnother("c2");
    await clock.advance(2 * timeoutMs);
    expect(roleOf(next)).toBe("leading");
    expect(next.settledState?.auditFirstIdx).toBe(4);
    expect(next.settledState?.taskById.size).toBe(3);
  });

  it("that came just before another leads is saved by that one, who has read it", async () => {
    const next = await swarm.startAnother("c2");
    for (const id of ["t1", "t2", "t3"]) await swarm.submit(id);
    swarm.watched.settled();
    loseRecord(3);
    await swarm.coordinator.stop();
    await clock.settle();
    expect(roleOf(next)).toBe("leading");
    expect(next.settledState?.auditFirstIdx).toBe(1); // nothing is saved yet
    await looked();
    expect(next.settledState?.auditFirstIdx).toBeGreaterThan(3);
    expect(snapshots.places("manifest")).toHaveLength(1);
    await next.stop();
    const third = await swarm.startAnother("c3");
    await third.whenLeading();
    expect(third.settledState?.taskById.size).toBe(3);
  });

  it("that is found while another is being saved is saved, too", async () => {
    for (const id of ["t1", "t2", "t3"]) await swarm.submit(id);
    const gate = aGate();
    onPut = () => gate.opened;
    loseRecord(3);
    await looked();
    await clock.advance(timeoutMs); // beats stand behind what is being saved
    loseRecord(store.lastSeq - 1);
    await looked();
    gate.open();
    await clock.advance(2 * limits.readBackPatienceMs);
    expect(await tasksAfterRestart()).toBe(3);
  });

  it("that takes a batch before its leader heard of it holds nobody up for ever, and loses nothing", async () => {
    await swarm.submit("t1");
    isLostUnheard = true;
    const answer = swarm.submit("t2").catch(() => undefined);
    await clock.advance(limits.readBackPatienceMs);
    expect(snapshots.places("manifest")).toHaveLength(0);
    await clock.advance(limits.readBackPatienceMs);
    await answer; // it may have given up; what it asked for is taken in all the same
    expect(await swarm.submit("t3")).toMatchObject({ term: 1, answers: [{ ok: true }] });
    expect(await tasksAfterRestart()).toBe(3);
  });

  it("that takes a batch which only a standby has read is got over by both on one line", async () => {
    const standby = await swarm.startAnother("c2");
    await swarm.submit("t1");
    isLostUnheard = true;
    swarm.submit("t2").catch(() => undefined);
    await clock.advance(4 * limits.readBackPatienceMs);
    expect([roleOf(swarm.coordinator), roleOf(standby)]).toEqual(["leading", "standing-by"]);
    expect(await swarm.submit("t3")).toMatchObject({ answers: [{ ok: true }] });
    await clock.advance(timeoutMs);
    const known = [swarm.coordinator, standby].map(({ settledState }) => settledState);
    expect(known.map((state) => state?.idx)).toEqual([standby.settledState?.idx, standby.settledState?.idx]);
    for (const state of known) expect(liveIds(state)).toEqual(["t1", "t2", "t3"]);
  });

  it("holds what is acknowledged until the snapshot is durable", async () => {
    await swarm.submit("t1");
    const gate = aGate();
    onPut = () => gate.opened;
    loseRecord(2);
    await looked();
    let isAnswered = false;
    const answer = swarm.submit("t2").then((told) => {
      isAnswered = true;
      return told;
    });
    await clock.advance(1_000);
    expect(isAnswered).toBe(false);
    gate.open();
    await clock.settle();
    expect(await answer).toMatchObject({ answers: [{ ok: true }] });
  });

  it("does not depose the leader, however long the snapshot takes: its beats go on", async () => {
    const standby = await swarm.startAnother("c2");
    await swarm.submit("t1");
    const gate = aGate();
    onPut = () => gate.opened;
    loseRecord(2);
    await clock.advance(5 * timeoutMs);
    expect([roleOf(swarm.coordinator), roleOf(standby)]).toEqual(["leading", "standing-by"]);
    gate.open();
    await clock.settle();
    expect(await swarm.submit("t2")).toMatchObject({ term: 1 });
  });

  it("is left as it is by a leader whose beat meets a bug meanwhile: it halts", async () => {
    await swarm.submit("t1");
    onPut = () => aGate().opened;
    loseRecord(2);
    const beat = vi.spyOn(Turns.prototype, "runBeat").mockImplementationOnce(() => {
      throw new RangeError("a bug");
    });
    onTestFinished(() => beat.mockRestore());
    await clock.advance(2 * timeoutMs);
    expect(await swarm.coordinator.closed).toMatchObject({ code: "WAGGLE_INVARIANT" });
    expect(beat).toHaveBeenCalledTimes(1);
  });

  it("is tried again until it is saved", async () => {
    await swarm.submit("t1");
    const fates: PutFate[] = ["full", "lose", "deliver", "lose-answer"];
    onPut = () => fates.shift() ?? "deliver";
    loseRecord(2);
    await looked();
    await clock.advance(5 * limits.rescueRetryMs);
    expect(fates).toEqual([]);
    expect(await swarm.submit("t2")).toMatchObject({ term: 1 });
    expect(await tasksAfterRestart()).toBe(2);
  });

  it("that a standby found is rescued by it once it leads", async () => {
    const standby = await swarm.startAnother("c2");
    await swarm.submit("t1");
    first.setCutOff(true);
    loseRecord(2);
    await clock.advance(2 * timeoutMs);
    expect(roleOf(standby)).not.toBe("leading"); // another record may stand there, and not be found yet
    await clock.advance(limits.readBackPatienceMs + timeoutMs);
    expect(await swarm.client.status()).toMatchObject({ term: 2, leader: "c2" });
    expect(snapshots.places("manifest")).toHaveLength(1);
  });

  it("that a standby met, and another rescued, is not rescued again by it once it leads", async () => {
    const own = store.open();
    const standby = await swarm.startAnother("c2", own);
    await swarm.submit("t1");
    await clock.settle();
    own.setCutOff(true);
    const { lastSeq } = store;
    for (const id of ["t2", "t3"]) await swarm.submit(id);
    loseRecord(lastSeq + 1);
    const gate = aGate();
    onPut = () => gate.opened;
    own.setCutOff(false);
    await looked();
    own.setCutOff(true);
    gate.open();
    await clock.advance(timeoutMs);
    own.setCutOff(false); // it begins anew at the leader's snapshot
    await clock.advance(2 * timeoutMs);
    expect([roleOf(standby), standby.settledState?.taskById.size]).toEqual(["standing-by", 3]);
    swarm.watched.settled();
    first.setCutOff(true);
    await clock.advance(2 * timeoutMs);
    expect([roleOf(standby), snapshots.places("manifest").length]).toEqual(["leading", 1]);
  });

  it("may be the whole history, purged by hand", async () => {
    for (const id of ["t1", "t2"]) await swarm.submit(id);
    swarm.watched.settled();
    store.purgeBelow(store.lastSeq + 1);
    await looked();
    await swarm.submit("t3");
    expect(await tasksAfterRestart()).toBe(3);
  });

  it("is no reason to go on where there are no snapshots: it halts and says what to do", async () => {
    const bare = new MemoryJournalStore();
    const alone = await startTestSwarm({ clock, store: bare });
    await alone.submit("t1");
    bare.loseMiddle(2, 1);
    await looked();
    expect(await alone.coordinator.closed).toMatchObject({
      code: "WAGGLE_JOURNAL_DAMAGED",
      message: expect.stringMatching(/from a backup/),
    });
  });
});

describe("a journal that acknowledges what it does not keep", () => {
  const untilSure = () => clock.advance(limits.journalLookMs + limits.readBackPatienceMs + timeoutMs);
  const isAnswered = async (answer: Promise<unknown>) => {
    let isOver = false;
    const end = () => {
      isOver = true;
    };
    answer.then(end, end);
    await clock.settle();
    return isOver;
  };

  it("has nothing acknowledged or told until it keeps what is appended; nothing that was accepted is lost", async () => {
    await swarm.submit("t1");
    isForgetful = true;
    await swarm.submit("t2"); // before anybody looks
    await untilSure();
    const answer = swarm.submit("t3");
    await clock.advance(limits.askTimeoutMs / 10);
    expect(await isAnswered(answer)).toBe(false);
    isForgetful = false;
    await clock.advance(limits.readBackPatienceMs + 2 * limits.rescueProbeMs);
    await answer.catch(() => undefined); // the request gave up; what it asked for is taken in all the same
    expect(await swarm.submit("t4")).toMatchObject({ term: 1, answers: [{ ok: true }] });
    expect(await tasksAfterRestart()).toBe(4);
  });

  it("is purged by its leader up to the snapshot, which mends it; nothing is lost, and the audit says where it begins", async () => {
    isPurgeOfHelp = true;
    await swarm.submit("t1");
    isForgetful = true;
    await swarm.submit("t2");
    await untilSure();
    await clock.advance(limits.readBackPatienceMs);
    expect(await swarm.submit("t3")).toMatchObject({ term: 1, answers: [{ ok: true }] });
    const [{ manifest } = expect.fail("there is a snapshot")] = await readManifests(
      snapshots.open(),
      silentLogger,
    );
    const { seq, idx } = manifest.position;
    expect((await first.position()).firstSeq).toBe(seq + 1);
    expect(swarm.watched.settled().state.auditFirstIdx).toBe(idx + 1);
    expect(await tasksAfterRestart()).toBe(3);
  });

  it("is purged once for each time: what it did not help is left to a person", async () => {
    const purges: number[] = [];
    const purge = first.purgeThrough.bind(first);
    first.purgeThrough = (seq) => {
      purges.push(seq);
      return purge(seq);
    };
    await swarm.submit("t1");
    isForgetful = true;
    await swarm.submit("t2");
    await untilSure();
    await clock.advance(10 * limits.readBackPatienceMs);
    expect(purges).toHaveLength(1);
  });

  it("is led by who comes after, and loses nothing, when its leader dies between the purge and its next batch", async () => {
    isPurgeOfHelp = true;
    const purge = first.purgeThrough.bind(first);
    first.purgeThrough = async (seq) => {
      const isPurged = await purge(seq);
      first.setCutOff(true);
      return isPurged;
    };
    await swarm.submit("t1");
    isForgetful = true;
    await swarm.submit("t2");
    await untilSure();
    await clock.advance(limits.readBackPatienceMs);
    const next = await swarm.startAnother("c9");
    await clock.advance(2 * timeoutMs);
    expect([roleOf(next), (await swarm.client.status()).tasks.queued]).toEqual(["leading", 2]);
  });

  it("leaves to whoever starts a snapshot that reaches to its end", async () => {
    await swarm.submit("t1");
    isForgetful = true;
    await swarm.submit("t2");
    await untilSure();
    await clock.advance(limits.readBackPatienceMs);
    isForgetful = false;
    first.setCutOff(true);
    const next = await swarm.startAnother("c9");
    await clock.advance(2 * timeoutMs);
    expect([roleOf(next), (await swarm.client.status()).tasks.queued]).toEqual(["leading", 2]);
  });

  it("is waited for where there is nothing to save to, and what was held back is told once it is found", async () => {
    const bare = new MemoryJournalStore();
    const journal = new HidingJournal(bare, {});
    const alone = await startTestSwarm({ clock, store: bare, journal });
    await alone.submit("t1");
    journal.isHiding = true;
    await untilSure();
    const answer = alone.submit("t2");
    expect([await isAnswered(answer), roleOf(alone.coordinator)]).toEqual([false, "leading"]);
    journal.isHiding = false;
    await clock.advance(limits.journalLookMs);
    expect(await answer).toMatchObject({ term: 1, answers: [{ ok: true }] });
    await alone.stop();
  });

  it("may only have been read by who does not know the newest yet: told late, and nothing is saved", async () => {
    await swarm.submit("t1");
    first.isHiding = true;
    await clock.advance(limits.readBackPatienceMs - limits.journalLookMs);
    const answer = swarm.submit("t2");
    expect(await isAnswered(answer)).toBe(false);
    first.isHiding = false;
    await clock.advance(limits.journalLookMs);
    expect(await answer).toMatchObject({ term: 1, answers: [{ ok: true }] });
    expect(snapshots.places("manifest")).toEqual([]);
  });
});

describe("an end that nobody holds any more", () => {
  /** So long that the first records are dropped. */
  async function loseMoreThanIsHeld(): Promise<void> {
    for (const id of ["t1", "t2"]) await swarm.submit(id);
    await clock.advance(limits.recentRecordsMs + timeoutMs);
    swarm.watched.settled();
    store.loseTail(store.lastSeq - 2);
  }

  const untilBelieved = () => clock.advance(limits.journalHoleMs + 10 * limits.appendRetryMs);

  it("is saved by the leader, and the journal goes on at its actual end", async () => {
    await loseMoreThanIsHeld();
    const answer = swarm.submit("t3");
    await untilBelieved();
    expect(await answer).toMatchObject({ term: 1, answers: [{ ok: true }] });
    expect(store.lastSeq).toBeLessThan(10);
    expect(await tasksAfterRestart()).toBe(3);
  });

  it("is answered only once the snapshot is durable and one more batch stands behind it", async () => {
    await loseMoreThanIsHeld();
    const gate = aGate();
    onPut = () => gate.opened;
    let isAnswered = false;
    const answer = swarm.submit("t3").then((told) => {
      isAnswered = true;
      return told;
    });
    await untilBelieved();
    expect([isAnswered, store.lastSeq]).toEqual([false, 2]);
    gate.open();
    await clock.settle();
    expect(await answer).toMatchObject({ answers: [{ ok: true }] });
    expect(store.lastSeq).toBeGreaterThan(2);
  });

  it("is put on record as lost also where a late copy of one of its batches stands again where it stood", async () => {
    for (const id of ["t8", "t9"]) await swarm.submit(id);
    const { seq, bytes } = store.at(3) ?? expect.fail("there are three by now");
    const copy = Buffer.from(bytes);
    await loseMoreThanIsHeld();
    expect(store.lastSeq).toBe(seq - 1);
    const lostIdx = swarm.coordinator.settledState?.idx ?? 0;
    const gate = aGate();
    onPut = () => gate.opened;
    const answer = swarm.submit("t3");
    await untilBelieved();
    store.insertRival(copy);
    gate.open();
    await untilBelieved();
    expect(await answer).toMatchObject({ answers: [{ ok: true }] });
    expect(swarm.coordinator.settledState?.auditFirstIdx).toBeGreaterThan(lostIdx);
  });

  it("is saved also where a hole was found before, whose rescue waits for what is in flight", async () => {
    for (const id of ["t1", "t2", "t3"]) await swarm.submit(id);
    await clock.advance(limits.recentRecordsMs + timeoutMs);
    loseRecord(2);
    store.loseTail(store.lastSeq - 4);
    await clock.advance(limits.journalLookMs);
    const answer = swarm.submit("t4");
    await clock.advance(2 * limits.readBackPatienceMs);
    expect(await answer).toMatchObject({ term: 1, answers: [{ ok: true }] });
    expect(await tasksAfterRestart()).toBe(4);
  });

  it("is nobody's answer where another coordinator went on from there meanwhile", async () => {
    await loseMoreThanIsHeld();
    const gate = aGate();
    onPut = () => gate.opened;
    const unanswered = expect(swarm.submit("t3")).rejects.toThrow(/timeout/);
    await untilBelieved();
    // It knows nothing of what was lost: a term of its own, on what is left.
    store.insertRival(Buffer.from(rivalsTerm()));
    gate.open();
    await clock.advance(limits.readBackPatienceMs - limits.appendRetryMs);
    expect(roleOf(swarm.coordinator)).toBe("leading"); // who saved it may not be known yet
    await clock.advance(2 * limits.appendRetryMs);
    expect(await swarm.coordinator.closed).toMatchObject({
      code: "WAGGLE_JOURNAL_DAMAGED",
      message: expect.stringMatching(/another coordinator went on/),
    });
    await clock.advance(limits.askTimeoutMs);
    await unanswered;
  });
});

describe("an end that no leader holds any more", () => {
  /** A snapshot of it is there; the leader and all records behind the fourth are gone. */
  async function loseWhatTheSnapshotHolds(): Promise<void> {
    for (const id of ["t1", "t2", "t3", "t4"]) await swarm.submit(id);
    loseRecord(3);
    await looked();
    expect(snapshots.places("manifest")).toHaveLength(1);
    loseLeaderAndEnd(4);
  }

  function loseLeaderAndEnd(lastSeq: number): void {
    swarm.watched.settled();
    first.setCutOff(true);
    swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
    store.loseTail(store.lastSeq - lastSeq);
  }

  const untilLed = () => clock.advance(2 * limits.announcementTimeouts * timeoutMs + 2 * timeoutMs);
  const queued = async () => (await swarm.client.status()).tasks.queued;

  it("is gone on without by whoever starts from the snapshot that holds it, and put on record", async () => {
    await loseWhatTheSnapshotHolds();
    const starting = swarm.startAnother("c9");
    await untilLed();
    const next = await starting;
    expect([roleOf(next), await queued()]).toEqual(["leading", 4]);
    expect(next.settledState?.auditFirstIdx).toBeGreaterThan(5);
    await swarm.submit("t5");
    await next.stop();
    const afterwards = await swarm.startAnother("c10");
    await afterwards.whenLeading();
    expect(await queued()).toBe(5);
  });

  it("is put on record by who leads from the snapshot that another saved, and was gone", async () => {
    await loseWhatTheSnapshotHolds();
    const gate = aGate();
    onPut = () => gate.opened;
    const own = store.open();
    void swarm.startAnother("c9", own).catch(() => undefined);
    await untilLed();
    expect(snapshots.places("manifest")).toHaveLength(1); // it is about to save it
    own.setCutOff(true);
    swarm.hub.cut(swarm.transportById.get("c9") ?? expect.fail("c9 has a connection"));
    gate.open();
    await clock.settle();
    expect(snapshots.places("manifest")).toHaveLength(2);
    const starting = swarm.startAnother("c10");
    await untilLed();
    const next = await starting;
    expect([roleOf(next), await queued()]).toEqual(["leading", 4]);
    expect(next.settledState?.auditFirstIdx).toBeGreaterThan(5);
  });

  it("is not left by a standby that had not read it, and would lead without it", async () => {
    const own = store.open();
    const standby = await swarm.startAnother("c2", own);
    for (const id of ["t1", "t2"]) await swarm.submit(id);
    await clock.settle();
    own.setCutOff(true);
    const { lastSeq } = store;
    await swarm.submit("t3");
    loseRecord(2);
    await looked();
    expect(snapshots.places("manifest")).toHaveLength(1);
    loseLeaderAndEnd(lastSeq);
    own.setCutOff(false);
    await untilLed();
    await clock.advance(2 * limits.readBackPatienceMs);
    expect(roleOf(standby)).toBe("leading");
    expect(liveIds(standby.settledState)).toEqual(["t1", "t2", "t3"]);
  });

  it.each(["does not answer", "cannot be reached"])(
    "keeps nobody from leading where the snapshots' storage %s",
    async (how) => {
      const standby = await swarm.startAnother("c2");
      for (const id of ["t1", "t2"]) await swarm.submit(id);
      loseLeaderAndEnd(store.lastSeq);
      const never = new Promise<never>((_, reject) => {
        if (how === "cannot be reached") reject(new UnreachableError("it is away"));
      });
      never.catch(() => undefined);
      const manifests = vi.spyOn(MemorySnapshotStore.prototype, "manifests").mockReturnValue(never);
      await clock.advance(2 * timeoutMs + timeoutMs / 2);
      manifests.mockRestore();
      expect(roleOf(standby)).toBe("leading");
    },
  );

  it("is noticed by a standby that has read nothing behind its snapshot", async () => {
    for (const id of ["t1", "t2", "t3", "t4"]) await swarm.submit(id);
    loseRecord(3);
    await looked();
    const [place = 0] = snapshots.places("manifest");
    const { position } = decodeManifest(snapshots.at(place)?.bytes ?? none);
    loseLeaderAndEnd(position.seq);
    const standby = await swarm.startAnother("c2");
    store.loseTail(2);
    await untilLed();
    await clock.advance(timeoutMs);
    expect([roleOf(standby), await queued()]).toEqual(["leading", 4]);
  });

  /** A standby that has begun at a snapshot which reaches to the journal's end, and read nothing behind it. That is
   *  lost then, and another has led on, accepted `t9`, and written up to the same record, and is gone. */
  async function writtenOnToTheSameRecord() {
    const ids = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"];
    for (const id of ids) await swarm.submit(id);
    loseRecord(2);
    await looked();
    const [place = 0] = snapshots.places("manifest");
    const { position } = decodeManifest(snapshots.at(place)?.bytes ?? none);
    loseLeaderAndEnd(position.seq);
    const standby = await swarm.startAnother("c2", second);
    const connection = swarm.transportById.get("c2") ?? expect.fail("c2 has a connection");
    second.setCutOff(true);
    swarm.hub.cut(connection);
    store.loseTail(6);
    const own = store.open({ onRequest: () => (store.lastSeq < position.seq ? "deliver" : "lose") });
    let successor: Coordinator | undefined;
    void swarm.startAnother("c9", own).then((started) => {
      successor = started;
    });
    while (successor === undefined || roleOf(successor) !== "leading") await clock.advance(limits.pulseMs);
    expect(await swarm.submit("t9")).toMatchObject({ term: 2, answers: [{ ok: true }] });
    while (store.lastSeq < position.seq) await clock.advance(limits.pulseMs);
    swarm.hub.cut(swarm.transportById.get("c9") ?? expect.fail("c9 has a connection"));
    const reconnect = () => {
      second.setCutOff(false);
      swarm.hub.heal(connection);
    };
    return { standby, reconnect, known: [...ids, "t9"] };
  }

  it("is gone on without by another, up to the very record at which a standby stands that had read nothing behind its snapshot", async () => {
    const { standby, reconnect, known } = await writtenOnToTheSameRecord();
    reconnect();
    await untilLed();
    expect(roleOf(standby)).toBe("leading");
    expect(standby.settledState?.term).toBe(3);
    expect(liveIds(standby.settledState)).toEqual(known);
  });

  it("…by whom that snapshot is left out that starts afterwards, also where the other's is gone", async () => {
    await writtenOnToTheSameRecord();
    for (const place of snapshots.places("manifest").slice(1)) snapshots.lose(place);
    const { lastSeq } = store;
    const refused = expect(swarm.startAnother("c3")).rejects.toMatchObject({
      code: "WAGGLE_JOURNAL_DAMAGED",
    });
    await clock.advance(2 * limits.lossPatienceMs);
    await refused;
    expect(store.lastSeq).toBe(lastSeq);
  });

  /** A standby that went on behind a lost end by a snapshot of it, where the journal ends with a dead record. What it
   *  appends is lost until `isAway` is false. */
  async function goneOnBehindADeadRecord() {
    const fate = { isAway: false };
    const own = store.open({ onRequest: () => (fate.isAway ? "lose" : "deliver") });
    const standby = await swarm.startAnother("c2", own);
    await swarm.submit("t1");
    store.insertRival(Buffer.from("somebody else's"));
    const { lastSeq } = store;
    void swarm.submit("t2");
    await clock.advance(limits.recentRecordsMs + timeoutMs);
    fate.isAway = true;
    loseLeaderAndEnd(lastSeq);
    while (snapshots.places("manifest").length === 0) await clock.advance(limits.pulseMs);
    return { standby, fate };
  }

  it.each([
    ["before", 0],
    ["while", 2 * timeoutMs],
  ])(
    "is gone on without behind a dead record, also where another takes its place %s it campaigns",
    async (_, ms) => {
      const { standby, fate } = await goneOnBehindADeadRecord();
      await clock.advance(ms);
      store.loseTail(1);
      store.insertRival(Buffer.from("another's"));
      fate.isAway = false;
      await untilLed();
      await clock.advance(2 * limits.readBackPatienceMs);
      expect(roleOf(standby)).toBe("leading");
      expect(await queued()).toBe(2);
    },
  );

  it.each([
    [
      "its snapshot is gone then",
      () => {
        for (const place of snapshots.places("manifest")) snapshots.lose(place);
      },
      "another's",
    ],
    ["somebody's election stands there, who held less", () => undefined, undefined],
  ])("…unless %s: what it has folded may be all that is left", async (_, harm, record) => {
    const { standby, fate } = await goneOnBehindADeadRecord();
    harm();
    store.loseTail(1);
    const prev = hashOf(store.at(store.lastSeq)?.bytes ?? none);
    store.insertRival(Buffer.from(record ?? rivalsTerm({ prev })));
    fate.isAway = false;
    await clock.advance(2 * timeoutMs + 2 * limits.readBackPatienceMs);
    expect(await standby.closed).toMatchObject({ code: "WAGGLE_JOURNAL_DAMAGED" });
  });

  it("is waited for where a standby says that it holds it", async () => {
    const standby = await swarm.startAnother("c2");
    await loseWhatTheSnapshotHolds();
    const starting = swarm.startAnother("c9");
    await untilLed();
    expect([roleOf(standby), roleOf(await starting)]).toEqual(["leading", "standing-by"]);
    expect([await queued(), snapshots.places("manifest").length]).toEqual([4, 1]);
    expect(swarm.watched.settled().state.term).toBe(2);
  });

  /** A standby that has folded `ids`, of which only the first two records are left, with what `more` put there. */
  async function leftToAStandby(
    journal: MemoryJournal,
    { rival, cutOff }: { rival?: () => string; cutOff?: MemoryJournal | undefined } = {},
  ) {
    const standby = await swarm.startAnother("c2", journal);
    for (const id of ["t1", "t2"]) await swarm.submit(id);
    await clock.advance(limits.recentRecordsMs);
    cutOff?.setCutOff(true);
    await clock.advance(timeoutMs);
    loseLeaderAndEnd(2);
    const bytes = rival?.();
    if (bytes === undefined) return standby;
    store.loseTail(1);
    store.insertRival(Buffer.from(bytes));
    return standby;
  }

  async function expectGoneOn(standby: Coordinator): Promise<void> {
    await untilLed();
    expect([roleOf(standby), await queued()]).toEqual(["leading", 2]);
  }

  async function expectHalted(standby: Coordinator): Promise<void> {
    await untilLed();
    expect(roleOf(standby)).toBe("standing-by"); // who saved it may not be known yet
    await clock.advance(limits.lossPatienceRunningMs);
    expect(await standby.closed).toMatchObject({ code: "WAGGLE_JOURNAL_DAMAGED" });
    expect(snapshots.places("manifest")).toEqual([]);
  }

  it("is gone on without by a standby that has folded it, and no sooner than 2·T", async () => {
    const standby = await leftToAStandby(store.open());
    await clock.advance(limits.announcementTimeouts * timeoutMs);
    expect([roleOf(standby), snapshots.places("manifest").length]).toEqual(["standing-by", 0]);
    await expectGoneOn(standby);
  });

  /** A standby that has read two dead records behind `t1` and `t2`, and whose leader and end are gone. */
  async function leftWithDeadRecords(lastSeq: (deadSeq: number) => number): Promise<Coordinator> {
    const standby = await swarm.startAnother("c2");
    for (const id of ["t1", "t2"]) await swarm.submit(id);
    for (const text of ["somebody", "else's"]) store.insertRival(Buffer.from(text));
    const deadSeq = store.lastSeq - 1;
    await clock.advance(limits.recentRecordsMs + timeoutMs);
    loseLeaderAndEnd(lastSeq(deadSeq));
    return standby;
  }

  it("is gone on without where dead records stand at what is left", async () => {
    await expectGoneOn(await leftWithDeadRecords((deadSeq) => deadSeq + 1));
  });

  it.each([
    [
      "follows the last batch that is left",
      () => rivalsTerm({ prev: hashOf(store.at(store.lastSeq)?.bytes ?? none) }),
    ],
    ["follows others that were lost", () => rivalsTerm({ prev: "of-another", idx: 500 })],
  ])("is not gone on without where what stands in a dead record's place %s", async (_, rival) => {
    const standby = await leftWithDeadRecords((deadSeq) => deadSeq - 1);
    store.insertRival(Buffer.from(rival()));
    await expectHalted(standby);
  });

  it.each([
    ["another batch", () => rivalsTerm({}, 0)],
    ["another batch of the same term", () => rivalsTerm({ term: 1 }, 0)],
    ["nothing that can be read", () => "somebody else's"],
  ])("is not gone on without where %s stands at what is left", async (_, rival) => {
    await expectHalted(await leftToAStandby(store.open(), { rival }));
  });

  /** …and of what stands before it nothing is found. */
  async function leftUnfound(): Promise<{ standby: Coordinator; hiding: HidingJournal }> {
    const hiding = new HidingJournal(store, {});
    const standby = await leftToAStandby(hiding);
    hiding.isHiding = true;
    return { standby, hiding };
  }

  it.each([
    ["is not found", 0],
    ["cannot be asked for", Number.POSITIVE_INFINITY],
  ])("is kept by a standby that has folded it while what stands before it %s", async (_, silences) => {
    const { standby, hiding } = await leftUnfound();
    hiding.silences = silences;
    await untilLed();
    await untilLed();
    expect([roleOf(standby), snapshots.places("manifest").length]).toEqual(["standing-by", 0]);
    hiding.isHiding = false;
    await expectGoneOn(standby);
  });

  it("is kept by a standby that has folded it, however long the server was away since it was not found", async () => {
    const { standby, hiding } = await leftUnfound();
    await clock.advance(limits.lossPatienceRunningMs);
    hiding.setCutOff(true);
    await clock.advance(limits.lossPatienceRunningMs);
    hiding.setCutOff(false);
    await clock.advance(limits.lossPatienceRunningMs - timeoutMs);
    expect(roleOf(standby)).toBe("standing-by");
    hiding.isHiding = false;
    await expectGoneOn(standby);
  });

  it("is gone on without by a candidate that has folded it, whose election the journal did not take before", async () => {
    let isAway = false;
    const own = store.open({ onRequest: () => (isAway ? "lose" : "deliver") });
    const standby = await swarm.startAnother("c2", own);
    for (const id of ["t1", "t2"]) await swarm.submit(id);
    await clock.advance(limits.recentRecordsMs + timeoutMs);
    isAway = true;
    loseLeaderAndEnd(store.lastSeq);
    await clock.advance(2 * timeoutMs); // a candidate by now
    store.loseTail(store.lastSeq - 2);
    isAway = false;
    await untilLed();
    await expectGoneOn(standby);
  });

  it("is given up by a standby where what stands before it is not found for a minute", async () => {
    const { standby } = await leftUnfound();
    await clock.advance(limits.lossPatienceRunningMs);
    expect(roleOf(standby)).toBe("standing-by");
    await clock.advance(2 * timeoutMs * (limits.announcementTimeouts + 1));
    expect(await standby.closed).toMatchObject({ code: "WAGGLE_JOURNAL_DAMAGED" });
  });

  it.each(["full", "lose"] as const)(
    "is kept by a standby that has folded it while the storage of snapshots says or does: %s",
    async (fate) => {
      const standby = await leftToAStandby(store.open());
      onPut = () => fate;
      await clock.advance(limits.lossPatienceRunningMs + 4 * timeoutMs * limits.announcementTimeouts);
      expect(roleOf(standby)).toBe("standing-by");
      onPut = () => "deliver";
      await clock.advance(2 * timeoutMs); // one that is under way
      await expectGoneOn(standby);
    },
  );

  it("is kept by a standby that has folded it while what is put is not given back", async () => {
    const standby = await leftToAStandby(store.open());
    const chunk = vi.spyOn(MemorySnapshotStore.prototype, "chunk").mockResolvedValue(undefined);
    await clock.advance(limits.lossPatienceRunningMs);
    expect(chunk).toHaveBeenCalled();
    expect(roleOf(standby)).toBe("standing-by");
    chunk.mockRestore();
    await clock.advance(4 * timeoutMs);
    await expectGoneOn(standby);
  });

  it.each([0, 1])("is left by a standby to another that saved it and %i more and went on", async (more) => {
    const own = store.open();
    const third = await swarm.startAnother("c3", own);
    const standby = await leftToAStandby(store.open(), { cutOff: more === 1 ? own : undefined });
    own.setCutOff(true);
    await expectGoneOn(standby);
    await swarm.submit("t3");
    own.setCutOff(false);
    await untilLed();
    expect([roleOf(standby), roleOf(third)]).toEqual(["leading", "standing-by"]);
    expect(liveIds(third.settledState)).toEqual(["t1", "t2", "t3"]);
  });

  /** A standby that began at a snapshot, and a leader that is out of the journal's reach and holds what that lost. */
  async function loseWhatOnlyTheLeaderHolds(): Promise<Coordinator> {
    for (const id of ["t1", "t2", "t3", "t4"]) await swarm.submit(id);
    loseRecord(3);
    await looked();
    const standby = await swarm.startAnother("c2", second);
    await swarm.submit("t5");
    swarm.watched.settled();
    first.setCutOff(true);
    store.loseTail(store.lastSeq - 4);
    return standby;
  }

  it("is waited for where a leader is there, and put back by it", async () => {
    const standby = await loseWhatOnlyTheLeaderHolds();
    expect(standby.heldFromSeq).toBeGreaterThan(swarm.coordinator.heldFromSeq);
    await clock.advance((limits.announcementTimeouts + 2) * timeoutMs);
    expect(store.lastSeq).toBe(4);
    first.setCutOff(false);
    await clock.advance(2 * timeoutMs);
    expect([await queued(), snapshots.places("manifest").length]).toEqual([5, 1]);
    expect(swarm.watched.settled().state.taskById.size).toBe(5);
  });

  it("is waited for as long as the journal cannot be reached, where nobody can put it back", async () => {
    await loseWhatOnlyTheLeaderHolds();
    swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
    await clock.advance((limits.announcementTimeouts + 1) * timeoutMs);
    second.setCutOff(true);
    await clock.advance(limits.announcementTimeouts * timeoutMs);
    second.setCutOff(false);
    await clock.advance(timeoutMs + limits.pulseMs);
    expect([store.lastSeq, snapshots.places("manifest").length]).toEqual([4, 1]);
  });

  it("is waited for while somebody puts it back record by record, who says nothing", async () => {
    for (const id of ["t1", "t2", "t3", "t4"]) await swarm.submit(id);
    loseRecord(3);
    await looked();
    const standby = await swarm.startAnother("c2", second);
    for (const id of ["t5", "t6", "t7"]) await swarm.submit(id);
    swarm.watched.settled();
    const seqs = Array.from({ length: store.lastSeq - 4 }, (_, at) => 5 + at);
    const lost = seqs.map((seq) => store.at(seq)?.bytes ?? none);
    first.setCutOff(true);
    swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
    store.loseTail(lost.length);
    const manifests = snapshots.places("manifest").length;
    for (const bytes of lost) {
      await clock.advance(2 * timeoutMs);
      if (roleOf(standby) === "leading") break; // it had read the rest, and put that back
      store.insertRival(bytes);
    }
    expect([roleOf(standby), snapshots.places("manifest").length]).toEqual(["leading", manifests]);
    expect(swarm.watched.settled().state.taskById.size).toBe(7);
  });

  it("is gone on without by a standby, and the leader that held it follows: what it had committed is saved", async () => {
    const standby = await loseWhatOnlyTheLeaderHolds();
    const connection = swarm.transportById.get("c1") ?? expect.fail("c1 has a connection");
    swarm.hub.cut(connection);
    await untilLed();
    expect(roleOf(standby)).toBe("leading");
    first.setCutOff(false);
    swarm.hub.heal(connection);
    await clock.advance(4 * timeoutMs);
    expect([roleOf(swarm.coordinator), roleOf(standby)]).toEqual(["standing-by", "leading"]);
    expect([swarm.coordinator.settledState?.taskById.size, await queued()]).toEqual([5, 5]);
  });

  it("…also where the server does not know at first what was saved", async () => {
    const standby = await loseWhatOnlyTheLeaderHolds();
    const connection = swarm.transportById.get("c1") ?? expect.fail("c1 has a connection");
    swarm.hub.cut(connection);
    await untilLed();
    const manifests = vi.spyOn(MemorySnapshotStore.prototype, "manifests").mockResolvedValue([]);
    first.setCutOff(false);
    swarm.hub.heal(connection);
    await clock.advance(limits.readBackPatienceMs / 2);
    manifests.mockRestore();
    await clock.advance(4 * timeoutMs);
    expect([roleOf(swarm.coordinator), roleOf(standby)]).toEqual(["standing-by", "leading"]);
    expect([swarm.coordinator.settledState?.taskById.size, await queued()]).toEqual([5, 5]);
  });

  it("is no reason to go on where another went on from there", async () => {
    await loseWhatTheSnapshotHolds();
    store.insertRival(Buffer.from("another's"));
    const starting = expect(swarm.startAnother("c9")).rejects.toThrow(/its end is lost/);
    await untilLed();
    await starting;
  });
});

/** As one would write it that read what is left: the state after the last record. */
function rivalsTerm(header: { term?: number; idx?: number; prev?: string } = {}, behind = 1): string {
  const last = JSON.parse(Buffer.from(store.at(store.lastSeq)?.bytes ?? none).toString());
  const started = { type: "TermStarted", term: last.term + 1, leader: "rival", timeoutMs };
  return JSON.stringify({
    ...last,
    term: last.term + 1,
    idx: last.idx + behind,
    prev: "of-it",
    events: [started],
    ...header,
  });
}
