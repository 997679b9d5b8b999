// Requests to the swarm: repeated while harmless, and never reported with more certainty than the answers
// allow.

import { describe, expect, it } from "vitest";
import {
  BackpressureError,
  NoLeaderError,
  OutcomeUnknownError,
  UnreachableError,
  UnreadableAnswerError,
} from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import { aClient, watch } from "./client-fixture.ts";
import { settled } from "./manual-clock.ts";

const longestMs = limits.askTimeoutMs + limits.requestTimeoutMs + limits.askBackoffMsMax;
const ok = { ok: true, term: 1, idx: 2 };

describe("a command", () => {
  it("is repeated until a leader answers", async () => {
    const { swarm, leader, clock } = await aClient();
    const drained = watch(swarm.drain("a1"));
    await clock.advance(5_000);
    leader.script = ({ verb }) => (verb === "drain" ? ok : undefined);
    leader.start();
    await clock.advance(limits.askBackoffMsMax);
    expect(drained.state).toBe("fulfilled");
    expect(leader.of("drain")).toMatchObject([{ body: { agent: "a1" } }]);
  });

  it.each([
    ["nobody was there", "stop", NoLeaderError],
    ["an answer was lost", "silence", OutcomeUnknownError],
    ["there was no room", "full", BackpressureError],
  ] as const)("given up because %s says so", async (_, how, type) => {
    const { swarm, leader, clock } = await aClient();
    if (how !== "stop") leader.start();
    const full = { ok: false, code: "WAGGLE_BACKPRESSURE", message: "full", retryAfterMs: 900 };
    leader.script = () => (how === "silence" ? "silence" : full);
    const drained = watch(swarm.drain("a1"));
    await clock.advance(longestMs);
    expect(drained.error).toBeInstanceOf(type);
    if (how === "full") expect(leader.asked.length).toBeLessThanOrEqual(longestMs / 900 + 1);
  });

  it("given up under backpressure after a lost answer leaves the outcome of a command unknown", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const full = { ok: false, code: "WAGGLE_BACKPRESSURE", message: "full", retryAfterMs: 900 };
    let asked = 0;
    leader.script = () => {
      asked += 1;
      return asked === 1 ? "silence" : full;
    };
    const drained = watch(swarm.drain("a1"));
    await clock.advance(longestMs);
    expect(drained.error).toBeInstanceOf(OutcomeUnknownError);
    expect(asked).toBeGreaterThan(1);
  });

  it("without a leader says that a command did nothing, and says nothing like it of a query", async () => {
    const { swarm, clock } = await aClient();
    const drained = watch(swarm.drain("a1"));
    const status = watch(swarm.status());
    await clock.advance(longestMs);
    const sentence =
      "No leader answers: is a coordinator of this swarm running (`waggle up`)? `waggle doctor` shows which swarm and " +
      "server were asked";
    expect(drained.error).toMatchObject({ message: `${sentence}. Nothing was done` });
    expect(status.error).toMatchObject({ message: sentence });
  });

  it("without an answer is repeated at once when a new leader begins", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.heartbeat();
    await settled();
    leader.script = () => "silence"; // stopped, and still subscribed
    const drained = watch(swarm.drain("a1"));
    const status = watch(swarm.status());
    await clock.advance(500);
    leader.heartbeat();
    await clock.advance(limits.askBackoffMs);
    expect(leader.of("drain"), "the one that was asked leads on").toHaveLength(1);
    leader.script = ({ verb }) => (verb === "drain" ? ok : "silence");
    leader.term = 2;
    leader.heartbeat();
    await clock.advance(limits.askBackoffMs);
    expect(drained.state).toBe("fulfilled");
    expect(leader.of("drain")[1]).toEqual(leader.of("drain")[0]);
    expect([status.state, leader.of("query.status").length]).toEqual(["pending", 2]);
    await swarm.close();
  });

  it("that was refused is not repeated", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    leader.script = () => ({ ok: false, code: "WAGGLE_UNKNOWN_AGENT", message: "no a1", field: "agent" });
    await expect(swarm.drain("a1")).rejects.toMatchObject({ code: "WAGGLE_UNKNOWN_AGENT", field: "agent" });
    expect(leader.asked).toHaveLength(1);
  });

  it("that was sent and then given up by its caller, or by closing, is unknown", async () => {
    for (const giveUp of ["abort", "close"] as const) {
      const { swarm, leader, transport, clock } = await aClient();
      leader.start();
      leader.script = () => "silence";
      const given = new AbortController();
      const drained = watch(swarm.drain("a1", { signal: given.signal }));
      await settled();
      if (giveUp === "abort") given.abort();
      else await transport.close();
      await clock.advance(limits.askBackoffMsMax);
      expect(drained.error).toBeInstanceOf(OutcomeUnknownError);
    }
  });
});

describe("a query", () => {
  it("without a readable answer ends with UnreachableError", async () => {
    for (const answer of ["silence", { nonsense: true }] as const) {
      const { swarm, leader, clock } = await aClient();
      leader.start();
      leader.script = () => answer;
      const status = watch(swarm.status({ timeoutMs: 2_000 }));
      await clock.advance(longestMs);
      expect(status.error).toBeInstanceOf(answer === "silence" ? UnreachableError : UnreadableAnswerError);
    }
  });

  it.each([
    ["no leader, if the server said so before and the last attempt was short", 1_500, 1_000, NoLeaderError],
    ["no answer, if a coordinator was silent for longer", 3_500, 1_000, UnreachableError],
  ] as const)("without an answer names %s", async (_, timeoutMs, silentAtMs, type) => {
    const { swarm, leader, clock } = await aClient();
    const status = watch(swarm.status({ timeoutMs }));
    await clock.advance(silentAtMs);
    leader.script = () => "silence";
    leader.start();
    await clock.advance(longestMs);
    expect(leader.asked.length, "the silence met an attempt").toBeGreaterThan(0);
    expect(status.error).toBeInstanceOf(type);
  });

  it("whose answer cannot be read says so, however short the attempt was", async () => {
    const { swarm, leader, clock } = await aClient();
    const status = watch(swarm.status({ timeoutMs: 1_500 }));
    await clock.advance(1_000);
    leader.script = () => ({ nonsense: true });
    leader.start();
    await clock.advance(longestMs);
    expect(leader.asked.length).toBeGreaterThan(0);
    expect(status.error).toBeInstanceOf(UnreadableAnswerError);
  });

  it("aborted rejects with the reason", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    leader.script = () => "silence";
    const given = new AbortController();
    const reason = new Error("enough");
    const status = watch(swarm.status({ signal: given.signal }));
    await settled();
    given.abort(reason);
    await settled();
    expect(status.error).toBe(reason);
  });
});

describe("cancelling", () => {
  it("whose answer was lost reports the task as cancelled when repeated", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const answers: (object | "silence")[] = [
      "silence",
      { term: 1, idx: 3, answers: [{ ok: true, task: "t1", state: "cancelled" }] },
    ];
    const place = { ok: true, term: 1, idx: 2, at: 0, submittedIdx: 2 };
    const task = { task: "t1", project: "default", user: "u", kind: "count", state: "queued", round: 4 };
    leader.script = ({ verb }) => (verb === "cancel" ? answers.shift() : { ...place, ...task, attempts: 0 });
    const cancelled = watch(swarm.cancel("t1"));
    await clock.advance(limits.requestTimeoutMs + limits.askBackoffMsMax);
    expect(cancelled.value).toEqual({ taskId: "t1", cancelled: true, state: "cancelled" });
    const sent = leader.of("cancel").map(({ body }) => body.tasks);
    expect(sent).toEqual([[{ task: "t1", round: 4 }], [{ task: "t1", round: 4 }]]);
  });

  it("takes no longer than `timeoutMs`, with the question for the present round", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const task = { task: "t1", project: "default", user: "u", kind: "count", state: "queued", attempts: 0 };
    const found = { ok: true, term: 1, idx: 2, at: 0, submittedIdx: 2, ...task };
    leader.script = ({ verb }) =>
      verb === "cancel" ? "silence" : new Promise((resolve) => clock.after(600, () => resolve(found)));
    const cancelled = watch(swarm.cancel("t1", { timeoutMs: 1_000 }));
    await clock.advance(600);
    expect(leader.of("cancel")).toHaveLength(1);
    await clock.advance(399);
    expect(cancelled.state).toBe("pending");
    await clock.advance(1);
    expect(cancelled.error).toMatchObject({ code: "WAGGLE_OUTCOME_UNKNOWN" });
  });
});
