// A leader's segment that is faulty, or due for a change: the leader goes on in the next segment from memory.
// Acknowledged batches stay, batches in flight are committed once, and standbys and restarts agree.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { replayDecisions } from "../../src/audit/decision-replay.ts";
import { verifyJournal } from "../../src/audit/verifying/verify.ts";
import type { ProbedCoordinator } from "../../src/coordinator/coordinator.ts";
import type { CompactionOptions } from "../../src/coordinator/leader/leader.ts";
import { JournalDamagedError } from "../../src/errors.ts";
import type { SegmentRecord } from "../../src/journal/journal.ts";
import { findLive } from "../../src/journal/live.ts";
import { restore } from "../../src/journal/log.ts";
import {
  type AnswerFate,
  MemoryJournal,
  type MemoryRequest,
  type RequestFate,
} from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { Gate } from "../support/gate.ts";
import { keptLog } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { liveOf, Rival, storedBatches, storedEvents } from "../support/stored.ts";
import {
  noJitter,
  roleOf,
  startTestSwarm,
  stopped,
  type TestSwarm,
  type WireAgent,
} from "../support/swarm.ts";
import { liveIds } from "../support/task-refs.ts";

const timeoutMs = limits.leaderTimeoutMs;
/** Long enough to notice and answer a fault that no append meets. */
const noticedMs = timeoutMs + limits.faultLooksMin * limits.faultLookMs + timeoutMs;
let clock: ManualClock;
let store: MemoryJournalStore;
let journal: MemoryJournal;
let swarm: TestSwarm;
let standby: ProbedCoordinator;
let log: ReturnType<typeof keptLog>;
/** The fate of the first leader's requests and answers. */
let onRequest: (request: MemoryRequest) => RequestFate | Promise<RequestFate>;
let onAnswer: (request: MemoryRequest) => AnswerFate | Promise<AnswerFate>;

beforeEach(() => start());
afterEach(async () => {
  onRequest = () => "deliver";
  onAnswer = () => "deliver";
  journal.setOffline(false);
  await stopped(swarm, clock);
});

async function start(compaction?: Omit<CompactionOptions, "maker">): Promise<void> {
  clock = new ManualClock();
  store = new MemoryJournalStore({ clock });
  log = keptLog();
  onRequest = () => "deliver";
  onAnswer = () => "deliver";
  journal = new MemoryJournal(store, {
    onRequest: (request) => onRequest(request),
    onAnswer: (request) => onAnswer(request),
  });
  const options = compaction === undefined ? {} : { compaction };
  swarm = await startTestSwarm({ clock, store, journal, random: noJitter, logger: log.logger, ...options });
  standby = await swarm.startAnother("c2");
  await clock.settle();
}

/** The answers about tasks, in order of arrival. A task without an answer counts as in flight. */
function submitting(...ids: string[]): Promise<unknown>[] {
  return ids.map(async (id) => {
    const answer = swarm.submit(id);
    answer.catch(() => undefined); // awaited below
    await clock.settle();
    return await answer;
  });
}

/** A coordinator that starts from the journal alone. */
async function restarted() {
  const reader = new MemoryJournal(store);
  const { live } = await findLive(reader);
  return await restore(live ?? expect.fail("a segment is live"), { journal: reader, clock });
}

/** All read the same: the leader, the standby, an observer, and a restart. */
async function expectAgreement(ids: readonly string[]): Promise<void> {
  await clock.advance(timeoutMs);
  const leader =
    [swarm.coordinator, standby].find((each) => roleOf(each) === "leading") ?? expect.fail("one leads");
  const states = [
    leader.probe.settledState ?? expect.fail("nothing is in flight"),
    standby.probe.settledState ?? expect.fail("it stands by"),
    swarm.watched.settled().state,
    (await restarted()).state,
  ];
  expect([...liveIds(states[0])].sort()).toEqual([...ids].sort());
  expect(states.map(fingerprint)).toEqual(
    states.map(() => fingerprint(states[0] as NonNullable<(typeof states)[0]>)),
  );
}

const stored = (ids: readonly string[]) =>
  ids.map(() => expect.objectContaining({ answers: [expect.objectContaining({ ok: true })] }));

const faults: [string, () => void][] = [
  ["lost its end", () => store.loseTail(liveOf(store).number, 1)],
  ["lost its end and more", () => store.loseTail(liveOf(store).number, 3)],
  ["lost a record within", () => store.loseRecords(liveOf(store).number, 4)],
  ["is gone", () => store.loseSegment(liveOf(store).number)],
];

describe.each(faults)("a leader whose segment %s", (_, lose) => {
  const acknowledged = ["t1", "t2", "t3"];

  beforeEach(async () => {
    for (const id of acknowledged) await Promise.all(submitting(id));
    swarm.watched.settled();
  });

  it("continues in a new segment, and loses no acknowledged batch", async () => {
    lose();
    await clock.advance(noticedMs);
    expect([roleOf(swarm.coordinator), roleOf(standby)]).toEqual(["leading", "standing-by"]);
    expect(liveOf(store).opened).toMatchObject({ term: 2, leader: "c1", base: expect.anything() });
    expect(storedEvents(store, "AuditTrimmed")).toMatchObject([{ reason: "lost" }]);
    await expectAgreement(acknowledged);
  });

  it("is verified and replayed up to the present end, with the lost batches named", async () => {
    lose();
    await clock.advance(noticedMs);
    const lostIdx = liveOf(store).opened.base?.idx ?? expect.fail("the leader went on from memory");
    const deps = { journal: new MemoryJournal(store), clock };
    const found = (await verifyJournal(deps)) ?? expect.fail("a segment is live");
    expect(found).toMatchObject({ fault: undefined, tail: (await restarted()).tail });
    const gaps = found.firstIdx > lostIdx ? [] : [{ to: lostIdx, isAdmitted: true }];
    expect(found.gaps).toMatchObject(gaps);
    expect((await replayDecisions(deps))?.difference).toBeUndefined();
  });

  it("commits batches in flight once, and later requests", async () => {
    const gate = new Gate();
    onAnswer = async ({ op }): Promise<AnswerFate> => {
      if (op === "append") await gate.opened;
      return "deliver";
    };
    const inFlight = submitting("t4", "t5");
    await clock.settle();
    lose();
    const asked = submitting("t6");
    gate.open();
    await clock.advance(noticedMs);
    const answers = await Promise.all([...inFlight, ...asked]);
    expect(answers).toEqual(stored(["t4", "t5", "t6"]));
    expect(answers.slice(0, 2)).toMatchObject([{ term: 1 }, { term: 1 }]); // the base holds batches of term 1
    await expectAgreement([...acknowledged, "t4", "t5", "t6"]);
  });

  it("answers nothing definite between the loss and the new segment", async () => {
    const agent = await swarm.agent("a1", { kinds: ["other"] });
    swarm.watched.settled();
    lose();
    const open = new Gate();
    onRequest = async (request): Promise<RequestFate> => {
      if (request.op === "append" && request.isOpened) await open.opened;
      return "deliver";
    };
    await clock.advance(noticedMs);
    const answered: string[] = [];
    const note = (what: string) => () => answered.push(what);
    swarm.client.status().then(
      ({ stale }) => stale !== true && note("status")(),
      () => undefined,
    );
    agent.heartbeat([], 0).then(note("heartbeat"), () => undefined);
    swarm.submit("t9").then(note("submit"), () => undefined);
    await clock.advance(200);
    expect(answered).toEqual([]);
    open.open();
    await clock.advance(noticedMs);
    await expectAgreement([...acknowledged, "t9"]);
  });

  it("loses the lead to a standby, which goes on from its own memory", async () => {
    journal.setOffline(true);
    lose();
    await clock.advance(4 * timeoutMs + limits.journalGapMs);
    expect(roleOf(standby)).toBe("leading");
    expect(storedEvents(store, "AuditTrimmed")).toMatchObject([{ reason: "lost" }]);
    journal.setOffline(false);
    await clock.advance(timeoutMs);
    expect(roleOf(swarm.coordinator)).toBe("standing-by");
    await expectAgreement(acknowledged);
  });
});

describe("a leader with a broken connection", () => {
  it("sends and answers nothing before a look at the segment, and continues in the segment", async () => {
    await Promise.all(submitting("t1"));
    journal.setOffline(true);
    const answers = submitting("t2");
    await clock.advance(200);
    const looking = new Gate();
    onRequest = async ({ op }): Promise<RequestFate> => {
      if (op === "list") await looking.opened;
      return "deliver";
    };
    journal.setOffline(false);
    const status = swarm.client.status();
    let isAnswered = false;
    void status.then(() => {
      isAnswered = true;
    });
    await clock.advance(100);
    expect([isAnswered, storedBatches(store).length]).toEqual([false, 2]);
    looking.open();
    await clock.advance(limits.faultLookMs);
    expect(await Promise.all(answers)).toEqual(stored(["t2"]));
    expect(await status).toMatchObject({ term: 1, tasks: { queued: 2 } });
    await expectAgreement(["t1", "t2"]);
  });

  it("and with a segment that lost acknowledged batches goes on with them in a new segment", async () => {
    await Promise.all(submitting("t1", "t2"));
    swarm.watched.settled();
    journal.setOffline(true);
    await clock.advance(100);
    store.loseTail(1, 2);
    journal.setOffline(false);
    await clock.advance(noticedMs);
    expect(liveOf(store).opened).toMatchObject({ term: 2, leader: "c1" });
    await expectAgreement(["t1", "t2"]);
  });

  it("is deposed by a newer segment, though its own segment lost its seal", async () => {
    await Promise.all(submitting("t1"));
    journal.setOffline(true);
    await clock.advance(2 * timeoutMs);
    expect(roleOf(standby)).toBe("leading");
    store.loseSeal(1);
    swarm.submit("t2").catch(() => undefined); // taken by the successor
    journal.setOffline(false);
    await clock.advance(timeoutMs);
    expect(roleOf(swarm.coordinator)).toBe("standing-by");
    await expectAgreement(["t1", "t2"]);
  });
});

describe("a leader that is deposed", () => {
  it.each([
    ["nothing in flight", 0],
    ["batches in flight", 2],
  ])(
    "with %s keeps acknowledged batches, also if the journal loses the batches at once",
    async (_, inFlight) => {
      await stopped(standby, clock);
      for (const id of ["t1", "t2", "t3"]) await Promise.all(submitting(id));
      swarm.watched.settled();
      const { number } = liveOf(store);
      const gate = new Gate();
      onRequest = async ({ op }): Promise<RequestFate> => {
        if (op === "append") await gate.opened;
        return "deliver";
      };
      for (let n = 0; n < inFlight; n += 1) swarm.submit(`u${n}`).catch(() => undefined);
      await clock.settle();
      store.seal(number);
      store.loseTail(number, 2);
      gate.open();
      await clock.advance(noticedMs + timeoutMs);
      expect(roleOf(swarm.coordinator)).toBe("leading");
      expect(liveOf(store).opened).toMatchObject({ term: number + 1, base: expect.anything() });
      const state = swarm.coordinator.probe.settledState ?? expect.fail("nothing is in flight");
      expect([...liveIds(state)]).toEqual(expect.arrayContaining(["t1", "t2", "t3"]));
      expect(fingerprint((await restarted()).state)).toEqual(fingerprint(state));
    },
  );

  it("halts where its successor leads without acknowledged batches", async () => {
    await stopped(standby, clock);
    for (const id of ["t1", "t2", "t3"]) await Promise.all(submitting(id));
    swarm.watched.settled();
    store.loseTail(1, 2);
    const { tail } = await restarted();
    const rival = new Rival(store);
    const number = rival.takeLead(tail, clock.now());
    for (let n = 0; n < 2; n += 1)
      rival.batch(number, (await restarted()).tail, [{ type: "TermRenewed" }], clock.now());
    await clock.advance(limits.lossPatienceMs + noticedMs);
    expect(roleOf(swarm.coordinator)).toBe("halted");
  });
});

describe("a standby that cannot read the leader's segment", () => {
  it("reports the segment: the leader continues in a readable segment, at most once per T", async () => {
    const own = new MemoryJournal(store);
    const segmentOf = own.segment.bind(own);
    const unreadable = new Set([1]);
    own.segment = (number) => {
      const segment = segmentOf(number);
      const [replay, follow] = [segment.replay.bind(segment), segment.follow.bind(segment)];
      async function* readable(records: AsyncIterable<SegmentRecord>) {
        for await (const record of records) {
          if (unreadable.has(number)) throw new JournalDamagedError(`segment ${number} cannot be read here`);
          yield record;
        }
      }
      segment.replay = (from, options) => readable(replay(from, options));
      segment.follow = (from, signal) => readable(follow(from, signal));
      return segment;
    };
    await Promise.all(submitting("t1", "t2"));
    const starting = swarm.startAnother("c3", own);
    await clock.advance(limits.journalRetryMsMax);
    const third = await starting;
    expect(liveOf(store)).toMatchObject({ number: 2, opened: { leader: "c1" } });
    await clock.advance(timeoutMs);
    unreadable.add(2);
    await Promise.all(submitting("t3"));
    await clock.advance(limits.journalGapMs + 2 * timeoutMs);
    expect(storedEvents(store, "TermStarted")).toHaveLength(3);
    expect(third.probe.settledState?.idx).toBe(swarm.watched.settled().state.idx);
    await expectAgreement(["t1", "t2", "t3"]);
  });
});

describe("a planned change of segment", () => {
  const everything = { ageMs: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };
  const options = { everyEvents: 10, retention: everything, baseSyncMs: 0 };

  beforeEach(async () => {
    await stopped(swarm, clock);
    await start(options);
  });

  async function load(from: number, to: number, agent?: WireAgent): Promise<string[]> {
    const ids = Array.from({ length: to - from }, (_, at) => `t${from + at}`);
    const answers: Promise<unknown>[] = [];
    for (const id of ids) {
      answers.push(...submitting(id));
      await clock.advance(100);
      if (agent !== undefined) void agent.heartbeat([], 0).catch(() => undefined);
    }
    await clock.advance(noticedMs);
    expect(await Promise.all(answers)).toEqual(stored(ids));
    return ids;
  }

  it("under load loses nothing, keeps the term, and is followed by standbys", async () => {
    const ids = await load(1, 60);
    expect(store.list().length).toBeGreaterThan(2);
    expect(liveOf(store).opened).toMatchObject({ term: 1, base: expect.anything() });
    expect(storedEvents(store, "TermStarted")).toHaveLength(1);
    expect(roleOf(swarm.coordinator)).toBe("leading");
    expect(roleOf(standby)).toBe("standing-by");
    await expectAgreement(ids);
    const before = liveOf(store).number;
    await swarm.coordinator.stop();
    await clock.settle();
    expect(roleOf(standby)).toBe("leading");
    expect(liveOf(store).opened).toMatchObject({ term: liveOf(store).number, previous: { segment: before } });
  });

  it.each(["append", "seal", "list", "create", "read", "end"] as const)(
    "goes on, the one way or the other, though an answer or a request of %s is lost",
    async (op) => {
      const ids: string[] = [];
      for (const leg of ["request", "answer"] as const) {
        let count = 0;
        const fate = (request: MemoryRequest) => {
          if (request.op !== op || !isOfChange(request)) return "deliver";
          count += 1;
          return count % 7 === 1 ? "lose" : "deliver";
        };
        if (leg === "request") [onRequest, onAnswer] = [fate, () => "deliver"];
        else [onRequest, onAnswer] = [() => "deliver", fate];
        ids.push(...(await load(ids.length + 1, ids.length + 31)));
      }
      [onRequest, onAnswer] = [() => "deliver", () => "deliver"];
      await clock.advance(60_000);
      expect(store.list().length).toBeGreaterThan(1);
      await expectAgreement(ids);
    },
  );

  /** Not an ordinary batch of the leader. */
  function isOfChange(request: MemoryRequest): boolean {
    if (request.op !== "append") return true;
    return (
      !Buffer.from(request.bytes).subarray(0, 30).includes('"kind":"batch"') ||
      request.segment !== liveOf(store).number
    );
  }

  it("goes on from memory in a third segment when the new one is lost at once", async () => {
    const ids = await load(1, 8);
    let isLost = false;
    onAnswer = (request) => {
      if (request.op === "append" && request.isOpened && !isLost) {
        isLost = true;
        swarm.watched.settled();
        store.loseSegment(request.segment);
      }
      return "deliver";
    };
    ids.push(...(await load(8, 30)));
    expect(isLost).toBe(true);
    await expectAgreement(ids);
  });

  it("that a power loss undoes, seal and new segment, loses nothing", async () => {
    const ids = await load(1, 12);
    const { number } = liveOf(store);
    expect(number).toBeGreaterThan(1);
    swarm.watched.settled();
    store.loseSegment(number);
    store.loseSeal(number - 1);
    store.loseTail(number - 1, 1);
    await clock.advance(noticedMs);
    expect(roleOf(swarm.coordinator)).toBe("leading");
    await expectAgreement(ids);
  });
});

describe("a coordinator that starts while the journal does not answer", () => {
  let away: MemoryJournal;
  beforeEach(() => {
    away = new MemoryJournal(store);
    away.setOffline(true);
  });

  it("stands by once the journal answers", async () => {
    const starting = swarm.startAnother("c3", away);
    await clock.advance(limits.journalOpenMs / 2);
    away.setOffline(false);
    await clock.advance(limits.journalOpenMs / 2);
    expect(roleOf(await starting)).toBe("standing-by");
  });

  it("gives up after as long as opening a journal takes", async () => {
    const starting = swarm.startAnother("c3", away);
    const end = expect(starting).rejects.toMatchObject({ code: "WAGGLE_UNREACHABLE" });
    await clock.advance(2 * limits.journalOpenMs);
    await end;
  });
});

describe("a standby that reads a base for longer than T", () => {
  it("does not take the lead from a leader that announces itself", async () => {
    const gate = new Gate();
    let isReading = false;
    const slow = new MemoryJournal(store, {
      onAnswer: async (request): Promise<AnswerFate> => {
        if (request.op !== "replay" || request.segment === 1) return "deliver";
        isReading = true;
        await gate.opened;
        return "deliver";
      },
    });
    await standby.stop();
    standby = await swarm.startAnother("c3", slow);
    await Promise.all(submitting("t1"));
    slow.setOffline(true);
    await Promise.all(submitting("t2"));
    store.loseSegment(liveOf(store).number);
    const inFlight = submitting("t3");
    await clock.advance(timeoutMs / 4);
    expect(liveOf(store).opened).toMatchObject({ term: 2, leader: "c1", base: expect.anything() });
    slow.setOffline(false);
    await clock.advance(5 * timeoutMs);
    expect(isReading).toBe(true);
    expect([roleOf(swarm.coordinator), roleOf(standby)]).toEqual(["leading", "standing-by"]);
    expect(liveOf(store).opened).toMatchObject({ term: 2, leader: "c1" });
    gate.open();
    await Promise.all(inFlight);
    await expectAgreement(["t1", "t2", "t3"]);
  });
});

describe("a standby that hears from the leader while the journal answers late", () => {
  it("does not take the lead", async () => {
    const gate = new Gate();
    let isAway = false;
    let isAsking = false;
    const slow = new MemoryJournal(store, {
      onRequest: async ({ op }): Promise<RequestFate> => {
        if (op !== "usage" || !isAway) return "deliver";
        isAsking = true;
        await gate.opened;
        return "deliver";
      },
    });
    await standby.stop();
    standby = await swarm.startAnother("c3", slow);
    await clock.advance(timeoutMs);
    isAway = true;
    slow.setOffline(true);
    await clock.advance(4 * timeoutMs);
    expect(isAsking).toBe(true);
    slow.setOffline(false);
    await clock.advance(timeoutMs);
    gate.open();
    await clock.advance(timeoutMs);
    expect(liveOf(store).opened).toMatchObject({ term: 1, leader: "c1" });
    await expectAgreement([]);
  });
});

describe("a start on a damaged journal", () => {
  it("says once what is damaged, and halts without a stack", async () => {
    await Promise.all(submitting("t1"));
    await stopped(standby, clock);
    await stopped(swarm.coordinator, clock);
    store.loseRecords(1, 3);
    const own = keptLog();
    const starting = swarm.startAnother("c3", new MemoryJournal(store), { logger: own.logger });
    const error = starting.then(
      () => expect.fail("the journal is damaged"),
      (cause: unknown) => cause,
    );
    await clock.advance(2 * limits.lossPatienceMs);
    expect(await error).toMatchObject({ code: "WAGGLE_JOURNAL_DAMAGED" });
    const why = "record 3 of segment 1 is missing, and the segment ends at ";
    expect(own.lines).toMatchObject([
      { level: "warn", why: expect.stringContaining(why), msg: expect.stringContaining("trying again") },
      { level: "fatal", why: expect.stringContaining(why), msg: expect.stringContaining("halted") },
    ]);
    for (const line of own.lines) expect(line).not.toHaveProperty("err");
  });
});
