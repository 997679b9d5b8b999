// The behaviour of a coordinator as short stories: production coordinators on a shared journal, virtual time. Each part
// of the coordinator's chart is needed by a story (coordinator-mutants.test.ts).

import { expect } from "vitest";
import { JournalDamagedError, UnreachableError } from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import { Rival } from "../support/stored.ts";
import { subjects } from "../support/swarm.ts";
import { CoordinatorFixture } from "./coordinator-fixture.ts";

const silenceMs = 2 * limits.leaderTimeoutMs;
const damaged = new JournalDamagedError("the storage cannot read the record");
const unreachable = new UnreachableError("no connection");

export const coordinatorScenarios = {
  "starts alone, and leads at once": async () => {
    const { fixture, leader } = await CoordinatorFixture.led();
    expect(leader.role).toBe("leading");
    expect(await fixture.submit("t1")).toMatchObject({ term: 1, answers: [{ ok: true }] });
    expect(fixture.clock.monotonicMs()).toBe(0);
  },

  "starts beside a leader, and reads what the leader writes": async () => {
    const { fixture, standby } = await ledAndFollowed();
    expect(standby.role).toBe("standing-by");
    await fixture.submit("t1");
    expect(standby.hasTask("t1")).toBe(true);
  },

  "takes the lead when the leader is silent": async () => {
    const { fixture, leader, standby } = await ledAndFollowed();
    leader.journal.setOffline(true);
    await fixture.clock.advance(silenceMs);
    expect(standby.role).toBe("leading");
  },

  "lets the first of two standbys lead, and follows": async () => {
    const { fixture, leader, standby } = await ledAndFollowed();
    const other = await fixture.start("c3");
    leader.stop();
    await fixture.clock.settle();
    const [won, lost] = standby.role === "leading" ? [standby, other] : [other, standby];
    expect([won.role, lost.role]).toEqual(["leading", "standing-by"]);
    await fixture.submit("t1");
    await fixture.clock.advance(limits.pulseMs);
    expect(lost.hasTask("t1")).toBe(true);
  },

  "halts when it cannot reach the journal at its start": async () => {
    const fixture = new CoordinatorFixture();
    const started = await fixture.start("c1", { isOffline: true });
    await fixture.clock.advance(2 * limits.journalOpenMs);
    expect(started.end).toEqual({ code: unreachable.code });
  },

  "halts when the journal is damaged as it takes the lead": async () => {
    const { fixture, leader, standby } = await ledAndFollowed();
    standby.onRequest = ({ op }) => (op === "seal" ? Promise.reject(damaged) : undefined);
    leader.stop();
    await fixture.clock.settle();
    expect(standby.end).toEqual({ code: damaged.code });
  },

  "halts when its term cannot begin": async () => {
    const { fixture, leader, standby } = await ledAndFollowed();
    const [requests = ""] = subjects.leaderPatterns;
    standby.failOnce("subscribe", requests, unreachable);
    leader.stop();
    await fixture.clock.settle();
    expect(standby.end).toEqual({ code: unreachable.code });
  },

  "halts when the journal continues differently from its log": async () => {
    const { fixture, standby } = await ledAndFollowed();
    const { tail } = fixture.watched.settled();
    await fixture.submit("t1");
    new Rival(fixture.store).takeLead(tail);
    await fixture.clock.advance(limits.pulseMs);
    expect(standby.end).toEqual({ code: damaged.code });
  },

  "leads, and halts when the list of segments is damaged": async () => {
    const { fixture, leader } = await CoordinatorFixture.led();
    leader.onRequest = ({ op }) => (op === "list" ? Promise.reject(damaged) : undefined);
    await fixture.clock.advance(2 * limits.leaderTimeoutMs);
    expect(leader.end).toEqual({ code: damaged.code });
  },

  "is deposed, reads the journal again, and follows": async () => {
    const { fixture, leader, standby } = await ledAndFollowed();
    leader.journal.setOffline(true);
    await fixture.clock.advance(silenceMs);
    leader.journal.setOffline(false);
    await fixture.clock.advance(limits.leaderTimeoutMs);
    expect([leader.role, standby.role]).toEqual(["standing-by", "leading"]);
    await fixture.submit("t1");
    expect(leader.hasTask("t1")).toBe(true);
  },

  "stops while it reads the journal": async () => {
    const { fixture, leader } = await deposed();
    expect([leader.role, leader.end]).toEqual(["standing-by", undefined]);
    leader.stop();
    await fixture.clock.settle();
    expect(leader.end).toEqual({ code: undefined });
  },

  "stops while it follows": async () => {
    const { fixture, standby } = await ledAndFollowed();
    standby.stop();
    await fixture.clock.settle();
    expect(standby.end).toEqual({ code: undefined });
  },

  "stops while it takes the lead": async () => {
    const { fixture, leader, standby } = await ledAndFollowed();
    leader.stop();
    standby.onRequest = ({ op }) => (op === "seal" ? new Promise(() => undefined) : undefined);
    await fixture.clock.settle();
    standby.stop();
    await fixture.clock.settle();
    expect(standby.end).toEqual({ code: undefined });
  },

  "leads, stops, and leaves the lead to a standby at once": async () => {
    const { fixture, leader, standby } = await ledAndFollowed();
    leader.stop();
    await fixture.clock.settle();
    expect(leader.end).toEqual({ code: undefined });
    expect(standby.role).toBe("leading");
  },

  "hands over as an operator asks, and follows": async () => {
    const { fixture, leader, standby } = await ledAndFollowed();
    expect(await fixture.transfer(1)).toMatchObject({ ok: true });
    expect([leader.role, standby.role]).toEqual(["standing-by", "leading"]);
    await fixture.submit("t1");
    await fixture.clock.advance(limits.pulseMs);
    expect(leader.hasTask("t1")).toBe(true);
  },

  "stops within limits.handOverMs of a journal that does not answer": async () => {
    const { fixture, leader } = await CoordinatorFixture.led();
    leader.hold();
    leader.stop();
    await fixture.clock.advance(limits.handOverMs - 1);
    expect(leader.end).toBeUndefined();
    await fixture.clock.advance(1);
    expect(leader.end).toEqual({ code: undefined });
  },

  "stops at once when it is asked a second time": async () => {
    const { fixture, leader } = await CoordinatorFixture.led();
    leader.hold();
    leader.stop();
    leader.stop();
    await fixture.clock.settle();
    expect(leader.end).toEqual({ code: undefined });
  },

  "stops, and is deposed meanwhile": async () => {
    const { fixture, leader } = await CoordinatorFixture.led();
    const { tail } = fixture.watched.settled();
    leader.onRequest = async ({ op }) => {
      if (op !== "append") return;
      leader.onRequest = undefined;
      leader.stop();
      new Rival(fixture.store).takeLead(tail);
    };
    await fixture.submit("t1");
    await fixture.clock.advance(limits.appendRetryMs);
    expect(leader.end).toEqual({ code: undefined });
  },

  "hands over, and is asked to stop meanwhile": async () => {
    const { fixture, leader } = await ledAndFollowed();
    leader.hold();
    await fixture.transfer(1);
    leader.stop();
    leader.release();
    await fixture.clock.settle();
    expect(leader.end).toEqual({ code: undefined });
  },
} as const satisfies Record<string, () => Promise<void>>;

async function ledAndFollowed() {
  const { fixture, leader } = await CoordinatorFixture.led();
  return { fixture, leader, standby: await fixture.start("c2") };
}

/** A leader that a rival deposed. The leader waits for the journal's answer. */
async function deposed() {
  const { fixture, leader } = await CoordinatorFixture.led();
  new Rival(fixture.store).takeLead(fixture.watched.settled().tail);
  leader.onRequest = ({ op }) => (op === "replay" ? new Promise(() => undefined) : undefined);
  await fixture.clock.advance(limits.leaderTimeoutMs);
  return { fixture, leader };
}
