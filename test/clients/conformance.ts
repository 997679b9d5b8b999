// What every client must do, in whatever language. Two suites: the agent's side of the wire as messages, against a
// scripted leader; and submissions that get no answer, on a real nats-server with permissions.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ResultReport } from "../../src/protocol/schemas.ts";
import { connectNats, type NatsTransport } from "../../src/transport/nats.ts";
import { FakeLeader } from "../agent/fake-leader.ts";
import { startTestBroker, type TestBroker } from "../support/development-broker.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";

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

export interface SubmissionUnderTest {
  readonly url: string;
  readonly swarm: string;
  readonly project: string;
  readonly inboxPrefix: string | undefined;
  /** Maximum time of the submission. */
  readonly timeoutMs: number;
}

/** The error of a submission. The id of the task was chosen by the client. */
export interface FailedSubmission {
  readonly code: string;
  readonly message: string;
  /** Time from the call to the error. */
  readonly ms: number;
}

/** @param client.submit connects, waits until the connection is idle, submits a task, and closes the connection */
export function submissionConformance(
  name: string,
  client: {
    readonly submit: (submission: SubmissionUnderTest) => Promise<FailedSubmission>;
  },
): void {
  for (const { path, version } of natsServersFor("submissions without an answer")) {
    describe(`a submission without an answer: ${name}, nats-server ${version}`, () => {
      let server: RunningNatsServer;
      let witness: NatsTransport;
      /** Ids of the tasks that were published, with repetitions. */
      let published: string[];

      beforeAll(async () => {
        server = await startNatsServer({
          binary: path,
          extraConfig: `authorization { users: [
            { user: lead, password: x }
            { user: ann, password: x, permissions: {
              publish: ["waggle.v1.*.project.acme.>"], subscribe: ["_INBOX_ann.>"] } }
          ] }`,
        });
        const credentials = { kind: "password", user: "lead", password: "x" } as const;
        witness = await connectNats({ urls: [server.url], credentials, name: "witness" });
        witness.subscribe("waggle.v1.test.>", ({ data }) => {
          const { tasks } = JSON.parse(Buffer.from(data).toString()) as { tasks: { id: string }[] };
          published.push(...tasks.map(({ id }) => id));
        });
        await witness.flush();
      });
      beforeEach(() => {
        published = [];
      });
      afterAll(async () => {
        await witness?.close();
        await server?.stop();
      });

      const submit = async (given: Partial<SubmissionUnderTest>): Promise<FailedSubmission> => {
        const url = server.url.replace("//", "//ann:x@");
        const permitted = {
          url,
          swarm: "test",
          project: "acme",
          inboxPrefix: "_INBOX_ann",
          timeoutMs: 20_000,
        };
        const failed = await client.submit({ ...permitted, ...given });
        await witness.flush();
        return failed;
      };

      it("with an inbox that is not permitted ends within a second, with the inbox and the remedy", async () => {
        const { code, message, ms } = await submit({ inboxPrefix: undefined });
        expect(code).toBe("WAGGLE_FORBIDDEN");
        expect(message).toMatch(/^the server does not permit this user to subscribe to _INBOX\.\w+/);
        expect(message).toContain("Set an inbox prefix that is permitted");
        expect(message).toContain("NATS_INBOX_PREFIX");
        expect(ms).toBeLessThan(1_000);
        expect(message).toContain("Nothing was done");
        expect(published).toEqual([]);
      });

      it("to a subject that is not permitted ends within a second, with the subject: nothing was done", async () => {
        const { code, message, ms } = await submit({ project: "blue" });
        expect(code).toBe("WAGGLE_FORBIDDEN");
        const sentence =
          "the server does not permit this user to publish to waggle.v1.test.project.blue.submit";
        expect(message).toContain(`${sentence}. Nothing was done`);
        expect(message).toContain("Ask the operator of the server for the permission");
        expect(ms).toBeLessThan(1_000);
        expect(published).toEqual([]);
      });

      it("that a receiver never answers is unknown, and the error names the task", async () => {
        const { code, message } = await submit({ timeoutMs: 500 });
        expect(code).toBe("WAGGLE_OUTCOME_UNKNOWN");
        expect(published).not.toEqual([]);
        expect(message).toContain(published[0]);
        expect(message).toContain("nothing is done twice");
      });

      it("without a receiver ends without a leader: nothing was done", async () => {
        const { code, message } = await submit({ swarm: "idle", timeoutMs: 500 });
        expect(code).toBe("WAGGLE_NO_LEADER");
        expect(message).toContain("Nothing was done");
      });
    });
  }
}
