// An agent's session against a leader, scripted push by push and answer by answer.

import { afterEach, describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { decode, encode } from "../../src/protocol/codec.ts";
import { heartbeatSchema } from "../../src/protocol/schemas.ts";
import { SessionFixture, type SessionFixtureOptions, settled } from "./session-fixture.ts";

let fixture: SessionFixture;

async function join(options: SessionFixtureOptions = {}): Promise<SessionFixture> {
  fixture = await SessionFixture.joined(options);
  return fixture;
}

afterEach(async () => {
  fixture.leader.vanish();
  fixture.session.send({ type: "stop" });
  await fixture.clock.advance(limits.agentStopMs + 2 * limits.agentLeaveMs);
  expect(
    fixture.closed,
    "a session that is stopped closes in time, whatever the test did to it",
  ).toBeDefined();
  expect(fixture.clock.pendingTimers, "and leaves no timer behind").toBe(0);
});

describe("joining", () => {
  it("says what the agent is and can do", async () => {
    const { leader, notices } = await join({
      profile: {
        kinds: ["count", "digest"],
        role: "r",
        type: "t",
        labels: { zone: "a" },
        maxConcurrent: 3,
        prefetch: 1,
      },
    });
    expect(leader.all("join")).toEqual([
      {
        incarnation: expect.stringMatching(/^[a-z0-9]{12}$/),
        kinds: ["count", "digest"],
        role: "r",
        type: "t",
        labels: { zone: "a" },
        maxConcurrent: 3,
        prefetch: 1,
        held: [],
        seen: 0,
      },
    ]);
    expect(notices).toContainEqual({ type: "joined" });
  });

  it("is tried again with the same incarnation until there is a leader that answers", async () => {
    const { leader, clock, notices } = await join({ hasLeader: false });
    await clock.advance(5_000);
    expect(notices).toEqual([]);
    leader.script.join = () => (leader.all("join").length < 3 ? "silence" : undefined);
    leader.appear();
    await clock.advance(3 * (limits.requestTimeoutMs + limits.agentRetryMsMax));
    expect(new Set(leader.all("join").map(({ incarnation }) => incarnation)).size).toBe(1);
    expect(leader.all("join")).toHaveLength(3);
    expect(notices).toContainEqual({ type: "joined" });
  });

  it("begins anew after a session of an earlier process, which the leader names", async () => {
    const { leader, clock, notices } = await join({ hasLeader: false });
    leader.script.join = ({ after }) => {
      if (after === "x7") return undefined;
      return { ok: false, code: "WAGGLE_UNKNOWN_AGENT", message: "the newest is x7", newest: "x7" };
    };
    leader.appear();
    await clock.advance(limits.agentRetryMsMax);
    const [refused, accepted] = leader.all("join");
    expect(refused).not.toHaveProperty("after");
    expect(accepted).toMatchObject({ after: "x7" });
    expect(accepted?.incarnation).not.toBe(refused?.incarnation);
    expect(notices).toContainEqual({ type: "joined" });
  });

  it("backs off between tries, up to a second", async () => {
    const times: number[] = [];
    const { leader, clock } = await join({ hasLeader: false });
    leader.script.join = () => {
      times.push(clock.monotonicMs());
      return { ok: false, code: "WAGGLE_BACKPRESSURE", message: "too many agents", retryAfterMs: 5 };
    };
    leader.appear();
    await clock.advance(20_000);
    const pauses = times.slice(1).map((time, at) => time - (times[at] ?? 0));
    expect(Math.max(...pauses)).toBeLessThanOrEqual(limits.agentRetryMsMax);
    expect(pauses.slice(-5).every((pause) => pause >= limits.agentRetryMsMax / 2)).toBe(true);
    expect(times.length).toBeLessThan(50);
  });

  it("misses no assignment that is pushed before the answer arrives", async () => {
    const { started } = await join({
      leader: (leader) => {
        leader.script.join = () => {
          leader.assign(leader.assignment());
          return undefined;
        };
      },
    });
    expect(started.map(({ task }) => task)).toEqual(["t1"]);
  });

  it("repeats, after a lost answer, with what has arrived meanwhile", async () => {
    const { leader, clock } = await join({
      leader: (fake) => {
        fake.script.join = () => {
          if (fake.all("join").length > 1) return undefined;
          fake.assign(fake.assignment());
          return "silence";
        };
      },
    });
    await clock.advance(limits.requestTimeoutMs + limits.agentRetryMsMax);
    expect(leader.last("join")).toMatchObject({ held: [{ project: "p", task: "t1", attempt: 1 }], seen: 1 });
    await clock.advance(1_000);
    expect(leader.last("heartbeat")).toMatchObject({ status: "busy", inFlight: 1 });
  });

  it("aborts attempts unknown to the leader", async () => {
    const { aborted } = await join({
      leader: (leader) => {
        leader.script.join = () => {
          leader.assign(leader.assignment(), leader.assignment());
          const { term, heartbeatMs, leaseTtlMs } = leader;
          const unknown = [{ project: "p", task: "t1", attempt: 1 }];
          return { ok: true, term, idx: 1, unknown, resumed: true, heartbeatMs, leaseTtlMs };
        };
      },
    });
    expect(aborted).toEqual(["t1 revoked"]);
  });

  it("ends with the leader's words when it is refused for good", async () => {
    const { closed } = await join({
      leader: (leader) => {
        leader.script.join = () => ({
          ok: false,
          code: "WAGGLE_INVALID_MESSAGE",
          message: "kinds: too many",
        });
      },
    });
    expect(closed?.error).toMatchObject({ code: "WAGGLE_INVALID_MESSAGE" });
    expect(closed?.error?.message).toContain("kinds: too many");
  });
});

describe("heartbeats", () => {
  it("report each second status, held attempts and the highest number seen", async () => {
    const { leader, clock } = await join();
    await clock.advance(1_000);
    expect(leader.all("heartbeat")).toEqual([
      {
        incarnation: leader.incarnation,
        status: "ready",
        inFlight: 0,
        maxConcurrent: 2,
        seen: 0,
        held: [],
        asksTermStarts: true,
      },
    ]);
    await fixture.assign(2);
    await clock.advance(2_000);
    expect(leader.all("heartbeat")).toHaveLength(3);
    expect(leader.last("heartbeat")).toMatchObject({
      status: "busy",
      inFlight: 2,
      seen: 2,
      held: [
        { project: "p", task: "t1", attempt: 1 },
        { project: "p", task: "t2", attempt: 1 },
      ],
    });
  });

  it("list running and late attempts, with names of 128 letters, in a message within the leader's limit", async () => {
    const capacity = limits.maxConcurrentMax;
    const { leader } = await join({ profile: { maxConcurrent: capacity, prefetch: capacity } });
    const heard = limits.resultMessagesInFlightMax * limits.itemsPerMessageMax;
    const assigned = Array.from({ length: heard + 2 * capacity }, (_, at) =>
      leader.assignment({ task: `t${at}`.padEnd(128, "x"), attempt: limits.maxAttemptsMax }),
    );
    for (let at = 0; at < assigned.length; at += limits.itemsPerMessageMax)
      leader.assign(...assigned.slice(at, at + limits.itemsPerMessageMax));
    await settled();
    leader.script.result = () => "silence"; // has received the results, and reused their capacity
    const keys = fixture.started.slice(0, heard).map(({ key }) => key);
    for (const key of keys)
      fixture.session.send({ type: "ended", ends: [{ key, outcome: "completed", latencyMs: 5 }] });
    for (let n = 0; n < limits.slotLeasesPerAgentMax; n += 1)
      fixture.session.send({ type: "acquire", slotLease: { key: `s${n}`, resources: ["gpu"] } });
    await fixture.clock.advance(limits.heartbeatMs);
    const heartbeat = encode(leader.last("heartbeat"));
    expect(decode(heartbeat, heartbeatSchema)).toMatchObject({ ok: true });
    expect(leader.last("heartbeat").held).toHaveLength(assigned.length);
    expect(heartbeat.length).toBeLessThan(limits.maxPayloadBytesDefault);
  });

  it("follow the period the leader asks for", async () => {
    const { leader, clock } = await join({ leader: (fake) => Object.assign(fake, { heartbeatMs: 250 }) });
    await clock.advance(1_000);
    expect(leader.all("heartbeat")).toHaveLength(4);
  });

  it("go on while answers are missing", async () => {
    const { leader, clock } = await join();
    leader.script.heartbeat = () => "silence";
    await clock.advance(3_000);
    expect(leader.all("heartbeat")).toHaveLength(3);
  });

  it("show a gap until the missing assignment has come", async () => {
    const { leader, clock } = await join({ profile: { maxConcurrent: 4 } });
    const [one, two, three] = [leader.assignment(), leader.assignment(), leader.assignment()];
    leader.assign(one, three);
    await clock.advance(1_000);
    expect(leader.last("heartbeat").seen).toBe(1);
    leader.assign(two);
    await clock.advance(1_000);
    expect(leader.last("heartbeat").seen).toBe(3);
    expect(fixture.started.map(({ task }) => task)).toEqual(["t1", "t3", "t2"]);
  });

  it("report the agent's own success rate and latency", async () => {
    const { leader, clock } = await join();
    await fixture.assign(2);
    await fixture.end("t1", { latencyMs: 40 });
    await fixture.end("t2", { outcome: "failed", error: "no" });
    await clock.advance(1_000);
    const { successRate, latencyMs } = leader.last("heartbeat");
    expect(latencyMs).toBe(40);
    expect(successRate).toBeCloseTo(1 / 2, 3);
  });

  it("are sent at once when the connection is back", async () => {
    const { leader, clock, hub, transport } = await join();
    await clock.advance(1_000);
    hub.cut(transport);
    await clock.advance(300);
    const before = leader.all("heartbeat").length;
    hub.heal(transport);
    await settled();
    expect(leader.all("heartbeat")).toHaveLength(before + 1);
  });
});

describe("results", () => {
  it("carry the token and what the handler returned, and are held until answered", async () => {
    const { leader, clock } = await join();
    leader.script.result = () => "silence";
    await fixture.assign();
    await fixture.end("t1", { result: "5", tokens: 7 });
    expect(leader.all("result")).toEqual([
      {
        incarnation: leader.incarnation,
        results: [
          {
            project: "p",
            task: "t1",
            attempt: 1,
            token: "1.1",
            outcome: "completed",
            result: "5",
            tokens: 7,
          },
        ],
      },
    ]);
    await clock.advance(1_000);
    expect(fixture.heldNames()).toEqual(["t1#1"]);
    expect(leader.last("heartbeat")).toMatchObject({ status: "ready", inFlight: 0 });

    leader.script.result = () => undefined;
    await clock.advance(limits.requestTimeoutMs + limits.agentRetryMsMax);
    expect(fixture.heldNames()).toEqual([]);
  });

  it("are repeated byte for byte until a leader answers", async () => {
    const { leader, clock } = await join();
    await fixture.assign();
    leader.vanish();
    await fixture.end("t1", { result: "5" });
    await clock.advance(4_000);
    leader.script.result = () => (leader.all("result").length < 3 ? "silence" : undefined);
    leader.appear(2);
    await clock.advance(3 * (limits.requestTimeoutMs + limits.agentRetryMsMax));
    expect(leader.raw("result")).toHaveLength(3);
    expect(new Set(leader.raw("result")).size).toBe(1);
  });

  it("are sent again at once when a new leader speaks", async () => {
    const { leader, clock } = await join();
    await fixture.assign();
    leader.script.result = () => (leader.term === 1 ? "silence" : undefined);
    await fixture.end("t1");
    leader.appear(2);
    await clock.advance(1_000); // the next heartbeat's answer shows the term
    expect(leader.raw("result")).toHaveLength(2);
    expect(fixture.clock.monotonicMs()).toBeLessThan(1_000_000 + limits.requestTimeoutMs);
  });

  it("that wait leave in one message, and few messages are under way", async () => {
    const { leader } = await join({ profile: { maxConcurrent: 64 } });
    const tasks = await fixture.assign(50);
    leader.script.result = () => "silence";
    for (const task of tasks) await fixture.end(task);
    expect(leader.all("result").map(({ results }) => results.length)).toEqual([1, 1]);
    leader.script.result = () => undefined;
    fixture.hub.cut(fixture.transport);
    fixture.hub.heal(fixture.transport);
    await settled();
    await fixture.clock.advance(limits.agentRetryMsMax);
    const sizes = leader
      .all("result")
      .slice(2)
      .map(({ results }) => results.length);
    expect(sizes).toEqual([50]);
  });

  it("never exceed the server's message size", async () => {
    const { leader } = await join({ profile: { maxConcurrent: 64 }, maxPayloadBytes: 4_096 });
    const tasks = await fixture.assign(20);
    const ends = fixture.started.map(({ key }) => ({
      key,
      outcome: "completed" as const,
      result: "x".repeat(1_000),
    }));
    leader.script.result = () => undefined;
    fixture.session.send({ type: "ended", ends });
    await settled();
    expect(leader.reports()).toHaveLength(tasks.length);
    expect(Math.max(...leader.raw("result").map((message) => message.length))).toBeLessThanOrEqual(4_096);
    expect(leader.all("result").some(({ results }) => results.length === 3)).toBe(true);
  });

  it("too large for any message fail their attempt and say so", async () => {
    const { leader } = await join({ maxPayloadBytes: 4_096 });
    await fixture.assign();
    await fixture.end("t1", { result: "\u0001".repeat(1_000) }); // six bytes each on the wire
    expect(leader.reports()).toEqual([
      {
        project: "p",
        task: "t1",
        attempt: 1,
        token: "1.1",
        outcome: "failed",
        error: expect.stringContaining("bytes on the wire"),
      },
    ]);
  });

  it.each(["ok", "stale", "gone"])("are done with when answered %s", async (status) => {
    const { leader, clock } = await join();
    leader.script.result = () => ({ term: 1, idx: 1, answers: [{ ok: true, status }] });
    await fixture.assign();
    await fixture.end("t1");
    await clock.advance(20_000);
    expect(leader.raw("result")).toHaveLength(1);
    expect(fixture.heldNames()).toEqual([]);
  });

  it("whose journal went back are said to be in doubt, when a later answer tells of less", async () => {
    const { leader } = await join();
    let idx = 50;
    leader.script.result = () => ({ term: 1, idx, answers: [{ ok: true, status: "ok" }] });
    await fixture.assign(2);
    await fixture.end("t1");
    expect(fixture.lines.filter((line) => line.includes("lost records at its end"))).toEqual([]);
    idx = 40;
    await fixture.end("t2");
    expect(fixture.lines.filter((line) => line.includes("lost records at its end"))).toEqual([
      expect.stringMatching(
        /had reached term 1, batch 50.*the leader has term 1, batch 40.*Reported results may be lost/,
      ),
    ]);
  });

  it("whose batch is not in the log of a later term are in doubt, however far that term has gone", async () => {
    const { leader, clock } = await join();
    const asks = () => leader.last("heartbeat").asksTermStarts;
    let idx = 50;
    leader.script.result = () => ({ term: leader.term, idx, answers: [{ ok: true, status: "ok" }] });
    await fixture.assign(2);
    await fixture.end("t1");
    await clock.advance(2_000);
    expect(asks()).toBeUndefined();
    leader.term = 2;
    leader.termStarts.push({ term: 2, idx: 45, opened: "second" });
    idx = 80;
    await fixture.end("t2");
    await clock.advance(1_000);
    expect(asks()).toBe(true);
    expect(fixture.lines.filter((line) => line.includes("lost records at its end"))).toEqual([
      expect.stringMatching(/had reached term 1, batch 50.*the leader has term 2, batch 45/),
    ]);
    await clock.advance(1_000);
    expect(asks()).toBeUndefined();
  });

  it("refused as not theirs are done with; refused as invalid fail the attempt instead", async () => {
    const { leader, clock } = await join();
    leader.script.result = ({ results }) => ({
      term: 1,
      idx: 1,
      answers: results.map(({ task, outcome }) => {
        if (task === "t1") return { ok: false, code: "WAGGLE_STALE_TOKEN", message: "not yours" };
        if (outcome === "failed") return { ok: true, status: "ok" };
        return {
          ok: false,
          code: "WAGGLE_INVALID_MESSAGE",
          message: "results[0].result: no",
          field: "result",
        };
      }),
    });
    await fixture.assign(2);
    await fixture.end("t1");
    await fixture.end("t2", { result: "?" });
    await clock.advance(2_000);
    expect(leader.reports().filter(({ task }) => task === "t1")).toHaveLength(1);
    expect(
      leader
        .reports()
        .filter(({ task }) => task === "t2")
        .map(({ outcome }) => outcome),
    ).toEqual(["completed", "failed"]);
    expect(fixture.heldNames()).toEqual([]);
  });

  it("refused for want of room are sent again", async () => {
    const { leader, clock } = await join();
    leader.script.result = () =>
      leader.raw("result").length < 3
        ? { ok: false, code: "WAGGLE_BACKPRESSURE", message: "full" }
        : undefined;
    await fixture.assign();
    await fixture.end("t1");
    await clock.advance(2_000);
    expect(leader.raw("result")).toHaveLength(3);
    expect(fixture.heldNames()).toEqual([]);
  });
});

describe("pushes", () => {
  it("are not obeyed when of a lower term, for another incarnation, or not readable", async () => {
    const { leader, started } = await join();
    leader.appear(5);
    await fixture.clock.advance(1_000);
    leader.push({ type: "assign", term: 4, assignments: [leader.assignment()] });
    leader.push({ type: "assign", incarnation: "another", assignments: [leader.assignment()] });
    leader.push({ type: "fenced", term: 4 });
    leader.push({ type: "rejoin", incarnation: "another" });
    leader.push({ type: "no such type" });
    leader.send(Buffer.from("{"));
    leader.send(Buffer.from("[".repeat(10_000)));
    leader.push({ type: "assign", assignments: [{ number: "one" }] });
    await settled();
    expect(started).toEqual([]);
    expect(fixture.closed).toBeUndefined();
    expect(leader.all("join")).toHaveLength(1);
  });

  it("with a repeated assignment start nothing, during the attempt and after the answer", async () => {
    const { leader } = await join();
    const one = leader.assignment();
    leader.assign(one, one);
    leader.assign(one);
    await settled();
    await fixture.end("t1");
    leader.assign(one);
    await settled();
    expect(fixture.started).toHaveLength(1);
  });

  it("that revoke abort the handler; the attempt is held until it ended, then reported revoked", async () => {
    const { leader, clock } = await join();
    await fixture.assign();
    leader.revoke({ project: "p", task: "t1", attempt: 1 });
    await clock.advance(3_000);
    expect(fixture.aborted).toEqual(["t1 revoked"]);
    expect(fixture.heldNames()).toEqual(["t1#1"]);
    expect(leader.reports()).toEqual([]);
    await fixture.end("t1", { result: "too late", tokens: 3 });
    expect(leader.reports()).toEqual([
      { project: "p", task: "t1", attempt: 1, token: "1.1", outcome: "revoked", tokens: 3 },
    ]);
    await clock.advance(1_000);
    expect(fixture.heldNames()).toEqual([]);
  });

  it("that revoke an ended attempt let the result stand", async () => {
    const { leader } = await join();
    leader.script.result = () => "silence";
    await fixture.assign();
    await fixture.end("t1", { result: "5" });
    leader.revoke({ project: "p", task: "t1", attempt: 1 });
    await settled();
    expect(fixture.aborted).toEqual([]);
    expect(leader.reports()).toMatchObject([{ outcome: "completed", result: "5" }]);
  });

  it("that revoke an attempt before its assignment prevent the start", async () => {
    const { leader, clock } = await join();
    const one = leader.assignment();
    leader.revoke(one);
    leader.assign(one);
    await clock.advance(1_000);
    expect(fixture.started).toEqual([]);
    expect(leader.reports()).toEqual([
      { project: "p", task: "t1", attempt: 1, token: "1.1", outcome: "revoked", tokens: 0 },
    ]);
    expect(leader.last("heartbeat").seen).toBe(1);
  });

  it("that revoke a different attempt of the task leave the running attempt alone", async () => {
    const { leader } = await join();
    await fixture.assign();
    leader.revoke({ project: "p", task: "t1", attempt: 2 });
    await settled();
    expect(fixture.aborted).toEqual([]);
  });

  it("that drain are shown, and undone by undrain; what still comes is run", async () => {
    const { leader, clock } = await join();
    leader.push({ type: "drain" });
    await settled();
    expect(fixture.noticesOf("status").at(-1)).toMatchObject({ status: "ready", draining: true });
    await fixture.assign();
    expect(fixture.started).toHaveLength(1);
    await clock.advance(1_000);
    expect(leader.last("heartbeat")).toMatchObject({ status: "busy" });
    expect(leader.last("heartbeat"), "an operator's drain is no wish of the agent").not.toHaveProperty(
      "draining",
    );
    leader.push({ type: "undrain" });
    await settled();
    expect(fixture.noticesOf("status").at(-1)).toMatchObject({ status: "busy", draining: false });
  });
});

describe("leases", () => {
  it("that are not confirmed abort the handler a fifth before they end, counted from the sending", async () => {
    const { leader, clock } = await join();
    await clock.advance(1_000);
    await fixture.assign();
    await clock.advance(1_000); // the last answered heartbeat was sent now
    leader.script.heartbeat = () => "silence";
    await clock.advance(7_900);
    expect(fixture.aborted).toEqual([]);
    await clock.advance(200);
    expect(fixture.aborted).toEqual(["t1 lease"]);
    await clock.advance(5_000);
    expect(fixture.aborted, "once").toEqual(["t1 lease"]);
    await fixture.end("t1", { outcome: "aborted", error: "aborted" });
    expect(leader.reports(), "it had begun").toMatchObject([{ task: "t1", outcome: "revoked" }]);
  });

  it("that are confirmed go on for ever", async () => {
    const { clock } = await join();
    await fixture.assign();
    await clock.advance(60_000);
    expect(fixture.aborted).toEqual([]);
  });

  it("are not renewed by a leader of an old term", async () => {
    const { leader, clock } = await join({ leader: (fake) => Object.assign(fake, { leaseTtlMs: 4_000 }) });
    await fixture.assign();
    await clock.advance(1_000);
    leader.push({ type: "undrain", term: 9 });
    leader.script.heartbeat = () => ({ term: 1, renewed: true });
    await clock.advance(3_300);
    expect(fixture.aborted).toEqual(["t1 lease"]);
  });

  it("of a new attempt count from the last message that was confirmed before it", async () => {
    const { leader, clock } = await join();
    await clock.advance(30_500);
    leader.script.heartbeat = () => "silence";
    await fixture.assign();
    await clock.advance(7_400);
    expect(fixture.aborted).toEqual([]);
    await clock.advance(200);
    expect(fixture.aborted).toEqual(["t1 lease"]);
  });

  it("of ended attempts are not watched", async () => {
    const { leader, clock } = await join();
    leader.script.result = () => "silence";
    await fixture.assign();
    await fixture.end("t1");
    leader.script.heartbeat = () => "silence";
    await clock.advance(30_000);
    expect(fixture.aborted).toEqual([]);
  });

  it("of assignments after a long silence begin with a confirmed heartbeat, sent at once", async () => {
    const { leader, clock } = await join();
    leader.vanish();
    await clock.advance(30_500);
    leader.appear(2);
    const heartbeats = leader.all("heartbeat").length;
    await fixture.assign(2);
    expect(leader.all("heartbeat").slice(heartbeats)).toMatchObject([{ seen: 0, held: [] }]);
    expect(fixture.started.map(({ task }) => task)).toEqual(["t1", "t2"]);
    await clock.advance(10_000);
    expect(fixture.aborted).toEqual([]);

    leader.script.heartbeat = () => "silence";
    await clock.advance(30_000);
    expect(fixture.aborted).toEqual(["t1 lease", "t2 lease"]);
  });

  it("of long delayed assignments do not begin: the agent may be declared lost by now", async () => {
    const { leader, clock } = await join();
    await clock.advance(1_000);
    leader.script.heartbeat = () => "silence";
    await clock.advance(limits.agentLostMs - 1_000);
    await fixture.assign();
    await clock.advance(2_000);
    expect(fixture.started).toEqual([]);
    leader.push({ type: "rejoin" });
    leader.countFromOne();
    leader.script.heartbeat = () => undefined;
    await clock.advance(3_000);
    expect(leader.all("join")).toHaveLength(2);
    expect(fixture.started).toEqual([]);
    expect(leader.last("heartbeat")).toMatchObject({ seen: 0, held: [] });
  });

  it("of deferred assignments wait for a recent answer: one after a pause of the process is not enough", async () => {
    const { leader, clock } = await join();
    leader.script.heartbeat = () => "silence";
    await clock.advance(9_000);
    await fixture.assign();
    const heartbeats = leader.all("heartbeat").length;
    leader.script.heartbeat = () => {
      leader.script.heartbeat = () => undefined;
      clock.stall(9_000); // the process stands still while its answer is on the way
      return undefined;
    };
    await clock.advance(1_000);
    expect(leader.all("heartbeat").length - heartbeats).toBeLessThanOrEqual(3);
    expect(fixture.started.map(({ task }) => task)).toEqual(["t1"]);
  });

  it("of assignments before the join begin as soon as the agent has joined", async () => {
    const { leader, clock } = await join({
      leader: (fake) => Object.assign(fake.script, { join: () => "silence" }),
    });
    await clock.advance(9_000);
    await fixture.assign();
    expect(fixture.started).toEqual([]);
    leader.script.join = () => undefined;
    while (fixture.noticesOf("joined").length === 0) await clock.advance(100);
    expect(leader.all("heartbeat")).toEqual([]);
    expect(fixture.started.map(({ task }) => task)).toEqual(["t1"]);
  });

  it("begin under any pace that a leader sets, and never with a storm of heartbeats", async () => {
    const { leader, clock } = await join({ leader: (fake) => Object.assign(fake, { heartbeatMs: 4_500 }) });
    await fixture.assign();
    await clock.advance(20_000);
    await fixture.assign();
    await clock.advance(20_000);
    expect(fixture.started).toHaveLength(2);
    expect(leader.all("heartbeat").length).toBeLessThan(12);
  });

  it("of what was revoked before one was confirmed do not begin either", async () => {
    const { leader, clock } = await join();
    leader.script.heartbeat = () => "silence";
    await clock.advance(9_000);
    await fixture.assign();
    leader.revoke({ project: "p", task: "t1", attempt: 1 });
    leader.script.heartbeat = () => undefined;
    await clock.advance(3_000);
    expect(fixture.started).toEqual([]);
    expect(leader.reports()).toMatchObject([{ task: "t1", outcome: "revoked" }]);
  });

  it("keep repeated pushes of a leader, within a bound", async () => {
    const { leader, clock } = await join();
    leader.script.heartbeat = () => "silence";
    await clock.advance(9_000);
    const first = leader.assignment();
    for (let times = 0; times < limits.deferredPushesMax; times += 1) leader.assign(first);
    leader.assign(leader.assignment());
    leader.script.heartbeat = () => undefined;
    await clock.advance(3_000);
    expect(fixture.started.map(({ task }) => task)).toEqual(["t1"]);
  });
});

describe("incarnations", () => {
  it("end with rejoin: everything is aborted, and a new incarnation joins without memory", async () => {
    const { leader, clock } = await join();
    leader.script.result = () => "silence";
    await fixture.assign(2);
    await fixture.end("t1", { result: "of the session before" });
    const first = leader.incarnation;
    leader.push({ type: "rejoin" });
    leader.countFromOne();
    await settled();
    expect(fixture.aborted).toEqual(["t2 lapsed"]);
    expect(leader.all("join")).toHaveLength(2);
    expect(leader.last("join")).toMatchObject({ held: [], seen: 0 });
    expect(leader.incarnation).not.toBe(first);

    leader.script.result = () => undefined;
    const reported = leader.reports().length;
    await fixture.end("t2", { result: "also of the session before" });
    await clock.advance(limits.requestTimeoutMs + limits.agentRetryMsMax);
    expect(leader.reports().slice(reported), "nothing of the old session is reported").toEqual([]);
    expect(leader.last("heartbeat")).toMatchObject({ incarnation: leader.incarnation, seen: 0, held: [] });

    const again = leader.assignment({ task: "t9" });
    leader.assign(again);
    await settled();
    await fixture.end("t9", { result: "5" });
    expect(leader.last("result")).toMatchObject({
      incarnation: leader.incarnation,
      results: [{ task: "t9" }],
    });
  });

  it("end for good with a refusal, at once, whatever handlers run", async () => {
    const { leader } = await join();
    await fixture.assign(2);
    const refusal = { ok: false, code: "WAGGLE_FORBIDDEN", message: "kinds: not k", field: "kinds" };
    leader.push({ type: "rejoin", refusal });
    await settled();
    expect(fixture.aborted).toEqual(["t1 stopping", "t2 stopping"]);
    const { ok: _, ...error } = refusal;
    expect(fixture.closed).toEqual({ type: "closed", error });
    expect(leader.all("join")).toHaveLength(1);
  });

  it("leave capacity to the next while old handlers run: prefetched attempts are listed as waiting", async () => {
    const { leader, clock } = await join();
    await fixture.assign(2);
    leader.push({ type: "rejoin" });
    leader.countFromOne();
    await fixture.end("t1");
    leader.assign(leader.assignment({ task: "t8" }), leader.assignment({ task: "t9" }));
    await clock.advance(1_000);
    const waits = { project: "p", task: "t9", attempt: 1, waiting: true };
    expect(leader.last("heartbeat")["held"]).toEqual([{ project: "p", task: "t8", attempt: 1 }, waits]);
    await fixture.end("t2");
    await clock.advance(1_000);
    expect(leader.last("heartbeat")["held"]).toEqual([
      { project: "p", task: "t8", attempt: 1 },
      { project: "p", task: "t9", attempt: 1 },
    ]);
  });

  it("offer free capacity while old handlers run, and more in heartbeats when the handlers end", async () => {
    const { leader, clock } = await join({ profile: { maxConcurrent: 3 } });
    await fixture.assign(2);
    leader.push({ type: "rejoin" });
    await settled();
    expect(leader.last("join")).toMatchObject({ maxConcurrent: 1, held: [], seen: 0 });
    await fixture.end("t1");
    await clock.advance(1_000);
    expect(leader.last("heartbeat")).toMatchObject({ maxConcurrent: 2 });
    await fixture.end("t2");
    await clock.advance(1_000);
    expect(leader.last("heartbeat")).toMatchObject({ maxConcurrent: 3 });
    expect(leader.all("join"), "the session goes on").toHaveLength(2);
  });

  it("begin with free capacity: while old handlers fill it, the agent does not join", async () => {
    const { leader, clock } = await join();
    const first = leader.incarnation;
    await fixture.assign(2);
    leader.push({ type: "rejoin" });
    await clock.advance(20_000);
    expect(leader.all("join")).toHaveLength(1);
    expect(leader.all("heartbeat"), "nor say anything").toEqual([]);
    expect(fixture.lines).toContainEqual(
      expect.stringContaining("waits for a handler of its previous incarnation"),
    );
    await fixture.end("t2", { outcome: "aborted" });
    expect(leader.all("join"), "not before it knows that no other has joined").toHaveLength(1);
    const { incarnation } = leader.last("heartbeat") ?? {};
    leader.push({ type: "rejoin", incarnation });
    await settled();
    expect(leader.last("join")).toMatchObject({ maxConcurrent: 1, held: [] });
    expect(leader.incarnation).not.toBe(first);
    const again = leader.all("join").length;
    await fixture.end("t1", { outcome: "aborted" });
    await clock.advance(1_000);
    expect(leader.all("join")).toHaveLength(again);
    expect(leader.last("heartbeat")).toMatchObject({ maxConcurrent: 2 });
  });

  it("that waited for capacity give way to a process that joined meanwhile", async () => {
    const { leader } = await join({ profile: { maxConcurrent: 1 } });
    await fixture.assign();
    leader.push({ type: "rejoin" });
    await settled();
    await fixture.end("t1", { outcome: "aborted" });
    const { incarnation } = leader.last("heartbeat") ?? {};
    leader.push({ type: "fenced", incarnation });
    await settled();
    expect(fixture.closed).toMatchObject({ error: { code: "WAGGLE_FENCED" } });
    expect(leader.all("join")).toHaveLength(1);
  });

  it("that wait for capacity end at once on a drain, and tell acquirers the reason of the wait", async () => {
    const { leader, clock } = await join({ profile: { maxConcurrent: 1 } });
    await fixture.assign();
    leader.push({ type: "rejoin" });
    await settled();
    fixture.session.send({ type: "acquire", slotLease: { key: "s1", resources: ["gpu"] } });
    await clock.advance(limits.askTimeoutMs);
    expect(fixture.noticesOf("slot-refused")).toMatchObject([
      {
        error: {
          code: "WAGGLE_NO_LEADER",
          message: expect.stringContaining("handler of its previous incarnation"),
        },
      },
    ]);
    fixture.session.send({ type: "drain" });
    await settled();
    expect(fixture.closed).toEqual({ type: "closed" });
  });

  it("end when the leader does not know the agent", async () => {
    const { leader, clock } = await join();
    leader.script.heartbeat = () => ({ ok: false, code: "WAGGLE_UNKNOWN_AGENT", message: "who?" });
    await clock.advance(1_000);
    expect(leader.all("join")).toHaveLength(2);
  });

  it("end for good when the leader answers that a later session fenced them, without its notice", async () => {
    const { leader, clock } = await join();
    leader.script.heartbeat = () => ({ ok: false, code: "WAGGLE_FENCED", message: "a later session began" });
    await clock.advance(1_000);
    expect(fixture.closed?.error).toMatchObject({ code: "WAGGLE_FENCED" });
    await clock.advance(20_000);
    expect(leader.all("join")).toHaveLength(1);
  });

  it("begin anew under a lower term only when all leases of the old one are over", async () => {
    const { leader, clock } = await join();
    leader.appear(5);
    await clock.advance(30_000);
    leader.appear(1); // the journal was deleted and recreated
    await clock.advance(9_000);
    expect(leader.all("join")).toHaveLength(1);
    await clock.advance(3_000);
    expect(leader.all("join")).toHaveLength(2);
    expect(fixture.closed).toBeUndefined();
    await fixture.assign();
    expect(fixture.started).toHaveLength(1);
  });

  it("begin anew, once their leases are over, after an announced term without a leader", async () => {
    const { leader, clock } = await join();
    leader.push({ type: "undrain", term: Number.MAX_SAFE_INTEGER });
    await fixture.assign();
    expect(fixture.started).toEqual([]);
    await clock.advance(limits.leaseTtlMs + 2 * limits.heartbeatMs);
    expect(leader.all("join")).toHaveLength(2);
    await fixture.assign();
    expect(fixture.started).toHaveLength(1);
    expect(fixture.closed).toBeUndefined();
  });

  it("do not end by a late message of an old leader, however long nothing was confirmed", async () => {
    const { leader, clock } = await join();
    leader.appear(5);
    await clock.advance(1_000);
    await fixture.assign();
    leader.script.heartbeat = () => "silence";
    leader.script.result = () => "silence";
    await clock.advance(limits.leaseTtlMs + 2 * limits.heartbeatMs);
    await fixture.end("t1", { result: "5" });
    leader.push({ type: "slots-revoked", term: 4, handles: [] });
    await settled();
    expect(leader.all("join")).toHaveLength(1);
    leader.script.heartbeat = () => undefined;
    leader.script.result = () => undefined;
    const reported = leader.reports().length;
    await clock.advance(limits.requestTimeoutMs + limits.agentRetryMsMax);
    expect(leader.reports().slice(reported)).toMatchObject([{ task: "t1" }]);
  });

  it("begin anew, once their leases are over, under a leader of a lower term that answers no heartbeat", async () => {
    const { leader, clock } = await join();
    leader.appear(5);
    await clock.advance(1_000);
    leader.script.heartbeat = () => "silence";
    leader.push({ type: "rejoin", term: 1 });
    await settled();
    expect(leader.all("join")).toHaveLength(1);
    await clock.advance(limits.leaseTtlMs + 2 * limits.heartbeatMs);
    leader.appear(1);
    leader.push({ type: "rejoin" });
    await clock.advance(1_000);
    expect(leader.all("join")).toHaveLength(2);
  });

  it("end for good when fenced: all attempts are aborted, and a farewell shows two processes", async () => {
    const { leader, clock } = await join();
    await fixture.assign();
    leader.push({ type: "fenced" });
    await settled();
    expect(fixture.aborted).toEqual(["t1 fenced"]);
    expect(fixture.closed?.error).toMatchObject({ code: "WAGGLE_FENCED" });
    const heard = leader.all("heartbeat").length + leader.all("join").length;
    await clock.advance(20_000);
    expect(leader.all("heartbeat").length + leader.all("join").length).toBe(heard);
    expect(leader.all("leave")).toEqual([{ incarnation: leader.all("join")[0]?.incarnation }]);
  });

  it("end with the error of an action of their chart", async () => {
    const fixture = await SessionFixture.joined();
    const [task] = await fixture.assign();
    const push = fixture.lines.push.bind(fixture.lines);
    fixture.lines.push = (line) => {
      if (line.startsWith("joining again")) throw new Error("the log is full");
      return push(line);
    };
    fixture.leader.push({ type: "rejoin" });
    await settled();
    expect(fixture.closed?.error).toEqual({ code: "WAGGLE_INVARIANT", message: "the log is full" });
    expect(fixture.aborted).toEqual([`${task} lapsed`]);
    expect(fixture.clock.pendingTimers).toBe(0);
  });

  it("end with the connection", async () => {
    const { transport } = await join();
    await fixture.assign();
    await transport.close();
    expect(fixture.aborted).toEqual(["t1 stopping"]);
    expect(fixture.closed?.error).toMatchObject({ code: "WAGGLE_UNREACHABLE" });
  });
});

describe("draining of its own accord", () => {
  it("tells the leader at once, finishes, runs what was on its way, and leaves when all is answered", async () => {
    const { leader, clock } = await join();
    await fixture.assign();
    const late = leader.assignment();
    fixture.session.send({ type: "drain" });
    leader.assign(late); // crosses the heartbeat
    await settled();
    expect(leader.last("heartbeat")).toMatchObject({ draining: true, status: "busy" });
    expect(fixture.started.map(({ task }) => task)).toEqual(["t1", "t2"]);
    await fixture.end("t1");
    expect(leader.all("leave")).toEqual([]);
    leader.script.result = () => "silence";
    await fixture.end("t2");
    expect(leader.all("leave"), "a result that is not answered is not done with").toEqual([]);
    leader.script.result = () => undefined;
    await clock.advance(limits.requestTimeoutMs + limits.agentRetryMsMax);
    expect(leader.all("leave")).toEqual([{ incarnation: leader.incarnation }]);
    expect(fixture.closed).toEqual({ type: "closed" });
    expect(fixture.aborted).toEqual([]);
  });

  it("does not leave before a leader acknowledges the drain", async () => {
    const { leader, clock } = await join();
    leader.script.heartbeat = () => "silence";
    fixture.session.send({ type: "drain" });
    await clock.advance(2_000);
    expect(leader.all("leave")).toEqual([]);
    leader.script.heartbeat = () => undefined;
    await clock.advance(1_000);
    expect(leader.all("leave")).toHaveLength(1);
  });

  it("leaves after a while without an acknowledgement, when it owes nothing", async () => {
    const { leader, clock } = await join();
    leader.vanish();
    fixture.session.send({ type: "drain" });
    await clock.advance(limits.agentDrainUnheardMs - 1);
    expect(fixture.closed).toBeUndefined();
    await clock.advance(limits.agentLeaveMs + 1);
    expect(fixture.closed).toEqual({ type: "closed" });
  });

  it("leaves after a while when the connection is lost, too", async () => {
    const { clock } = await join();
    fixture.hub.cut(fixture.transport);
    fixture.session.send({ type: "drain" });
    await clock.advance(limits.agentDrainUnheardMs + limits.agentLeaveMs);
    expect(fixture.closed).toEqual({ type: "closed" });
  });

  it("does not leave while a result is unanswered, and logs the wait", async () => {
    const { leader, clock } = await join();
    await fixture.assign();
    leader.script.result = () => "silence";
    await fixture.end("t1");
    fixture.session.send({ type: "drain" });
    await clock.advance(60_000);
    expect(fixture.closed).toBeUndefined();
    expect(fixture.lines.filter((line) => line.includes("draining"))).toEqual([
      "draining: the agent waits for a leader to accept its results",
    ]);
    leader.script.result = () => undefined;
    await clock.advance(limits.requestTimeoutMs + limits.agentRetryMsMax);
    expect(fixture.closed).toEqual({ type: "closed" });
  });

  it("does not leave while a handler runs", async () => {
    const { clock } = await join();
    await fixture.assign();
    fixture.session.send({ type: "drain" });
    await clock.advance(60_000);
    expect(fixture.closed).toBeUndefined();
    await fixture.end("t1");
    expect(fixture.closed).toEqual({ type: "closed" });
  });

  it("is not undone by an operator", async () => {
    const { leader, clock } = await join();
    await fixture.assign();
    fixture.session.send({ type: "drain" });
    leader.push({ type: "undrain" });
    await clock.advance(1_000);
    expect(leader.last("heartbeat")).toMatchObject({ draining: true });
    expect(fixture.noticesOf("status").at(-1)).toMatchObject({ draining: true });
    await fixture.end("t1");
    expect(fixture.closed).toEqual({ type: "closed" });
  });

  it("before the join ends the agent", async () => {
    const { clock } = await join({ hasLeader: false });
    fixture.session.send({ type: "drain" });
    await clock.advance(limits.agentLeaveMs);
    expect(fixture.closed).toEqual({ type: "closed" });
  });

  it("ends when the leader has reassigned everything", async () => {
    const { leader } = await join();
    await fixture.assign();
    fixture.session.send({ type: "drain" });
    leader.push({ type: "rejoin" });
    await settled();
    expect(leader.all("join")).toHaveLength(1);
    expect(fixture.closed).toEqual({ type: "closed" });
  });
});

describe("stopping", () => {
  it("aborts, reports the handlers' results, reports the rest as aborted, and leaves", async () => {
    const { leader, clock } = await join();
    await fixture.assign(2);
    fixture.session.send({ type: "stop" });
    await settled();
    expect(fixture.aborted).toEqual(["t1 stopping", "t2 stopping"]);
    await fixture.end("t1", { outcome: "aborted", error: "the agent was stopped" });
    expect(leader.all("leave")).toEqual([]);
    await clock.advance(limits.agentStopMs);
    expect(leader.reports()).toMatchObject([
      { task: "t1", outcome: "revoked" },
      { task: "t2", outcome: "revoked" },
    ]);
    expect(leader.all("leave")).toHaveLength(1);
    expect(fixture.closed).toEqual({ type: "closed" });
  });

  it("starts no late assignment and returns it", async () => {
    const { leader } = await join();
    await fixture.assign();
    const late = leader.assignment();
    fixture.session.send({ type: "stop" });
    leader.assign(late);
    await settled();
    expect(fixture.started.map(({ task }) => task)).toEqual(["t1"]);
    expect(leader.reports()).toMatchObject([{ task: "t2", outcome: "infrastructure" }]);
  });

  it("after an unacknowledged drain, still tries to announce that it leaves", async () => {
    const { leader, clock } = await join();
    leader.script.heartbeat = () => "silence";
    fixture.session.send({ type: "drain" });
    await settled();
    fixture.session.send({ type: "stop" });
    await clock.advance(limits.agentLeaveMs);
    expect(leader.all("leave")).toHaveLength(1);
    expect(fixture.closed).toEqual({ type: "closed" });
  });

  it("overtakes a drain", async () => {
    const { leader } = await join();
    await fixture.assign();
    fixture.session.send({ type: "drain" });
    fixture.session.send({ type: "stop" });
    await settled();
    expect(fixture.aborted).toEqual(["t1 stopping"]);
    await fixture.end("t1", { outcome: "aborted", error: "stopped" });
    expect(leader.all("leave")).toHaveLength(1);
  });
});

describe("progress", () => {
  it("is passed on only for running attempts", async () => {
    const { leader } = await join();
    await fixture.assign(2);
    await fixture.end("t2");
    const reports = fixture.started.map(({ key }) => ({ key, fraction: 0.5, message: "half" }));
    fixture.session.send({ type: "progress", reports });
    await settled();
    expect(leader.all("progress")).toEqual([
      {
        incarnation: leader.incarnation,
        project: "p",
        task: "t1",
        attempt: 1,
        fraction: 0.5,
        message: "half",
      },
    ]);
  });
});
