// The behaviour of an agent's session as short stories: a real session on the memory transport, a scripted leader,
// virtual time. Each part of the agent's chart is needed by a story (agent-mutants.test.ts).

import { expect } from "vitest";
import { limits } from "../../src/limits.ts";
import { SessionFixture, settled } from "../agent/session-fixture.ts";

const slotLease = { key: "s1", resources: ["gpt"] };

export const agentScenarios = {
  "joins, and reports each edge of its load": async () => {
    const fixture = await SessionFixture.joined();
    const { clock, leader } = fixture;
    const reported = async () => {
      await clock.advance(limits.heartbeatMs);
      const { status, saturated = false } = leader.last("heartbeat");
      return saturated ? `${status}, saturated` : status;
    };
    expect(await reported()).toBe("ready");
    const [first = ""] = await fixture.assign();
    expect(await reported()).toBe("busy");
    const [second = ""] = await fixture.assign();
    expect(await reported()).toBe("busy, saturated");
    await fixture.end(first);
    expect(await reported()).toBe("busy");
    await fixture.end(second);
    expect(await reported()).toBe("ready");
  },

  "asks for slots and obeys what waited, once it has joined": async () => {
    const fixture = new SessionFixture({ hasLeader: false });
    fixture.session.send({ type: "acquire", slotLease });
    fixture.leader.appear();
    await fixture.clock.advance(limits.agentRetryMsMax);
    expect(fixture.noticesOf("slot-granted")).toHaveLength(1);
  },

  "aborts what runs before its lease could expire": async () => {
    const fixture = await SessionFixture.joined();
    const [task] = await fixture.assign();
    fixture.leader.vanish();
    await fixture.clock.advance(limits.leaseTtlMs);
    expect(fixture.aborted).toEqual([`${task} lease`]);
  },

  "fails when its connection is closed": async () => {
    const fixture = await SessionFixture.joined();
    await fixture.transport.close();
    expect(fixture.closed?.error?.code).toBe("WAGGLE_UNREACHABLE");
  },

  "is fenced, says farewell, and aborts what runs": async () => {
    const fixture = await SessionFixture.joined();
    const [task] = await fixture.assign();
    fixture.leader.push({ type: "fenced" });
    await settled();
    expect(fixture.closed?.error?.code).toBe("WAGGLE_FENCED");
    expect(fixture.aborted).toEqual([`${task} fenced`]);
    expect(fixture.leader.all("leave")).toHaveLength(1);
  },

  "lapses with a free slot, and joins as a new incarnation at once": async () => {
    const fixture = await SessionFixture.joined();
    const before = fixture.leader.incarnation;
    const [task] = await fixture.assign();
    fixture.leader.push({ type: "rejoin" });
    await settled();
    expect(fixture.aborted).toEqual([`${task} lapsed`]);
    expect(fixture.leader.incarnation).not.toBe(before);
  },

  "lapses with no free slot, and asks by a heartbeat before it joins": async () => {
    const fixture = await SessionFixture.joined({ profile: { maxConcurrent: 1 } });
    const { leader } = fixture;
    const [task = ""] = await fixture.assign();
    leader.push({ type: "rejoin" });
    await settled();
    expect(leader.all("join")).toHaveLength(1);
    expect(fixture.lines.at(-1)).toMatch(/waits for a handler/);

    const heartbeats = leader.all("heartbeat").length;
    leader.script.heartbeat = () => ({ ok: false, code: "WAGGLE_UNKNOWN_AGENT", message: "unknown" });
    await fixture.end(task);
    expect(leader.all("heartbeat").length).toBe(heartbeats + 1);
    expect(leader.last("heartbeat").incarnation).not.toBe(leader.all("join")[0]?.incarnation);
    expect(leader.all("join")).toHaveLength(2);
  },

  "is drained by an operator, and serves again": async () => {
    const fixture = await SessionFixture.joined();
    fixture.leader.push({ type: "drain" });
    await settled();
    expect(isDraining(fixture)).toBe(true);
    fixture.leader.push({ type: "undrain" });
    await settled();
    expect(isDraining(fixture)).toBe(false);
  },

  "drains before it has joined: says farewell and ends": async () => {
    const fixture = await unjoined();
    fixture.session.send({ type: "drain" });
    await settled();
    expect(fixture.closed).toEqual({ type: "closed" });
    expect(fixture.leader.all("leave")).toHaveLength(1);
  },

  "stops before it has joined: says farewell and ends": async () => {
    const fixture = await unjoined();
    fixture.session.send({ type: "stop" });
    await settled();
    expect(fixture.closed).toEqual({ type: "closed" });
    expect(fixture.leader.all("leave")).toHaveLength(1);
  },

  "drains: tells at once, finishes, leaves": async () => {
    const fixture = await SessionFixture.joined();
    const { leader, clock } = fixture;
    const [task = ""] = await fixture.assign();
    fixture.session.send({ type: "drain" });
    await settled();
    expect(isDraining(fixture)).toBe(true);
    expect(leader.last("heartbeat").draining).toBe(true);
    await clock.advance(limits.agentDrainLookMs);
    expect(fixture.lines.at(-1)).toBe("draining: the agent waits for handlers");
    await fixture.end(task);
    expect(leader.all("leave")).toHaveLength(1);
    expect(fixture.closed).toEqual({ type: "closed" });
  },

  "drains with no leader: leaves unheard, and says so": async () => {
    const fixture = await SessionFixture.joined();
    fixture.leader.vanish();
    fixture.session.send({ type: "drain" });
    await fixture.clock.advance(limits.agentDrainUnheardMs);
    expect(fixture.closed).toBeUndefined();
    expect(isDraining(fixture)).toBe(true);
    await fixture.clock.advance(limits.agentLeaveMs);
    expect(fixture.lines.at(-1)).toMatch(/no leader acknowledged the agent's departure/);
    expect(fixture.closed).toEqual({ type: "closed" });
  },

  "drains, lapses, and ends": async () => {
    const fixture = await SessionFixture.joined();
    await fixture.assign();
    fixture.session.send({ type: "drain" });
    await settled();
    fixture.leader.push({ type: "rejoin" });
    await settled();
    expect(fixture.closed).toEqual({ type: "closed" });
    expect(fixture.leader.all("join")).toHaveLength(1);
  },

  "drains, and is stopped": async () => {
    const fixture = await SessionFixture.joined();
    const [task] = await fixture.assign();
    fixture.session.send({ type: "drain" });
    await settled();
    fixture.session.send({ type: "stop" });
    await settled();
    expect(fixture.aborted).toEqual([`${task} stopping`]);
  },

  "stops: aborts, and leaves when its handlers have ended": async () => {
    const fixture = await SessionFixture.joined();
    const [task = ""] = await fixture.assign();
    fixture.session.send({ type: "stop" });
    await settled();
    expect(fixture.aborted).toEqual([`${task} stopping`]);
    expect(isDraining(fixture)).toBe(true);
    expect(fixture.leader.all("leave")).toEqual([]);
    await fixture.end(task, { outcome: "aborted" });
    expect(fixture.leader.all("leave")).toHaveLength(1);
    expect(fixture.closed).toEqual({ type: "closed" });
  },

  "stops: says so in its heartbeats, and gives back what still comes": async () => {
    const fixture = await SessionFixture.joined();
    await fixture.assign();
    fixture.session.send({ type: "stop" });
    await fixture.clock.advance(limits.heartbeatMs);
    expect(fixture.leader.last("heartbeat").draining).toBe(true);
    await fixture.assign();
    expect(fixture.started).toHaveLength(1);
    expect(fixture.leader.reports()).toMatchObject([{ outcome: "infrastructure" }]);
  },

  "stops, lapses, and ends": async () => {
    const fixture = await SessionFixture.joined();
    await fixture.assign();
    fixture.session.send({ type: "stop" });
    fixture.leader.push({ type: "rejoin" });
    await settled();
    expect(fixture.closed).toEqual({ type: "closed" });
    expect(fixture.leader.all("join")).toHaveLength(1);
  },

  "stops, and reports for handlers that do not end": async () => {
    const fixture = await SessionFixture.joined();
    await fixture.assign();
    fixture.session.send({ type: "stop" });
    await fixture.clock.advance(limits.agentStopMs);
    expect(fixture.leader.reports()).toMatchObject([{ outcome: "revoked" }]);
    expect(fixture.closed).toEqual({ type: "closed" });
  },

  "stops, and leaves though its reports are not answered": async () => {
    const fixture = await SessionFixture.joined();
    fixture.leader.script.result = () => "silence";
    await fixture.assign();
    fixture.session.send({ type: "stop" });
    await fixture.clock.advance(limits.agentStopMs + limits.agentLeaveMs);
    expect(fixture.leader.all("leave")).toHaveLength(1);
    expect(fixture.closed).toEqual({ type: "closed" });
  },
} as const satisfies Record<string, () => Promise<void>>;

function isDraining(fixture: SessionFixture): boolean | undefined {
  return fixture.noticesOf("status").at(-1)?.draining;
}

/** A session without answers from a leader, both for the join and for the departure. */
async function unjoined(): Promise<SessionFixture> {
  const leader: NonNullable<ConstructorParameters<typeof SessionFixture>[0]>["leader"] = ({ script }) => {
    script.join = () => "silence";
    script.leave = () => "silence";
  };
  return await SessionFixture.joined({ leader });
}
