// Snapshots and purges while a swarm works: made when they are due, never at the leader's cost, and whoever starts,
// stands by or was deposed goes on from them.

import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { SwarmClient } from "../../src/client/swarm.ts";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { batchIndex, swarmId } from "../../src/ids.ts";
import { decodeBatch, encodeBatch } from "../../src/journal/batch.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemorySnapshotStore } from "../../src/journal/memory-snapshots.ts";
import { decodeManifest } from "../../src/journal/snapshot/manifest.ts";
import { limits } from "../../src/limits.ts";
import { CompactedSwarm, everything, nothing } from "../support/compacted-swarm.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { Gate } from "../support/gate.ts";
import { HeldJournal } from "../support/held-journal.ts";
import { keptLog } from "../support/kept-log.ts";
import { roleOf, silentLogger, stopped, subjects } from "../support/swarm.ts";
import { endedTask, liveTask } from "../support/task-refs.ts";

const nobodys = new Uint8Array();

let compacted: CompactedSwarm | undefined;
afterEach(async () => {
  if (compacted !== undefined) await stopped(compacted.swarm, compacted.clock);
  compacted = undefined;
});

describe("a leader's journal", () => {
  it("is purged to the older of two snapshots, and a restart finds all", async () => {
    compacted = await new CompactedSwarm().start();
    for (let round = 0; round < 4; round += 1) await compacted.work(12);
    const { journal, swarm } = compacted;
    const whole = swarm.watched.settled();
    expect(journal.firstSeq).toBeGreaterThan(20);
    expect(whole.state.auditFirstIdx).toBe(journal.firstSeq);
    const replay = await compacted.restarted();
    expect(fingerprint(replay.state)).toBe(fingerprint(whole.state));
    expect(replay.tail.events).toBeLessThan(20);
  });

  it("that is purged while a page of it is read is said to be trimmed, not damaged", async () => {
    const { recentRecordsBytes } = limits;
    onTestFinished(() => void Object.assign(limits, { recentRecordsBytes }));
    Object.assign(limits, { recentRecordsBytes: 1 }); // pages are read from the journal
    compacted = new CompactedSwarm();
    const journal = compacted.journal.open();
    const replay = journal.replay.bind(journal);
    let meanwhile: (() => Promise<void>) | undefined;
    journal.replay = async function* (fromSeq) {
      await meanwhile?.();
      yield* replay(fromSeq);
    };
    await compacted.start(nothing, { journal });
    await compacted.work(12);
    const { swarm } = compacted;
    meanwhile = async () => {
      meanwhile = undefined;
      for (let round = 0; round < 3; round += 1) await compacted?.work(12);
    };
    const page = await swarm.client.ask(subjects.query("_", "journal"), { from: 1 });
    expect(page).toMatchObject({ ok: false, code: "WAGGLE_AUDIT_TRIMMED" });
    expect(page.firstIdx).toBe(swarm.watched.settled().state.auditFirstIdx);
  });

  it("is kept for as long as was asked, whatever snapshots there are", async () => {
    compacted = await new CompactedSwarm().start(everything);
    for (let round = 0; round < 3; round += 1) await compacted.work(12);
    expect(compacted.snapshots.places("manifest")).toHaveLength(2);
    expect(compacted.journal.firstSeq).toBe(1);
  });

  it("gives up what was to be kept where room is short, says so, and takes tasks again", async () => {
    compacted = await new CompactedSwarm(200_000).start(everything);
    let refused = 0;
    for (let batch = 0; batch < 60; batch += 1) {
      const task = { id: `b${batch}`, kind: "k", payload: "x".repeat(10_000) };
      const answer = await compacted.swarm.client.submit([task]);
      if (answer.answers?.[0]?.ok !== true) refused += 1;
      for (let ms = 0; ms < limits.journalUsageMs; ms += limits.pulseMs) {
        compacted.swarm.watched.settled(); // before it is purged
        await compacted.clock.advance(limits.pulseMs);
      }
    }
    expect(refused).toBeLessThan(60);
    const { state } = compacted.swarm.watched.settled();
    expect(state.auditFirstIdx).toBeGreaterThan(1);
    expect(state.taskById.size).toBeGreaterThan(30);
  });

  it("that is to be kept whole is cut in small steps where its room ends, and no task is refused for it", async () => {
    compacted = await new CompactedSwarm(1_000_000).start(everything);
    const { journal } = compacted;
    const steps: number[] = [];
    for (let task = 0, before = journal.usage.bytes; task < 300; task += 1) {
      await compacted.work(1, "x".repeat(10_000));
      const { bytes } = journal.usage;
      if (bytes < before) steps.push(before - bytes);
      before = bytes;
    }
    expect(steps.length).toBeGreaterThan(10);
    expect(Math.max(...steps)).toBeLessThan(200_000);
    expect(journal.usage.bytes).toBeGreaterThan(550_000);
  });

  it("goes on while snapshots fail, which is said and tried again ever later", async () => {
    const log = keptLog();
    compacted = await new CompactedSwarm().start(nothing, { logger: log.logger });
    compacted.failures = 2;
    await compacted.work(12);
    expect(log.lines.filter(({ msg }) => msg.includes("could not be made"))).toHaveLength(1);
    await compacted.clock.advance(limits.snapshotRetryMs);
    expect(compacted.snapshots.places("manifest")).toHaveLength(0);
    await compacted.clock.advance(limits.snapshotRetryMs * 2);
    expect(compacted.snapshots.places("manifest")).toHaveLength(1);
    await compacted.work(1);
  });
});

describe("a snapshot that cannot be read", () => {
  const failure = async () => (await compacted?.swarm.client.status())?.journal.snapshotFailure;

  it("is said in the status until the next is made without meeting it, and none is purged by", async () => {
    compacted = await new CompactedSwarm().start();
    for (let round = 0; round < 2; round += 1) await compacted.work(12);
    const { journal, swarm } = compacted;
    compacted.spoilNewest();
    expect(await failure()).toBeUndefined();
    const { firstSeq } = journal;
    await compacted.work(12);
    expect(await failure()).toMatch(/^that of batch \d+ cannot be read: the chunk at place \d+ is missing$/);
    compacted.spoilNewest();
    const replay = await compacted.restarted();
    expect(fingerprint(replay.state)).toBe(fingerprint(swarm.watched.settled().state));
    for (let round = 0; round < 2; round += 1) await compacted.work(12);
    expect(await failure()).toBeUndefined();
    expect(journal.firstSeq).toBeGreaterThan(firstSeq);
  });

  it("is said by a coordinator that met it at its start, and what only it stands for is not purged", async () => {
    compacted = await new CompactedSwarm().start();
    for (let round = 0; round < 2; round += 1) await compacted.work(12);
    const { swarm, clock, journal } = compacted;
    await swarm.coordinator.stop();
    compacted.spoilNewest();
    const { firstSeq } = journal;
    const next = await swarm.startAnother("c2");
    await next.whenLeading();
    await clock.advance(limits.pulseMs * 3);
    expect(await failure()).toContain("cannot be read");
    const { snapshot } = (await swarm.client.status()).journal;
    expect(snapshot.idx).toBeGreaterThanOrEqual(firstSeq - 1);
    expect(journal.firstSeq).toBe(firstSeq);
  });
});

describe("dead records right behind a snapshot", () => {
  it("stay with it when the journal is purged, so that a restart may begin at it", async () => {
    compacted = await new CompactedSwarm().start();
    const { swarm, clock, journal } = compacted;
    for (let task = 0; task < 12; task += 1) await swarm.client.submit([{ id: `a${task}`, kind: "k" }]);
    for (const text of ["somebody", "else's"]) journal.insertRival(Buffer.from(text));
    await clock.advance(limits.pulseMs * 3);
    await compacted.work(12);
    await swarm.coordinator.stop();
    const next = await swarm.startAnother("c2");
    await next.whenLeading();
    await clock.advance(limits.pulseMs * 3);
    const older = compacted.snapshots.places("manifest").at(-2) ?? expect.fail("there are two");
    const { position } = decodeManifest(compacted.snapshots.at(older)?.bytes ?? new Uint8Array());
    expect(journal.firstSeq).toBe(position.seq + 1);
    compacted.spoilNewest();
    const replay = await compacted.restarted();
    expect(fingerprint(replay.state)).toBe(fingerprint(swarm.watched.settled().state));
  });
});

describe("what was trimmed", () => {
  it("is refused with the first batch that is kept, and reading from the start begins there", async () => {
    compacted = await new CompactedSwarm().start();
    for (let round = 0; round < 4; round += 1) await compacted.work(12);
    const { client, watched } = compacted.swarm;
    const firstIdx = watched.settled().state.auditFirstIdx;
    const page = (query: object) => client.ask(subjects.query("_", "journal"), query);
    expect(await page({ from: 1 })).toMatchObject({ ok: false, code: "WAGGLE_AUDIT_TRIMMED", firstIdx });
    expect(await page({ from: firstIdx - 1 })).toMatchObject({ code: "WAGGLE_AUDIT_TRIMMED" });
    for (const query of [{ from: firstIdx }, { since: 0 }, {}])
      expect((await page(query)).batches[0].idx).toBe(firstIdx);
    const { journal } = await client.status();
    expect(journal).toMatchObject({ auditFirstIdx: firstIdx });
    expect(journal.snapshot.idx).toBeGreaterThan(firstIdx);
  });

  it("takes the results of ended tasks with it: they are gone, and the tasks are known all the same", async () => {
    compacted = await new CompactedSwarm().start();
    const { swarm } = compacted;
    const agent = await swarm.agent("a1", { kinds: ["count"] });
    const task = { id: "early", kind: "count", payload: "x" };
    await swarm.client.submit([task]);
    await agent.complete(await agent.assignment());
    for (let round = 0; round < 4; round += 1) await compacted.work(12);
    const asked = { notify: "_INBOX.i", tasks: ["early"] };
    const { answers } = await swarm.client.ask(subjects.project("default", "await"), asked);
    expect(answers).toMatchObject([{ ok: true, outcome: { task: "early", state: "completed", gone: true } }]);
    const again = await swarm.client.submit([task]);
    expect(again.answers).toMatchObject([{ ok: true, duplicate: true }]);
  });

  it("takes the payloads of ended tasks with it: they are not retried any more", async () => {
    compacted = await new CompactedSwarm().start();
    const { swarm } = compacted;
    const subject = (verb: "retry" | "cancel") => subjects.project("default", verb);
    const retry = (task: string, round: number) =>
      swarm.client.ask(subject("retry"), { tasks: [{ task, round }] });
    await swarm.client.submit([{ id: "gone", kind: "nobody", payload: "of gone" }]);
    await swarm.client.ask(subject("cancel"), { tasks: [{ task: "gone", round: 1 }] });
    for (let round = 0; round < 4; round += 1) await compacted.work(12);
    expect(await retry("gone", 2)).toMatchObject({
      answers: [{ ok: false, code: "WAGGLE_GONE", field: "task" }],
    });
    expect(endedTask(swarm.watched.settled().state, "gone")).toMatchObject({ round: 1 });
  });

  it("is not missed by a task that was retried before: its retry says all", async () => {
    compacted = await new CompactedSwarm().start();
    const { swarm } = compacted;
    const retry = (task: string, round: number) =>
      swarm.client.ask(subjects.project("default", "retry"), { tasks: [{ task, round }] });
    const cancel = (round: number) =>
      swarm.client.ask(subjects.project("default", "cancel"), { tasks: [{ task: "kept", round }] });
    await swarm.client.submit([{ id: "kept", kind: "nobody", payload: "of kept" }]);
    await cancel(1);
    expect(await retry("kept", 2)).toMatchObject({ answers: [{ ok: true, round: 2 }] });
    for (let round = 0; round < 4; round += 1) await compacted.work(12);
    const { state } = swarm.watched.settled();
    expect(liveTask(state, "kept")).toMatchObject({ round: 2, spec: { payload: "of kept" } });
    expect(state.auditFirstIdx).toBeGreaterThan(liveTask(state, "kept")?.roundIdx ?? 0);
    await cancel(2);
    expect(await retry("kept", 3)).toMatchObject({ answers: [{ code: "WAGGLE_GONE" }] });
  });

  /** Two tasks that ended early, asked about by an await that is read in `meanwhile`. */
  async function awaitedMeanwhile(
    meanwhile: (held: HeldJournal, compacted: CompactedSwarm) => Promise<void>,
  ): Promise<{ readonly answers: object[] }> {
    compacted = new CompactedSwarm();
    const held = new HeldJournal(compacted.journal);
    await compacted.start(nothing, { journal: held.journal });
    const { swarm, journal } = compacted;
    const agent = await swarm.agent("a1", { kinds: ["count"] });
    const endedSeqs: number[] = [];
    for (const id of ["early", "next"]) {
      await swarm.client.submit([{ id, kind: "count" }]);
      await agent.complete(await agent.assignment());
      endedSeqs.push(journal.lastSeq);
    }
    await compacted.work(12); // a snapshot
    expect(swarm.watched.settled().state.auditFirstIdx).toBe(1);
    const gate = new Gate();
    const { journal: way } = held;
    const read = way.read.bind(way);
    way.read = async (seq) => {
      const record = await read(seq);
      if (seq === endedSeqs[0]) await gate.opened;
      return record;
    };
    const asked = { notify: "_INBOX.i", tasks: ["early", "next"] };
    const answering = swarm.client.ask(subjects.project("default", "await"), asked);
    await meanwhile(held, compacted);
    gate.open();
    await compacted.clock.settle();
    held.release();
    return await answering;
  }

  it("leaves results that go while others are read to be asked about again: the answer is of before", async () => {
    const { answers } = await awaitedMeanwhile(async (_, compacted) => {
      for (let round = 0; round < 2; round += 1) await compacted.work(12);
      expect(compacted.swarm.watched.settled().state.auditFirstIdx).toBeGreaterThan(10);
    });
    expect(answers).toMatchObject([{ outcome: { result: "done" } }, { code: "WAGGLE_OUTCOME_UNKNOWN" }]);
    const asked = { notify: "_INBOX.i", tasks: ["next"] };
    const again = await compacted?.swarm.client.ask(subjects.project("default", "await"), asked);
    expect(again).toMatchObject({ answers: [{ outcome: { gone: true } }] });
  });

  it("keeps them until that is committed", async () => {
    const { answers } = await awaitedMeanwhile(async (held, { swarm, clock }) => {
      for (let task = 0; task < 12; task += 1) await swarm.client.submit([{ id: `more${task}`, kind: "k" }]);
      held.hold();
      await clock.advance(limits.pulseMs * 3);
    });
    expect(answers).toMatchObject([{ outcome: { result: "done" } }, { outcome: { result: "done" } }]);
  });

  it("is told to clients: stories begin where the record does, streams that ask for more end with an error", async () => {
    compacted = await new CompactedSwarm().start();
    for (let round = 0; round < 4; round += 1) await compacted.work(12);
    const { hub, watched } = compacted.swarm;
    const firstIdx = watched.settled().state.auditFirstIdx;
    const client = new SwarmClient({
      transport: hub.connect(),
      swarm: swarmId("test"),
      project: "default",
      user: "ann",
      clock: systemClock,
      random: systemRandom,
      logger: silentLogger,
      onClose: async () => undefined,
    });
    const first = async (from: "start" | number) => {
      for await (const { idx } of client.events({ from })) return idx;
      return undefined;
    };
    expect(await first("start")).toBe(firstIdx);
    await expect(first(1)).rejects.toMatchObject({ code: "WAGGLE_AUDIT_TRIMMED", firstIdx });
    const { status, spec } = await client.story("t1");
    expect([status.state, spec]).toEqual(["queued", undefined]);
    await client.close();
  });
});

describe("a coordinator that stands by", () => {
  it("puts on record, once it leads, what was purged before, also where its server knows no snapshot at first", async () => {
    compacted = new CompactedSwarm();
    const first = compacted.journal.open();
    await compacted.start(everything, { journal: first });
    for (let round = 0; round < 3; round += 1) await compacted.work(12);
    const { swarm, journal, clock } = compacted;
    const next = await swarm.startAnother("c2");
    first.setCutOff(true);
    swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
    journal.purgeBelow(12); // of a full journal, and nothing of it was put on record
    await clock.advance(limits.journalLookMs + limits.pulseMs);
    const manifests = vi.spyOn(MemorySnapshotStore.prototype, "manifests").mockResolvedValue([]);
    while (roleOf(next) !== "leading") await clock.advance(limits.pulseMs);
    await clock.advance(limits.pulseMs * 3);
    manifests.mockRestore();
    expect(swarm.watched.settled().state.auditFirstIdx).toBe(1);
    await clock.advance(limits.snapshotRetryMs + limits.pulseMs * 2);
    expect(swarm.watched.settled().state.auditFirstIdx).toBe(12);
  });

  it("calls lost what it saves its state for once it leads, however long it takes to find how much that is", async () => {
    compacted = new CompactedSwarm();
    compacted.everyEvents = 1_000;
    const first = compacted.journal.open();
    await compacted.start(everything, { journal: first });
    for (let round = 0; round < 3; round += 1) await compacted.work(12);
    const { swarm, journal, clock } = compacted;
    const next = await swarm.startAnother("c2");
    await clock.advance(limits.journalLookMs * 2);
    swarm.watched.settled();
    first.setCutOff(true);
    swarm.hub.cut(swarm.transportById.get("c1") ?? expect.fail("c1 has a connection"));
    journal.loseMiddle(1, 11); // nobody purged them
    const { read } = MemoryJournal.prototype;
    const slow = vi.spyOn(MemoryJournal.prototype, "read").mockImplementation(async function (
      this: MemoryJournal,
      seq: number,
    ) {
      await new Promise<void>((resolve) => void clock.after(150, resolve));
      return await read.call(this, seq);
    });
    while (roleOf(next) !== "leading") await clock.advance(limits.pulseMs);
    await clock.advance(30_000);
    slow.mockRestore();
    const seqs = Array.from({ length: journal.lastSeq - 12 }, (_, at) => 13 + at);
    const events = seqs.flatMap((seq) => decodeBatch(journal.at(seq)?.bytes ?? nobodys)?.events ?? []);
    expect(events.filter(({ type }) => type === "AuditTrimmed")).toMatchObject([{ reason: "hole" }]);
  });

  it("begins anew at the newest snapshot when its place was purged away", async () => {
    compacted = await new CompactedSwarm().start();
    await compacted.work(12);
    const { swarm, clock, journal } = compacted;
    const way = journal.open();
    const standby = await swarm.startAnother("c2", way);
    way.setCutOff(true);
    for (let round = 0; round < 4; round += 1) await compacted.work(12);
    way.setCutOff(false);
    await clock.advance(limits.leaderTimeoutMs);
    await swarm.coordinator.stop();
    await clock.advance(limits.leaderTimeoutMs * 3);
    await standby.whenLeading();
    await compacted.work(1);
    const { state } = swarm.watched.settled();
    expect(state.taskById.size).toBe(61);
  });

  it("begins anew once where several dead records lie before what a snapshot stands for", async () => {
    const log = keptLog();
    compacted = await new CompactedSwarm().start(everything, { logger: log.logger });
    const { swarm, clock, journal } = compacted;
    const way = journal.open();
    await swarm.startAnother("c2", way);
    way.setCutOff(true);
    const { position, state } = swarm.watched.settled();
    for (const prev of ["of another line", "of yet another"]) {
      const header = { ...position, idx: batchIndex(position.idx + 1), prev, at: state.at };
      journal.insertRival(Buffer.from(encodeBatch(header, [JSON.stringify({ type: "TermRenewed" })])));
    }
    await compacted.work(12);
    expect(compacted.snapshots.places("manifest").length).toBeGreaterThan(0);
    way.setCutOff(false);
    await clock.advance(limits.leaderTimeoutMs);
    expect(log.lines.filter(({ msg }) => msg.includes("beginning anew"))).toMatchObject([
      { coordinator: "c2" },
    ]);
    expect(log.lines.filter(({ msg }) => msg === "halted")).toEqual([]);
  });
});
