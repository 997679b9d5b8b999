// No message leaves before its commit: the journal's answer is held back, and all messages on the wire are checked.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AnswerFate, MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import { doneSubject } from "../../src/protocol/subjects.ts";
import { Gate } from "../support/gate.ts";
import { HeldJournal } from "../support/held-journal.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { storedBatches } from "../support/stored.ts";
import { noJitter, startTestSwarm, subjects, type TestSwarm, type WireAgent } from "../support/swarm.ts";
import { WireTap } from "../support/wire-tap.ts";

let clock: ManualClock;
let held: HeldJournal;
let swarm: TestSwarm;
let tap: WireTap;
let agent: WireAgent;

beforeEach(async () => {
  clock = new ManualClock();
  const store = new MemoryJournalStore();
  held = new HeldJournal(store);
  swarm = await startTestSwarm({
    clock,
    store,
    journal: held.journal,
    random: noJitter,
  });
  await clock.settle();
  agent = await swarm.agent("a1");
  tap = new WireTap(swarm.hub);
});
afterEach(async () => {
  held.release();
  await swarm.stop();
});

/** Messages sent meanwhile, by the last tokens of the subjects; answers as `answer`. */
async function said(): Promise<string[]> {
  await clock.settle();
  const names = tap.said().map((subject) => {
    if (subject === doneSubject("_INBOX.me")) return "done";
    return subject.startsWith("_INBOX.") ? "answer" : subject.slice("waggle.v1.test.".length);
  });
  tap.clear();
  return names.sort();
}

describe("while a batch is not committed", () => {
  it("no answer, assignment, notice or event of it leaves; then all of them do", async () => {
    held.hold();
    const answer = swarm.client.submit([{ id: "t1", kind: "count" }], { notify: "_INBOX.me" });
    expect(await said()).toEqual([]);
    expect(storedBatches(swarm.store).length).toBe(3);
    held.release();
    expect(await answer).toMatchObject({ idx: 3, answers: [{ ok: true }] });
    expect(await said()).toEqual([
      "agent._.a1.assign",
      "answer",
      "event.default.task.assigned",
      "event.default.task.submitted",
    ]);
  });

  it("no client hears of the end of a task", async () => {
    await swarm.client.submit([{ id: "t1", kind: "count" }], { notify: "_INBOX.me" });
    const assignment = await agent.assignment();
    await said();
    held.hold();
    const answer = agent.complete(assignment);
    expect(await said()).toEqual([]);
    held.release();
    expect(await answer).toMatchObject({ answers: [{ status: "ok" }] });
    expect(await said()).toEqual(["answer", "done", "event.default.task.completed"]);
  });

  it("no question is answered from the uncommitted state", async () => {
    held.hold();
    void swarm.client.submit([{ id: "t1", kind: "count" }]);
    await clock.settle();
    const asked = [
      swarm.client.status(),
      swarm.client.task("t1"),
      swarm.client.submit([{ id: "t1", kind: "count" }]),
      swarm.client.ask(subjects.project("default", "cancel"), { tasks: [{ task: "nobody", round: 1 }] }),
      swarm.client.ask(subjects.project("default", "await"), { tasks: ["t1"], notify: "_INBOX.me" }),
      swarm.client.ask(subjects.operator("drain"), { agent: "nobody" }),
      swarm.client.ask(subjects.query("_", "journal"), { from: 1 }),
    ];
    expect(await said()).toEqual([]);
    held.release();
    const [status, task, again, cancelled, awaited, drained, page] = await Promise.all(asked);
    expect(status).toMatchObject({ idx: 3, tasks: { assigned: 1 } });
    expect(task).toMatchObject({ idx: 3, state: "assigned" });
    expect(again).toMatchObject({ idx: 3, answers: [{ duplicate: true }] });
    expect(cancelled).toMatchObject({ idx: 3, answers: [{ code: "WAGGLE_UNKNOWN_TASK" }] });
    expect(awaited).toMatchObject({ idx: 3, answers: [{ live: true }] });
    expect(drained).toMatchObject({ code: "WAGGLE_UNKNOWN_AGENT" });
    expect(page).toMatchObject({ last: 3, next: 4 });
  });

  it("the next batch waits behind it, the third is not sent", async () => {
    held.hold();
    const answers: Promise<{ idx: number }>[] = [];
    for (let n = 1; n <= 3; n += 1) {
      answers.push(swarm.client.submit([{ id: `t${n}`, kind: "count" }]));
      await clock.settle();
    }
    expect(await said()).toEqual([]);
    expect(storedBatches(swarm.store).length).toBe(4);
    held.release();
    expect((await Promise.all(answers)).map(({ idx }) => idx)).toEqual([3, 4, 5]);
  });

  it("a message that does not parse is refused all the same: that says nothing of any state", async () => {
    held.hold();
    void swarm.client.submit([{ id: "t1", kind: "count" }]);
    const refusal = await swarm.client.ask(subjects.project("default", "submit"), { tasks: "none" });
    expect(refusal).toMatchObject({ ok: false, code: "WAGGLE_INVALID_MESSAGE", field: "tasks" });
  });
});

describe("a leader that cannot show a fresh append", () => {
  const leaseMs = limits.leaderTimeoutMs * limits.leaderLeaseShare;

  it("renews no lease while a batch of its own is in doubt", async () => {
    held.hold();
    void swarm.client.submit([{ id: "t1", kind: "count" }]);
    await clock.advance(leaseMs + 1);
    await said();
    const heartbeat = agent.heartbeat([], 0);
    expect(await said()).toEqual([]);
    held.release();
    expect(await heartbeat).toMatchObject({ renewed: true });
  });

  it("answers no question along with a batch that was sent before another could be elected", async () => {
    held.hold();
    void swarm.client.submit([{ id: "t1", kind: "count" }]);
    await said();
    expect(storedBatches(swarm.store).length).toBe(3);
    clock.stall(leaseMs);
    const status = swarm.client.status();
    expect(await said()).toEqual([]);
    expect(storedBatches(swarm.store).length).toBe(4);
    held.release();
    expect(await status).toMatchObject({ term: 1 });
  });

  it("answers a query with the heartbeat appended first", async () => {
    await clock.advance(leaseMs / 2);
    await said();
    held.hold();
    clock.stall(leaseMs);
    const status = swarm.client.status();
    expect(await said()).toEqual([]);
    const before = storedBatches(swarm.store).length;
    held.release();
    expect(await status).toMatchObject({ term: 1 });
    expect(before).toBe(swarm.watched.settled().tail.idx);
    expect(storedBatches(swarm.store).at(-1)).toEqual([{ type: "TermRenewed" }]);
  });

  it("answers at once while its last append is young", async () => {
    const before = storedBatches(swarm.store).length;
    held.hold();
    expect(await swarm.client.status()).toMatchObject({ term: 1 });
    expect(storedBatches(swarm.store).length).toBe(before);
  });
});

describe("a standby that takes the lead", () => {
  it("shows the term to no client before the segment is known to be open", async () => {
    const opening = new Gate();
    const other = new MemoryJournal(swarm.store, {
      onAnswer: async (request): Promise<AnswerFate> => {
        if (request.op === "append" && request.isOpened) await opening.opened;
        return "deliver";
      },
    });
    const standby = await swarm.startAnother("c2", other);
    await swarm.coordinator.stop();
    await clock.advance(limits.pulseMs);
    expect(swarm.store.opened(2)).toBeDefined();
    tap.clear();
    const status = swarm.client.status();
    await clock.advance(limits.standbyAnswerMs + 2_000);
    const texts = tap.all
      .map(({ subject, text }) => `${subject} ${text}`)
      .filter((line) => !line.includes(".query."));
    expect(texts.filter((line) => line.includes('"term":2'))).toEqual([]);
    opening.open();
    await standby.whenLeading();
    await clock.advance(limits.standbyAnswerMs);
    await Promise.race([status, clock.settle()]);
  });
});
