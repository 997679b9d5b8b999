// Submitting: messages, repetitions, and the errors of submissions that are given up.

import { describe, expect, it } from "vitest";
import type { TaskRequest } from "../../src/client/task-request.ts";
import {
  BackpressureError,
  BudgetExceededError,
  InvalidMessageError,
  NoLeaderError,
  OutcomeUnknownError,
} from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import { aClient, aTask, watch } from "./client-fixture.ts";
import { settled } from "./manual-clock.ts";

const sizes = (leader: { of(verb: string): { body: { tasks: unknown[] } }[] }) =>
  leader.of("submit").map(({ body }) => body.tasks.length);

describe("coalescing", () => {
  it("sends one call at once, without any timer", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const before = clock.pendingTimers;
    const handle = await swarm.submit(aTask());
    expect(handle.ack).toMatchObject({ taskId: handle.id, term: 1, idx: 2, duplicate: false, warnings: [] });
    expect(sizes(leader)).toEqual([1]);
    expect(clock.pendingTimers).toBeLessThanOrEqual(before + 1); // the sweep of awaited tasks
  });

  it("puts concurrent calls into one message, up to a message's maximum", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const count = limits.itemsPerMessageMax + 10;
    const handles = await Promise.all(Array.from({ length: count }, () => swarm.submit(aTask())));
    expect(sizes(leader)).toEqual([limits.itemsPerMessageMax, 10]);
    expect(new Set(handles.map(({ id }) => id)).size).toBe(count);
  });

  it("keeps a message within half of what the server takes, unless one task alone is larger", async () => {
    const { swarm, leader } = await aClient({ maxPayloadBytes: 8_192 });
    leader.start();
    const payloads = ["x".repeat(1_500), "y".repeat(1_500), "z".repeat(1_500), "w".repeat(6_000)];
    await Promise.all(payloads.map((payload) => swarm.submit(aTask({ payload }))));
    expect(sizes(leader)).toEqual([2, 1, 1]);
  });

  it("limits messages in flight; calls made meanwhile share a message", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    leader.script = () => "silence";
    const max = limits.submitMessagesInFlightMax;
    for (let message = 0; message < max; message += 1) {
      void swarm.submit(aTask()).catch(() => undefined);
      await settled();
    }
    for (let more = 0; more < 5; more += 1) {
      void swarm.submit(aTask()).catch(() => undefined);
      await settled();
    }
    expect(sizes(leader)).toEqual(Array.from({ length: max }, () => 1));
    await swarm.close();
  });

  it("does not mix projects or terms in a message", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    await Promise.all([
      swarm.submit(aTask({ project: "p1" })),
      swarm.submit(aTask({ project: "p2" })),
      swarm.submit(aTask({ project: "p1" }), { failFast: true }),
      swarm.submit(aTask({ project: "p1" }), { notify: false }),
      swarm.submit(aTask({ project: "p1" })),
    ]);
    const messages = leader.of("submit").map(({ project, body }) => ({
      project,
      tasks: body.tasks.length,
      failFast: body.failFast ?? false,
      notify: body.notify !== undefined,
    }));
    expect(messages).toEqual([
      { project: "p1", tasks: 2, failFast: false, notify: true },
      { project: "p2", tasks: 1, failFast: false, notify: true },
      { project: "p1", tasks: 1, failFast: true, notify: true },
      { project: "p1", tasks: 1, failFast: false, notify: false },
    ]);
  });
});

describe("retrying", () => {
  it("waits for a leader and then submits under the same id", async () => {
    const { swarm, leader, clock } = await aClient();
    const submitted = watch(swarm.submit(aTask()));
    await clock.advance(3_000);
    expect(submitted.state).toBe("pending");
    leader.start();
    await clock.advance(limits.askBackoffMsMax);
    expect(submitted).toMatchObject({ state: "fulfilled" });
    expect(sizes(leader)).toEqual([1]);
  });

  it("ends with NoLeaderError when no leader ever existed", async () => {
    const { swarm, clock } = await aClient();
    const submitted = watch(swarm.submit(aTask(), { timeoutMs: 2_000 }));
    await clock.advance(2_000 + limits.askBackoffMsMax);
    expect(submitted.error).toBeInstanceOf(NoLeaderError);
  });

  it("repeats the same bytes when no answer came, and takes the duplicate as the acceptance it is", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    let answersLost = 0;
    leader.script = ({ verb, body }) => {
      if (verb !== "submit" || answersLost === 2) return undefined;
      answersLost += 1;
      for (const task of body.tasks) {
        leader.tasks.set(task.id, { json: JSON.stringify(task), outcome: undefined, notify: new Set() });
      }
      return "silence";
    };
    const submitted = watch(swarm.submit(aTask()));
    await clock.advance(3 * (limits.requestTimeoutMs + limits.askBackoffMsMax));
    expect(submitted).toMatchObject({ state: "fulfilled", value: { ack: { duplicate: true } } });
    const bodies = leader.of("submit").map(({ body }) => JSON.stringify(body));
    expect(bodies).toHaveLength(3);
    expect(new Set(bodies).size).toBe(1);
  });

  it("never fails definitely after a lost answer: OutcomeUnknownError, even without a later leader", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.script = () => {
      leader.stop();
      return "silence";
    };
    const submitted = watch(swarm.submit(aTask({ id: "t1" }), { timeoutMs: 10_000 }));
    await clock.advance(12_000);
    expect(submitted.error).toBeInstanceOf(OutcomeUnknownError);
    expect(String(submitted.error)).toContain("t1");
  });

  it("counts a broken connection as unknown, and goes on when it is back", async () => {
    const { swarm, leader, clock, hub, transport } = await aClient();
    leader.start();
    leader.script = () => "silence";
    const submitted = watch(swarm.submit(aTask()));
    await settled();
    hub.cut(transport);
    await clock.advance(500);
    leader.script = () => undefined;
    hub.heal(transport);
    await clock.advance(limits.askBackoffMsMax);
    expect(submitted).toMatchObject({ state: "fulfilled" });
    expect(leader.of("submit")).toHaveLength(2);
  });

  it("goes to the next leader when a leader reports that it lost the lead", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const replies = ["WAGGLE_NO_LEADER", "WAGGLE_OUTCOME_UNKNOWN"];
    leader.script = () => {
      const code = replies.shift();
      return code === undefined ? undefined : { ok: false, code, message: "deposed" };
    };
    const submitted = watch(swarm.submit(aTask()));
    await clock.advance(2_000);
    expect(submitted).toMatchObject({ state: "fulfilled" });
  });

  it("repeats unanswered requests at once at a new leader, but not at the first known leader", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    leader.script = () => "silence"; // stopped or cut off, and still subscribed
    const submitted = watch(swarm.submit(aTask()));
    await settled();
    leader.heartbeat();
    await settled();
    expect(leader.of("submit")).toHaveLength(1);
    leader.script = () => undefined;
    leader.term = 2;
    leader.heartbeat();
    await settled();
    expect(leader.of("submit")).toHaveLength(2);
    expect(submitted).toMatchObject({ state: "fulfilled" });
  });

  it("repeats at once at a new leader also when only its term was known, from a standby", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    leader.script = () => "silence";
    const submitted = watch(swarm.submit(aTask()));
    await settled();
    leader.heartbeat({ leading: false });
    await settled();
    expect(leader.of("submit")).toHaveLength(1);
    leader.term = 2;
    leader.heartbeat({ leading: false }); // has read the journal, and does not lead yet
    await settled();
    expect(leader.of("submit")).toHaveLength(1);
    leader.script = () => undefined;
    leader.heartbeat();
    await settled();
    expect(leader.of("submit")).toHaveLength(2);
    expect(submitted).toMatchObject({ state: "fulfilled" });
  });

  it("repeats at once at a new leader also without a known term: the new leader announces its beginning", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    leader.script = () => "silence";
    const submitted = watch(swarm.submit(aTask()));
    await settled();
    leader.script = () => undefined;
    leader.term = 2;
    leader.heartbeat({ began: true });
    await settled();
    expect(leader.of("submit")).toHaveLength(2);
    expect(submitted).toMatchObject({ state: "fulfilled" });
  });

  it("asks a new leader at once everything that waited for a leader", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.heartbeat();
    await settled();
    leader.stop();
    const submitted = watch(swarm.submit(aTask()));
    const cancelled = watch(swarm.cancel("t1"));
    await clock.advance(3 * limits.askBackoffMsMax);
    expect([submitted.state, cancelled.state]).toEqual(["pending", "pending"]);
    leader.start(2);
    leader.heartbeat();
    await settled();
    expect(submitted.state).toBe("fulfilled");
    expect(cancelled.state).not.toBe("pending"); // answered, whatever the fake leader's answer
  });

  it("ends in time behind unanswered messages: the task was not sent, their outcomes are unknown", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.script = () => "silence";
    const sent: ReturnType<typeof watch>[] = [];
    for (let message = 0; message < limits.submitMessagesInFlightMax; message += 1) {
      sent.push(watch(swarm.submit(aTask(), { timeoutMs: 1_000 })));
      await settled();
    }
    const behind = [300, 305, 800].map((timeoutMs) => watch(swarm.submit(aTask(), { timeoutMs })));
    const states = () => behind.map(({ state }) => state);
    await clock.advance(300);
    expect(states()).toEqual(["rejected", "pending", "pending"]);
    expect(behind[0]?.error).toBeInstanceOf(NoLeaderError);
    expect(behind[0]).toMatchObject({ error: { message: expect.stringContaining("was not sent") } });
    await clock.advance(limits.submitGiveUpMs);
    expect(states()).toEqual(["rejected", "rejected", "pending"]);
    await clock.advance(500);
    expect(states()).toEqual(["rejected", "rejected", "rejected"]);
    await clock.advance(200);
    expect(sent.map(({ error }) => error instanceof OutcomeUnknownError)).toEqual(sent.map(() => true));
    expect(leader.tasks.size, "nobody was told of it").toBe(0);
    await clock.advance(limits.requestTimeoutMs);
    expect(leader.of("submit"), "what was given up is not sent").toHaveLength(sent.length);
    await swarm.close();
    expect(clock.pendingTimers).toBe(0);
  });

  it("ends in time inside a message with later deadlines", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.script = () => "silence";
    const short = watch(swarm.submit(aTask(), { timeoutMs: 200 }));
    const long = watch(swarm.submit(aTask(), { timeoutMs: 20_000 }));
    await clock.advance(200);
    expect([short.state, long.state]).toEqual(["rejected", "pending"]);
    expect(short.error).toBeInstanceOf(OutcomeUnknownError);
    await swarm.close();
  });

  it("ends in time under backpressure", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const refusal = { ok: false, code: "WAGGLE_BACKPRESSURE", message: "no room", retryAfterMs: 900 };
    leader.script = () => ({ term: 1, idx: 1, answers: [refusal] });
    const submitted = watch(swarm.submit(aTask(), { retry: true, timeoutMs: 1_000 }));
    await clock.advance(1_000);
    expect(submitted.error).toBeInstanceOf(BackpressureError);
    await swarm.close();
  });

  it("does not trust an answer with the wrong number of items", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.script = ({ verb }) => (verb === "submit" ? { term: 1, idx: 2, answers: [] } : undefined);
    const submitted = watch(swarm.submit(aTask(), { timeoutMs: 500 }));
    await clock.advance(2_000);
    expect(submitted.error).toBeInstanceOf(OutcomeUnknownError);
  });
});

describe("refusals", () => {
  const noRoom = { ok: false, code: "WAGGLE_BACKPRESSURE", message: "full", retryAfterMs: 700 };

  it("reach only their task", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    await swarm.submit(aTask({ id: "t1" }));
    const outcomes = await Promise.allSettled([
      swarm.submit(aTask({ id: "t1", payload: "other" })),
      swarm.submit(aTask({ id: "t2" })),
    ]);
    expect(outcomes).toMatchObject([
      { status: "rejected", reason: { code: "WAGGLE_CONFLICT", field: "id" } },
      { status: "fulfilled" },
    ]);
  });

  it("under backpressure are errors with the time to wait, at once", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    leader.script = () => noRoom;
    const error = await swarm.submit(aTask()).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(BackpressureError);
    expect(error).toMatchObject({ retryAfterMs: 700 });
  });

  it("by a budget in mode reject come at once, also with `retry`, with the budget and the time to wait", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const budget = { project: "default", tokens: 100, windowMs: 60_000, spent: 90, reserved: 5, needed: 10 };
    const refusal = { ok: false, code: "WAGGLE_BUDGET_EXCEEDED", message: "no", retryAfterMs: 800, budget };
    leader.script = ({ body }) => ({ term: 1, idx: 2, answers: body.tasks.map(() => refusal) });
    const error = await swarm.submit(aTask(), { retry: true }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(BudgetExceededError);
    expect(error).toMatchObject({ retryAfterMs: 800, budget });
    const outcomes: unknown[] = [];
    for await (const outcome of swarm.submitMany([aTask(), aTask()])) outcomes.push(outcome);
    const refused = { ok: false, error: { code: "WAGGLE_BUDGET_EXCEEDED", retryAfterMs: 800 } };
    expect(outcomes).toMatchObject([refused, refused]);
  });

  it("under backpressure are retried with `retry`, not before the requested time", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    let isFull = true;
    leader.script = ({ body }) =>
      isFull ? { term: 1, idx: 2, answers: body.tasks.map(() => noRoom) } : undefined;
    const submitted = watch(swarm.submit(aTask(), { retry: true }));
    await clock.advance(699);
    expect(leader.of("submit")).toHaveLength(1);
    isFull = false;
    await clock.advance(700);
    expect(submitted).toMatchObject({ state: "fulfilled" });
    expect(leader.of("submit")).toHaveLength(2);
  });

  it("settle the doubt that a lost answer left", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const turnedAway = { term: 1, idx: 2, answers: [{ ...noRoom, retryAfterMs: 5_000 }] };
    const answers: (object | "silence")[] = ["silence", turnedAway];
    leader.script = () => answers.shift();
    const given = new AbortController();
    const submitted = watch(swarm.submit(aTask(), { retry: true, signal: given.signal }));
    await clock.advance(limits.requestTimeoutMs + limits.askBackoffMsMax);
    expect(leader.of("submit")).toHaveLength(2);
    given.abort();
    await settled();
    expect(submitted.error).toBeInstanceOf(BackpressureError);
  });

  it.each([true, false])("of a whole message, unread, leave that doubt, with retry: %s", async (retry) => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const answers: (object | "silence")[] = ["silence", { ...noRoom, retryAfterMs: 5_000 }];
    leader.script = () => answers.shift();
    const given = new AbortController();
    const submitted = watch(swarm.submit(aTask(), { retry, signal: given.signal }));
    await clock.advance(limits.requestTimeoutMs + limits.askBackoffMsMax);
    expect(leader.of("submit")).toHaveLength(2);
    given.abort();
    await settled();
    expect(submitted.error).toBeInstanceOf(OutcomeUnknownError);
  });

  it("under backpressure end the attempts when the time is too short", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.script = () => noRoom;
    const submitted = watch(swarm.submit(aTask(), { retry: true, timeoutMs: 1_000 }));
    await clock.advance(5_000);
    expect(submitted.error).toBeInstanceOf(BackpressureError);
  });
});

describe("a task request", () => {
  it("carries payloads as text, bytes and JSON, times as instants, and the connection's project and user", async () => {
    const { swarm, leader } = await aClient({ project: "acme", user: "ann@acme.org" });
    leader.start();
    const deadline = new Date("2030-01-01T00:00:00Z");
    await Promise.all([
      swarm.submit(aTask({ id: "text", payload: "as it is", deadline })),
      swarm.submit(aTask({ id: "bytes", payload: Uint8Array.of(0, 255) })),
      swarm.submit(aTask({ id: "json", payload: { a: [1] }, user: "bob" })),
      swarm.submit({ id: "none", kind: "count" }),
    ]);
    const [message] = leader.of("submit");
    expect(message?.project).toBe("acme");
    expect(message?.body.tasks).toEqual([
      { id: "text", kind: "count", payload: "as it is", user: "ann@acme.org", deadline: deadline.getTime() },
      { id: "bytes", kind: "count", payload: "AP8=", encoding: "base64", user: "ann@acme.org" },
      { id: "json", kind: "count", payload: '{"a":[1]}', user: "bob" },
      { id: "none", kind: "count", user: "ann@acme.org" },
    ]);
  });

  it.each([
    ["payload", { payload: "x".repeat(limits.payloadBytesMax + 1) }],
    ["payload", { payload: 1n }],
    ["payload", { payload: () => 1 }],
    ["deadline", { deadline: new Date("never") }],
    ["project", { project: "a.b" }],
    ["project", { project: "_" }],
  ])("that cannot be sent names the field: %s", async (field, overrides) => {
    const { swarm } = await aClient();
    const error = await swarm.submit(aTask(overrides)).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(InvalidMessageError);
    expect(error).toMatchObject({ field });
  });

  it("too large for the server is refused locally", async () => {
    const { swarm } = await aClient({ maxPayloadBytes: 4_096 });
    await expect(swarm.submit(aTask({ payload: "x".repeat(5_000) }))).rejects.toThrow(InvalidMessageError);
  });
});

describe("a signal", () => {
  it("that aborted before keeps the task from being sent", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const reason = new Error("not wanted");
    await expect(swarm.submit(aTask(), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(leader.asked).toEqual([]);
  });

  it("that aborts while an answer is due leaves the outcome unknown", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    leader.script = () => "silence";
    const given = new AbortController();
    const submitted = watch(swarm.submit(aTask(), { signal: given.signal }));
    await settled();
    given.abort();
    await settled();
    expect(submitted.error).toBeInstanceOf(OutcomeUnknownError);
  });

  it("that aborts without a leader reports no effect", async () => {
    const { swarm, clock } = await aClient();
    const given = new AbortController();
    const submitted = watch(swarm.submit(aTask(), { signal: given.signal }));
    await clock.advance(100);
    given.abort();
    await settled();
    expect(submitted.error).toBeInstanceOf(NoLeaderError);
  });
});

describe("closing", () => {
  it("ends sent tasks as unknown and the rest as not done, and leaves no timer", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.script = () => "silence";
    const sent = watch(swarm.submit(aTask({ project: "p1" })));
    await settled();
    const unsent = watch(swarm.submit(aTask({ project: "p2" })));
    await swarm.close();
    await settled();
    expect(sent.error).toBeInstanceOf(OutcomeUnknownError);
    expect(unsent.error).toMatchObject({ code: "WAGGLE_UNREACHABLE" });
    await clock.advance(limits.requestTimeoutMs);
    expect(clock.pendingTimers).toBe(0);
    await expect(swarm.submit(aTask())).rejects.toMatchObject({ code: "WAGGLE_UNREACHABLE" });
  });
});

describe("an invalid task", () => {
  it.each<[unknown, string | undefined, RegExp]>([
    [{ kind: "k", model: "gpt-4o" }, "model", /did you mean weight: weightOf\(model, prompt\.length\)\?$/],
    [{ kind: "k", weight: Number.NaN }, "weight", /^weight: must be a number, not NaN$/],
    [{ kind: "k", timeoutMs: Number.POSITIVE_INFINITY }, "timeoutMs", /must be a number, not Infinity$/],
    [{ kind: "k", tokens: "5" }, "tokens", /must be a number, not '5'$/],
    [null, undefined, /the task: must be an object/],
    ["count", undefined, /the task: must be an object/],
    [{}, "kind", /^kind: is missing$/],
    [{ kind: "count", maxAttempt: 1 }, "maxAttempt", /did you mean maxAttempts\?/],
    [{ kind: "count", timeout: 1 }, "timeout", /did you mean timeoutMs\?/],
  ])("is refused before it is sent: %o", async (task, field, message) => {
    const { swarm, leader } = await aClient();
    leader.start();
    const error = await swarm.submit(task as TaskRequest).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidMessageError);
    expect(error).toMatchObject({ field, message: expect.stringMatching(message) });
    for await (const outcome of swarm.submitMany([task as TaskRequest]))
      expect(outcome).toMatchObject({ ok: false, error: { code: "WAGGLE_INVALID_MESSAGE" } });
    expect(leader.of("submit")).toEqual([]);
  });

  it.each<[unknown, string | undefined, RegExp]>([
    [null, undefined, /its options must be an object/],
    [{ project: "small" }, "project", /project: is unknown/],
    [{ timeout: 5 }, "timeout", /did you mean timeoutMs\?/],
  ])("is not sent with unknown options: %o", async (options, field, message) => {
    const { swarm, leader } = await aClient();
    leader.start();
    const terms = options as object;
    const refused = expect.objectContaining({ field, message: expect.stringMatching(message) });
    await expect(swarm.submit(aTask(), terms)).rejects.toEqual(refused);
    await expect(swarm.submitMany([aTask()], terms)[Symbol.asyncIterator]().next()).rejects.toEqual(refused);
    expect(leader.of("submit")).toEqual([]);
  });

  it("ignores an option without a value", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    await swarm.submit({ ...aTask(), colour: undefined } as TaskRequest);
  });
});

it("a submit that was given up leaves no timer behind, however long it might have waited", async () => {
  const { swarm, clock } = await aClient(); // no leader
  const before = clock.pendingTimers;
  const giving = new AbortController();
  const submit = swarm.submit(aTask(), { timeoutMs: 3_600_000, signal: giving.signal });
  await settled();
  giving.abort(new Error("enough"));
  await expect(submit).rejects.toMatchObject({ code: "WAGGLE_NO_LEADER" });
  for (let passedMs = 0; passedMs < 10_000; passedMs += 500) {
    await clock.advance(500); // no further request is sent, and the last request ends
    await settled();
  }
  expect(clock.pendingTimers).toBe(before);
});
