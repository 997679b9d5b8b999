// The session's part in slots, with lost answers and pushes, changes of leader and ending incarnations.

import { describe, expect, it } from "vitest";
import type { AcquireOrder } from "../../src/agent/link.ts";
import { resourceName } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { SessionFixture, settled } from "./session-fixture.ts";

async function acquiring(
  verdict: "granted" | "waiting" = "granted",
  order: Partial<AcquireOrder> = {},
): Promise<SessionFixture> {
  const fixture = await SessionFixture.joined({
    profile: { kinds: [] },
    leader: (leader) => {
      leader.script.acquire = () => ({ term: leader.term, idx: 1, answer: { ok: true, state: verdict } });
    },
  });
  fixture.session.send({ type: "acquire", slotLease: { key: "s1", resources: ["gpu"], ...order } });
  await settled();
  return fixture;
}

const handleOf = (fixture: SessionFixture) => fixture.leader.last("acquire").handle as string;
const listed = (fixture: SessionFixture) => fixture.leader.last("heartbeat").slots;
const sentNotices = (fixture: SessionFixture) =>
  fixture.notices.filter(({ type }) => type.startsWith("slot-")).map(({ type }) => type);

describe("asking", () => {
  it("names the wanted slots, and reports the grant", async () => {
    const fixture = await acquiring("granted", { weight: 2, holder: "h", timeoutMs: 9_000 });
    expect(fixture.leader.last("acquire")).toEqual({
      incarnation: fixture.leader.incarnation,
      handle: expect.any(String),
      resources: ["gpu"],
      weight: 2,
      holder: "h",
      timeoutMs: 9_000,
    });
    expect(fixture.noticesOf("slot-granted")).toEqual([
      { type: "slot-granted", key: "s1", handle: handleOf(fixture) },
    ]);
  });

  it("is repeated under the same handle until it is answered, and listed as waiting meanwhile", async () => {
    const fixture = await SessionFixture.joined();
    let answers = 0;
    fixture.leader.script.acquire = () => {
      answers += 1;
      return answers < 3 ? "silence" : undefined;
    };
    fixture.session.send({ type: "acquire", slotLease: { key: "s1", resources: ["gpu"] } });
    await fixture.clock.advance(limits.requestTimeoutMs);
    expect(listed(fixture)).toEqual({ held: [], waiting: [handleOf(fixture)] });
    await fixture.clock.advance(2 * limits.requestTimeoutMs);
    expect(new Set(fixture.leader.all("acquire").map(({ handle }) => handle)).size).toBe(1);
    expect(sentNotices(fixture)).toEqual(["slot-granted"]);
  });

  it("waits for the agent to have joined", async () => {
    const fixture = new SessionFixture({ hasLeader: false });
    fixture.session.send({ type: "acquire", slotLease: { key: "s1", resources: ["gpu"] } });
    await fixture.clock.advance(3_000);
    expect(fixture.leader.all("acquire")).toEqual([]);
    fixture.leader.appear();
    await fixture.clock.advance(2_000);
    expect(sentNotices(fixture)).toEqual(["slot-granted"]);
  });

  it("that is refused ends with the refusal, and the agent lives on", async () => {
    const fixture = await SessionFixture.joined();
    fixture.leader.script.acquire = () => ({
      term: 1,
      idx: 1,
      answer: { ok: false, code: "WAGGLE_BACKPRESSURE", message: "full", retryAfterMs: 500 },
    });
    fixture.session.send({ type: "acquire", slotLease: { key: "s1", resources: ["gpu"] } });
    await settled();
    expect(fixture.noticesOf("slot-refused")).toEqual([
      {
        type: "slot-refused",
        key: "s1",
        error: { code: "WAGGLE_BACKPRESSURE", message: "full", retryAfterMs: 500 },
      },
    ]);
    await fixture.clock.advance(1_000);
    expect(listed(fixture)).toBeUndefined();
    expect(fixture.closed).toBeUndefined();
  });
});

describe("asking for more than a heartbeat lists", () => {
  it("is refused at once, and costs nothing of what is held", async () => {
    const fixture = await acquiring();
    fixture.leader.script.acquire = () => "silence";
    const acquire = (key: string) =>
      fixture.session.send({ type: "acquire", slotLease: { key, resources: ["gpu"] } });
    for (let n = 2; n <= limits.slotLeasesPerAgentMax; n += 1) acquire(`s${n}`);
    expect(fixture.noticesOf("slot-refused")).toEqual([]);
    acquire("more");
    expect(fixture.noticesOf("slot-refused")).toMatchObject([
      { key: "more", error: { code: "WAGGLE_BACKPRESSURE", retryAfterMs: limits.retryAfterMs } },
    ]);
    await fixture.clock.advance(limits.heartbeatMs);
    expect(listed(fixture)?.held).toHaveLength(1);
    expect(listed(fixture)?.waiting).toHaveLength(limits.slotLeasesPerAgentMax - 1);
    expect(sentNotices(fixture)).toEqual(["slot-granted", "slot-refused"]);

    fixture.session.send({ type: "release", key: "s1" });
    await settled();
    acquire("again");
    expect(fixture.noticesOf("slot-refused")).toHaveLength(1);
  });
});

describe("asking without an answer", () => {
  it("ends after the time of any question, and what may have been taken in is given back", async () => {
    const fixture = await SessionFixture.joined();
    fixture.leader.script.acquire = () => "silence";
    fixture.session.send({ type: "acquire", slotLease: { key: "s1", resources: ["gpu"] } });
    await fixture.clock.advance(limits.askTimeoutMs - 1);
    expect(sentNotices(fixture)).toEqual([]);
    await fixture.clock.advance(1);
    expect(fixture.noticesOf("slot-refused")).toMatchObject([
      {
        key: "s1",
        error: { code: "WAGGLE_NO_LEADER", message: expect.stringMatching(/in time.*waggle up/) },
      },
    ]);
    await settled();
    expect(fixture.leader.last("release").handle).toBe(handleOf(fixture));
    fixture.leader.push({ type: "slots-granted", handles: [handleOf(fixture)] });
    await fixture.clock.advance(limits.heartbeatMs);
    expect(sentNotices(fixture)).toEqual(["slot-refused", "slot-released"]);
    expect(listed(fixture)).toBeUndefined();
  });

  it("ends before the agent has joined, too, and is not asked for when it has", async () => {
    const fixture = new SessionFixture({ hasLeader: false });
    fixture.session.send({ type: "acquire", slotLease: { key: "s1", resources: ["gpu"] } });
    await fixture.clock.advance(limits.askTimeoutMs);
    expect(sentNotices(fixture)).toEqual(["slot-refused", "slot-released"]);
    fixture.leader.appear();
    await fixture.clock.advance(2_000);
    expect(fixture.leader.all("acquire")).toEqual([]);
  });
});

describe("waiting", () => {
  it("goes on however long no leader is there", async () => {
    const fixture = await acquiring("waiting");
    fixture.leader.vanish();
    await fixture.clock.advance(10 * limits.askTimeoutMs);
    expect(sentNotices(fixture)).toEqual([]);
    fixture.leader.appear(2);
    await fixture.clock.advance(2_000);
    fixture.leader.push({ type: "slots-granted", handles: [handleOf(fixture)] });
    await settled();
    expect(sentNotices(fixture)).toEqual(["slot-granted"]);
  });

  it("that is asked for anew goes on without an answer", async () => {
    const fixture = await acquiring("waiting");
    fixture.leader.script.acquire = () => "silence";
    fixture.leader.push({
      type: "slot-waits-ended",
      waits: [{ handle: handleOf(fixture), reason: "unknown" }],
    });
    await fixture.clock.advance(2 * limits.askTimeoutMs);
    expect(sentNotices(fixture)).toEqual([]);
  });

  it("ends with a push, also with a push before the answer to wait", async () => {
    const fixture = await SessionFixture.joined();
    fixture.leader.script.acquire = ({ handle }) => {
      fixture.leader.push({ type: "slots-granted", handles: [handle] });
      return { term: 1, idx: 1, answer: { ok: true, state: "waiting" } };
    };
    fixture.session.send({ type: "acquire", slotLease: { key: "s1", resources: ["gpu"] } });
    await settled();
    expect(sentNotices(fixture)).toEqual(["slot-granted"]);
    await fixture.clock.advance(1_000);
    expect(listed(fixture)).toEqual({ held: [handleOf(fixture)], waiting: [] });
  });

  it("ends with a late grant only after a confirmed heartbeat: the slot may have a new holder", async () => {
    const fixture = await acquiring("waiting");
    fixture.leader.script.heartbeat = () => "silence";
    await fixture.clock.advance(limits.agentLostMs - 1_000);
    fixture.leader.push({ type: "slots-granted", handles: [handleOf(fixture)] });
    await fixture.clock.advance(2_000);
    expect(sentNotices(fixture)).toEqual([]);
    fixture.leader.script.heartbeat = () => undefined;
    await fixture.clock.advance(3_000);
    expect(sentNotices(fixture)).toEqual(["slot-granted"]);
  });

  it("whose answer was read too late, the process having stood still, is asked for again", async () => {
    const fixture = await SessionFixture.joined({ profile: { kinds: [] } });
    fixture.leader.script.acquire = () => {
      fixture.clock.stall(limits.agentLostMs);
      return { term: 1, idx: 1, answer: { ok: true, state: "granted" } };
    };
    fixture.session.send({ type: "acquire", slotLease: { key: "s1", resources: ["gpu"] } });
    await settled();
    expect(sentNotices(fixture)).toEqual([]);
    fixture.leader.script.acquire = () => ({ term: 1, idx: 1, answer: { ok: true, state: "granted" } });
    await fixture.clock.advance(2_000);
    expect(sentNotices(fixture)).toEqual(["slot-granted"]);
    await fixture.clock.advance(20_000);
    expect(sentNotices(fixture)).toEqual(["slot-granted"]);
  });

  it("said twice to be granted is granted once", async () => {
    const fixture = await acquiring("waiting");
    fixture.leader.push({ type: "slots-granted", handles: [handleOf(fixture)] });
    fixture.leader.push({ type: "slots-granted", handles: [handleOf(fixture), "a stranger's"] });
    await settled();
    expect(sentNotices(fixture)).toEqual(["slot-granted"]);
  });

  it("ends when the leader says that the time is up", async () => {
    const fixture = await acquiring("waiting", { timeoutMs: 500 });
    fixture.leader.push({
      type: "slot-waits-ended",
      waits: [{ handle: handleOf(fixture), reason: "timed-out" }],
    });
    await settled();
    expect(fixture.noticesOf("slot-refused")[0]?.error.code).toBe("WAGGLE_ACQUIRE_TIMED_OUT");
  });

  it("ends by the agent's own clock where no leader says so, and is given up then", async () => {
    const fixture = await acquiring("waiting", { timeoutMs: 500 });
    await fixture.clock.advance(500 + limits.acquireGraceMs);
    expect(fixture.noticesOf("slot-refused")[0]?.error.code).toBe("WAGGLE_ACQUIRE_TIMED_OUT");
    expect(fixture.leader.last("release").handle).toBe(handleOf(fixture));
  });

  it.each(["unknown", "lost"])("is asked for anew when the leader calls it %s", async (reason) => {
    const fixture = await acquiring("waiting");
    const before = handleOf(fixture);
    fixture.leader.script.acquire = () => undefined;
    fixture.leader.push({ type: "slot-waits-ended", waits: [{ handle: before, reason }] });
    await settled();
    expect(handleOf(fixture)).not.toBe(before);
    expect(sentNotices(fixture)).toEqual(["slot-granted"]);
  });

  it("goes on in the next incarnation's name", async () => {
    const fixture = await acquiring("waiting");
    const before = fixture.leader.last("acquire");
    fixture.leader.script.acquire = () => undefined;
    fixture.leader.push({ type: "rejoin" });
    await settled();
    const after = fixture.leader.last("acquire");
    expect(after.incarnation).not.toBe(before.incarnation);
    expect(after.handle).not.toBe(before.handle);
    expect(sentNotices(fixture)).toEqual(["slot-granted"]);
  });
});

describe("touching", () => {
  const touch = ({ session }: SessionFixture) => session.send({ type: "touch", key: "s1" });

  it("is repeated until a leader answers, one touch at a time", async () => {
    const fixture = await acquiring();
    fixture.leader.vanish();
    touch(fixture);
    touch(fixture);
    await fixture.clock.advance(limits.agentRetryMs);
    expect(fixture.leader.all("touch")).toEqual([]);
    fixture.leader.appear();
    await fixture.clock.advance(limits.agentRetryMsMax);
    expect(fixture.leader.all("touch")).toEqual([
      { incarnation: fixture.leader.last("join").incarnation, handle: handleOf(fixture) },
    ]);
  });

  it("learns that the lease has ended", async () => {
    const fixture = await acquiring();
    fixture.leader.script.touch = () => ({ ok: true, term: 1, idx: 1, state: "ended", reason: "idle" });
    touch(fixture);
    await settled();
    expect(fixture.noticesOf("slot-lost")).toEqual([{ type: "slot-lost", key: "s1", reason: "idle" }]);
    touch(fixture);
    await settled();
    expect(fixture.leader.all("touch")).toHaveLength(1);
  });

  it("ends with the release", async () => {
    const fixture = await acquiring();
    fixture.leader.script.touch = () => "silence";
    touch(fixture);
    fixture.session.send({ type: "release", key: "s1" });
    await fixture.clock.advance(3 * limits.requestTimeoutMs);
    expect(fixture.leader.all("touch")).toHaveLength(1);
  });
});

describe("usage", () => {
  const used = (handle: string) => ({ handle, usage: { tokens: 7, inputTokens: 7 } });

  it("leaves with the release, and after the slot was lost as well", async () => {
    const fixture = await acquiring();
    const handle = handleOf(fixture);
    fixture.leader.push({ type: "slots-revoked", handles: [handle], reason: "idle" });
    await settled();
    fixture.session.send({ type: "release", key: "s1", report: used(handle) });
    await settled();
    expect(fixture.leader.last("release")).toMatchObject(used(handle));
  });

  it("of a release that no leader answered is reported by the next incarnation", async () => {
    const fixture = await acquiring();
    const handle = handleOf(fixture);
    const { incarnation } = fixture.leader.last("join");
    fixture.leader.script.release = () => "silence";
    fixture.session.send({ type: "release", key: "s1", report: used(handle) });
    await settled();
    fixture.leader.script.release = () => ({ ok: true, term: 1, idx: 1, was: "ended", reason: "agent-gone" });
    fixture.leader.push({ type: "rejoin" });
    await fixture.clock.advance(2 * limits.requestTimeoutMs);
    const last = fixture.leader.last("release");
    expect(last).toMatchObject(used(handle));
    expect(last.incarnation).not.toBe(incarnation);
  });
});

describe("a refusal", () => {
  const refused = { resource: resourceName("gpu"), forMs: 60_000, reason: "429" };
  const ends = { ok: true, term: 1, idx: 1, was: "ended", reason: "agent-gone" };

  it("leaves after the slot was lost, and charges nothing", async () => {
    const fixture = await acquiring();
    const handle = handleOf(fixture);
    fixture.leader.push({ type: "slots-revoked", handles: [handle], reason: "idle" });
    await settled();
    fixture.session.send({ type: "release", key: "s1", report: { handle, refused } });
    await settled();
    expect(fixture.leader.last("release")).toMatchObject({ handle, refused, usage: { tokens: 0 } });
  });

  it("of a release under way goes on when the leader takes the slot back", async () => {
    const fixture = await acquiring();
    const handle = handleOf(fixture);
    fixture.leader.script.release = () => "silence";
    fixture.session.send({ type: "release", key: "s1", report: { handle, refused } });
    await settled();
    fixture.leader.push({ type: "slots-revoked", handles: [handle] });
    fixture.leader.script.release = () => ends;
    await fixture.clock.advance(2 * limits.requestTimeoutMs);
    expect(fixture.leader.all("release").length).toBeGreaterThan(1);
  });

  it("that no leader answered is reported by the next incarnation, for the time that is left", async () => {
    const fixture = await acquiring();
    const handle = handleOf(fixture);
    fixture.leader.script.release = () => "silence";
    fixture.session.send({ type: "release", key: "s1", report: { handle, refused } });
    await settled();
    expect(fixture.leader.last("release")).toMatchObject({ handle, refused });
    await fixture.clock.advance(1_000);
    fixture.leader.script.release = () => ends;
    fixture.leader.push({ type: "rejoin" });
    await fixture.clock.advance(2 * limits.requestTimeoutMs);
    const { refused: left, usage } = fixture.leader.last("release");
    expect(usage).toEqual({ tokens: 0 });
    expect(left).toMatchObject({ resource: "gpu", reason: "429" });
    expect(left?.forMs).toBeLessThanOrEqual(59_000);
    expect(left?.forMs).toBeGreaterThan(40_000);
  });
});

describe("holding", () => {
  it("is listed in heartbeats until the release is answered", async () => {
    const fixture = await acquiring();
    fixture.leader.script.release = () => "silence";
    fixture.session.send({ type: "release", key: "s1" });
    await fixture.clock.advance(1_000);
    expect(listed(fixture)).toEqual({ held: [handleOf(fixture)], waiting: [] });
    expect(sentNotices(fixture)).toEqual(["slot-granted"]);
    fixture.leader.script.release = () => undefined;
    await fixture.clock.advance(2 * limits.requestTimeoutMs);
    expect(sentNotices(fixture)).toEqual(["slot-granted", "slot-released"]);
    await fixture.clock.advance(1_000);
    expect(listed(fixture)).toBeUndefined();
  });

  it("released twice notifies once", async () => {
    const fixture = await acquiring();
    fixture.session.send({ type: "release", key: "s1" });
    fixture.session.send({ type: "release", key: "s1" });
    await settled();
    expect(fixture.leader.all("release")).toHaveLength(1);
  });

  it("is lost when no heartbeat is confirmed for most of a lease", async () => {
    const fixture = await acquiring();
    fixture.leader.script.heartbeat = () => "silence";
    const safeMs = limits.leaseTtlMs * (1 - limits.leaseAbortShare);
    await fixture.clock.advance(safeMs - 100);
    expect(sentNotices(fixture)).toEqual(["slot-granted"]);
    await fixture.clock.advance(200);
    expect(fixture.noticesOf("slot-lost")).toEqual([{ type: "slot-lost", key: "s1", reason: "lease" }]);
  });

  it("lasts as long as heartbeats are confirmed", async () => {
    const fixture = await acquiring();
    await fixture.clock.advance(10 * limits.leaseTtlMs);
    expect(sentNotices(fixture)).toEqual(["slot-granted"]);
  });

  it("is lost when the leader revokes it, and with the incarnation", async () => {
    const fixture = await acquiring();
    fixture.session.send({ type: "acquire", slotLease: { key: "s2", resources: ["gpu"] } });
    await settled();
    fixture.leader.push({ type: "slots-revoked", handles: [handleOf(fixture)] });
    await settled();
    expect(fixture.noticesOf("slot-lost")).toEqual([{ type: "slot-lost", key: "s2", reason: "revoked" }]);
    fixture.leader.push({ type: "rejoin" });
    await settled();
    expect(fixture.noticesOf("slot-lost")[1]).toEqual({ type: "slot-lost", key: "s1", reason: "lapsed" });
    await fixture.clock.advance(1_000);
    expect(listed(fixture)).toBeUndefined();
  });

  it("ends with the agent, as does waiting", async () => {
    const fixture = await acquiring();
    fixture.leader.script.acquire = () => ({ term: 1, idx: 1, answer: { ok: true, state: "waiting" } });
    fixture.session.send({ type: "acquire", slotLease: { key: "s2", resources: ["gpu"] } });
    await settled();
    fixture.session.send({ type: "drain" });
    await fixture.clock.advance(limits.agentLeaveMs);
    expect(fixture.noticesOf("slot-lost")).toEqual([{ type: "slot-lost", key: "s1", reason: "stopping" }]);
    expect(fixture.noticesOf("slot-refused")).toMatchObject([
      { key: "s2", error: { code: "WAGGLE_UNREACHABLE" } },
    ]);
    expect(fixture.notices.at(-1)?.type).toBe("closed");
  });
});

it("the leader decides about a foreign handle", async () => {
  const fixture = await acquiring();
  fixture.leader.script.release = ({ handle }) =>
    handle === "never" ? { ok: false, code: "WAGGLE_UNKNOWN_HANDLE", message: "unknown" } : undefined;
  fixture.session.send({ type: "release-handle", key: "r1", handle: "never" });
  fixture.session.send({ type: "release-handle", key: "r2", handle: "elsewhere" });
  await settled();
  expect(fixture.noticesOf("slot-released")).toEqual([
    { type: "slot-released", key: "r1", error: { code: "WAGGLE_UNKNOWN_HANDLE", message: "unknown" } },
    { type: "slot-released", key: "r2" },
  ]);
});
