// Full queues and a full journal: clients are told when to try again, the journal counts refusals, and no promise is
// broken.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemRandom } from "../../src/clock.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import { encode } from "../../src/protocol/codec.ts";
import type { InboxEntry } from "../../src/requests/inbox.ts";
import type { LeaderParts } from "../../src/requests/intake.ts";
import { Router } from "../../src/requests/router.ts";
import { emptyState } from "../../src/state/state.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { HeldJournal } from "../support/held-journal.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { storedEvents } from "../support/stored.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

let clock: ManualClock;
let swarm: TestSwarm;

beforeEach(() => {
  clock = new ManualClock();
});
afterEach(() => swarm.stop());

/** Refusals in the journal. */
const refusals = () => storedEvents(swarm.store, "TasksRefused");

describe("a journal short of room", () => {
  beforeEach(async () => {
    swarm = await startTestSwarm({ clock, store: new MemoryJournalStore({ bytesMax: 1_000_000 }) });
  });

  it("accepts no tasks, goes on with accepted tasks, and sums up refusals", async () => {
    const agent = await swarm.agent("a1");
    const payload = "x".repeat(200_000);
    for (let n = 0; n < 4; n += 1) await swarm.client.submit([{ id: `t${n}`, kind: "count", payload }]);
    await swarm.client.submit([{ id: "t4", kind: "count", payload: payload.slice(60_000) }]);
    await clock.advance(limits.journalUsageMs + limits.pulseMs);

    for (let n = 0; n < 3; n += 1)
      expect(await swarm.client.submit([{ kind: "count" }, { kind: "count" }])).toEqual({
        ok: false,
        code: "WAGGLE_BACKPRESSURE",
        message: expect.stringMatching(/^the journal is short of room.*try again later.*operator/),
        retryAfterMs: limits.retryAfterMs,
      });
    await swarm.client.submit([{ kind: "count" }], {}, "other");
    expect((await agent.complete(await agent.assignment())).answers).toEqual([{ ok: true, status: "ok" }]);
    await clock.advance(limits.refusalSummaryMs + limits.pulseMs);
    expect(refusals()).toMatchObject([
      { project: "default", reason: "journal-full", count: 6 },
      { project: "other", reason: "journal-full", count: 1 },
    ]);
    await clock.advance(10 * limits.refusalSummaryMs);
    expect(refusals()).toHaveLength(2);
    expect((await swarm.client.status()).counters).toMatchObject({ refused: 4 });
  });
});

describe("a journal that takes nothing more", () => {
  it("leaves requests without an answer until there is room, and forgets none", async () => {
    const store = new MemoryJournalStore();
    swarm = await startTestSwarm({ clock, store });
    const agent = await swarm.agent("a1");
    await swarm.client.submit([{ id: "t1", kind: "count" }]);
    const assignment = await agent.assignment();
    store.bytesMax = store.usage.bytes;
    let answered = 0;
    const asked = [
      agent.complete(assignment),
      swarm.client.submit([{ id: "t2", kind: "count" }]),
      swarm.client.status(),
    ].map((answer) =>
      answer.then((value) => {
        answered += 1;
        return value;
      }),
    );
    await clock.advance(3 * limits.journalFullRetryMs);
    expect(answered).toBe(0);
    store.bytesMax = undefined;
    await clock.advance(limits.journalFullRetryMs);
    expect(await Promise.all(asked)).toMatchObject([
      { answers: [{ status: "ok" }] },
      { answers: [{ ok: true, task: "t2" }] },
      { tasks: { completed: 1 } },
    ]);
  });
});

describe("a leader with as much waiting as may", () => {
  it("refuses later requests at once, and takes them when there is room", async () => {
    const store = new MemoryJournalStore();
    const held = new HeldJournal(store);
    swarm = await startTestSwarm({ clock, store, journal: held.journal });
    held.hold();
    const message = encode({ incarnation: "x-1" });
    let answered = 0;
    swarm.client.transport.subscribe("_INBOX.flood", () => {
      answered += 1;
    });
    void swarm.client.submit([{ id: "t1", kind: "count" }]);
    await clock.settle();
    void swarm.client.submit([{ id: "t2", kind: "count" }]);
    await clock.settle();
    for (let n = 2; n < limits.inboxDepthMax; n += 1)
      swarm.client.transport.publish(subjects.agent("_", `nobody-${n}`, "leave"), message, "_INBOX.flood");
    await clock.settle();
    expect(answered).toBe(0);
    const refusal = { ok: false, code: "WAGGLE_BACKPRESSURE", retryAfterMs: limits.retryAfterMs };
    expect(await swarm.client.submit([{ id: "t3", kind: "count" }])).toMatchObject(refusal);
    expect(await swarm.client.status()).toMatchObject(refusal);
    held.release();
    await clock.settle();
    await clock.settle();
    expect(answered).toBe(limits.inboxDepthMax - 2);
    expect(await swarm.client.submit([{ id: "t3", kind: "count" }])).toMatchObject({
      answers: [{ ok: true }],
    });
    await clock.advance(limits.refusalSummaryMs + limits.pulseMs);
    expect(refusals()).toMatchObject([{ reason: "inbox-full", count: 1 }]);
  });
});

describe("a task refused by the queues' bounds", () => {
  it("is answered with when to come again, and tallied; its neighbours are not touched", async () => {
    swarm = await startTestSwarm({ clock });
    const entries: InboxEntry[] = [];
    const sent: unknown[] = [];
    const transport = {
      publish: (_: string, bytes: Uint8Array) => void sent.push(JSON.parse(Buffer.from(bytes).toString())),
      maxPayloadBytes: 1_000_000,
    };
    const parts = {
      subjects,
      state: emptyState(),
      clock,
      random: systemRandom,
      transport: transport as Partial<Transport> as Transport,
      room: { isShort: false },
      enqueue: (entry) => entries.push(entry) > 0,
      stuckReason: () => undefined,
    } as Partial<LeaderParts> as LeaderParts;
    const router = new Router(parts);
    const data = encode({
      tasks: [
        { id: "t1", kind: "k" },
        { id: "t2", kind: "k" },
      ],
    });
    router.take({ subject: subjects.project("p", "submit"), data, reply: "_INBOX.x" });
    const [entry] = entries;
    entry?.replies.push(
      { kind: "accepted", task: "t1" as never, duplicate: false, warnings: [] },
      {
        kind: "refused",
        reason: "project-queue-full",
        project: "p" as never,
        user: "u" as never,
        has: 5,
        max: 5,
        retryAfterMs: limits.retryAfterMs,
      },
    );
    entry?.finish({ term: 1 as never, idx: 7 as never });
    expect(sent).toMatchObject([
      { idx: 7, answers: [{ ok: true }, { code: "WAGGLE_BACKPRESSURE", retryAfterMs: limits.retryAfterMs }] },
    ]);
    expect(router.intake.refusals.take(limits.refusalSummaryMs)).toEqual([
      { type: "SummarizeRefusals", project: "p", reason: "project-queue-full", count: 1 },
    ]);
  });
});
