// The members of one level of a queue (projects, or the users of a project), ordered by turn, kept from round to round.
// Answers three questions, each in O(log n): which member waits past the starvation limit, which has the lowest clock,
// and which was served longest ago.
//
// The one thing to know: an account stands in many queues, and a grant in one queue moves its key in all of them. An
// update everywhere would cost each grant as much as the account has queues. So each heap keeps the key of the last
// look. Keys only get worse, because clocks and orders never fall. A member that reaches the front with an outdated
// key moves to its right position before the front is read. Members behind virtual time count as equal by clock. They
// stand in a heap of their own, ordered by last service, so that a rise of virtual time moves no member within it.

import type { Instant } from "../ids.ts";
import type { Account } from "./account.ts";
import { KeyedHeap } from "./keyed-heap.ts";

/** The unit of waiting: ticks of the queue's kind, or turns of the members' project in the queue. */
export type Unit = "ticks" | "turns";

/** A project or user that waits at one level of one queue. */
export interface Member {
  readonly account: Account;
  /**
   * When the member entered the queue or last got a grant in the queue, whichever is later. In orders, in ticks of the
   * queue's kind, and in turns of the user's project in the queue (0 for a project).
   */
  sinceOrder: number;
  sinceTick: number;
  sinceTurn: number;
  /** The member's number in the queue that holds it; −1 while no queue does. Only the queue writes it. */
  number: number;
}

export class ClockQueue<Item extends Member> {
  #size = 0;
  /** Members with a clock at or above virtual time at the last look: by clock. */
  readonly #ahead = new KeyedHeap();
  /** Members behind virtual time: by service. */
  readonly #behind = new KeyedHeap();
  readonly #byService: KeyedHeap | undefined;
  readonly #byWait = new KeyedHeap();
  /** Tick and turn of the longest waiting member, kept here because every decision reads both. */
  #longestTick = 0;
  #longestTurn = 0;
  /** By number, the heaps' name for a member: at 2n the member, at 2n + 1 its account. */
  readonly #members: (Item | Account | undefined)[] = [];
  readonly #freeNumbers: number[] = [];

  /** @param isServiceOrdered whether `servedUntil` is used */
  constructor({ isServiceOrdered }: { readonly isServiceOrdered: boolean }) {
    this.#byService = isServiceOrdered ? new KeyedHeap() : undefined;
  }

  /** Members of the queue, those set aside included. */
  get size(): number {
    return this.#size;
  }

  enter(member: Item): void {
    this.#size += 1;
    this.takeBack(member);
  }

  leave(member: Item): void {
    this.#size -= 1;
    this.setAside(member);
  }

  /** Hides a member until `takeBack`. Repeating it has no effect. */
  setAside(member: Item): void {
    const { number } = member;
    if (number === -1) return;
    (this.#ahead.has(number) ? this.#ahead : this.#behind).remove(number);
    this.#byWait.remove(number);
    this.#byService?.remove(number);
    this.#members[2 * number] = undefined;
    this.#members[2 * number + 1] = undefined;
    this.#freeNumbers.push(number);
    member.number = -1;
    this.#noteLongest();
  }

  takeBack(member: Item): void {
    const { account } = member;
    const number = this.#freeNumbers.pop() ?? this.#members.length / 2;
    member.number = number;
    this.#members[2 * number] = member;
    this.#members[2 * number + 1] = account;
    this.#ahead.push(number, account.clock, serviceOrder(account));
    this.#byWait.push(number, member.sinceOrder, 0);
    this.#byService?.push(number, servedAt(account), serviceOrder(account));
    this.#noteLongest();
  }

  /** Notes a grant: the member's wait begins again. */
  restartWait(member: Item, sinceOrder: number, sinceTick: number, sinceTurn: number): void {
    member.sinceOrder = sinceOrder;
    member.sinceTick = sinceTick;
    member.sinceTurn = sinceTurn;
    if (member.number === -1) return;
    this.#byWait.raise(member.number, sinceOrder, 0);
    this.#noteLongest();
  }

  /** When the longest wait began, in the given unit; any value while no member waits. */
  longestSince(unit: Unit): number {
    return unit === "ticks" ? this.#longestTick : this.#longestTurn;
  }

  longestWaiting(): Item | undefined {
    return this.#byWait.size === 0 ? undefined : this.memberNumbered(this.#byWait.front);
  }

  /** The member served longest ago, among members last served at or before an instant, or never. */
  servedUntil(at: Instant): Item | undefined {
    const heap = this.#byService;
    while (heap !== undefined && heap.frontFirst <= at) {
      const account = this.accountNumbered(heap.front);
      const order = serviceOrder(account);
      if (heap.frontSecond === order) return this.memberNumbered(heap.front);
      heap.raiseFront(servedAt(account), order);
    }
    return undefined;
  }

  /**
   * The member with the lowest max(clock, virtual time); among equals served longest ago, then first arrived.
   *
   * @returns the member's number, −1 when the queue is empty; the number also reads the account without the member
   */
  lowestClock(virtualTime: number): number {
    const ahead = this.#ahead;
    const behind = this.#behind;
    this.#freshenAhead(virtualTime);
    this.#freshenBehind(virtualTime);
    const isBehind =
      behind.size > 0 && !(ahead.frontFirst === virtualTime && ahead.frontSecond < behind.frontSecond);
    return (isBehind ? behind : ahead).front;
  }

  memberNumbered(number: number): Item {
    return this.#members[2 * number] as Item;
  }

  accountNumbered(number: number): Account {
    return this.#members[2 * number + 1] as Account;
  }

  #noteLongest(): void {
    const member = this.longestWaiting();
    if (member === undefined) return;
    this.#longestTick = member.sinceTick;
    this.#longestTurn = member.sinceTurn;
  }

  /** Brings the front of `ahead` up to date and moves members that virtual time has passed to `behind`. */
  #freshenAhead(virtualTime: number): void {
    const heap = this.#ahead;
    for (let number = heap.front; number !== -1; number = heap.front) {
      const account = this.accountNumbered(number);
      const order = serviceOrder(account);
      // Only grants move a clock, and each grant raises the order: a current order implies a current clock.
      const isFresh = heap.frontSecond === order;
      const clock = isFresh ? heap.frontFirst : account.clock;
      if (clock < virtualTime) {
        heap.remove(number);
        this.#behind.push(number, 0, order);
      } else if (isFresh) return;
      else heap.raiseFront(clock, order);
    }
  }

  /** Brings the front of `behind` up to date and moves members that are no longer behind to `ahead`. */
  #freshenBehind(virtualTime: number): void {
    const heap = this.#behind;
    for (let number = heap.front; number !== -1; number = heap.front) {
      const account = this.accountNumbered(number);
      const order = serviceOrder(account);
      if (account.clock >= virtualTime) {
        heap.remove(number);
        this.#ahead.push(number, account.clock, order);
      } else if (heap.frontSecond === order) return;
      else heap.raiseFront(0, order);
    }
  }
}

/**
 * The order of an account's last grant; before its first grant the order of arrival, below 0. Grows with each grant.
 */
function serviceOrder({ servedOrder, arrivedOrder }: Account): number {
  return servedOrder > 0 ? servedOrder : arrivedOrder - Number.MAX_SAFE_INTEGER;
}

function servedAt({ servedOrder, servedAt }: Account): number {
  return servedOrder > 0 ? servedAt : Number.NEGATIVE_INFINITY;
}
