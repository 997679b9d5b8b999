// The agent's side of the wire as messages: the pushes and answers of a scripted leader, and the messages that an agent
// must send. Every client that runs agents passes it, in whatever language.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ResultReport } from "../../src/protocol/schemas.ts";
import { FakeLeader } from "../agent/fake-leader.ts";
import { startTestBroker, type TestBroker } from "../support/development-broker.ts";

/** An agent `a1` of kind `count`, two attempts at a time. Its handler obeys the payload. Any other payload is the
 *  result.
 *
 *  - `wait` runs until it is aborted. `stream` yields `a` and `b`.
 *  - `tokens` reports 7. `progress` reports 0.5 and `half`.
 *  - `bytes` returns the byte 255. `json` returns {"n":1}.
 *  - `bad` throws invalid input, `boom` an error, and `quota` an infrastructure error with 1 s to wait.
 *  - `slot` holds a slot of `gpu`, and reports 9 tokens. */
export interface AgentUnderTest {
  /** Drains the agent; resolves when it has left. */
  drain(): Promise<void>;
  /** The code of the error that ended the agent. */
  ended(): Promise<string>;
  /** Ends the program, whatever it does. */
  end(): Promise<void>;
}

export function agentConformance(name: string, start: (url: string) => Promise<AgentUnderTest>): void {
  describe(`the wire of an agent: ${name}`, () => {
    let broker: TestBroker;
    let leader: FakeLeader;
    let agent: AgentUnderTest;
    const wait = { timeout: 20_000, interval: 20 };

    beforeAll(async () => {
      broker = await startTestBroker();
    });
    afterAll(async () => {
      await broker?.close();
    });
    beforeEach(async () => {
      leader = new FakeLeader({ connect: () => broker.transport });
      leader.heartbeatMs = 100;
      await broker.transport.flush();
      agent = await start(broker.url);
    });
    afterEach(async () => {
      await agent?.end();
      leader.vanish();
    });

    const reportOf = async (task: string): Promise<ResultReport> => {
      await expect.poll(() => leader.reports().some((each) => each.task === task), wait).toBe(true);
      return leader.reports().find((each) => each.task === task) as ResultReport;
    };

    it("joins with kinds and capacity, in a session of its own", () => {
      expect(leader.all("join")).toHaveLength(1);
      const { incarnation, ...join } = leader.last("join");
      expect(incarnation).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      expect(join).toMatchObject({ kinds: ["count"], maxConcurrent: 2, held: [], seen: 0 });
    });

    it("runs an assignment once, however often it arrives, and reports under its token", async () => {
      const assignment = leader.assignment({ payload: "x" });
      leader.assign(assignment);
      leader.assign(assignment, leader.assignment({ payload: "y" }));
      await reportOf("t2");
      const { incarnation } = leader;
      expect(leader.all("result").every((each) => each.incarnation === incarnation)).toBe(true);
      expect(leader.reports().filter(({ task }) => task === "t1")).toMatchObject([
        { project: "p", task: "t1", attempt: 1, token: "1.1", outcome: "completed", result: "x" },
      ]);
    });

    it.each<[string, object]>([
      ["json", { outcome: "completed", result: '{"n":1}' }],
      ["bytes", { outcome: "completed", result: "/w==", encoding: "base64" }],
      ["tokens", { outcome: "completed", tokens: 7 }],
      ["bad", { outcome: "invalid", error: "bad" }],
      ["boom", { outcome: "failed", error: "boom" }],
      ["quota", { outcome: "infrastructure", error: "quota", hold: { forMs: 1_000 } }],
    ])("reports the outcome of %s", async (payload, report) => {
      leader.assign(leader.assignment({ payload }));
      const { result, ...rest } = await reportOf("t1");
      const compact = result === undefined ? {} : { result: result.replaceAll(" ", "") };
      expect({ ...rest, ...compact }).toMatchObject(report);
    });

    it("repeats a result unchanged until the answer", async () => {
      leader.script.result = () => (leader.raw("result").length === 1 ? "silence" : undefined);
      leader.assign(leader.assignment({ payload: "x" }));
      await expect.poll(() => leader.raw("result").length, wait).toBe(2);
      const [first, second] = leader.raw("result");
      expect(second).toBe(first);
    });

    it("lists held attempts in heartbeats, and stops a revoked attempt", async () => {
      leader.assign(leader.assignment({ payload: "wait" }));
      const held = { project: "p", task: "t1", attempt: 1 };
      await expect.poll(() => leader.last("heartbeat").held, wait).toEqual([held]);
      expect(leader.last("heartbeat")).toMatchObject({ inFlight: 1, seen: 1, status: "busy" });
      leader.revoke(held);
      expect(await reportOf("t1")).toMatchObject({ outcome: "revoked" });
      await expect.poll(() => leader.last("heartbeat"), wait).toMatchObject({ held: [], status: "ready" });
    });

    it("does not run an assignment that was revoked on the way", async () => {
      leader.assign(leader.assignment({ payload: "x", revoked: true }));
      expect(await reportOf("t1")).toMatchObject({ outcome: "revoked", token: "1.1" });
    });

    it("ignores pushes of an earlier term and of another session, and what a later version adds", async () => {
      leader.term = 5;
      leader.assign(leader.assignment({ payload: "x" }));
      await reportOf("t1");
      const late = leader.assignment({ payload: "late" });
      leader.push({ type: "assign", term: 4, assignments: [late] });
      leader.push({ type: "assign", incarnation: "another", assignments: [late] });
      leader.push({ type: "of-a-later-version", attempts: [] });
      leader.push({
        type: "assign",
        assignments: [{ ...leader.assignment({ payload: "y" }), later: true }],
        more: 1,
      });
      expect(await reportOf("t3")).toMatchObject({ result: "y" });
      expect(leader.reports().map(({ task }) => task)).not.toContain("t2");
    });

    it("sends chunks of a streamed task alone, numbered from 0", async () => {
      leader.assign(leader.assignment({ payload: "stream", stream: true }));
      expect(await reportOf("t1")).toMatchObject({ outcome: "completed", result: "ab" });
      const sent = leader
        .all("chunk")
        .flatMap(({ task, attempt, first, chunks }) =>
          chunks.map(({ text }, nth) => [task, attempt, first + nth, text]),
        );
      expect(sent).toEqual([
        ["t1", 1, 0, "a"],
        ["t1", 1, 1, "b"],
      ]);
      leader.assign(leader.assignment({ payload: "stream" }));
      expect(await reportOf("t2")).toMatchObject({ result: "ab" });
      expect(leader.all("chunk").filter(({ task }) => task === "t2")).toEqual([]);
    });

    it("reports progress", async () => {
      leader.assign(leader.assignment({ payload: "progress" }));
      await reportOf("t1");
      const progress = { project: "p", task: "t1", attempt: 1, fraction: 0.5, message: "half" };
      await expect.poll(() => leader.all("progress"), wait).toMatchObject([progress]);
    });

    it("acquires, lists and releases slots, with the tokens of the attempt", async () => {
      leader.assign(leader.assignment({ payload: "slot" }));
      await expect.poll(() => leader.all("release").length, wait).toBe(1);
      const { handle, ...acquire } = leader.last("acquire");
      expect(acquire).toMatchObject({ resources: ["gpu"], holder: `${leader.incarnation}.1` });
      expect(acquire).not.toHaveProperty("tokens");
      expect(leader.last("release").handle).toBe(handle);
      expect(await reportOf("t1")).toMatchObject({ outcome: "completed", tokens: 9 });
    });

    it("gives up the wait for a slot when the attempt is revoked", async () => {
      leader.script.acquire = () => ({ term: 1, idx: 1, answer: { ok: true, state: "waiting" } });
      leader.assign(leader.assignment({ payload: "slot" }));
      await expect.poll(() => leader.last("heartbeat").slots?.waiting.length, wait).toBe(1);
      leader.revoke({ project: "p", task: "t1", attempt: 1 });
      expect(await reportOf("t1")).toMatchObject({ outcome: "revoked" });
      expect(leader.last("release").handle).toBe(leader.last("acquire").handle);
    });

    it("begins a new session at the leader's request, and aborts running attempts", async () => {
      leader.assign(leader.assignment({ payload: "wait" }));
      await expect.poll(() => leader.last("heartbeat").held.length, wait).toBe(1);
      const before = leader.incarnation;
      leader.push({ type: "rejoin" });
      await expect.poll(() => leader.all("join").length, wait).toBe(2);
      expect(leader.incarnation).not.toBe(before);
      expect(leader.last("join")).toMatchObject({ held: [], seen: 0 });
      leader.countFromOne();
      leader.assign(leader.assignment({ task: "t9", payload: "x" }));
      expect(await reportOf("t9")).toMatchObject({ outcome: "completed" });
      expect(leader.reports().map(({ task }) => task)).toEqual(["t9"]);
    });

    it("names the newest session at a join: its own, or the session that a refusal names", async () => {
      const own = leader.incarnation;
      leader.script.join = ({ after }) => {
        if (after === "x7") return undefined;
        const refusal = { ok: false, code: "WAGGLE_UNKNOWN_AGENT", field: "after", newest: "x7" };
        return { ...refusal, message: "the newest session of agent a1 is x7" };
      };
      leader.push({ type: "rejoin" });
      await expect.poll(() => leader.all("join").length, wait).toBe(3);
      const [, refused, accepted] = leader.all("join");
      expect(refused?.after).toBe(own);
      expect(accepted?.after).toBe("x7");
      expect(new Set([own, refused?.incarnation, accepted?.incarnation]).size).toBe(3);
      leader.countFromOne();
      leader.assign(leader.assignment({ task: "t9", payload: "x" }));
      expect(await reportOf("t9")).toMatchObject({ outcome: "completed" });
    });

    it("ends when a second process has the id", async () => {
      leader.push({ type: "fenced" });
      expect(await agent.ended()).toBe("WAGGLE_FENCED");
    });

    it("without permission to join again, ends with the refusal, aborts running attempts, and reports nothing", async () => {
      leader.assign(leader.assignment({ payload: "wait" }));
      await expect.poll(() => leader.last("heartbeat").held.length, wait).toBe(1);
      const refusal = {
        ok: false,
        code: "WAGGLE_FORBIDDEN",
        message: "kinds: beyond the grant",
        field: "kinds",
      };
      leader.push({ type: "rejoin", refusal });
      expect(await agent.ended()).toBe("WAGGLE_FORBIDDEN");
      expect(leader.all("join")).toHaveLength(1);
      expect(leader.reports()).toEqual([]);
    });

    it("drains: announces the drain, finishes held attempts, and leaves", async () => {
      leader.assign(leader.assignment({ payload: "wait" }));
      await expect.poll(() => leader.last("heartbeat").held.length, wait).toBe(1);
      const left = agent.drain();
      await expect.poll(() => leader.last("heartbeat").draining, wait).toBe(true);
      expect(leader.all("leave")).toEqual([]);
      leader.revoke({ project: "p", task: "t1", attempt: 1 });
      await left;
      expect(leader.all("leave")).toMatchObject([{ incarnation: leader.incarnation }]);
    });
  });
}
