// When a campaigning coordinator waits for a coordinator that announced more of the journal: for recent announcements,
// and not for ever.

import { expect, it } from "vitest";
import { Announcements } from "../../src/coordinator/announcements.ts";
import { limits } from "../../src/limits.ts";

const timeoutMs = limits.leaderTimeoutMs;
const own = { term: 3, idx: 10 };

function announcement(id: string, term: number, idx: number) {
  return { id, term, idx, leading: false };
}

/** Asks each T, while another coordinator announces more each time. @returns whether each was believed */
function asked(announcements: Announcements, times: number, { from = 0, at = own } = {}) {
  return Array.from({ length: times }, (_, n) => {
    const now = (from + n) * timeoutMs;
    announcements.note(announcement(`forger-${from + n}`, 9, 1_000 + n), now);
    return announcements.ahead(at, { now, timeoutMs })?.isBelieved;
  });
}

it("a coordinator with more of the journal is awaited until 2·T after its announcement, the longest log first", () => {
  const announcements = new Announcements();
  for (const each of [announcement("c2", 3, 12), announcement("c3", 3, 14), announcement("c4", 3, 9)])
    announcements.note(each, 0);
  const until = limits.announcementTimeouts * timeoutMs;
  expect(announcements.ahead(own, { now: until, timeoutMs })).toMatchObject({
    announcement: { id: "c3" },
    isBelieved: true,
  });
  expect(announcements.ahead(own, { now: until + 1, timeoutMs })).toBeUndefined();
});

it("an ended coordinator is no standby until heard again, and its position counts like a dead coordinator's", () => {
  const announcements = new Announcements();
  const lately = { now: 100, withinMs: timeoutMs };
  for (const id of ["c2", "c3"]) announcements.note(announcement(id, 3, 12), 0);
  for (const id of ["c2", "c4"]) announcements.note({ ...announcement(id, 3, 12), leaves: true }, 50);
  expect(announcements.standbys(lately)).toEqual(["c3"]);
  expect(announcements.ahead(own, { now: 100, timeoutMs })).toMatchObject({ announcement: { idx: 12 } });
  announcements.note(announcement("c2", 3, 13), 60);
  expect(announcements.standbys(lately)).toEqual(["c3", "c2"]);
});

it("a message of before that comes late takes nothing back, nor makes anything count for longer", () => {
  const announcements = new Announcements();
  announcements.note(announcement("c2", 3, 12), 0);
  announcements.note(announcement("c2", 3, 9), timeoutMs);
  const until = limits.announcementTimeouts * timeoutMs;
  expect(announcements.ahead(own, { now: until, timeoutMs })).toMatchObject({ announcement: { idx: 12 } });
  expect(announcements.ahead(own, { now: until + 1, timeoutMs })).toBeUndefined();
});

it("a position that a coordinator announces again after less counts anew", () => {
  const announcements = new Announcements();
  announcements.note(announcement("c2", 3, 14), 0);
  const later = 3 * timeoutMs; // by when the furthest counts no more
  announcements.note(announcement("c2", 3, 12), later);
  expect(announcements.ahead(own, { now: later, timeoutMs })).toMatchObject({ announcement: { idx: 12 } });
});

it("an announcement that is never confirmed is no longer believed, under any id", () => {
  const times = asked(new Announcements(), limits.announcementWaitsMax + 2);
  expect(times).toEqual([...Array(limits.announcementWaitsMax).fill(true), false, false]);
});

it("is believed anew when the journal went on, or when no coordinator had announced more", () => {
  const announcements = new Announcements();
  expect(asked(announcements, limits.announcementWaitsMax + 1).at(-1)).toBe(false);
  const from = limits.announcementWaitsMax + 1;
  expect(asked(announcements, 1, { from, at: { term: 3, idx: 11 } })).toEqual([true]);
  expect(announcements.ahead(own, { now: 100 * timeoutMs, timeoutMs })).toBeUndefined();
  expect(asked(announcements, 1, { from: 100 })).toEqual([true]);
});

it("is counted no more than once in T, however often it is asked", () => {
  const announcements = new Announcements();
  announcements.note(announcement("c2", 9, 9), 0);
  for (let n = 0; n < 100; n += 1)
    expect(announcements.ahead(own, { now: n, timeoutMs })?.isBelieved).toBe(true);
});

it("the leader is the coordinator that announced the highest term lately", () => {
  const announcements = new Announcements();
  for (const [id, term] of [
    ["c2", 3],
    ["c3", 4],
    ["c4", 2],
  ] as const)
    announcements.note({ ...announcement(id, term, 12), leading: true }, 0);
  announcements.note(announcement("c5", 5, 12), 0);
  expect(announcements.leader(0, { now: timeoutMs, withinMs: timeoutMs })).toMatchObject({
    id: "c3",
    term: 4,
  });
  expect(announcements.leader(0, { now: timeoutMs + 1, withinMs: timeoutMs })).toBeUndefined();
});
