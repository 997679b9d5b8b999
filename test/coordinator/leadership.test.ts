// Leadership, decided by the journal alone: taking over after silence and after a goodbye, deposed leaders, lost
// campaigns, and ends of a coordinator at awkward moments.

import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { Coordinator } from "../../src/coordinator/coordinator.ts";
import { Monitor } from "../../src/coordinator/leader/monitor.ts";
import { Turns } from "../../src/coordinator/leader/turns.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import type { CoordinatorHeartbeat, DonePush } from "../../src/protocol/schemas.ts";
import { doneSubject } from "../../src/protocol/subjects.ts";
import { Gate } from "../support/gate.ts";
import { HeldJournal } from "../support/held-journal.ts";
import { keptLog } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { insertRecord, liveOf, Rival, recordCount } from "../support/stored.ts";
import { noJitter, roleOf, startTestSwarm, stopped, subjects, type TestSwarm } from "../support/swarm.ts";
import { aRef, liveIds } from "../support/task-refs.ts";

const silenceMs = limits.leaderTimeoutMs;
let clock: ManualClock;
let store: MemoryJournalStore;
let first: HeldJournal;
let swarm: TestSwarm;
let log: ReturnType<typeof keptLog>;

beforeEach(async () => {
  clock = new ManualClock();
  store = new MemoryJournalStore({ clock });
  first = new HeldJournal(store);
  log = keptLog();
  swarm = await startTestSwarm({
    clock,
    store,
    journal: first.journal,
    logger: log.logger,
    random: noJitter,
  });
  await clock.settle();
});
afterEach(async () => {
  first.journal.setOffline(false);
  first.release();
  await stopped(swarm, clock); // unknown appends are sent again once no rival was heard
});

const submit = (...ids: string[]) =>
  swarm.client.submit(
    ids.map((id) => ({ id, kind: "count" })),
    { notify: "_INBOX.me" },
  );

/** A standby has its own way to the journal. */
async function aStandby(id = "c2"): Promise<{ coordinator: Coordinator; journal: MemoryJournal }> {
  const journal = new MemoryJournal(store);
  return { coordinator: await swarm.startAnother(id, journal), journal };
}

/** A second coordinator takes the lead just before the first leader's next append. */
function deposeAtNextAppend(): void {
  const { tail } = swarm.watched.settled();
  first.beforeAppend = () => new Rival(store).takeLead(tail);
}

/** Answers of all coordinators to a question, the leader's first. */
async function answersOf(subject: string, message: object) {
  const inbox = `_INBOX.all.${recordCount(store)}`;
  const answers = swarm.client.listen<{ stale?: true; leader: string; journal: object; agents: object[] }>(
    inbox,
  );
  swarm.client.transport.publish(subject, Buffer.from(JSON.stringify(message)), inbox);
  await clock.advance(limits.standbyAnswerMs);
  return answers.all;
}

describe("the log", () => {
  it("names the coordinator in each line", async () => {
    const { coordinator: second } = await aStandby();
    first.journal.setOffline(true);
    await clock.advance(1.2 * silenceMs);
    first.journal.setOffline(false);
    await clock.advance(silenceMs);
    expect(log.lines).toMatchObject([
      { coordinator: "c1", msg: "no journal yet: a new one begins" },
      { coordinator: "c1", msg: "leading", term: 1 },
      { coordinator: "c2", msg: "the journal was read", leader: "c1", term: 1, idx: 1 },
      { coordinator: "c2", msg: "leading", term: 2 },
      { coordinator: "c1", msg: "deposed: another coordinator leads" },
      { coordinator: "c1", msg: "the journal was read", leader: "c2", term: 2 },
    ]);
    await aStandby("c3");
    await second.stop();
    await clock.advance(silenceMs);
    const logged = log.lines.filter(({ msg }) => msg === "standing by: another coordinator leads");
    expect(logged).toMatchObject([{ term: 3 }]);
    expect(log.lines.filter(({ coordinator }) => coordinator === undefined)).toEqual([]);
  });
});

describe("a standby", () => {
  it("takes over when the leader has been silent for T, not before", async () => {
    const { coordinator } = await aStandby();
    first.journal.setOffline(true);
    await clock.advance(silenceMs);
    expect(roleOf(coordinator)).toBe("standing-by");
    await clock.advance(silenceMs * limits.electionJitterShare + limits.pulseMs);
    expect(roleOf(coordinator)).toBe("leading");
    expect(await coordinator.whenLeading()).toBe(2);
    expect(await swarm.client.status()).toMatchObject({ term: 2, leader: "c2" });
  });

  it.each([
    [1, 1_000],
    [20, 50],
  ])("takes over despite foreign records, %i per second", async (_, everyMs) => {
    const { coordinator } = await aStandby();
    const scribble = () => {
      if (store.end(liveOf(store).number)?.isSealed === false) insertRecord(store, Buffer.from("foreign"));
      clock.after(everyMs, scribble);
    };
    scribble();
    await clock.advance(2 * silenceMs);
    expect(roleOf(coordinator)).toBe("standing-by"); // the leader appends behind foreign records
    first.journal.setOffline(true);
    await clock.advance(1.5 * silenceMs);
    expect(roleOf(coordinator)).toBe("leading");
  });

  it("is kept off by the heartbeats of an idle leader, and the journal grows slowly", async () => {
    const { coordinator } = await aStandby();
    const before = recordCount(store);
    await clock.advance(20 * silenceMs);
    expect(roleOf(coordinator)).toBe("standing-by");
    expect(roleOf(swarm.coordinator)).toBe("leading");
    const heartbeats = recordCount(store) - before;
    expect(heartbeats).toBeGreaterThanOrEqual(20 * limits.leaderHeartbeatsPerTimeout);
    expect(heartbeats).toBeLessThanOrEqual(40 * limits.leaderHeartbeatsPerTimeout);
  });

  it("takes over at once from a leader that says goodbye", async () => {
    const { coordinator } = await aStandby();
    await swarm.coordinator.stop();
    expect(await coordinator.whenLeading()).toBe(2);
    expect(clock.monotonicMs()).toBe(0);
  });

  it("counts no silence while its own process slept, or while it was cut off", async () => {
    const { coordinator } = await aStandby();
    const transport = swarm.transportById.get("c2");
    if (transport === undefined) throw new Error("c2 has a connection");
    first.journal.setOffline(true);
    await clock.advance(silenceMs - limits.pulseMs);
    clock.stall(silenceMs);
    await clock.advance(silenceMs - limits.pulseMs);
    expect(roleOf(coordinator)).toBe("standing-by");
    swarm.hub.cut(transport);
    await clock.advance(3 * silenceMs);
    expect(roleOf(coordinator)).toBe("standing-by");
    swarm.hub.heal(transport);
    await clock.advance(2 * silenceMs);
    expect(roleOf(coordinator)).toBe("leading");
  });

  it("goes on waiting while it cannot read the journal", async () => {
    const { coordinator, journal } = await aStandby();
    first.journal.setOffline(true);
    journal.setOffline(true);
    await clock.advance(5 * silenceMs);
    expect(roleOf(coordinator)).toBe("standing-by");
    journal.setOffline(false);
    await clock.advance(3 * silenceMs);
    expect(roleOf(coordinator)).toBe("leading");
  });

  it("takes over with all committed batches, though its reading of the segment died silently", async () => {
    const journal = new MemoryJournal(store);
    const segmentOf = journal.segment.bind(journal);
    journal.segment = (number) => {
      const segment = segmentOf(number);
      segment.follow = async function* (_from, signal) {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      };
      return segment;
    };
    const coordinator = await swarm.startAnother("c2", journal);
    await submit("t1");
    first.journal.setOffline(true);
    await clock.advance(2 * silenceMs); // the look before the seal shows the leader's writes
    expect(roleOf(coordinator)).toBe("standing-by");
    await clock.advance(silenceMs);
    expect(roleOf(coordinator)).toBe("leading");
    expect(coordinator.probe.settledState?.taskById.size).toBe(1);
  });

  it("of two, one wins and the other stands by: losing is no halt", async () => {
    const [one, other] = [(await aStandby("c2")).coordinator, (await aStandby("c3")).coordinator];
    await swarm.coordinator.stop();
    await clock.advance(limits.appendRetryMs);
    expect([roleOf(one), roleOf(other)].sort()).toEqual(["leading", "standing-by"]);
    expect(swarm.watched.settled().state.term).toBe(2);
    const [leader, standby] = roleOf(one) === "leading" ? [one, other] : [other, one];
    await clock.advance(5 * silenceMs);
    expect([roleOf(leader), roleOf(standby)]).toEqual(["leading", "standing-by"]);
    await leader.stop();
    expect(await standby.whenLeading()).toBe(3);
  });

  it("answers questions as stale, from the same state as the leader's", async () => {
    const agent = await swarm.agent("a1");
    await aStandby();
    await submit("t1", "t2", "t3");
    await agent.report(await agent.assignment(), "failed");
    await agent.complete(await agent.assignment());
    await clock.settle();
    const [leader, standby] = await answersOf(subjects.query("_", "status"), {});
    expect([leader?.stale, standby?.stale]).toEqual([undefined, true]);
    const shared = ({
      agents,
      journal: _,
      counters: __,
      stale: ___,
      observed: ____,
      standbys: _____,
      ...rest
    }: NonNullable<typeof leader> & { counters?: object; observed?: object; standbys?: object }) => ({
      ...rest,
      agents: agents.map((each) => ({ ...each, silentMs: 0, reported: undefined })),
    });
    expect(standby && shared(standby)).toEqual(leader && shared(leader));
    const [, page] = await answersOf(subjects.query("_", "journal"), { from: 1 });
    expect(page).toMatchObject({ last: swarm.watched.settled().tail.idx });
  });

  it("does not call a task unknown that it may only not have read yet; the leader does", async () => {
    await aStandby();
    await submit("t1");
    for (const what of ["task", "explain"] as const) {
      const [leader, standby] = await answersOf(subjects.query("_", what), { task: "never" });
      expect(leader).toMatchObject({ ok: false, code: "WAGGLE_UNKNOWN_TASK" });
      expect(standby).toMatchObject({ ok: false, code: "WAGGLE_NO_LEADER" });
      const [, known] = await answersOf(subjects.query("_", what), { task: "t1" });
      expect(known).toMatchObject({ ok: true, stale: true });
    }
  });
});

describe("a term's own time-out", () => {
  it("is the T by which a standby waits, not its own", async () => {
    const quick = await swarm.startAnother("c2", new MemoryJournal(store), { leaderTimeoutMs: 1_000 });
    expect(quick.silenceMsMax).toBe(silenceMs * (1 + limits.electionJitterShare));
    first.journal.setOffline(true);
    await clock.advance(silenceMs - limits.pulseMs);
    expect(roleOf(quick)).toBe("standing-by");
    await clock.advance(2 * limits.pulseMs + limits.campaignAskShare * silenceMs);
    expect(roleOf(quick)).toBe("leading");
    expect(swarm.watched.settled().state.leaderTimeoutMs).toBe(1_000);

    const slow = await swarm.startAnother("c3", new MemoryJournal(store), { leaderTimeoutMs: 10_000 });
    await quick.stop();
    expect(await slow.whenLeading()).toBe(3);
    await clock.settle();
    expect(swarm.watched.settled().state.leaderTimeoutMs).toBe(10_000);
  });

  it("of 1 s comes with three times as many heartbeats, and ends the leader lease after 0.8 s", async () => {
    const journal = new MemoryJournal(store);
    const leader = await swarm.startAnother("c2", journal, { leaderTimeoutMs: 1_000 });
    await swarm.coordinator.stop();
    await leader.whenLeading();
    const { coordinator: standby } = await aStandby("c3");
    const before = recordCount(store);
    await clock.advance(20_000);
    expect([roleOf(leader), roleOf(standby)]).toEqual(["leading", "standing-by"]);
    const heartbeats = recordCount(store) - before;
    expect(heartbeats).toBeGreaterThanOrEqual(20 * limits.leaderHeartbeatsPerTimeout);
    expect(heartbeats).toBeLessThanOrEqual(40 * limits.leaderHeartbeatsPerTimeout);

    await standby.stop();
    journal.setOffline(true);
    const status = () => answersOf(subjects.query("_", "status"), {});
    expect(await status()).toMatchObject([{ leader: "c2" }]);
    await clock.advance(1_000 * limits.leaderLeaseShare);
    expect(await status()).toEqual([]);
    journal.setOffline(false);
    await clock.advance(limits.appendTimeoutMs);
  });
});

describe("a new leader", () => {
  it("announces the first batch of each term with every announcement of the leader", async () => {
    const second = await swarm.startAnother("c2", new MemoryJournal(store));
    const announced = swarm.client.listen<CoordinatorHeartbeat>(subjects.coordinator);
    await clock.advance(silenceMs);
    const opened = expect.stringMatching(/^\S{12}$/);
    const ofFirst = announced.all.filter(({ id }) => id === "c1");
    expect(ofFirst.map(({ termStarts }) => termStarts)).toContainEqual([{ term: 1, idx: 1, opened }]);
    expect(announced.all.filter(({ id, termStarts }) => id === "c2" && termStarts !== undefined)).toEqual([]);
    await swarm.coordinator.stop();
    await second.whenLeading();
    await clock.advance(silenceMs);
    expect(announced.all.at(-1)?.termStarts).toEqual([
      { term: 1, idx: 1, opened },
      { term: 2, idx: expect.any(Number), opened },
    ]);
  });

  it("announces its beginning once, at once: a client that just connected may have asked a second coordinator before", async () => {
    await aStandby();
    const heartbeats = swarm.client.listen<CoordinatorHeartbeat>(subjects.coordinator);
    await clock.advance(silenceMs);
    expect(heartbeats.all.filter(({ began }) => began)).toEqual([]);
    await swarm.coordinator.stop();
    await clock.advance(silenceMs);
    const ofTerm = heartbeats.all.filter(({ term, leading }) => leading && term === 2);
    expect(ofTerm.map(({ began }) => began === true)).toEqual([true, ...ofTerm.slice(1).map(() => false)]);
    expect(ofTerm.length).toBeGreaterThan(1);
  });

  it("sends unconfirmed assignments again, under its own term, and goes on with confirmed ones", async () => {
    const agent = await swarm.agent("a1");
    await submit("t1", "t2");
    const [seen] = [await agent.assignment(), await agent.assignment()];
    await agent.heartbeat([{ task: "t1", attempt: 1 }], 1);
    const { coordinator } = await aStandby();
    await swarm.coordinator.stop();
    await coordinator.whenLeading();
    const push = await agent.push("assign");
    expect(push).toMatchObject({ term: 2, assignments: [{ task: "t2", number: 2, token: "1.2" }] });
    expect(push.assignments).toHaveLength(1);
    if (seen !== undefined)
      expect((await agent.complete(seen)).answers).toEqual([{ ok: true, status: "ok" }]);
  });

  it("sends revokes again that were not confirmed", async () => {
    const agent = await swarm.agent("a1");
    await submit("t1");
    await agent.assignment();
    await swarm.client.ask(subjects.project("default", "cancel"), { tasks: [{ task: "t1", round: 1 }] });
    await agent.push("revoke");
    await aStandby();
    await swarm.coordinator.stop();
    expect(await agent.push("revoke")).toMatchObject({ term: 2, attempts: [{ task: "t1", attempt: 1 }] });
  });

  it("gives every agent a full H before it calls one lost", async () => {
    await swarm.agent("a1");
    const { coordinator } = await aStandby();
    await clock.advance(limits.agentLostMs - limits.pulseMs);
    await swarm.coordinator.stop();
    await coordinator.whenLeading();
    const agentStatus = async () => (await swarm.client.status()).agents[0].status;
    await clock.advance(limits.agentLostMs - limits.pulseMs);
    expect(await agentStatus()).toBe("ready");
    await clock.advance(2 * limits.pulseMs);
    expect(await agentStatus()).toBe("offline");
  });

  it("tells clients how tasks ended, earlier ends included", async () => {
    const agent = await swarm.agent("a1");
    await submit("t1", "t2");
    const [one, two] = [await agent.assignment(), await agent.assignment()];
    await agent.complete(one, "early");
    const { coordinator } = await aStandby();
    await swarm.coordinator.stop();
    await coordinator.whenLeading();
    const done = swarm.client.listen<DonePush>(doneSubject("_INBOX.me"));
    const { answers, term: by } = await swarm.client.ask(subjects.project("default", "await"), {
      tasks: ["t1", "t2", "t3"],
      notify: "_INBOX.me",
    });
    expect([by, answers]).toMatchObject([
      2,
      [{ outcome: { result: "early" } }, { live: true }, { code: "WAGGLE_UNKNOWN_TASK" }],
    ]);
    await agent.complete(two, "late");
    expect(await done.next()).toMatchObject({ term: 2, ended: [{ task: "t2", result: "late" }] });
  });

  it.each([
    ["that said goodbye", () => swarm.coordinator.stop()],
    [
      "that fell silent",
      async () => {
        first.journal.setOffline(true);
        await clock.advance(2 * silenceMs);
      },
    ],
  ])("obeys the settings made under one %s, and answers them", async (_, goes) => {
    const set = (verb: "policy" | "project" | "kind" | "pause" | "resume", message: object) =>
      swarm.client.ask(subjects.operator(verb), message);
    const settings = () => swarm.client.ask(subjects.query("_", "settings"), {});
    const agent = await swarm.agent("a1");
    await set("policy", { rules: "budget", lambda: 0.5, topN: 2, projects: "declared" });
    const budget = { tokens: 1_500, windowMs: 3_600_000 };
    await set("project", { project: "default", creditWeight: 3, budget });
    await set("kind", { kind: "count", importance: 2 });
    await set("pause", { project: "default" });
    await set("pause", {});
    const before = await settings();
    const { coordinator } = await aStandby();
    await goes();
    expect(await coordinator.whenLeading()).toBe(2);
    const after = await settings();
    expect(after).toEqual({ ...before, term: 2, idx: after.idx, at: after.at });
    expect(after).toMatchObject({
      paused: true,
      policy: { rules: "budget", topN: 2, projects: "declared" },
      projects: [{ project: "default", paused: true, settings: { creditWeight: 3, budget } }],
    });

    const waiting = async () => (await swarm.client.status()).tasks.queued;
    const undeclared = await swarm.client.submit([{ kind: "count" }], {}, "other");
    expect(undeclared.answers).toMatchObject([{ ok: false, field: "project" }]);
    await swarm.client.submit([1, 2, 3].map((n) => ({ id: `t${n}`, kind: "count", tokens: 700 })));
    await set("resume", {});
    expect(await waiting()).toBe(3); // the project is paused
    await set("resume", { project: "default" });
    expect(await waiting()).toBe(1); // topN, and the budget
    await agent.report(await agent.assignment(), "completed", { result: "", tokens: 700 });
    expect(await waiting()).toBe(1); // the budget alone
    await set("project", { project: "default", budget: null });
    expect(await waiting()).toBe(0);
  });

  it("goes on in journal time, though its wall clock is behind", async () => {
    await clock.advance(60_000);
    const { coordinator } = await aStandby();
    clock.jumpWall(-3_600_000);
    const before = swarm.watched.settled().state.at;
    await swarm.coordinator.stop();
    await coordinator.whenLeading();
    await submit("t1");
    expect(swarm.watched.settled().state.at).toBeGreaterThanOrEqual(before);
  });
});

describe("a deposed leader", () => {
  it("answers nothing definite, sends agents nothing, and stands by with the common state", async () => {
    const agent = await swarm.agent("a1");
    const { coordinator } = await aStandby();
    first.journal.setOffline(true);
    await clock.advance(2 * silenceMs);
    expect([roleOf(swarm.coordinator), roleOf(coordinator)]).toEqual(["leading", "leading"]);
    // Both hear later requests; only one may answer.
    const answer = await submit("t1");
    expect(answer).toMatchObject({ term: 2, answers: [{ ok: true }] });
    expect(await agent.push("assign")).toMatchObject({ term: 2 });
    expect(await swarm.client.status()).toMatchObject({ term: 2, leader: "c2" });
    await clock.advance(silenceMs);
    expect(agent.pushes.all.filter(({ term: by }) => by !== 2)).toEqual([]);

    first.journal.setOffline(false);
    await clock.advance(limits.faultLookMs);
    expect(roleOf(swarm.coordinator)).toBe("standing-by");
    const [leader, standby] = await answersOf(subjects.query("_", "status"), {});
    expect([leader?.leader, standby?.leader, standby?.stale]).toEqual(["c2", "c2", true]);
    expect(standby).toMatchObject({ tasks: { assigned: 1 } });
  });

  it("takes over again when the other goes", async () => {
    const { coordinator } = await aStandby();
    first.journal.setOffline(true);
    await clock.advance(2 * silenceMs);
    first.journal.setOffline(false);
    await clock.advance(limits.faultLookMs);
    await coordinator.stop();
    await clock.settle();
    expect(roleOf(swarm.coordinator)).toBe("leading");
    expect(await submit("t1")).toMatchObject({ term: 3 });
  });

  it("shows nothing of the refused batches, nor of later ones", async () => {
    const agent = await swarm.agent("a1");
    deposeAtNextAppend();
    const answers = ["t1", "t2", "t3"].map(async (id) => {
      const answer = submit(id);
      await clock.settle();
      return await answer;
    });
    await clock.advance(limits.appendRetryMs);
    expect(roleOf(swarm.coordinator)).toBe("standing-by");
    expect(swarm.watched.settled().state).toMatchObject({ term: 2, leader: "rival" });
    expect(swarm.watched.replay.state.taskById.size).toBe(0);
    expect(agent.pushes.all).toEqual([]);
    await Promise.race([Promise.all(answers).then(() => expect.unreachable()), clock.settle()]);
  });

  it("goes on from batches stored before the seal, though their acknowledgements were lost", async () => {
    first.hold();
    submit("t1").catch(() => undefined); // stored, and never answered
    await clock.settle();
    new Rival(store).takeLead(swarm.watched.settled().tail);
    first.release();
    await clock.advance(limits.pulseMs);
    submit("t2").catch(() => undefined); // void
    await clock.advance(2 * limits.appendRetryMs);
    expect(roleOf(swarm.coordinator)).toBe("standing-by");
    expect(liveIds(swarm.coordinator.probe.settledState)).toEqual(["t1"]);
  });

  it("with an unknown batch of its own session in the segment continues in a new segment", async () => {
    const { number, opened } = liveOf(store);
    const { tail } = swarm.watched.settled();
    new Rival(store, opened.session).batch(number, tail, [{ type: "TermRenewed" }], clock.now());
    expect(await submit("t1")).toMatchObject({ answers: [{ ok: true }] });
    await clock.settle();
    expect(roleOf(swarm.coordinator)).toBe("leading");
    expect(swarm.watched.settled().state.term).toBe(2);
  });
});

describe("a leader that meets a bug", () => {
  const meetingIt = {
    "in a turn": () => vi.spyOn(Turns.prototype, "run"),
    "at a pulse": () => vi.spyOn(Monitor.prototype, "pulse"),
  };
  /** Throws once, at the next call. */
  const met = (where: keyof typeof meetingIt) => {
    const spy = meetingIt[where]().mockImplementationOnce(() => {
      throw new RangeError("a bug");
    });
    onTestFinished(() => spy.mockRestore());
  };

  it.each(["in a turn", "at a pulse"] as const)("%s halts, and writes nothing more", async (where) => {
    met(where);
    submit("t1").catch(() => undefined); // never answered
    await clock.advance(limits.pulseMs);
    expect(await swarm.coordinator.closed).toMatchObject({ code: "WAGGLE_INVARIANT" });
    expect(roleOf(swarm.coordinator)).toBe("halted");
    const written = recordCount(store);
    await clock.advance(2 * silenceMs);
    expect(recordCount(store)).toBe(written);
  });

  it("halts, says nothing more, and lets a standby lead", async () => {
    const { coordinator } = await aStandby();
    const agent = await swarm.agent("a1");
    await submit("ended");
    await agent.complete(await agent.assignment());
    const gate = new Gate();
    first.beforeRead = () => gate.opened;
    const said: string[] = [];
    const transport = swarm.transportById.get("c1") ?? expect.fail("it has a connection");
    const publish = transport.publish.bind(transport);
    transport.publish = (subject, data, reply) => {
      said.push(subject);
      publish(subject, data, reply);
    };
    const answers = [
      swarm.client.ask(subjects.project("default", "await"), { tasks: ["ended"], notify: "_INBOX.me" }),
      swarm.client.ask(subjects.query("_", "journal"), { since: 0 }),
    ];
    for (const answer of answers) answer.catch(() => undefined); // the answer of this leader is still due
    await clock.settle();

    met("at a pulse");
    await clock.advance(limits.pulseMs);
    expect(await swarm.coordinator.closed).toMatchObject({ code: "WAGGLE_INVARIANT" });
    expect(said.at(-1)).toBe(subjects.coordinator);
    said.length = 0; // its last announcement says that it leaves
    gate.open();
    submit("t1").catch(() => undefined); // no coordinator may lead yet
    await clock.advance(2 * silenceMs);
    expect(said).toEqual([]);
    expect(roleOf(coordinator)).toBe("leading");
    expect(await submit("t2")).toMatchObject({ term: 2, answers: [{ ok: true }] });
  });

  it("as it begins halts, and announces no term", async () => {
    const { coordinator } = await aStandby();
    const announced = swarm.client.listen<CoordinatorHeartbeat>(subjects.coordinator);
    met("at a pulse");
    await swarm.coordinator.stop();
    expect(await coordinator.closed).toMatchObject({ code: "WAGGLE_INVARIANT" });
    expect(liveOf(store).opened.term).toBe(2);
    await clock.settle();
    expect(announced.all.filter(({ began }) => began === true)).toEqual([]);
  });
});

describe("stopping", () => {
  const expectClosed = () => {
    expect(swarm.watched.settled().closing).toMatchObject({ reason: "handing-over" });
    expect(store.end(1)?.isSealed).toBe(true);
  };

  it("finishes open requests, and closes the segment last", async () => {
    const answer = submit("t1", "t2");
    await clock.settle();
    await swarm.coordinator.stop();
    expect(await answer).toMatchObject({ answers: [{ ok: true }, { ok: true }] });
    expectClosed();
    expect(roleOf(swarm.coordinator)).toBe("stopped");
    await swarm.coordinator.stop();
  });

  it("closes the segment last, though a timer falls due at the same moment", async () => {
    await swarm.client.submit([{ id: "t1", kind: "count", notBefore: clock.now() + 1_000 }]);
    clock.stall(1_000);
    await swarm.coordinator.stop();
    expectClosed();
  });

  it("ends with a query waiting, on a journal without heartbeats", async () => {
    const journal = new MemoryJournal(new MemoryJournalStore({ clock }));
    Object.assign(journal, { sharable: false });
    const alone = await startTestSwarm({ clock, journal });
    const status = alone.client.status();
    await Promise.resolve();
    await alone.coordinator.stop();
    expect(await status).toMatchObject({ term: 1 });
  }, 5_000);

  it("comes to an end though the leader is deposed meanwhile", async () => {
    deposeAtNextAppend();
    submit("t1").catch(() => undefined); // never answered
    const stopped = swarm.coordinator.stop();
    await clock.advance(limits.appendRetryMs);
    await stopped;
    expect(roleOf(swarm.coordinator)).toBe("stopped");
  }, 5_000);

  it("ends while it takes the lead, and the next coordinator passes over its claim", async () => {
    const held = new HeldJournal(store);
    const standby = await swarm.startAnother("c2", held.journal);
    held.hold();
    await swarm.coordinator.stop();
    await clock.advance(limits.pulseMs);
    const leading = standby.whenLeading();
    const rejected = expect(leading).rejects.toMatchObject({ code: "WAGGLE_NO_LEADER" });
    await standby.stop();
    held.release();
    await rejected;
    const listed = store.list();
    const { coordinator } = await aStandby("c3");
    await clock.advance(3 * silenceMs);
    expect(await coordinator.whenLeading()).toBeGreaterThan(Math.max(...listed));
  });

  it("a standby that is just looking at the journal does not lead afterwards", async () => {
    const held = new HeldJournal(store);
    const coordinator = await swarm.startAnother("c2", held.journal);
    first.journal.setOffline(true);
    await clock.advance(silenceMs - limits.pulseMs);
    held.hold();
    await clock.advance(silenceMs);
    await coordinator.stop();
    const before = store.list();
    held.release();
    await clock.advance(2 * silenceMs);
    expect(store.list()).toEqual(before);
    expect(roleOf(coordinator)).toBe("stopped");
  });
});

describe("starting", () => {
  it("leads an empty journal at once, and a journal that cannot be shared", async () => {
    const alone = new MemoryJournalStore({ clock });
    const one = await startTestSwarm({ clock, store: alone });
    await one.stop();
    const journal = new MemoryJournal(alone);
    Object.assign(journal, { sharable: false });
    const other = await startTestSwarm({ clock, store: alone, journal });
    expect(await other.coordinator.whenLeading()).toBe(2);
    expect(clock.monotonicMs()).toBe(0);
    await other.stop();
  });
});

describe("a batch that contradicts earlier batches", () => {
  it("halts each reading coordinator, standby or leader, and no coordinator leads without the batch", async () => {
    const other = new MemoryJournalStore({ clock });
    const damaged = await startTestSwarm({ clock, store: other });
    const standby = await damaged.startAnother("c2");
    await clock.settle();
    const rival = new Rival(other);
    const number = rival.takeLead(damaged.watched.settled().tail);
    const { tail } = damaged.watched.settled();
    rival.batch(number, tail, [{ type: "TaskReleased", ...aRef("nothing") }]);
    await clock.advance(4 * silenceMs);
    expect(await standby.closed).toMatchObject({ code: "WAGGLE_JOURNAL_DAMAGED" });
    expect(await damaged.coordinator.closed).toMatchObject({ code: "WAGGLE_JOURNAL_DAMAGED" });
    expect(other.list()).toEqual([1, number]);
  });
});
