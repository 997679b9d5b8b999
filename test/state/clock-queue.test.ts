// The order of turns at one level of a track: the queue's three answers against a list, sorted for each question.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Instant, instant } from "../../src/ids.ts";
import { type Account, newAccount } from "../../src/state/account.ts";
import { ClockQueue, type Member } from "../../src/state/clock-queue.ts";

class Participant implements Member {
  readonly account: Account;
  sinceOrder: number;
  sinceTick = 0;
  sinceTurn = 0;
  number = -1;

  constructor(account: Account, sinceOrder: number) {
    this.account = account;
    this.sinceOrder = sinceOrder;
  }
}

/** Two tracks, some accounts that stand in both, and random changes in the order of a journal. */
class Level {
  readonly accounts = Array.from({ length: 6 }, newAccount);
  readonly tracks = [0, 1].map(() => ({
    queue: new ClockQueue<Participant>({ isServiceOrdered: true }),
    memberOf: new Map<Account, Participant>(),
  }));
  virtualTime = 0;
  #orders = 0;

  enter(at: number, of: number): void {
    const { track, account } = this.#pick(at, of);
    if (track.memberOf.has(account)) return;
    this.#orders += 1;
    if (this.tracks.every(({ memberOf }) => !memberOf.has(account))) account.arrivedOrder = this.#orders;
    const member = new Participant(account, this.#orders);
    track.memberOf.set(account, member);
    track.queue.enter(member);
  }

  leave(at: number, of: number): void {
    const { track, account } = this.#pick(at, of);
    const member = track.memberOf.get(account);
    if (member === undefined) return;
    track.queue.leave(member);
    track.memberOf.delete(account);
    expect(member.number).toBe(-1);
  }

  grant(at: number, of: number, cost: number, isByRule: boolean): void {
    const { track, account } = this.#pick(at, of);
    const member = track.memberOf.get(account);
    if (member === undefined) return;
    this.#orders += 1;
    const start = Math.max(account.clock, this.virtualTime);
    account.clock = start + cost;
    account.servedOrder = this.#orders;
    if (isByRule) this.virtualTime = start;
    account.servedAt = instant(Math.floor(this.#orders / 3));
    const since = { sinceOrder: this.#orders, sinceTick: cost, sinceTurn: 2 * cost };
    track.queue.restartWait(member, since.sinceOrder, since.sinceTick, since.sinceTurn);
    expect(member).toMatchObject(since);
  }

  expectAnswers(): void {
    for (const { queue, memberOf } of this.tracks) {
      const members = [...memberOf.values()];
      const first = (keyOf: (member: Participant) => readonly number[]) =>
        [...members].sort((a, b) => compareKeys(keyOf(a), keyOf(b)))[0];
      expect(queue.size).toBe(members.length);
      expect(queue.longestWaiting()).toBe(first(({ sinceOrder }) => [sinceOrder]));
      const longest = first(({ sinceOrder }) => [sinceOrder]);
      if (longest !== undefined) {
        expect(queue.longestSince("ticks")).toBe(longest.sinceTick);
        expect(queue.longestSince("turns")).toBe(longest.sinceTurn);
      }
      const unserved = first(({ account }) => [account.servedOrder, account.arrivedOrder]);
      for (const at of [instant(0), instant(Math.floor(this.#orders / 5)), instant(this.#orders)]) {
        const isThere = unserved !== undefined && isServedUntil(unserved.account, at);
        expect(queue.servedUntil(at)).toBe(isThere ? unserved : undefined);
      }
      const claim = ({ account }: Participant) => Math.max(account.clock, this.virtualTime);
      expect(lowest(queue, this.virtualTime)).toBe(
        first((member) => [claim(member), member.account.servedOrder, member.account.arrivedOrder]),
      );
    }
  }

  #pick(at: number, of: number) {
    const track = this.tracks[at] as Level["tracks"][number];
    return { track, account: this.accounts[of] as Account };
  }
}

function lowest(queue: ClockQueue<Participant>, virtualTime: number): Participant | undefined {
  const number = queue.lowestClock(virtualTime);
  if (number === -1) return undefined;
  expect(queue.accountNumbered(number)).toBe(queue.memberNumbered(number).account);
  return queue.memberNumbered(number);
}

function isServedUntil({ servedOrder, servedAt }: Account, at: Instant): boolean {
  return servedOrder === 0 || servedAt <= at;
}

function compareKeys(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((part, index) => part !== b[index]);
  return at === -1 ? 0 : (a[at] as number) - (b[at] as number);
}

const operation = fc.record({
  what: fc.constantFrom("enter", "enter", "grant", "grant", "grant", "leave", "ask" as const),
  track: fc.nat(1),
  account: fc.nat(5),
  cost: fc.nat(9),
  isByRule: fc.boolean(),
});

describe("a queue of clocks", () => {
  it("answers as a sorted list does, after any changes of its members in either track", () => {
    fc.assert(
      fc.property(
        fc.array(operation, { maxLength: 80, size: "max" }),
        fc.boolean(),
        (operations, isAsked) => {
          const level = new Level();
          for (const { what, track, account, cost, isByRule } of operations) {
            if (what === "enter") level.enter(track, account);
            else if (what === "leave") level.leave(track, account);
            else if (what === "grant") level.grant(track, account, cost, isByRule);
            // Reads bring the queue up to date: the test needs a queue with frequent reads and a queue with rare reads.
            if (what === "ask" || isAsked) level.expectAnswers();
          }
          level.expectAnswers();
        },
      ),
      { numRuns: 300 },
    );
  });

  it("has no answers when it is empty", () => {
    const queue = new ClockQueue({ isServiceOrdered: true });
    expect([queue.size, queue.longestWaiting(), queue.servedUntil(instant(1)), queue.lowestClock(0)]).toEqual(
      [0, undefined, undefined, -1],
    );
  });

  it("orders members behind virtual time by last service, not by clock", () => {
    const level = new Level();
    for (const account of [0, 1, 2]) level.enter(0, account);
    level.grant(0, 0, 1, true);
    level.grant(0, 1, 5, true);
    level.grant(0, 2, 3, true);
    level.virtualTime = 9;
    const { queue } = level.tracks[0] as Level["tracks"][number];
    expect(lowest(queue, 9)?.account).toBe(level.accounts[0]);
    expect(lowest(queue, 9)).toBe(queue.servedUntil(instant(9)));
  });
});
